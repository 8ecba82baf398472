"""What kind of run a process makes, whose process it is, with which arguments a crawl starts, and with which exit
status it ends.

| name | used for |
| --- | --- |
| `engine._slot.close_if_idle` | whether it is Scrapy's shell that has opened the spider |
| `crawler.spider` when a crawl has ended, `bootstrap_failed` | the exit status of an agent that could not go on |
| `CrawlerProcess.start` on the stack | whether this process is Scrapy's, and not one of a program that embeds crawls |
| `Crawler.crawl`, `Crawler.crawl_async` on the stack | the arguments of a spider, which they keep nowhere |

Add-ons are loaded while `crawl` runs, and its own variables hold the arguments. Relied on: both call `_apply_settings`,
which loads the add-ons, themselves, and name their variables `self`, `args` and `kwargs`.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.scrapy_private.engines import engine_of


def end_badly(crawler: Crawler) -> None:
    """The process's exit status is to be 1: that is Scrapy's for a crawl that has no spider when it is over."""

    def forget_spider() -> None:  # after everybody else who hears of the end
        asyncio.get_running_loop().call_soon(setattr, crawler, "spider", None)

    crawler.signals.connect(forget_spider, signals.engine_stopped, weak=False)


def is_trial(crawler: Crawler) -> bool:
    """Whether this run is one of Scrapy's commands that look at a page or two (shell, fetch, parse, check, bench).

    They apply the project's settings, add-ons included, but must not join a crawl: the shell opens a spider that stays
    open when idle, the others put a `start` of their own in place of the spider's. Asked when the engine has its slot;
    a crawler without one, in somebody's tests, joins no crawl either.
    """
    slot, spider = getattr(engine_of(crawler), "_slot", None), crawler.spider
    if slot is None:
        return True
    start_module = getattr(type(spider).start, "__module__", "") if spider is not None else ""
    return not slot.close_if_idle or start_module.startswith("scrapy.commands.")


_PROCESS_STARTS = (CrawlerProcess.start.__code__, AsyncCrawlerProcess.start.__code__)


def is_scrapys_process() -> bool:
    """Whether this thread runs in a CrawlerProcess's `start`, as everything does that a reactor or loop of it calls."""
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code in _PROCESS_STARTS:
            return True
        frame = frame.f_back
    return False


_STARTS = {
    inspect.unwrap(function).__code__
    for function in (getattr(Crawler, name, None) for name in ("crawl", "crawl_async"))
    if function is not None
}


def start_arguments(settings: BaseSettings) -> tuple[Crawler, tuple[Any, ...], dict[str, Any]] | None:
    """The crawler that is being started with these settings, and the positional and named arguments of its spider;
    None where no crawl is being started (`get_crawler` of a test)."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code in _STARTS:
            names = dict(frame.f_locals)  # from Python 3.13 on they are no dict, and their keys no set
            if {"self", "args", "kwargs"} <= names.keys() and names["self"].settings is settings:
                return names["self"], tuple(names["args"]), dict(names["kwargs"])
        frame = frame.f_back
    return None
