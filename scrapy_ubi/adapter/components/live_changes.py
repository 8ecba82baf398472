"""What follows at Scrapy's end when people change the settings of a running crawl (`agent.steering`).

Rules of this module:

* Parts of this package are told, or read `settings` of the scheduler when they need it. Of Scrapy what has copied a
  setting is set itself (`adapter.scrapy_private.changed_settings`): its settings are frozen, and most were read at the
  start.
* What is taken back is as the project's settings have it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy_ubi.adapter.components.page_observers import add_sitemaps
from scrapy_ubi.adapter.scrapy_private.changed_settings import ChangedSettings
from scrapy_ubi.errors import UbiSettingError

if TYPE_CHECKING:
    from scrapy_ubi.adapter.components.scheduler import UbiScheduler
    from scrapy_ubi.adapter.process.error_signals import ErrorWatch
    from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
    from scrapy_ubi.agent.steering.runtime import RuntimeSettings

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
        self._errors.follow(settings)
        if settings.filters != before.filters:
            try:
                self._link_filter.follow(settings.filters)
            except UbiSettingError as error:  # those of settings.py may read a file that is gone by now
                logger.error("The filters stay as they were: %s", error)
        self._scrapy.delay(settings.host_delay)
        self._scrapy.follow(live.scrapys)
