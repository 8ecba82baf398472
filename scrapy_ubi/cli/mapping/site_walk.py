"""The way through the lists of a site: robots.txt, sitemaps, feeds, and with `links` the home page.

Rules of this module:

* What is fetched is lists and the home page, one after the other; a page that they list never is.
* What is read of a site is bounded: `MOST_NESTING` indexes in each other, `MOST_SITEMAPS` files; each file once. What
  is beyond is refused with its reason.
* The usual places are tried where nothing is named, until one is a sitemap (a feed). That one of them is none is no
  fault; that something named cannot be read is one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from scrapy.http import TextResponse

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.cli.mapping.url_list import UrlList, UrlListFull
from scrapy_ubi.errors import UbiError
from scrapy_ubi.urls.links.handlers.bounds import LinksCut, Unreadable
from scrapy_ubi.urls.listings.entries import MOST_NESTING, Entries, Listed, feed_entries, read_time, sitemap_entries
from scrapy_ubi.urls.listings.usual_places import FEEDS, SITEMAPS

MOST_SITEMAPS = 50_000  # files: as many as an index may name
MOST_FEEDS = 20
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")
_REASONS = {
    "bytes": "larger than 50 MB",
    "malformed": "broken",
    "entities": "with entities of its own",
    "depth": "with too many elements in each other",
}


class UbiNotMapped(UbiError):
    """Nothing of the site can be read."""


class Fetched(NamedTuple):
    """What came of a URL: `why` no body came, "" where one did. `url` is the one that answered."""

    url: str
    why: str = ""
    response: TextResponse | None = None
    body: bytes = b""


class Fetcher(Protocol):
    """Loads politely what it is asked for."""

    async def fetch(self, url: str) -> Fetched:
        """Load a URL, unless robots.txt forbids it. Raises nothing of the network's."""
        ...

    async def sitemaps_of(self, url: str) -> tuple[list[str], str]:
        """The sitemaps that the robots.txt of this URL's authority names, and its address. Raises UbiNotMapped where
        it forbids everything, as it cannot be read."""
        ...


