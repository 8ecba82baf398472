"""UBI_FAST: what one setting changes in how pages are fetched, for speed.

Rules of this module:

* Only what has been measured to pay is here (docs/how-to/fast.md has the figures), and all of it can be seen: the log
  says at the start what was changed.
* What the user has set wins, and a warning says so.
"""

from __future__ import annotations

import logging

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.python import global_object_name

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.garbage import FewerCollections
from scrapy_ubi.http.handler import UbiDownloadHandler
from scrapy_ubi.leansignals import LeanSignals
from scrapy_ubi.leanstats import LeanStats
from scrapy_ubi.noproxy import NoProxyOnce
from scrapy_ubi.onetask import OneTask
from scrapy_ubi.settings import SETTINGS, read_value
from scrapy_ubi.unwritten import UnwrittenRecords

logger = logging.getLogger(__name__)

SCHEMES = ("http", "https")
EXTENSIONS = {
    LeanSignals: "signals are sent with less ado",
    FewerCollections: "Python looks for garbage less often",
    NoProxyOnce: "no_proxy is asked once for a host",
    UnwrittenRecords: "log records below LOG_LEVEL of engine and scraper are not made",
    OneTask: "a page is one task of the event loop",
}

_ADDON = SETTINGS_PRIORITIES["addon"]
_ROW = next(row for row in SETTINGS if row.name == "fast")
# Settings of Scrapy's handler for https that mean something to Twisted only.
_OF_TWISTED = ("DOWNLOADER_CLIENTCONTEXTFACTORY",)


def is_fast(settings: BaseSettings) -> bool:
    """Whether UBI_FAST is set. A malformed value is none here: the start is refused because of it elsewhere."""
    try:
        return bool(read_value(_ROW, settings.get(_ROW.setting)))
    except UbiSettingError:
        return False


def place(settings: BaseSettings) -> None:
    """Change Scrapy's settings as UBI_FAST has it; nothing where it is not set."""
    if not is_fast(settings):
        return
    done = [*_place_handler(settings), *_place_stats(settings)]
    for extension, what in EXTENSIONS.items():
        settings.setdefault_in_component_priority_dict("EXTENSIONS", extension, 0)
        done.append(what)
    logger.info("UBI_FAST: %s", "; ".join(done))


def _place_stats(settings: BaseSettings) -> list[str]:
    """Our stats collector, in the place of Scrapy's default one. A collector of the user's has its own purpose."""
    if settings["STATS_CLASS"] not in (MemoryStatsCollector, global_object_name(MemoryStatsCollector)):
        return []
    settings.set("STATS_CLASS", LeanStats, max(_ADDON, settings.getpriority("STATS_CLASS") or 0))
    return ["stats are counted with less ado"]


def _place_handler(settings: BaseSettings) -> list[str]:
    """Our download handler, for the schemes that the user has none for."""
    if loop := settings.get("ASYNCIO_EVENT_LOOP"):
        logger.warning(
            "UBI_FAST does not change how pages are fetched: ASYNCIO_EVENT_LOOP is %r, and only asyncio's own loop "
            "gives a request to the network at the moment at which the right to fetch was compared. Remove it.",
            loop,
        )
        return []
    theirs = settings.getdict("DOWNLOAD_HANDLERS")
    kept = [scheme for scheme in SCHEMES if scheme in theirs and theirs[scheme] is not UbiDownloadHandler]
    for scheme in kept:
        logger.warning(
            "UBI_FAST does not change how %s:// is fetched: DOWNLOAD_HANDLERS names a handler for it. Remove that to "
            "have UBI_FAST's.",
            scheme,
        )
    for name in _OF_TWISTED:
        if "https" not in kept and (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["default"]:
            kept.append("https")
            logger.warning(
                "UBI_FAST does not change how https:// is fetched: %s is set, which only Scrapy's handler knows.", name
            )
    ours = [scheme for scheme in SCHEMES if scheme not in kept]
    if ours:
        # Each scheme has a priority of its own, and without a reactor Scrapy gives its handlers that of a project.
        handlers = BaseSettings({**theirs, **dict.fromkeys(ours, UbiDownloadHandler)}, "project")
        settings.set("DOWNLOAD_HANDLERS", handlers, max(_ADDON, settings.getpriority("DOWNLOAD_HANDLERS") or 0))
    return [f"scrapy_ubi's own handler fetches {' and '.join(ours)}"] if ours else []
