"""The pages of the guard's crawls: a download handler that makes them in this process, and counts calls from the first
page to the last of those that count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

sys.path.insert(0, str(Path(__file__).resolve().parent / "crawl"))
from web import Scattered

# Not among the settings, of which Scrapy makes copies.
calls: Any = None  # the Calls of guard.py, or another thing that starts and stops
shape: Any = None  # how links are written (lanes.py); None: as usual


class Pages(BaseDownloadHandler):
    """Answers at once, in this process. `GUARD`: from which page on calls count, and for how many pages."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._first, pages = crawler.settings["GUARD"]
        self._last = self._first + pages
        self._graph = Scattered(1000, 100_000)
        self._made = 0

    async def download_request(self, request: Request) -> Response:
        self._made += 1
        calls.stop()  # what it takes to make a page is nobody's work
        place, body = self._answer(request.url)
        if self._first <= self._made < self._last:
            calls.start()
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}
        return HtmlResponse(request.url, status=200 if place else 404, headers=headers, body=body, request=request)

    def _answer(self, url: str) -> tuple[object, bytes]:
        if shape is not None:
            return shape.answer(self._graph, url)  # type: ignore[no-any-return]
        host, _, path = url.removeprefix("http://").partition("/")
        place = self._graph.page(host.encode(), b"/" + path.encode())
        return place, self._graph.html(*place) if place else b""
