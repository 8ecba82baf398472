"""Requisites of pages, for archives that replay: images, styles, scripts, fonts, icons, of any host, fetched as pages
of the queue that the spider never sees.

Rules of this module:

* It is there where a store asks for them (`warc(requisites=yes)`). A requisite is an ordinary request with a mark in
  its meta: robots.txt, the host's turn and delay hold for it, and it travels and survives like any other. It has the
  depth of its page and comes right after it.
* It has a nonce, the same everywhere: so it is fetched once, and is no page: a link to the same URL is one, and reaches
  its callback. That URL is then fetched twice.
* No filter judges it, and OffsiteMiddleware lets it pass: they are about pages. Limits of hosts and of the crawl count
  it.
* Its callback is none of the spider's, so that a crawl that goes on without this observer calls none for it. Whatever
  becomes of it, it is no failed page: that is counted.
* `MOST_OF_PAGE` are taken of a page, and `MOST_OF_STYLES` of all its style sheets together: shared out among what may
  be one, and again among what that imports, `MOST_NESTING` deep. None has more than `MOST_BYTES`.
* Of a page that is not kept none is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadCancelledError
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.spidermiddlewares.referer import RefererMiddleware

from scrapy_ubi.adapter.requests.check import NONCE, REQUISITE
from scrapy_ubi.adapter.requests.codec import depth_of
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.requests.page_outcome import reason_of
from scrapy_ubi.urls.links.requisites import Requisites, may_be_style, requisites_of_page, requisites_of_style

MOST_OF_PAGE = 1000
MOST_OF_STYLES = 5000
MOST_NESTING = 5  # style sheets, one imported by the other
MOST_BYTES = 32 << 20  # of one
LEFT_OUT = ("bytes", "robots", "usage", "link")  # how reasons begin for which nothing was asked for


class Mark(NamedTuple):
    """How many requisites may be taken of what was marked, if it is a style sheet, and how deep they may nest."""

    most: int
    nesting: int

    @classmethod
    def from_request(cls, request: Request) -> Mark | None:
        """The mark of a request, None for what is no requisite: what has travelled is data."""
        if REQUISITE not in request.meta:
            return None
        value = request.meta[REQUISITE]
        if not isinstance(value, list) or len(value) != 2 or not all(type(number) is int for number in value):
            return cls(0, 0)
        return cls(min(max(value[0], 0), MOST_OF_STYLES), min(value[1], MOST_NESTING))


class PageRequisites(PageObserver):
    """Asks for those of one agent's pages. `found(request, parent)` takes what `parent` needs and says whether that was
    news; `is_kept(request)`: whether an archive keeps the page; `count` adds to a stat, where there is something."""

    def __init__(
        self,
        crawler: Crawler,
        found: Callable[[Request, Request], bool],
        is_kept: Callable[[Request], bool],
        count: Callable[[str, int], None],
    ) -> None:
        self._found = found
        self._is_kept = is_kept
        self._count = count
        self._referers = crawler.get_spider_middleware(RefererMiddleware)
        most = crawler.settings.getint("DOWNLOAD_MAXSIZE")
        self._most_bytes = min(MOST_BYTES, most) if most > 0 else MOST_BYTES

    def passes_over(self, flight: Flight, response: Response) -> bool:
        """Whether this is a requisite, and no page for the spider. What a page or style sheet needs is asked for."""
        mark = Mark.from_request(flight.request)
        if mark is None:
            is_style = _is_style(response)
            if (is_style or isinstance(response, HtmlResponse)) and self._is_kept(flight.request):
                found = requisites_of_style(response.body, response.url) if is_style else _of_page(response)
                self._ask(flight, response, found, MOST_OF_PAGE, Mark(MOST_OF_STYLES, MOST_NESTING))
            return False
        if flight.failed is not None:
            self._count(f"ubi/requisites/failed/{flight.failed}", 1)
            flight.failed = None
            return True
        self._count("ubi/requisites/fetched", 1)
        if response.status == 200 and _is_style(response):
            requisites = requisites_of_style(response.body, response.url)
            if mark.nesting > 0:
                taken = min(len(requisites.urls), mark.most)
                self._ask(flight, response, requisites, taken, Mark(mark.most - taken, mark.nesting - 1))
            elif requisites.urls:
                self._count("ubi/requisites/left_out/nesting", len(requisites.urls))
        return True

    def failed(self, flight: Flight, error: BaseException) -> None:
        """A requisite has no response: that is no failure of a page."""
        if REQUISITE not in flight.request.meta:
            return
        reason = "bytes" if isinstance(error, DownloadCancelledError) else reason_of(error)
        if reason.partition("/")[0] in LEFT_OUT:
            self._count(f"ubi/requisites/left_out/{reason}", 1)
        else:
            self._count(f"ubi/requisites/failed/{reason}", 1)
        flight.failed = None

    def _ask(self, flight: Flight, response: Response, of: Requisites, most: int, mark: Mark) -> None:
        """Ask for the first `most`; what `mark` allows is shared out among those that may be style sheets."""
        urls, left_out = of.urls[:most], of.left_out
        left_out["number"] += len(of.urls) - len(urls)
        styles = sum(map(may_be_style, urls))
        share = [mark.most // styles, mark.nesting] if styles else []
        asked = 0
        for url in urls:
            try:
                request = self._request(url, flight.request, response, share if may_be_style(url) else [0, 0])
            except ValueError:
                left_out["url"] += 1
                continue
            asked += self._found(request, flight.request)
        self._count("ubi/requisites/asked", asked)
        for reason, number in left_out.items():
            self._count(f"ubi/requisites/left_out/{reason}", number)

    def _request(self, url: str, page: Request, response: Response, mark: list[int]) -> Request:
        """Make the request for one. Raises ValueError for what is no URL."""
        meta = {
            REQUISITE: mark, NONCE: REQUISITE, "allow_offsite": True, "depth": depth_of(page),
            "download_maxsize": self._most_bytes,
        }  # fmt: skip
        if "cookiejar" in page.meta:
            meta["cookiejar"] = page.meta["cookiejar"]
        request = Request(url, callback=NO_CALLBACK, priority=page.priority + 1, meta=meta)
        if self._referers is not None:
            referer = self._referers.policy(response, request).referrer(response.url, request.url)
            if referer is not None:
                request.headers["Referer"] = referer
        return request


def _of_page(response: Response) -> Requisites:
    assert isinstance(response, HtmlResponse)
    return requisites_of_page(response.text, response.url, response.encoding)


def _is_style(response: Response) -> bool:
    kind = response.headers.get("Content-Type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/css"
