"""Settings of Scrapy and of scrapy-redis that do not do here what they do there: a sentence for each, at the start.

Rules of this module:

* What the user, or an add-on, has set counts; Scrapy's own defaults do not.
* A setting that has its effect is not named: DEPTH_PRIORITY changes priorities, by which each host's queue is ordered.
* Those that concern one agent, where in plain Scrapy they concern the crawl, are named in a group only (UBI_REDIS_URL).
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.adapter.requests.identity import NO_FILTER
from scrapy_ubi.settings import UbiSettings

QUEUES = (
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)

# What closes one agent: the setting that does the same for the whole crawl, where there is one.
CLOSING = {
    "CLOSESPIDER_PAGECOUNT": "UBI_CRAWL_MAX_PAGES",
    "CLOSESPIDER_TIMEOUT": "UBI_CRAWL_MAX_SECONDS",
    "CLOSESPIDER_ITEMCOUNT": "",
    "CLOSESPIDER_ERRORCOUNT": "",
    "CLOSESPIDER_TIMEOUT_NO_ITEM": "",
    "CLOSESPIDER_PAGECOUNT_NO_ITEM": "",
}

# Settings that scrapy-redis' scheduler alone reads.
REDIS_SCHEDULER = (
    "SCHEDULER_PERSIST",
    "SCHEDULER_FLUSH_ON_START",
    "SCHEDULER_IDLE_BEFORE_CLOSE",
    "SCHEDULER_QUEUE_CLASS",
    "SCHEDULER_QUEUE_KEY",
    "SCHEDULER_DUPEFILTER_KEY",
    "SCHEDULER_DUPEFILTER_CLASS",
    "SCHEDULER_SERIALIZER",
)
REDIS_ADDRESS = ("REDIS_URL", "REDIS_HOST")  # of scrapy-redis, and of its pipeline and spiders


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
    if wanted.redis_url is not None:
        yield from _closing_one_agent(settings)
    yield from _of_scrapy_redis(settings, wanted)


def _closing_one_agent(settings: BaseSettings) -> Iterator[str]:
    for name, of_crawl in CLOSING.items():
        if settings.getfloat(name) > 0:
            remedy = f"{of_crawl} ends" if of_crawl else "UBI_CRAWL_MAX_PAGES and UBI_CRAWL_MAX_SECONDS end"
            yield (
                f"{name} is set: it counts what this agent does and closes this agent only; the other agents take over "
                f"its hosts and go on. {remedy} the crawl on all agents."
            )


def _of_scrapy_redis(settings: BaseSettings, wanted: UbiSettings) -> Iterator[str]:
    if unused := [name for name in REDIS_SCHEDULER if _is_given(settings, name)]:
        yield (
            f"{', '.join(unused)}: set for the scheduler of scrapy-redis, but not used. What waits and what is known "
            "lie on the agents' disks, and an unfinished crawl goes on at the next start; remove these settings."
        )
    for name in REDIS_ADDRESS:
        if wanted.redis_url is None and _is_given(settings, name):
            yield (
                f"{name} is set, but the agents do not use it: without UBI_REDIS_URL this is a crawl of one agent, "
                "alone. Set UBI_REDIS_URL for agents that crawl together."
            )
            return


def _is_given(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["addon"] and settings[name] is not None
