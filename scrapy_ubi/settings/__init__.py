"""Settings: what there is to set (`declarations`), read and checked (`ubi_settings`)."""

from __future__ import annotations

from scrapy_ubi.ground.crawl_names import bot_name, default_crawl, is_of_bot
from scrapy_ubi.settings.declarations import REPLICAS, SETTINGS
from scrapy_ubi.settings.declare import PREFIX, Kind, Setting
from scrapy_ubi.settings.relations import MOST_REPLICAS
from scrapy_ubi.settings.ubi_settings import (
    FINGERPRINTER,
    UbiSettings,
    early,
    read_value,
    refuse_unknown,
    replicas_for,
)

__all__ = [
    "FINGERPRINTER",
    "MOST_REPLICAS",
    "PREFIX",
    "REPLICAS",
    "SETTINGS",
    "Kind",
    "Setting",
    "UbiSettings",
    "bot_name",
    "default_crawl",
    "early",
    "is_of_bot",
    "read_value",
    "refuse_unknown",
    "replicas_for",
]
