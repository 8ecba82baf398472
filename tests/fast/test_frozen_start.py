"""What exists when a crawl begins is put aside, where the user has said so, and is as before when the crawl is over."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from scrapy_ubi import Addon
from scrapy_ubi.fast.frozen_start import FrozenStart


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.parametrize("users", [{}, {"UBI_FAST": False}, {"UBI_FAST": "0"}])
def test_by_default_nothing_of_the_process_is_changed(users: dict[str, Any]) -> None:
    settings = Settings(users)
    Addon().update_settings(settings)
    with pytest.raises(NotConfigured):
        FrozenStart.from_crawler(Crawler(Spider, settings))


def test_where_the_user_has_set_it_the_start_is_put_aside_until_the_end() -> None:
    FrozenStart.from_crawler(Crawler(Spider, {"UBI_FAST": True}))
    garbage = weakref.ref(Circle())
    undo = FrozenStart.change()
    assert garbage() is None, "what is garbage already is not put aside"
    assert gc.get_freeze_count()
    later = weakref.ref(Circle())
    gc.collect()
    assert later() is None
    undo()
    assert not gc.get_freeze_count()


def test_a_collector_that_the_user_has_set_stays_so() -> None:
    gc.disable()
    FrozenStart.change()()
    assert not gc.get_freeze_count()
    gc.enable()
    gc.freeze()
    FrozenStart.change()()
    assert gc.get_freeze_count()
