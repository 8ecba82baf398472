"""Crawlers that never run: their spider opens and closes by signals, as an extension sees it."""

from __future__ import annotations

from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_ubi.fast.tweaks import ProcessWide


def crawler_with(extension: type[ProcessWide]) -> Crawler:
    """A crawler with this extension."""
    made = Crawler(Spider, {})
    made.spider = Spider("walk")
    made.extension = extension.from_crawler(made)  # type: ignore[attr-defined]
    return made


def send(crawler: Crawler, signal: object) -> None:
    """Its spider opens, or is closed."""
    crawler.signals.send_catch_log(signal, spider=crawler.spider, reason="finished")
