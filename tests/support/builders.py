"""Small things that tests of several rooms are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from scrapy.settings import BaseSettings, Settings

from scrapy_ubi import Addon
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
from scrapy_ubi.adapter.process.error_log import ErrorWatch
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
from scrapy_ubi.adapter.scheduling.link_scores import LinkScores
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


def parts_of(scheduler: UbiScheduler, kept: KeptRequests | None = None) -> SchedulerBuilder:
    """The builder of a scheduler that has settings and a crawler with a spider and stats, and no directory: it can be
    put together."""
    crawler, settings = scheduler.crawler, scheduler.settings
    assert crawler.spider is not None
    made = scheduler.builder_class(scheduler, crawler.spider)
    made.link_filter = LinkFilter.from_settings(settings, made.stats.count)
    made.codec, made.keys = Codec(crawler.spider, crawler.settings), RequestKeys(settings)
    made.kept = kept if kept is not None else KeptRequests()
    made.errors = ErrorWatch(
        crawler, settings, Path("nowhere"), lambda what: scheduler.node.note(what), made.ending.burst
    )
    made.reach = reach(settings, count=made.stats.count)
    made.scores = LinkScores(ScoreChain.read(settings.score), made.stats) if settings.score else None
    return made
