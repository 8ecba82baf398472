"""The engine of a crawler, and the scheduler of this package in it, where there are such.

Rules of this module:

* A crawler has no engine before its crawl starts, and never has one in a user's tests (`get_crawler`): Scrapy 2.19
  raises RuntimeError then, earlier ones give None. A component that is made or asked there does what Scrapy would do
  without this package.
* So does one in an engine with another scheduler. The start of such a crawl is refused elsewhere.

| name | used for |
| --- | --- |
| `engine.scheduler` | the scheduler; new in Scrapy 2.19 |
| `engine._slot.scheduler` | the same before |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.core.engine import ExecutionEngine
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler


def engine_of(crawler: Crawler) -> ExecutionEngine | None:
    """The engine of this crawler; None before its crawl starts."""
    try:
        return crawler.engine
    except (RuntimeError, AttributeError):  # the latter: what stands for a crawler in somebody's tests
        return None


def scheduler_in(crawler: Crawler) -> BaseScheduler | None:
    """The scheduler in the engine of this crawler, of whatever class; None while there is none."""
    try:  # several times a page: one call, where `engine_of` would be another
        return crawler.engine.scheduler
    except (RuntimeError, AttributeError):
        return getattr(getattr(engine_of(crawler), "_slot", None), "scheduler", None)
