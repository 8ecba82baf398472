"""The settings that may not change while URLs wait: those that decide where a URL belongs, and what makes two URLs one.

They are kept with the crawl on the agent's disk, and compared when that is opened again. So is what the agent was
started from (`origin`), and the spider's name: a spider of another name may have the same callbacks, and who starts it
is warned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_ubi.errors import UbiRefused

from .origin import FIELDS, other_arguments, other_class

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


def check_origin(path: Path, facts: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise UbiRefused when the crawl in that directory was begun from something else."""
    before = facts.get("origin")
    if not isinstance(before, Mapping):
        return  # begun by an older version
    if (classes := other_class({**before, "spider": facts.get("spider")}, own)) is not None:
        raise UbiRefused(
            f"The crawl in {path} was begun by a spider {own['spider']!r} of class {classes[0]}, now it is of class "
            f"{classes[1]}: choose another UBI_CRAWL if these are two projects of one name, or set UBI_MIXED_AGENTS = "
            "True if the class was only moved."
        )
    if (arguments := other_arguments(before, own)) is not None:
        raise UbiRefused(
            f"The crawl in {path} was begun with {arguments[0]}, now there are {arguments[1]}: give the former to go "
            "on with that crawl, choose another UBI_CRAWL for another one (leave it out, and it is made of the "
            "arguments), or set UBI_MIXED_AGENTS = True to go on with these."
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


def kept_origin(own: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent was started from, as it is kept to be compared."""
    return {field: own[field] for field in FIELDS}
