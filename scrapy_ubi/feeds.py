"""Feeds of several agents: `FEEDS = {"items-%(ubi_agent)s.jsonl": ...}` gives each its own file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scrapy import Spider
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_ubi.engines import scheduler_in

# What stands in a name and is the same for all of one crawl; anything else of the spider may be given by its arguments.
_OF_ALL = frozenset({"name", "ubi_crawl", "batch_id"})
_params = re.compile(r"%\((\w+)\)").findall


class FeedParams:
    """Scrapy's FEED_URI_PARAMS, with `ubi_agent` and `ubi_crawl` beside what the user's own function gives."""

    def __init__(self, own: Any = None) -> None:
        self._own = own

    def __call__(self, params: dict[str, Any], spider: Spider) -> dict[str, Any]:
        scheduler = scheduler_in(spider.crawler)  # none in a crawler without an engine: empty names
        settings = getattr(scheduler, "settings", None)
        ours = {
            "ubi_agent": getattr(scheduler, "agent_id", ""),
            "ubi_crawl": settings.crawl if settings is not None else "",
        }
        params = {**params, **ours}
        found = load_object(self._own)(params, spider) if self._own else None
        return {**ours, **(found if found is not None else params)}


def of_one_name(settings: BaseSettings) -> Iterator[str]:
    """A sentence for each feed whose file has the same name for every process that is started in one directory."""
    for uri in map(str, settings.getdict("FEEDS")):
        if _OF_ALL.issuperset(_params(uri)) and not uri.startswith("stdout:"):
            yield (
                f"Another agent runs in this directory, and the feed {uri!r} has one name for both: they write over "
                "each other's items. Put %(ubi_agent)s into its name."
            )
