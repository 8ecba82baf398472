"""What Scrapy's robots.txt middleware has read.

| name | used for |
| --- | --- |
| `RobotsTxtMiddleware._parsers` | a derived class of the user's: to forget a robots.txt that we did not let it fetch |
"""

from __future__ import annotations

from typing import Any

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from twisted.internet.defer import Deferred


def robots_known(crawler: Crawler, netloc: str) -> bool:
    """Whether the robots.txt of this network location has been read (an empty one counts)."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if middleware is None or not hasattr(middleware, "_parsers"):
        return True  # nothing asks for it, or it cannot be told
    parser = middleware._parsers.get(netloc)
    return parser is not None and not isinstance(parser, Deferred)


def forget_robots(crawler: Crawler, netloc: str) -> None:
    """Let a robots.txt that could not be fetched be asked for again: else it counts as "all allowed" from then on."""
    middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    parsers: dict[str, Any] = getattr(middleware, "_parsers", {})
    if parsers.get(netloc, crawler) is None:
        del parsers[netloc]
