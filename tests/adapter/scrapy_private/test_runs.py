"""Canaries: what kind of run it is, and its exit status."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections import UserDict
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from scrapy import Request, Spider
from scrapy.commands.fetch import Command as Fetch
from scrapy.core.engine import _Slot
from scrapy.crawler import Crawler
from scrapy.shell import Shell
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_ubi.adapter.scrapy_private import runs
from scrapy_ubi.adapter.scrapy_private.runs import is_scrapys_process, is_trial, start_arguments

HOST = "http://h1.example"


def test_the_commands_that_look_at_a_page_are_told_from_crawls() -> None:
    class Own(Spider):
        name = "own"

        async def start(self) -> AsyncIterator[Any]:
            yield Request(HOST)

    def crawler(close_if_idle: bool) -> Any:
        return mock.Mock(spider=Own(), engine=mock.Mock(_slot=mock.Mock(close_if_idle=close_if_idle)))

    assert "self.close_if_idle: bool = close_if_idle" in inspect.getsource(_Slot)
    assert not is_trial(crawler(close_if_idle=True))
    assert "open_spider_async(close_if_idle=False)" in inspect.getsource(Shell)
    assert is_trial(crawler(close_if_idle=False))
    assert Fetch.__module__ == "scrapy.commands.fetch"
    Own.start.__module__ = "scrapy.commands.fetch"
    assert is_trial(crawler(close_if_idle=True))


BAD_END = """
from scrapy import Spider, signals
from scrapy_ubi.adapter.scrapy_private.runs import end_badly

class Bad(Spider):
    name = "bad"

    async def start(self):
        self.crawler.signals.connect(self.after, signals.engine_stopped)
        end_badly(self.crawler)
        self.crawler.signals.connect(self.after, signals.spider_closed)
        return
        yield

    def after(self):
        assert self.crawler.spider is self
"""


@pytest.mark.processes
@pytest.mark.parametrize("process", ["AsyncCrawlerProcess", "CrawlerProcess"])
def test_a_crawl_that_ends_badly_has_exit_status_1_and_says_no_more(process: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD_END)
    older = f"FORCE_CRAWLER_PROCESS={process == 'CrawlerProcess'}"
    command = [sys.executable, "-m", "scrapy", "runspider", str(file), "-s", older, "-s", "LOG_LEVEL=WARNING"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")


PROCESS = """
import scrapy
from scrapy.crawler import {cls}
from scrapy_ubi.adapter.scrapy_private.runs import is_scrapys_process

class Walk(scrapy.Spider):
    name = "walk"

    async def start(self):
        print(is_scrapys_process())
        return
        yield

process = {cls}({{"LOG_ENABLED": False, "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor"}})
process.crawl(Walk)
process.start()
"""


def test_a_test_is_none() -> None:
    assert not is_scrapys_process()


@pytest.mark.processes
@pytest.mark.parametrize("cls", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_what_a_crawler_process_runs_is_one(cls: str) -> None:
    code = PROCESS.format(cls=cls)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


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


class Locals(UserDict[str, Any]):
    """The variables of a function as Python 3.13 gives them: no dict, and its keys are a list."""

    def keys(self) -> list[str]:  # type: ignore[override]
        return list(self.data)


def test_arguments_are_found_where_variables_are_no_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    crawler = Crawler(Walk)
    variables = Locals(self=crawler, args=("x",), kwargs={"site": "a"})
    frame = SimpleNamespace(f_code=next(iter(runs._STARTS)), f_locals=variables, f_back=None)
    monkeypatch.setattr(inspect, "currentframe", lambda: frame)
    assert start_arguments(crawler.settings) == (crawler, ("x",), {"site": "a"})
