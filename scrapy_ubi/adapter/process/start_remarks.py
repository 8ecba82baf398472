"""Sentences at the start of what does not do here what it does in plain Scrapy: settings of Scrapy and of scrapy-redis,
plug-ins, a spider of a former Scrapy.

Rules of this module:

* What the user, or an add-on, has set counts; Scrapy's own defaults do not. It is asked when all add-ons were.
* A setting that has its effect is not named: DEPTH_PRIORITY changes priorities, by which each host's queue is ordered.
* Those that concern one agent, where in plain Scrapy they concern the crawl, are named in a group only (UBI_REDIS_URL).
* A plug-in is known by its settings; none is imported. Named are those that would be wrong without a word in a group of
  agents, where they see one agent in place of the crawl, or lose items after a kill; what merely costs more, or works,
  stands in the docs (reference/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import unwrap
from typing import Any

import scrapy
from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from scrapy_ubi.adapter.requests.identity import NO_FILTER
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.declarations import FORMER

QUEUES = (
    "SCHEDULER_PRIORITY_QUEUE",
    "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_MEMORY_QUEUE",
    "SCHEDULER_START_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE",
)

# What closes one agent: the setting that does the same for the whole crawl, where there is one.
CLOSING = {
    "CLOSESPIDER_PAGECOUNT": "pages in UBI_CRAWL_LIMITS",
    "CLOSESPIDER_TIMEOUT": "seconds in UBI_CRAWL_LIMITS",
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


def settings_remarks(settings: BaseSettings, wanted: UbiSettings) -> Iterator[str]:
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
    for name, (setting, limit) in FORMER.items():
        if _is_given(settings, name):
            yield f"{name} is the former name of {limit!r} in {setting}, which holds. Write {setting} = '{limit}=...'."
    if wanted.redis_url is not None:
        yield from _closing_one_agent(settings)
        scrapys, ours = settings.getint("DEPTH_LIMIT") > 0, wanted.crawl_limits.depth > 0
        if scrapys or ours:
            name = "DEPTH_LIMIT" if scrapys else "The limit 'depth' of UBI_CRAWL_LIMITS"
            yield (
                f"{name} is set: a page has the depth at which it was found first. Hosts are crawled side by side, "
                "each at its own speed, so a page that several hosts link to may be found by a longer way first, and "
                "what only it leads to may lie beyond the limit. Where each page counts, set a larger one."
            )
    yield from _of_scrapy_redis(settings, wanted)


def _closing_one_agent(settings: BaseSettings) -> Iterator[str]:
    for name, of_crawl in CLOSING.items():
        if settings.getfloat(name) > 0:
            remedy = f"{of_crawl or 'UBI_CRAWL_LIMITS'} ends"
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


_DBM = "DbmCacheStorage"


def plugin_remarks(settings: BaseSettings, wanted: UbiSettings) -> Iterator[str]:
    """The sentences. `wanted` is what was read of these settings."""
    if settings.getbool("DELTAFETCH_ENABLED"):
        yield (
            "DELTAFETCH_ENABLED is set: it marks a page when its callback yields an item, before the item is stored. "
            "After a kill such a page is skipped where its link is found again, and its items are lost. Take "
            "DeltaFetch out; UBI_RECRAWL visits pages again that have changed."
        )
    if wanted.redis_url is None:
        return
    if settings.getbool("SPIDERMON_ENABLED"):
        yield (
            "SPIDERMON_ENABLED is set: each agent runs the monitors on its own stats, and sends its own reports, so "
            "thresholds that are meant for the crawl fail for a part of it. Give agents monitors that hold for a part, "
            "and judge the crawl by `scrapy ubi report --json`."
        )
    if settings.getbool("DELTAFETCH_ENABLED"):
        yield (
            "DELTAFETCH_ENABLED is set: a second agent that shares DELTAFETCH_DIR deletes the database that the first "
            "has open, with all that earlier crawls have left there, and an agent knows the pages that it has fetched "
            "itself. Give each agent a DELTAFETCH_DIR of its own, or take DeltaFetch out."
        )
    if settings.getbool("HTTPCACHE_ENABLED") and _DBM in str(settings.get("HTTPCACHE_STORAGE")):
        yield (
            "HTTPCACHE_STORAGE keeps one database for all processes that share HTTPCACHE_DIR, and one of them can open "
            "it at a time. Give each agent an HTTPCACHE_DIR of its own, or use FilesystemCacheStorage."
        )
    if settings.get("SPLASH_URL") and not wanted.named_by:
        yield (
            "SPLASH_URL is set: the pages that Splash renders have its server as their host, so one agent fetches all "
            "of them, one after the other. Let UBI_PARTITION name a function that gives the page's own host, or set "
            "meta['ubi_host']."
        )


def spider_remarks(cls: type[Spider]) -> Iterator[str]:
    """A sentence for people where a spider has a `start_requests` of its own and no `start`, and this Scrapy's `start`
    does not call it."""
    if not _is_own(cls, "start_requests") or _is_own(cls, "start"):
        return
    start: Any = unwrap(cls.start)
    if "start_requests" not in start.__code__.co_names:
        yield (
            f"{cls.__module__}.{cls.__qualname__} has no start(), which is what Scrapy {scrapy.__version__} calls "
            "(plain, too): its start_requests() is not called, and the crawl begins with start_urls only. "
            "Rename it: async def start(self)."
        )


def _is_own(cls: type[Spider], name: str) -> bool:
    """Whether this comes from a class that is not Scrapy's."""
    owner = next((each for each in cls.__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.partition(".")[0] != "scrapy"
