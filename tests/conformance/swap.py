"""A pytest plugin for Scrapy's own tests: our download handler is the default one, and requests go the way of UBI_FAST.

Used by run.py. A line at the end says how often that way was taken, and why it was not.
"""

from __future__ import annotations

from collections import Counter

from scrapy.core.engine import ExecutionEngine
from scrapy.settings import default_settings

from scrapy_ubi.scrapy_private.leanpath import place

OURS = "scrapy_ubi.http.handler.UbiDownloadHandler"

default_settings.DOWNLOAD_HANDLERS_BASE.update(http=OURS, https=OURS)

taken: Counter[str] = Counter()  # by why it was not
_original = ExecutionEngine.open_spider_async


async def open_spider_async(self: ExecutionEngine, *, close_if_idle: bool = True) -> None:
    await _original(self, close_if_idle=close_if_idle)
    taken[place(self, lambda result, request: False, None) or "taken"] += 1


ExecutionEngine.open_spider_async = open_spider_async  # type: ignore[method-assign]


def pytest_terminal_summary(terminalreporter: object) -> None:
    print("lean path:", dict(taken) or "never")
