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

from scrapy_ubi.agent.profile.origin import FIELDS, other_arguments, other_class
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.settings import FINGERPRINTER, SETTINGS

logger = logging.getLogger("scrapy_ubi")

AGREE = {
    "replicas": "the points of an agent on the ring",
    **{"normaliser" if row.name == "normalise" else row.name: row.setting for row in SETTINGS if row.agree},
    "named_by": "the function of UBI_PARTITION",
    "recrawl_rounds": "the rounds of UBI_RECRAWL",
    "fingerprinter": "REQUEST_FINGERPRINTER_CLASS",
    "max_url_length": "the longest URL (URLLENGTH_LIMIT, and 4096 at least)",
    "steps": "the rules of its steps",
    "seeds": "leave to read seeds in Redis",  # they are handed to the owners of their hosts
}  # what all agents must have alike: as they publish it -> as people know it
_BY_AGENT = {row.setting for row in SETTINGS if row.agree not in ("ownership", "urls")}
FIXED = {
    field: name
    for field, name in AGREE.items()
    if name not in _BY_AGENT and field not in ("recrawl_rounds", "seeds", "max_url_length")
}
BEFORE: Mapping[str, Any] = {
    "fingerprinter": FINGERPRINTER,
    "steps": 1,
    "host_shards": "none",
    "named_by": "",
    "seeds": False,
    "rates": "",
    "mail_slots": 1,
}  # what is meant by those who do not say it


def check_settings(path: Path, facts: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise UbiRefused when the crawl in that directory was begun with settings that decide otherwise."""
    before = facts.get("settings")
    if not isinstance(before, Mapping):
        return
    for field, setting in FIXED.items():
        then = before.get(field, BEFORE.get(field, own[field]))
        if then != own[field]:
            raise UbiRefused(f"The crawl in {path} was begun with {_difference(field, setting, then, own)}")


def _difference(field: str, setting: str, then: object, own: Mapping[str, Any]) -> str:
    forget = "or forget the crawl with `scrapy ubi reset`."
    if field == "steps":
        return (
            f"other rules of the steps of UBI_NORMALISE = {own['normaliser']!r} (version {then}, now {own[field]}): go "
            f"on with the version of scrapy-ubi that began it, {forget}"
        )
    why = ", which was the default of an earlier version" if field == "normaliser" and then == "safe" else ""
    return f"{setting} = {then!r}{why}, now it is {own[field]!r}: set it back to go on with that crawl, {forget}"


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
