"""The settings that may not change while URLs wait: those that decide where a URL belongs, and what makes two URLs one.

They are kept with the crawl on the agent's disk, and compared when that is opened again. So is the spider: another one
may have the same callbacks, and whoever starts it is warned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_ubi.errors import UbiRefused

logger = logging.getLogger("scrapy_ubi")

FIXED = {
    "partition": "UBI_PARTITION",
    "replicas": "UBI_REPLICAS",
    "replication": "UBI_REPLICATION",
    "normaliser": "UBI_NORMALISE",
    "host_rules": "UBI_HOST_RULES",
}  # as agents publish them -> as people know them


def check_settings(path: Path, facts: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise UbiRefused when the crawl in that directory was begun with settings that decide otherwise."""
    before = facts.get("settings")
    for field, setting in FIXED.items():
        if isinstance(before, Mapping) and field in before and before[field] != own[field]:
            raise UbiRefused(
                f"The crawl in {path} was begun with {setting} = {before[field]!r}, now it is {own[field]!r}: set it "
                "back to go on with that crawl, or forget the crawl with `scrapy ubi reset`."
            )


def check_spider(path: Path, facts: Mapping[str, Any], spider: str) -> None:
    """Warn when another spider began the crawl in that directory."""
    before = facts.get("spider")
    if before is not None and before != spider:
        logger.warning(
            "The crawl in %s was begun by the spider %r: what waits goes to the callbacks of %r. Give each spider a "
            "UBI_CRAWL of its own, unless their callbacks are the same.",
            path,
            before,
            spider,
        )


def fixed(own: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are kept to be compared."""
    return {field: own[field] for field in FIXED}
