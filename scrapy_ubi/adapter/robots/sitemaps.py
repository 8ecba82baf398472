"""Sitemaps, with UBI_SITEMAPS: fetched as pages of the queue, read here, not by the spider.

Rules of this module:

* A sitemap is an ordinary request with a mark in its meta: keys, robots.txt, the host's turn and delay hold for it, and
  it travels and survives like any other. Its mark says how many URLs may be taken of it, and how many indexes it may
  lead to; so no account of a host has to be kept. It comes before the pages of its host.
* Those that a robots.txt names are read; where it names none, the usual places are tried, one after the other, until
  one is a sitemap. That one of them is none is no failure of a page. Where robots.txt is not obeyed, it is fetched for
  its sitemaps alone (`UnaskedSitemaps`).
* The number of UBI_SITEMAPS is shared out among the sitemaps that a robots.txt names, and the share of an index among
  those that it names.
* What is found begins at depth 0, comes before what pages link to, and goes to the spider's default callback; filters
  judge it, and OffsiteMiddleware. A sitemap of the host of the page that led to it is judged by no filter
  (`is_own`): filters are about pages.
* Where pages are visited again by what sitemaps say, it is told of each URL when it was changed (`lastmod`; a date
  without a time is the end of that day), and the node by `sitemap_news`.
* As much of a body is unpacked and read as may hold what is taken. Whatever the bytes, there is no exception; what is
  left out is counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.agent import Node
from scrapy_ubi.agent.crawl.revisits import Recrawl
from scrapy_ubi.agent.hosts.listed_pages import ListedPages
from scrapy_ubi.ground import clock
from scrapy_ubi.policy.robots import text
from scrapy_ubi.settings.values import SitemapUse
from scrapy_ubi.urls.links.handlers.bounds import LinksCut, Unreadable
from scrapy_ubi.urls.links.handlers.sitemap import MOST_BYTES
from scrapy_ubi.urls.listings.entries import MOST_NESTING, Listed, read_time, sitemap_entries, start_of
from scrapy_ubi.urls.listings.usual_places import SITEMAPS

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


LASTMOD = "ubi_lastmod"  # meta key, here only: when the page was changed, by its sitemap
MARK = "ubi_sitemap"  # meta key: [URLs that may be taken, indexes it may lead to, place]
MOST_URLS = 2_500_000_000  # that a mark may allow; what travels is checked against it
MOST_OF_ONE = 50_000  # URLs of one sitemap, by sitemaps.org
BYTES_A_URL = 4000  # read of a sitemap for each URL that may be taken of it, at most
BYTES_ANYWAY = 1_000_000
ENTRIES_A_URL = 2  # looked at for each URL that may be taken: a small one unpacks to a million times the same URL
ENTRIES_ANYWAY = 1000
NAMED, ROBOTS = 0, -1  # places of a mark; from 1 on: the usual places
PRIORITY = 1000  # of sitemaps, as of robots.txt
PAGE_PRIORITY = 1  # of what they list: before links
MOST_SECONDS = 30.0  # of reading one, between the turns of others
A_TURN = 64  # URLs between two turns of others
LOOK_EVERY = 0.05  # s between two looks whether further URLs may come
MOST_ASKED = 100_000  # authorities whose robots.txt was asked for


class Mark(NamedTuple):
    """How many URLs may be taken of a sitemap, how many indexes it may lead to, one in the other, and where it is:
    `NAMED`, one of the usual places, or a robots.txt that may name some (`ROBOTS`)."""

    most: int
    nesting: int
    place: int = NAMED

    @classmethod
    def from_request(cls, request: Request) -> Mark | None:
        """The mark of a request, None for what is no sitemap: what has travelled is data."""
        value = request.meta.get(MARK)
        if not isinstance(value, list) or len(value) != 3 or not all(type(number) is int for number in value):
            return None
        most, nesting, place = value
        holds = 0 < most <= MOST_URLS and 0 <= nesting <= MOST_NESTING and ROBOTS <= place <= len(SITEMAPS)
        return cls(most, nesting, place) if holds else None


class Reading(NamedTuple):
    """What a sitemap leads to, whether it was one, and what was left out of it, by reason."""

    requests: list[Request]
    was_one: bool
    left_out: Counter[str]


def is_own(request: Request, page: str) -> bool:
    """Whether a request is for a sitemap of the host of the page that has led to it."""
    return MARK in request.meta and urlsplit(request.url).hostname == urlsplit(page).hostname


def requests_for(urls: Iterable[str], base: str, most: int, nesting: int, place: int = NAMED) -> list[Request]:
    """Requests for the sitemaps at these URLs, of which so many URLs may be taken together."""
    found = list(islice(_requests((Listed(url) for url in urls), base, min(most, MOST_OF_ONE)), min(most, MOST_OF_ONE)))
    for number, request in enumerate(found):
        share = most // len(found) + (number < most % len(found))
        request.meta.update({MARK: [share, nesting, place], "allow_offsite": True})
        request.priority = PRIORITY
    return found


def read(response: Response, mark: Mark, since: float = 0.0) -> Reading:
    """Read a sitemap: what was changed since that time, or at no known time."""
    steps = read_in_steps(response, mark, since)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def read_in_steps(response: Response, mark: Mark, since: float) -> Generator[None, None, Reading]:
    """Read a sitemap, as `read` does, in steps between which others may have their turns: one may have 50 MB."""
    most = min(mark.most, MOST_OF_ONE)
    left_out: Counter[str] = Counter()
    pages: list[Listed] = []
    indexes: list[str] = []
    was_one = False
    spent = 0.0
    began = clock.now()
    looked_at = ENTRIES_ANYWAY + ENTRIES_A_URL * most
    try:
        for entry in sitemap_entries(response.body, min(BYTES_ANYWAY + BYTES_A_URL * most, MOST_BYTES)):
            if entry is None:
                spent += clock.now() - began
                if spent > MOST_SECONDS:
                    left_out["time"] += 1
                    break
                yield
                began = clock.now()
                continue
            was_one = True
            if looked_at == 0:
                left_out["entries"] += 1
                break
            looked_at -= 1
            if 0 < read_time(entry.changed) < since:
                left_out["older"] += 1
            elif not entry.is_sitemap:
                pages.append(entry)
            elif mark.nesting:
                indexes.append(entry.url)
            else:
                left_out["nesting"] += 1
    except Unreadable as unreadable:
        left_out[unreadable.reason] += 1
        return Reading([], False, left_out)
    except LinksCut as cut:
        left_out[cut.reason] += 1
        was_one = True
    if indexes:
        return Reading(requests_for(indexes, response.url, mark.most, mark.nesting - 1), was_one, left_out)
    found: list[Request] = []
    for request in _requests(pages, response.url, most):
        if len(found) == most:
            left_out["urls"] += 1
            break
        found.append(request)
        if len(found) % A_TURN == 0:
            yield
    return Reading(found, was_one, left_out)


def _requests(entries: Iterable[Listed], base: str, most: int) -> Iterator[Request]:
    """Requests for what are URLs of the web, each once, among the first entries: so many as `most` may be found in."""
    seen = set()
    for entry in islice(entries, ENTRIES_ANYWAY + ENTRIES_A_URL * most):
        if not entry.url:
            continue
        try:
            request = Request(urljoin(base, entry.url), priority=PAGE_PRIORITY)
        except ValueError:
            continue
        if request.url.startswith(("http://", "https://")) and request.url not in seen:
            seen.add(request.url)
            if when := read_time(entry.changed):
                request.meta[LASTMOD] = when
            yield request


class Sitemaps(PageObserver):
    """The sitemaps of one agent. `found(request, parent)` takes what `parent` leads to; `use`: UBI_SITEMAPS.
    `listed(request, lastmod)` is told when a page was changed, and says whether it is visited earlier for that;
    `waits()`: whether further URLs have to wait."""

    def __init__(
        self,
        crawler: Crawler,
        use: SitemapUse,
        found: Callable[[Request, Request], object],
        listed: Callable[[Request, float], bool] = lambda request, lastmod: False,
        waits: Callable[[], bool] = lambda: False,
    ) -> None:
        self._crawler = crawler
        self._waits = waits
        self._found = found
        self._listed = listed
        self.follow(use)

    def follow(self, use: SitemapUse) -> None:
        """Do this with sitemaps from now on."""
        self.use = use
        self._since = (start_of(use.since) or 0.0) if use.since else 0.0

    def named(self, urls: list[str], base: str, page: Request) -> None:
        """The robots.txt at `base` names these, and `page` had it fetched."""
        if not self.use:
            return
        most = self.use.most or MOST_URLS
        if not urls:
            self._try_place(1, base, most, page)
        for request in requests_for(urls, base, most, MOST_NESTING):
            self.count("ubi/sitemaps/named")
            self._found(request, page)

    def passes_over(self, flight: Flight, response: Response) -> bool | Awaitable[None]:
        """Whether a response is that of a sitemap, and no page for the spider; what it leads to is taken, in turns,
        unless that was done in a visit before."""
        request = flight.request
        mark = Mark.from_request(request) if self.use and not flight.unchanged else None
        if mark is None:
            return False
        if mark.place == ROBOTS:
            flight.failed = None
            whole = text.decode(text.beginning(response.body, False)) if response.status == 200 else ""
            self.named(text.take_apart(whole).sitemaps, response.url, request)
        elif response.status != 200:
            self._go_on(flight, mark)
        else:
            return self._read(flight, response, mark)
        return True

    def failed(self, flight: Flight, error: BaseException) -> None:
        """A sitemap, or what may be one, was not fetched: the next place may be."""
        mark = Mark.from_request(flight.request) if isinstance(error, IgnoreRequest) and self.use else None
        if mark is not None:
            self._go_on(flight, mark)

    async def _read(self, flight: Flight, response: Response, mark: Mark) -> None:
        """Take what a sitemap leads to, and let others have their turns: the page is over then."""
        try:
            await self._take(flight, response, mark)
        except Exception as error:
            flight.failed = f"callback/{type(error).__name__}"  # not done: what it leads to was not taken
            raise

    async def _take(self, flight: Flight, response: Response, mark: Mark) -> None:
        steps = read_in_steps(response, mark, self._since)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                requests, was_one, left_out = end.value
                break
            await asyncio.sleep(0)
        if not was_one and mark.place != NAMED:
            self._go_on(flight, mark)
            return
        self.count(f"ubi/sitemaps/{'read' if was_one else 'unreadable'}")
        for reason, number in left_out.items():
            self.count(f"ubi/sitemaps/left_out/{reason}", number)
        self.count("ubi/sitemaps/urls", len(requests))
        for number, found in enumerate(requests, 1):
            changed = found.meta.pop(LASTMOD, 0.0)
            if changed and self._listed(found, changed):
                self.count("ubi/recrawl/announced")
            self._found(found, flight.request)
            if number % A_TURN == 0:
                await asyncio.sleep(0)
                while self._waits():  # noqa: ASYNC110 - nothing tells of less being in the way
                    await asyncio.sleep(LOOK_EVERY)

    def _go_on(self, flight: Flight, mark: Mark) -> None:
        """There is no sitemap at one of the usual places: try the next one."""
        if mark.place != NAMED:
            flight.failed = None  # nobody has said that there is one
            self._try_place(mark.place + 1, flight.request.url, mark.most, flight.request)

    def _try_place(self, place: int, base: str, most: int, parent: Request) -> None:
        if place <= len(SITEMAPS):
            for request in requests_for([SITEMAPS[place - 1]], base, most, MOST_NESTING, place):
                self.count("ubi/sitemaps/tried")
                self._found(request, parent)

    def count(self, stat: str, number: int = 1) -> None:
        """Add to a stat."""
        if number:
            self._crawler.stats.inc_value(stat, number)


class UnaskedSitemaps(Sitemaps):
    """The same where robots.txt is not obeyed: it is asked for when the first page of an authority is handed out."""

    def follow(self, use: SitemapUse) -> None:
        """See the base class."""
        super().follow(use)
        self._asked: set[str] = set()

    def begun(self, flight: Flight) -> None:
        """A request is handed out."""
        parts = urlsplit(flight.request.url)
        of = f"{parts.scheme}://{parts.netloc}"
        if of in self._asked or flight.visit is None or not self.use or not parts.scheme.startswith("http"):
            return
        if len(self._asked) >= MOST_ASKED:
            self._asked.clear()  # it is asked for again, and known
        self._asked.add(of)
        for request in requests_for(["/robots.txt"], of, self.use.most or MOST_URLS, MOST_NESTING, ROBOTS):
            self._found(request, flight.request)


class SitemapsOnly(PageObserver):
    """Leaves out what pages link to, while UBI_SITEMAPS is "only"."""

    def __init__(self, sitemaps: Sitemaps) -> None:
        self._sitemaps = sitemaps

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Whether this is a link. The page itself, asked for once more, is none."""
        if self._sitemaps.use.mode != "only" or not isinstance(found, Request | PlainLinks):
            return False
        if isinstance(found, Request) and found.url == response.url:
            return False
        self._sitemaps.count("ubi/sitemaps/links_left_out", len(found.urls) if isinstance(found, PlainLinks) else 1)
        return True


def sitemap_news(node: Node, keys: RequestKeys) -> Callable[[Request, float], bool]:
    """What is to be told of each page that a sitemap lists with a time, and says whether that page is due earlier for
    it: none is, where the rule does without."""
    recrawl = node.crawl.recrawl
    if not isinstance(recrawl, Recrawl) or not recrawl.heeds_sitemaps:
        return lambda request, lastmod: False
    pages = recrawl.listed = ListedPages(recrawl.rule, node.hosts, clock.unix)

    def listed(request: Request, lastmod: float) -> bool:
        place = keys.place(request)
        state = node.hosts.find(place.host) if place is not None else None
        if place is None or state is None:
            return False
        return pages.listed(node.frontier, state, keys.key(request, place), lastmod)

    return listed
