"""The scheduler of a crawl that may not start, where ours cannot even be imported."""

from __future__ import annotations

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.process.start_errors import process_ended


class RefusingScheduler(BaseScheduler):
    """Ends the process with the sentence that the add-on has left in the settings."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RefusingScheduler:
        """Scrapy's hook."""
        return cls(crawler.settings["SCRAPY_UBI_REFUSAL"])

    def open(self, spider: Spider) -> None:
        """Raise SystemExit with the sentence."""
        raise process_ended(self._sentence)

    def has_pending_requests(self) -> bool:
        """Never asked."""
        return False

    def enqueue_request(self, request: Request) -> bool:
        """Never asked."""
        return False

    def next_request(self) -> Request | None:
        """Never asked."""
        return None
