"""Plug-ins that see one agent where in plain Scrapy they saw the crawl, or lose items where a crawl is gone on with: a
sentence for each, at the start.

Rules of this module:

* A plug-in is known by its settings, as they are when all add-ons were asked. None is imported.
* Named are those that would be wrong without a word in a group of agents (UBI_REDIS_URL), or after a kill; what merely
  costs more, or works, stands in the docs (reference/compatibility.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy.settings import BaseSettings

from scrapy_ubi.settings import UbiSettings

_DBM = "DbmCacheStorage"


def remarks(settings: BaseSettings, wanted: UbiSettings) -> Iterator[str]:
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
