"""Where the lean parts have their place in Scrapy's settings (UBI_LEAN, which is on by default)."""

from __future__ import annotations

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.python import global_object_name

from scrapy_ubi.fast.garbage import FewerCollections
from scrapy_ubi.fast.noproxy import NoProxyOnce
from scrapy_ubi.fast.one_task import OneTask
from scrapy_ubi.fast.signals import LeanSignals
from scrapy_ubi.fast.stats import LeanStats
from scrapy_ubi.fast.unwritten import UnwrittenRecords
from scrapy_ubi.settings import flag

EXTENSIONS = (LeanSignals, FewerCollections, NoProxyOnce, UnwrittenRecords, OneTask)

_ADDON = SETTINGS_PRIORITIES["addon"]


def place_lean(settings: BaseSettings) -> None:
    """Put the lean parts in place; nothing where UBI_LEAN is off."""
    if not flag(settings, "lean"):
        return
    for extension in EXTENSIONS:
        settings.setdefault_in_component_priority_dict("EXTENSIONS", extension, 0)
    # A collector of the user's has its own purpose.
    if settings["STATS_CLASS"] in (MemoryStatsCollector, global_object_name(MemoryStatsCollector)):
        settings.set("STATS_CLASS", LeanStats, max(_ADDON, settings.getpriority("STATS_CLASS") or 0))
