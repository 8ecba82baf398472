"""What kind of run a process makes, and with which exit status it ends.

| name | used for |
| --- | --- |
| `engine._slot.close_if_idle` | whether it is Scrapy's shell that has opened the spider |
| `crawler.spider` when a crawl has ended, `bootstrap_failed` | the exit status of an agent that could not go on |
"""

from __future__ import annotations

import asyncio

from scrapy import signals
from scrapy.crawler import Crawler

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
