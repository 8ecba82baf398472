"""Feeds of several agents: `FEEDS = {"items-%(ubi_agent)s.jsonl": ...}` gives each its own file.

The add-on puts `FeedParams` in place. A project that runs without it, too, names the function:
`FEED_URI_PARAMS = "scrapy_ubi.feed_params"`; both together do the same as one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scrapy import Spider
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.process.arguments import given
from scrapy_ubi.adapter.scrapy_private.engines import scheduler_in
from scrapy_ubi.ground.crawl_names import bot_name, default_crawl

NO_AGENT = "plain"  # `ubi_agent` of a crawl by plain Scrapy
_PATHS = ("scrapy_ubi.feed_params", "scrapy_ubi.adapter.feeds.feed_params.feed_params")


def feed_params(params: dict[str, Any], spider: Spider) -> dict[str, Any]:
    """For FEED_URI_PARAMS: the parameters of Scrapy, `ubi_agent` and `ubi_crawl`, with the add-on or without. Without
    it the agent is called "plain", and the crawl has the name that it would have."""
    return {**params, **_names(spider)}


def _names(spider: Spider) -> dict[str, str]:
    scheduler = scheduler_in(spider.crawler)  # none in a crawler without an engine
    if (ours := getattr(scheduler, "settings", None)) is not None:
        from scrapy_ubi.settings import UbiSettings  # what is off costs nothing: here it is imported in any case

        if isinstance(ours, UbiSettings):
            return {"ubi_agent": str(getattr(scheduler, "agent_id", "")), "ubi_crawl": ours.crawl}
    settings = spider.crawler.settings
    crawl = settings.get("UBI_CRAWL") or default_crawl(bot_name(settings), spider.name, given(spider.crawler).short)
    return {"ubi_agent": NO_AGENT, "ubi_crawl": str(crawl)}


class FeedParams:
    """Scrapy's FEED_URI_PARAMS, with `ubi_agent` and `ubi_crawl` beside what the user's own function gives. `own`: that
    function; None where the user has none, or has named `feed_params`, which adds nothing else."""

    def __init__(self, own: Any = None) -> None:
        self.own = None if own in (feed_params, *_PATHS) else own

    def __repr__(self) -> str:
        """As Scrapy's log shows it among the settings."""
        if self.own is None or isinstance(self.own, str):
            return f"FeedParams({self.own or ''})"
        return f"FeedParams({getattr(self.own, '__qualname__', type(self.own).__qualname__)})"

    def __call__(self, params: dict[str, Any], spider: Spider) -> dict[str, Any]:
        ours = _names(spider)
        params = {**params, **ours}
        if params.get("batch_id") == 1:  # the name under which the file was looked for at the start
            params |= getattr(scheduler_in(spider.crawler), "feed_times", {})
        found = load_object(self.own)(params, spider) if self.own else None
        return {**ours, **(found if found is not None else params)}


def times() -> dict[str, str]:
    """What `%(time)s` and `%(batch_time)s` stand for at this moment, as Scrapy writes them."""
    now = datetime.now(tz=UTC)
    return {
        "time": now.replace(microsecond=0).isoformat().replace(":", "-"),
        "batch_time": now.isoformat().replace(":", "-"),
    }
