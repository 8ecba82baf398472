"""The one line that turns everything on: `ADDONS = {"scrapy_ubi.Addon": 500}`. `UBI_ENABLED = False` turns it off.

Rules of this package:

* What is off costs nothing: Scrapy imports this module for each of its commands in such a project, so it decides by the
  settings first. What is on stands in `turn_on`, which is imported when a crawl starts.
* Where UBI_ENABLED is off everything is as plain Scrapy has it, but for what the project itself uses of this package:
  the names in feeds' URIs, and plain links, which become ordinary requests. That needs no private name of Scrapy's.
* Where it is on, and Scrapy lacks a name that is needed, the start is refused with a sentence that has the name. The
  scheduler that ends the process with it is `refused`, which needs none.
"""

from __future__ import annotations

import logging
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

logger = logging.getLogger(__name__)

_ADDON = SETTINGS_PRIORITIES["addon"]
_PLAIN_LINKS = "scrapy_ubi.adapter.components.expand_middleware.PlainLinksMiddleware"
_NEXT_TO_SPIDER = 1_000_000  # of the spider middlewares: innermost
_REFUSING = "scrapy_ubi.addon.refused.RefusingScheduler"


class Addon:
    """Makes a Scrapy project's crawls those of an agent."""

    def __repr__(self) -> str:
        """As Scrapy's log lists it among the enabled add-ons."""
        return "scrapy_ubi.Addon"

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Scrapy's hook, before there is a crawler, for each of its commands: UBI_DNS_SERVERS."""
        if not settings.get("UBI_DNS_SERVERS") or is_off(settings):
            return
        try:
            from scrapy_ubi.addon.turn_on import resolve_names
        except (ImportError, AttributeError):
            return  # a crawl says so, and is refused
        resolve_names(settings)

    def update_settings(self, settings: BaseSettings) -> None:
        """Scrapy's hook: puts scheduler, middlewares and feed parameters in place."""
        from scrapy_ubi.adapter.components.place_component import place_component
        from scrapy_ubi.adapter.process import arguments

        arguments.note(settings)
        _wrap_feed_params(settings)
        place_component(settings, "SPIDER_MIDDLEWARES", _PLAIN_LINKS, _NEXT_TO_SPIDER)
        if is_off(settings):
            logger.info("UBI_ENABLED is off: the crawl is one of plain Scrapy, without other agents.")
            return
        try:
            from scrapy_ubi.addon.turn_on import turn_on
        except (ImportError, AttributeError) as error:
            _refuse(settings, error)
        else:
            turn_on(settings)


def is_off(settings: BaseSettings) -> bool:
    """Whether UBI_ENABLED is a value that turns the add-on off. One that holds neither is refused where it is on."""
    return str(settings.get("UBI_ENABLED")).lower() in ("false", "0")


def at_least_addon(settings: BaseSettings, name: str) -> int:
    """The priority at which a setting takes the place of whatever it has."""
    return max(_ADDON, settings.getpriority(name) or 0)


def _refuse(settings: BaseSettings, error: ImportError | AttributeError) -> None:
    """Refuse the start: what an agent needs cannot be imported."""
    from scrapy_ubi.adapter.process.start_errors import lacking

    place = (getattr(error, "name", None) or "").partition(".")[0]
    if place in ("scrapy", "twisted") or isinstance(error, AttributeError):
        sentence = lacking(f"{error}".partition(" (")[0])  # without the path of the file
    else:
        sentence = (
            f"What scrapy_ubi needs cannot be imported ({error}): install it, or crawl without agents (UBI_ENABLED = "
            "False)."
        )
    settings.set("SCRAPY_UBI_REFUSAL", sentence, _ADDON)
    settings.set("SCHEDULER", _REFUSING, max(SETTINGS_PRIORITIES["project"], at_least_addon(settings, "SCHEDULER")))


def _wrap_feed_params(settings: BaseSettings) -> None:
    """Let feed URIs hold %(ubi_agent)s and %(ubi_crawl)s, beside what the user's own function adds."""
    from scrapy_ubi.adapter.feeds.feed_params import FeedParams

    own: Any = settings.get("FEED_URI_PARAMS")
    settings.set("FEED_URI_PARAMS", FeedParams(own), at_least_addon(settings, "FEED_URI_PARAMS"))
    feeds = settings.getdict("FEEDS")
    if any("uri_params" in options for options in feeds.values()):
        wrapped = {
            uri: {**options, "uri_params": FeedParams(options["uri_params"])} if "uri_params" in options else options
            for uri, options in feeds.items()
        }
        settings.set("FEEDS", wrapped, at_least_addon(settings, "FEEDS"))
