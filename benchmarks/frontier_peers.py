"""The peers of the frontier benchmark, through their own schedulers: what `enqueue_request` and `next_request` do.

* `scrapy`: Scrapy's default queue, DownloaderAwarePriorityQueue, and RFPDupeFilter, in memory.
* `jobdir`: the same with JOBDIR: a file (or two) a host, and the fingerprints in a file as well as in memory.
* `sqlite`: the same, with Scrapy's sqlite queues in place of its files.
* `scrapy-redis`: its scheduler, priority queue and duplicate filter, on a Redis of its own.

All go breadth first, as ours does (FIFO queues of Scrapy; scrapy-redis orders by priority alone). Request objects are
made beside the clock of the offers, and counted apart. Nothing is downloaded: the downloader has no busy slot.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from frontier_load import Links
from scrapy import Request, Spider
from scrapy.core.downloader import Downloader
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.test import get_crawler

FIFO = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}
SETTINGS: dict[str, dict[str, Any]] = {
    "scrapy": FIFO,
    "jobdir": {**FIFO, "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"},
    "sqlite": {**FIFO, "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoSQLiteQueue"},
    "scrapy-redis": {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
    },
}


warnings.filterwarnings("ignore", category=ScrapyDeprecationWarning)  # scrapy-redis is older than Scrapy 2.19


class _Spider(Spider):
    name = "bench"


def scheduler(settings: dict[str, Any]) -> Any:
    """An open scheduler with these settings. All that queues ask the engine for is its downloader."""
    handlers = dict.fromkeys(("http", "https", "ftp", "s3", "file", "data"))
    crawler = get_crawler(_Spider, {**settings, "DOWNLOAD_HANDLERS": handlers})
    crawler.spider = crawler._create_spider()
    crawler.engine = SimpleNamespace(downloader=Downloader(crawler))
    found = build_from_crawler(load_object(crawler.settings["SCHEDULER"]), crawler)
    found.open(crawler.spider)
    return found


class Peer:
    """One of the peers, in this directory or on the Redis at this port."""

    def __init__(self, name: str, directory: Path, redis_port: int | None) -> None:
        settings = dict(SETTINGS[name])
        if name in ("jobdir", "sqlite"):
            settings["JOBDIR"] = str(directory)
        if redis_port:
            settings["REDIS_URL"] = f"redis://127.0.0.1:{redis_port}/0"
        self._scheduler = scheduler(settings)

    @classmethod
    def rehearse(cls, links: Links) -> None:
        """What the benchmark, and any crawl with Scrapy, needs for itself is in memory afterwards."""
        first = scheduler(FIFO)
        for url in cls.prepare(links):
            first.enqueue_request(Request(url))

    @staticmethod
    def prepare(links: Links) -> list[str]:
        """What is at hand before an offer: the texts."""
        return links.texts()

    def make(self, texts: list[str]) -> list[Request]:
        """The requests, as a spider yields them."""
        return [Request(url) for url in texts]

    def offer(self, requests: list[Request]) -> int:
        """Offer all; how many were taken for new."""
        enqueue = self._scheduler.enqueue_request
        return sum(enqueue(request) for request in requests)

    def pop(self, most: int) -> list[Any]:
        """The next requests; fewer when that is all."""
        take = self._scheduler.next_request
        found = []
        for _ in range(most):
            request = take()
            if request is None:
                break
            found.append(request)
        return found

    def finish(self, popped: list[Any]) -> None:
        """Nothing is told of a request that is done."""

    def settle(self) -> None:
        """Nothing is held back."""