class SiteWalk:
    """Walks through the lists of one site. `tell` hears what is done, for people."""

    def __init__(
        self, fetcher: Fetcher, urls: UrlList, *, links: bool = False, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        self.sitemaps = self.feeds = 0  # that were read
        self.is_full = False
        self._fetcher = fetcher
        self._urls = urls
        self._links = links
        self._tell = tell
        self._met: set[str] = set()  # sitemaps and feeds

    async def run(self, start: str) -> None:
        """List what the site of this URL lists. Raises UbiNotMapped."""
        try:
            await self._walk(start)
        except UrlListFull:
            self.is_full = True

    async def _walk(self, start: str) -> None:
        self._urls.know_start(start)
        named, base = await self._fetcher.sitemaps_of(start)
        home = await self._fetcher.fetch(start)
        if home.why and not named and not home.why.startswith(("status", "robots")):
            raise UbiNotMapped(f"{start} cannot be reached ({home.why}).")
        site = home.url if not home.why else start
        if authority(site) != authority(start):
            self._urls.know_start(site)
            there, base_there = await self._fetcher.sitemaps_of(site)
            named = [urljoin(base, one) for one in named] + [urljoin(base_there, one) for one in there]
        if named:
            await self._read_sitemaps(_joined(base, named))
        else:
            await self._try_sitemaps(site)
        await self._read_feeds(site, home)
        if self._links:
            self._list_links(home)

    # -- sitemaps

    async def _try_sitemaps(self, site: str) -> None:
        """Read the first of the usual places that is a sitemap."""
        for place in SITEMAPS:
            url = urljoin(site, place)
            fetched = await self._fetcher.fetch(url)
            if fetched.why:
                if not fetched.why.startswith("status 4"):
                    self._urls.refuse(fetched.why, url)
                continue
            waiting: deque[tuple[str, int]] = deque()
            if await self._read_sitemap(fetched, 0, waiting, is_guess=True):
                await self._read_waiting(waiting)
                return

    async def _read_sitemaps(self, named: Iterable[str]) -> None:
        await self._read_waiting(deque((url, 0) for url in named))

    async def _read_waiting(self, waiting: deque[tuple[str, int]]) -> None:
        while waiting:
            url, nesting = waiting.popleft()
            if not self._is_new(url):
                continue
            self._tell(f"reading {url}")
            fetched = await self._fetcher.fetch(url)
            if fetched.why:
                self._urls.refuse(fetched.why, url)
            else:
                await self._read_sitemap(fetched, nesting, waiting)

    def _is_new(self, url: str) -> bool:
        if url in self._met:
            return False
        if len(self._met) >= MOST_SITEMAPS:
            self._urls.refuse(f"more than {MOST_SITEMAPS} sitemaps", url)
            return False
        self._met.add(url)
        return True

    async def _read_sitemap(
        self, fetched: Fetched, nesting: int, waiting: deque[tuple[str, int]], is_guess: bool = False
    ) -> bool:
        """List the pages of a sitemap, and let the sitemaps that it names wait. Return whether it was one."""
        found = False
        async for entry in self._entries(sitemap_entries(fetched.body), fetched.url, is_guess):
            found = True
            if not entry.is_sitemap:
                self._urls.add(entry, "sitemap", fetched.url)
            else:
                self._take_sitemap(entry, fetched.url, nesting, waiting)
        self.sitemaps += found or not is_guess
        self._met.add(fetched.url)
        return found

    def _take_sitemap(self, entry: Listed, base: str, nesting: int, waiting: deque[tuple[str, int]]) -> None:
        url = next(iter(_joined(base, [entry.url])), "")
        if not url:
            self._urls.refuse("no URL of the web", entry.url)
        elif 0 < read_time(entry.changed) < self._urls.since:
            self._urls.left_out["in sitemaps not changed since then"] += 1
        elif nesting >= MOST_NESTING:
            self._urls.refuse(f"named by an index in {MOST_NESTING} others", url)
        elif len(waiting) >= MOST_SITEMAPS:
            self._urls.refuse(f"more than {MOST_SITEMAPS} sitemaps", url)
        else:
            waiting.append((url, nesting + 1))

    async def _entries(self, entries: Entries, url: str, is_guess: bool = False) -> AsyncIterator[Listed]:
        """Yield the entries of a list, let others have their turns, and note what could not be read."""
        try:
            for entry in entries:
                if entry is None:
                    self._tell(f"{self._urls.listed:,} URLs")
                    await asyncio.sleep(0)
                else:
                    yield entry
        except Unreadable as unreadable:
            if not is_guess:
                reason = "neither a sitemap nor a feed" if unreadable.reason == "malformed" else ""
                self._urls.refuse(reason or _REASONS.get(unreadable.reason, unreadable.reason), url)
        except LinksCut as cut:
            self._urls.refuse(_REASONS.get(cut.reason, cut.reason), url)

    # -- feeds and links

    async def _read_feeds(self, site: str, home: Fetched) -> None:
        named = _feeds_of(home)
        for url in named or [urljoin(site, place) for place in FEEDS]:
            if url in self._met:
                continue
            self._met.add(url)
            fetched = await self._fetcher.fetch(url)
            if fetched.why:
                if named:
                    self._urls.refuse(fetched.why, url)
                continue
            found = False
            async for entry in self._entries(feed_entries(fetched.body), fetched.url, is_guess=not named):
                found = True
                self._urls.add(entry, "feed", fetched.url)
            self.feeds += found
            if found and not named:
                return

    def _list_links(self, home: Fetched) -> None:
        if home.why:
            self._urls.refuse(home.why, home.url)
        elif isinstance(home.response, TextResponse):
            for link in UbiLinkExtractor().extract_links(home.response):
                self._urls.add(Listed(link.url), "link", home.url)


def authority(url: str) -> str:
    """Scheme, host and port of a URL, as its robots.txt is asked for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _joined(base: str, urls: Iterable[str]) -> list[str]:
    """These as absolute URLs of the web, each once."""
    found = []
    for url in urls:
        try:
            absolute = urljoin(base, url.strip())
        except ValueError:
            continue
        if absolute.startswith(("http://", "https://")):
            found.append(absolute)
    return list(dict.fromkeys(found))


def _feeds_of(home: Fetched) -> list[str]:
    """The feeds that the home page names."""
    if home.why or not isinstance(home.response, TextResponse):
        return []
    try:
        links = home.response.xpath("//link[@rel and @type and @href]")[:1000]
    except (ValueError, RecursionError):
        return []
    wanted = [
        link.attrib["href"]
        for link in links
        if "alternate" in link.attrib["rel"].lower().split() and link.attrib["type"].strip().lower() in _FEED_TYPES
    ]
    return _joined(home.url, wanted)[:MOST_FEEDS]
