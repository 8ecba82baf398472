"""Canaries: where Scrapy holds a spider's arguments while a crawl is being started."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_ubi.adapter.scrapy_private.start_arguments import start_arguments

_seen: list[Any] = []


class Looks:
    """An add-on."""

    def update_settings(self, settings: Any) -> None:
        _seen.append(start_arguments(settings))


class Walk(Spider):
    name = "walk"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kwargs["site"] = "changed"

    async def start(self) -> Any:
        return
        yield


class Other(Crawler):
    """One of a user's."""

    async def crawl_async(self, *args: Any, **kwargs: Any) -> None:
        await super().crawl_async(*args, **kwargs)


@pytest.mark.parametrize("cls", [Crawler, Other])
@pytest.mark.parametrize("way", ["crawl", "crawl_async"])
def test_add_ons_are_loaded_where_the_arguments_are(cls: type[Crawler], way: str) -> None:
    _seen.clear()
    crawler = cls(Walk, {"ADDONS": {Looks: 1}, "TWISTED_REACTOR_ENABLED": False, "TELNETCONSOLE_ENABLED": False})

    async def run() -> None:
        if way == "crawl":
            await maybe_deferred_to_future(crawler.crawl("x", site="a"))
        else:
            await crawler.crawl_async("x", site="a")

    asyncio.run(run())
    assert _seen == [(crawler, ("x",), {"site": "a"})]


@pytest.mark.parametrize("function", [Crawler.crawl, Crawler.crawl_async])
def test_the_variables_have_these_names(function: Any) -> None:
    code = inspect.unwrap(function).__code__
    assert {"self", "args", "kwargs"} <= set(code.co_varnames)


def test_where_no_crawl_is_started_there_are_none() -> None:
    _seen.clear()
    crawler = Crawler(Walk, {"ADDONS": {Looks: 1}, "TWISTED_REACTOR_ENABLED": False})
    crawler._apply_settings()
    assert _seen == [None]
