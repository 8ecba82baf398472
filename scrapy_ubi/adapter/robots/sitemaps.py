"""Sitemaps that a robots.txt names, with UBI_SITEMAPS: fetched as pages of the queue, read here, not by the spider.

Rules of this module:

* A sitemap is an ordinary request with a mark in its meta: filters, keys, robots.txt, the host's turn and delay hold
  for it, and it travels and survives like any other. Its mark says how many URLs may be taken of it, and whether it may
  be an index; so no account of a host has to be kept.
* UBI_SITEMAPS is shared out among the sitemaps that a robots.txt names, and the share of an index among those that it
  names. An index within an index is not read (sitemaps.org: it may not be).
* What is found begins at depth 0 and goes to the spider's default callback; filters judge it, and OffsiteMiddleware.
* Where pages are visited again by what sitemaps say, it is told of each URL when it was changed (`lastmod`; a date
  without a time is the end of that day), and the node by `sitemap_news`.
* As much of a body is unpacked and read as may hold what is taken. Whatever the bytes, there is no exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.gz import gzip_magic_number
from scrapy.utils.sitemap import Sitemap

from scrapy_ubi.adapter.requests.decompress import unpack
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.agent import Node
from scrapy_ubi.agent.hosts.listed_pages import ListedPages
from scrapy_ubi.ground.clock import unix

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


LASTMOD = "ubi_lastmod"  # meta key, here only: when the page was changed, by its sitemap
MARK = "ubi_sitemap"  # meta key: [URLs that may be taken, 1 where it may be an index, else 0]
MOST_URLS = 1_000_000  # that a mark may allow; what travels is checked against it
BYTES_A_URL = 4000  # read of a sitemap for each URL that may be taken of it, at most
BYTES_ANYWAY = 1_000_000
ENTRIES_A_URL = 2  # looked at for each URL that may be taken: a small one unpacks to a million times the same URL
ENTRIES_ANYWAY = 1000
MOST_BYTES = 52_428_800  # of a sitemap, by sitemaps.org

MOST_TIME = 40  # characters of a time
DAY = 86_400.0

Location = tuple[str, str]  # a URL, and when it was changed as it is written

_BEFORE_XML = b"\xef\xbb\xbf\xfe\xff\0 \t\r\n"  # byte order marks, of UTF-16 too, and white space


class Mark(NamedTuple):
    """How many URLs may be taken of a sitemap, and whether it may be an index."""

    most: int
    may_be_index: bool

    @classmethod
    def from_request(cls, request: Request) -> Mark | None:
        """The mark of a request, None for what is no sitemap: what has travelled is data."""
        value = request.meta.get(MARK)
        if not isinstance(value, list) or len(value) != 2 or not all(type(number) is int for number in value):
            return None
        return cls(value[0], value[1] == 1) if 0 < value[0] <= MOST_URLS else None


def requests_for(urls: Iterable[str], base: str, most: int, index: bool) -> list[Request]:
    """Requests for the sitemaps at these URLs, of which so many URLs may be taken together."""
    found = list(islice(_requests(((url, "") for url in urls), base, most), most))
    for number, request in enumerate(found):
        share = most // len(found) + (number < most % len(found))
        request.meta.update({MARK: [share, int(index)], "allow_offsite": True})
    return found


def read(response: Response, mark: Mark) -> tuple[list[Request], bool]:
    """The requests that a sitemap leads to, and whether it was one."""
    most = min(BYTES_ANYWAY + BYTES_A_URL * mark.most, MOST_BYTES)
    body = response.body[:most]
    if gzip_magic_number(response):
        body = unpack(response.body, ["gzip"], most) or b""
    if not body.lstrip(_BEFORE_XML).startswith(b"<"):
        lines = body.decode("utf-8-sig", "ignore").splitlines()
        urls = [line for line in map(str.strip, lines) if line.startswith(("http://", "https://"))]
        found = _requests(((url, "") for url in urls), response.url, mark.most)
        return list(islice(found, mark.most)), bool(urls)
    kind, locations = _parsed(body)
    if kind == "sitemapindex" and mark.may_be_index:
        return requests_for((url for url, _ in locations), response.url, mark.most, index=False), True
    if kind == "urlset":
        return list(islice(_requests(locations, response.url, mark.most), mark.most)), True
    return [], False


def _parsed(body: bytes) -> tuple[str, Iterator[Location]]:
    try:
        sitemap = Sitemap(body)
    except Exception:  # noqa: BLE001 - whatever an XML parser makes of bytes from the web
        return "", iter(())
    return sitemap.type, _locations(sitemap)


def _locations(sitemap: Sitemap) -> Iterator[Location]:
    entries = iter(sitemap)
    while True:
        try:
            entry = next(entries, None)
        except Exception:  # noqa: BLE001 - as above: what came before it counts
            return
        if entry is None:
            return
        yield entry.get("loc") or "", entry.get("lastmod") or ""


def _requests(urls: Iterable[Location], base: str, most: int) -> Iterator[Request]:
    """Requests for what are URLs of the web, each once, among the first entries: so many as `most` may be found in."""
    seen = set()
    for url, changed in islice(urls, ENTRIES_ANYWAY + ENTRIES_A_URL * most):
        if not url:
            continue
        try:
            request = Request(urljoin(base, url))
        except ValueError:
            continue
        if request.url.startswith(("http://", "https://")) and request.url not in seen:
            seen.add(request.url)
            if when := _time(changed):
                request.meta[LASTMOD] = when
            yield request


def _time(text: str) -> float:
    """Unix seconds; 0 for what is no time."""
    try:
        when = datetime.fromisoformat(text.strip()[:MOST_TIME]) if text else None
        if when is None:
            return 0.0
        day = DAY - 1 if len(text.strip()) == len("2026-11-28") else 0
        return max((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + day, 0.0)
    except (ValueError, OverflowError):
        return 0.0


class Sitemaps(PageObserver):
    """The sitemaps of one agent. `found(request, parent)` takes what `parent` leads to; `most`: UBI_SITEMAPS.
    `listed(request, lastmod)` is told when a page was changed, and says whether it is visited earlier for that."""

    def __init__(
        self,
        crawler: Crawler,
        most: int,
        found: Callable[[Request, Request], object],
        listed: Callable[[Request, float], bool] | None = None,
    ) -> None:
        self._crawler = crawler
        self.most = most
        self._found = found
        self._listed = listed

    def named(self, urls: list[str], base: str, page: Request) -> None:
        """The robots.txt at `base` names these, and `page` had it fetched."""
        if self.most:
            for request in requests_for(urls, base, self.most, index=True):
                self._crawler.stats.inc_value("ubi/sitemaps/named")
                self._found(request, page)

    def passes_over(self, flight: Flight, response: Response) -> bool:
        """Whether a response is that of a sitemap, and no page for the spider; what it leads to is taken, unless that
        was done in a visit before."""
        request = flight.request
        mark = Mark.from_request(request) if self.most and not flight.unchanged else None
        if mark is None:
            return False
        if response.status != 200:
            return True
        requests, was_one = read(response, mark)
        self._crawler.stats.inc_value(f"ubi/sitemaps/{'read' if was_one else 'unreadable'}")
        for found in requests:
            self._crawler.stats.inc_value("ubi/sitemaps/urls")
            changed = found.meta.pop(LASTMOD, 0.0)
            if changed and self._listed is not None and self._listed(found, changed):
                self._crawler.stats.inc_value("ubi/recrawl/announced")
            self._found(found, request)
        return True


def sitemap_news(node: Node, keys: RequestKeys) -> Callable[[Request, float], bool] | None:
    """What is to be told of each page that a sitemap lists with a time, and says whether that page is due earlier for
    it; None where the rule does without."""
    recrawl = node.crawl.recrawl
    if recrawl is None or not recrawl.heeds_sitemaps:
        return None
    pages = recrawl.listed = ListedPages(recrawl.rule, node.hosts, unix)

    def listed(request: Request, lastmod: float) -> bool:
        place = keys.place(request)
        state = node.hosts.find(place.host) if place is not None else None
        if place is None or state is None:
            return False
        return pages.listed(node.frontier, state, keys.key(request, place), lastmod)

    return listed
