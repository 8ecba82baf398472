"""What follows at Scrapy's end from what a node tells (`agent.start.NodeEvents`), and when people change the settings
of a running crawl (`agent.steering`).

Rules of this module:

* Of a change parts of this package are told, or read `settings` of the scheduler when they need it. Of Scrapy what has
  copied a setting is set itself (`adapter.scrapy_private.changed_settings`): its settings are frozen, and most were
  read at the start.
* What is taken back is as the project's settings have it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from scrapy_ubi.adapter.components.ending import Ending
from scrapy_ubi.adapter.components.page_observers import add_limits, add_sitemaps
from scrapy_ubi.adapter.feeds.feed_claims import FeedClaims
from scrapy_ubi.adapter.process.agent_directory import AgentDirectory
from scrapy_ubi.adapter.scheduling import held_up
from scrapy_ubi.adapter.scrapy_private.changed_settings import ChangedSettings
from scrapy_ubi.agent.mail.seed_inbox import SeedOutcome
from scrapy_ubi.agent.profile.idle_reason import IdleReason
from scrapy_ubi.agent.start import NodeEvents
from scrapy_ubi.errors import UbiSettingError

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.adapter.process.error_log import ErrorWatch
    from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
    from scrapy_ubi.agent.steering.runtime import RuntimeSettings


class SchedulerEvents(NodeEvents):
    """What follows at Scrapy's end from what the node of this scheduler tells."""

    def __init__(
        self,
        scheduler: UbiScheduler,
        ending: Ending,
        directory: AgentDirectory,
        feeds: FeedClaims,
        take_seed: Callable[[str, Mapping[str, str]], SeedOutcome],
    ) -> None:
        self._scheduler = scheduler
        self._ending = ending
        self._directory = directory
        self._feeds = feeds
        self._take_seed = take_seed

    def wake(self) -> None:
        self._scheduler.hooks.wake()

    def cancel(self) -> None:
        self._scheduler.gate.cancel()

    def fatal(self, sentence: str) -> None:
        self._ending.fail(sentence)

    def drain(self) -> None:
        self._ending.drain()

    def given_up(self, reason: str) -> None:
        self._scheduler.count(f"ubi/failed/{reason}")

    def limit(self, reason: str, sentence: str) -> None:
        self._ending.stop(sentence, reason, logging.INFO)  # as the user wants it

    def incarnation(self, incarnation: str) -> None:
        self._directory.record_incarnation(incarnation)

    def seed(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        return self._take_seed(number, fields)

    def host_complete(self, figures: Mapping[str, object]) -> None:
        for completed in self._scheduler.observers.completed:
            completed(figures)

    def held_up(self) -> tuple[bool, IdleReason | None]:
        scheduler = self._scheduler
        for full in scheduler.observers.full:
            if kind := full():
                return True, held_up.full(scheduler.flights, kind)
        return scheduler.hooks.needs_backout(), held_up.under_way(scheduler.flights)

    def flush(self) -> str:
        return self._feeds.flush()


logger = logging.getLogger("scrapy_ubi")


class LiveChanges:
    """Tells the parts of one scheduler."""

    def __init__(self, scheduler: UbiScheduler, link_filter: LinkFilter, errors: ErrorWatch) -> None:
        self._scheduler = scheduler
        self._link_filter = link_filter
        self._errors = errors
        self._scrapy = ChangedSettings(scheduler.crawler)
        scheduler.node.live.follow(self._follow)

    def _follow(self, live: RuntimeSettings) -> None:
        scheduler, settings = self._scheduler, live.now
        before, scheduler.settings = scheduler.settings, settings
        scheduler.gate.follow(settings)
        if settings.sitemaps != before.sitemaps:
            scheduler.sitemaps.follow(settings.sitemaps)
            add_sitemaps(scheduler)
        add_limits(scheduler)
        self._errors.follow(settings)
        if settings.filters != before.filters:
            try:
                self._link_filter.follow(settings.filters)
            except UbiSettingError as error:  # those of settings.py may read a file that is gone by now
                logger.error("The filters stay as they were: %s", error)
        self._scrapy.delay(settings.host_delay)
        self._scrapy.apply(live.scrapys)
