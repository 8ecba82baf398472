"""Small things that tests of several rooms are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from scrapy.settings import BaseSettings, Settings

from scrapy_ubi import Addon
from scrapy_ubi.components.scheduler import UbiScheduler
from scrapy_ubi.components.wiring import Parts
from scrapy_ubi.process.error_signals import ErrorWatch
from scrapy_ubi.requests.codec import Codec
from scrapy_ubi.requests.identity import RequestKeys
from scrapy_ubi.scheduling.kept_requests import KeptRequests
from scrapy_ubi.scheduling.link_filter import LinkFilter
from scrapy_ubi.scheduling.link_scores import LinkScores
from scrapy_ubi.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.urls.scores import ScoreChain
from tests.support.reaching import reach


class Panic(BaseException):
    """What no `except Exception` catches."""


def applied(**users: Any) -> BaseSettings:
    """A project's settings, after the add-on."""
    settings = Settings(users)
    Addon().update_settings(settings)
    return settings


def hexes(digits: int) -> st.SearchStrategy[str]:
    """Numbers of so many hex digits."""
    return st.integers(0, 16**digits - 1).map(lambda number: f"{number:0{digits}x}")


def parts_of(scheduler: UbiScheduler, kept: KeptRequests | None = None) -> Parts:
    """The parts of a scheduler that has settings and a crawler with a spider and stats, and no directory."""
    crawler, settings = scheduler.crawler, scheduler.settings
    assert crawler.spider is not None
    stats = StatBuffer(crawler.stats)
    return Parts(
        stats,
        LinkFilter.from_settings(settings, stats.count),
        Codec(crawler.spider, crawler.settings),
        RequestKeys(settings),
        kept if kept is not None else KeptRequests(),
        ErrorWatch(crawler, settings, Path("nowhere"), lambda what: scheduler.node.note(what), scheduler.ending.burst),
        reach(settings, count=stats.count),
        LinkScores(ScoreChain.read(settings.score), stats) if settings.score else None,
    )
