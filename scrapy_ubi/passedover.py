"""Scrapy's settings that are set and not used: a sentence for each, at the start.

Rules of this module:

* What the user, or an add-on, has set counts; Scrapy's own defaults do not.
* A setting that has its effect is not named: DEPTH_PRIORITY changes priorities, by which each host's queue is ordered.
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.requestkeys import NO_FILTER
from scrapy_ubi.settings import UbiSettings

QUEUES = (
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)


def remarks(settings: BaseSettings, wanted: UbiSettings) -> Iterator[str]:
    """The sentences. `wanted` is what was read of these settings; asked when all add-ons were."""
    if _is_given(settings, "DUPEFILTER_CLASS") and settings["DUPEFILTER_CLASS"] not in NO_FILTER:
        yield (
            "DUPEFILTER_CLASS is set, but not used: which requests are known is decided among all agents. What makes "
            "two requests the same one is UBI_NORMALISE's matter, or that of a REQUEST_FINGERPRINTER_CLASS; requests "
            "with dont_filter=True are fetched anyway."
        )
    for name in QUEUES:
        if _is_given(settings, name):
            yield (
                f"{name} is set, but not used: each host has a queue of its own on the agent's disk, ordered by "
                "priority, depth and arrival. Set priorities, or DEPTH_PRIORITY, for another order."
            )
    if _is_given(settings, "SCHEDULER_DEBUG") and settings.getbool("SCHEDULER_DEBUG"):
        yield (
            "SCHEDULER_DEBUG is set, but not used: the first request of each kind that cannot travel whole is logged "
            "in any case, and all are counted as ubi/codec/untravelled/<kind>."
        )
    if wanted.fingerprints and _is_given(settings, "UBI_NORMALISE"):
        yield (
            f"UBI_NORMALISE is set, but not used: REQUEST_FINGERPRINTER_CLASS, {wanted.fingerprinter}, decides which "
            "requests are the same one. Remove one of the two."
        )


def _is_given(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["addon"] and settings[name] is not None
