"""UBI_LEAN in the settings: on unless it is off, and a value that is none is refused."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import BaseSettings, Settings

from scrapy_ubi import Addon
from scrapy_ubi.components.scheduler import REFUSAL
from scrapy_ubi.fast.placing import EXTENSIONS
from scrapy_ubi.fast.stats import LeanStats


def applied(**users: Any) -> BaseSettings:
    settings = Settings(users)
    Addon().update_settings(settings)
    return settings


@pytest.mark.parametrize("users", [{}, {"UBI_LEAN": True}, {"UBI_LEAN": "1"}, {"UBI_LEAN": None}])
def test_all_parts_have_their_place(users: dict[str, Any]) -> None:
    settings = applied(**users)
    assert set(EXTENSIONS) <= set(settings.getwithbase("EXTENSIONS"))
    assert settings["STATS_CLASS"] is LeanStats


@pytest.mark.parametrize("value", [False, "0", "False"])
def test_without_it_scrapy_is_as_it_is(value: Any) -> None:
    settings = applied(UBI_LEAN=value)
    assert not set(EXTENSIONS) & set(settings.getwithbase("EXTENSIONS"))
    assert settings["STATS_CLASS"] == Settings()["STATS_CLASS"]


def test_a_value_that_is_none_is_refused() -> None:
    assert applied(UBI_LEAN="perhaps")[REFUSAL].startswith("UBI_LEAN is 'perhaps'")
