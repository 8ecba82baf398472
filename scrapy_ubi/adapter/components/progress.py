"""The line of the log that says how a crawl goes on, every ten seconds: in place of Scrapy's, which knows of no queue.

Rules of this module:

* It is Scrapy's own extension, with another line: its stats at the end are the same, and where this crawl is not one of
  ours (`scrapy shell`), so is the line.
* LOGSTATS_INTERVAL, where the user has set it, says how often, and 0 never. Who has taken Scrapy's extension out of
  EXTENSIONS, or has put another in its place, has that (`place_progress`).
* Nothing is counted for it: what takes long to count is as the last sample of the timeline says.
* The line has at most `WIDTH` columns, behind what the log puts before it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.logstats import LogStats
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.components.scheduler import UbiScheduler

logger = logging.getLogger("scrapy_ubi")

EVERY = 10.0  # s
WIDTH = 80
HALTS = ("paused", "blocked", "fenced", "leaving")  # states in which little happens, and people should know why


def place_progress(settings: BaseSettings) -> None:
    """Put it in place of Scrapy's, where that would be."""
    if LogStats in map(_loaded, settings.get_component_priority_dict_with_base("EXTENSIONS")):
        settings.set_in_component_priority_dict("EXTENSIONS", LogStats, None)
        place_component(settings, "EXTENSIONS", Progress, 0)


def _loaded(name: object) -> object:
    return LogStats if name in (LogStats, f"{LogStats.__module__}.{LogStats.__qualname__}") else name


class Progress(LogStats):
    """Says how the crawl of one crawler goes on."""

    crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Progress:
        settings = crawler.settings
        own = settings.getpriority("LOGSTATS_INTERVAL")
        interval = settings.getfloat("LOGSTATS_INTERVAL") if own else EVERY
        if not interval or crawler.stats is None:
            raise NotConfigured
        made = cls(crawler.stats, interval)
        made.crawler = crawler
        crawler.signals.connect(made.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        return made

    def log(self, spider: Spider) -> None:
        """Scrapy's hook: the interval has passed, or the spider was opened."""
        scheduler = scheduler_of(self.crawler)
        if scheduler is None or scheduler.is_trial:
            super().log(spider)
            return
        before = getattr(self, "_pages", None)
        self._pages = scheduler.node.crawl.tally.pages
        self.calculate_stats()
        if before is not None:
            rate = (self._pages - before) / self.interval
            logger.info("%s", progress_line(*_parts(scheduler, rate, self.items)), extra={"spider": spider})


def _parts(scheduler: UbiScheduler, rate: float, items: int) -> tuple[str, list[str]]:
    node = scheduler.node
    last = node.recorder.timeline.samples[-1:]
    failed = node.crawl.tally.failed.total() - node.crawl.tally.requeued.total()
    parts = [f"{_many(node.crawl.tally.pages, 'page')} ({rate:.1f}/s)"]
    parts += [f"{short(sample.queued)} wait" for sample in last]
    parts += [f"{short(failed)} failed"] if failed else []
    parts += [_many(items, "item")] if items else []
    parts += [_many(sample.hosts, "host") for sample in last]
    parts += [_many(len(node.agent.view.members), "agent")] if not scheduler.alone else []
    return node.status.state if node.status.state in HALTS else "", parts


def progress_line(state: str, parts: Sequence[str]) -> str:
    """The line: as many of the parts as fit, the first ones first."""
    line = f"{state}: {parts[0]}" if state else parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > WIDTH:
            break
        line += f", {part}"
    return line


def _many(number: int, what: str) -> str:
    return f"{short(number)} {what}{'' if number == 1 else 's'}"


def short(number: int) -> str:
    """A count, in at most seven characters."""
    for size, letter in ((10**9, "G"), (10**6, "M")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:,}"
