"""Canaries: what kind of run it is, and its exit status."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from scrapy import Request, Spider
from scrapy.commands.fetch import Command as Fetch
from scrapy.core.engine import _Slot
from scrapy.shell import Shell

from scrapy_ubi.adapter.scrapy_private.runs import is_trial

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
