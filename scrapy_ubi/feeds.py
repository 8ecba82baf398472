"""Feeds of several agents: `FEEDS = {"items-%(ubi_agent)s.jsonl": ...}` gives each its own file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scrapy import Spider
from scrapy.utils.misc import load_object

from scrapy_ubi.engines import scheduler_in


class FeedParams:
    """Scrapy's FEED_URI_PARAMS, with `ubi_agent` and `ubi_crawl` beside what the user's own function gives. `own`: that
    function; None where the user has none."""

    def __init__(self, own: Any = None) -> None:
        self.own = own

    def __call__(self, params: dict[str, Any], spider: Spider) -> dict[str, Any]:
        scheduler = scheduler_in(spider.crawler)  # none in a crawler without an engine: empty names
        settings = getattr(scheduler, "settings", None)
        ours = {
            "ubi_agent": getattr(scheduler, "agent_id", ""),
            "ubi_crawl": settings.crawl if settings is not None else "",
        }
        params = {**params, **ours}
        if params.get("batch_id") == 1:  # the name under which the file was looked for at the start
            params |= getattr(scheduler, "feed_times", {})
        found = load_object(self.own)(params, spider) if self.own else None
        return {**ours, **(found if found is not None else params)}


def times() -> dict[str, str]:
    """What `%(time)s` and `%(batch_time)s` stand for at this moment, as Scrapy writes them."""
    now = datetime.now(tz=UTC)
    return {
        "time": now.replace(microsecond=0).isoformat().replace(":", "-"),
        "batch_time": now.isoformat().replace(":", "-"),
    }
