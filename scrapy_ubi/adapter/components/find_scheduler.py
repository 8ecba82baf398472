"""Where the scheduler of this package is: in the engine of a crawler, or in the settings.

Rules of this module: a scheduler of another class is not found, also where it has the same methods.
"""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.scrapy_private.engines import scheduler_in


def scheduler_of(crawler: Crawler) -> UbiScheduler | None:
    """The scheduler of this crawler's engine, where there is an engine, and it is this package's."""
    scheduler = scheduler_in(crawler)
    # `isinstance` is true of any scheduler, by the metaclass of Scrapy's base class.
    return scheduler if UbiScheduler in type(scheduler).__mro__ else None  # type: ignore[return-value]


def own_scheduler(settings: BaseSettings) -> type[UbiScheduler] | None:
    """The scheduler that is set, where it is this package's or a subclass of it."""
    try:
        cls = load_object(settings["SCHEDULER"])
    except (ImportError, NameError, TypeError, ValueError):
        return None
    return cls if isinstance(cls, type) and UbiScheduler in cls.__mro__ else None
