"""A pytest plugin for Scrapy's own tests: all that is lean (`scrapy_ubi.fast`) is in every crawl.

Used by run.py. A line at the end says how often that way was taken, and why it was not.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module

from scrapy.core.engine import ExecutionEngine
from scrapy.settings import default_settings

from scrapy_ubi.fast import PARTS
from scrapy_ubi.fast.path import place
from scrapy_ubi.fast.tweaks import LeanStats

# OneTask itself is for our scheduler.
extensions = [part for part in PARTS if part.kind == "extension" and part.name != "OneTask"]
default_settings.EXTENSIONS_BASE.update(
    {getattr(import_module(f"scrapy_ubi.fast.{part.module}"), part.name): 0 for part in extensions}
)
default_settings.STATS_CLASS = LeanStats

taken: Counter[str] = Counter()  # by why it was not
_original = ExecutionEngine.open_spider_async


async def open_spider_async(self: ExecutionEngine, *, close_if_idle: bool = True) -> None:
    await _original(self, close_if_idle=close_if_idle)
    taken[place(self, lambda result, request: False, lambda new, request: None, None) or "taken"] += 1


ExecutionEngine.open_spider_async = open_spider_async  # type: ignore[method-assign]


def pytest_terminal_summary(terminalreporter: object) -> None:
    print("lean path:", dict(taken) or "never")
