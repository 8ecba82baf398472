"""Hosts that do a crawler harm, each in its way, beside good ones: what the pages of a `Site` are.

with Site() as site, Hostile(site) as web:
    ...                       # http_proxy=site.proxy; the spider starts at HOME

What is endless ends with the block. The site's log tells what was asked for, and in which order.
"""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from urllib.parse import urlsplit

from tests.support.site import HANG_UP, Page, Site, Visit, links

HOME = "http://h1.example/"
GOOD = tuple(f"good{number}.example" for number in range(6))
PAGES = 10  # of each good host

CALENDAR, HUGE, BOMB = "calendar.example", "huge.example", "bomb.example"
LOOP = tuple(f"loop{number}.example" for number in range(5))  # a circle through hosts of several agents
SILENT, LARGE = "silent-robots.example", "large-robots.example"
DRIPS, BUSY, ALL_BUSY = "drips.example", "busy.example", "all-busy.example"
HOSTILE = (CALENDAR, LOOP[0], HUGE, BOMB, SILENT, LARGE, DRIPS, BUSY, ALL_BUSY)

BUSY_PAGES = 8  # that home knows of a host that always asks to come back later
HOPS = 30  # redirects of the loop
HUGE_BYTES = 1_000_000_000
BOMB_BYTES = 100_000_000  # of a page that comes in less than a hundredth of it
ROBOTS_BYTES = 10_000_000
LOOK = 0.05  # s between two looks of a silent host whether somebody still waits
DRIP = 0.1  # s between two bytes; each of them is as good as none
LATENCY = 0.02  # s that a good page takes, so that two at once are seen


class Hostile:
    """The web of one test, which waits `asked` seconds for nobody: that is what its busy hosts ask for.

    `sent`: bytes of bodies without end that were taken, by host; `drips`: for each load of the host that drips, how
    many requests the whole web had had when it began, and when it was given up.
    """

    def __init__(self, site: Site, asked: int = 3600) -> None:
        self.site = site
        self.sent: Counter[str] = Counter()
        self.drips: list[tuple[int, int]] = []
        self._over = threading.Event()
        rules = Page("User-agent: *\nDisallow: /no\n", headers={"Content-Type": "text/plain"})
        for host in ("h1.example", *GOOD, *HOSTILE, *LOOP):
            site.page(f"http://{host}/robots.txt", rules)
        busy = (f"http://{BUSY}/{number}" for number in range(BUSY_PAGES))  # one page alone ends no host
        site.page(HOME, links(*(f"http://{host}/" for host in (*HOSTILE, *GOOD)), *busy))
        self._good()
        self._endless()
        self._large()
        self._slow()
        self._busy(asked)

    def _good(self) -> None:
        """Rings of pages, each of which links to the next host's ring, to what is forbidden, and to all that is bad."""

        def answer(visit: Visit) -> Page:
            self._over.wait(LATENCY)
            page, neighbour = number_of(visit.url), GOOD[(GOOD.index(visit.host) + 1) % len(GOOD)]
            following = [f"/{(page + 1) % PAGES or ''}", f"/no/{page}", f"http://{neighbour}/{page or ''}"]
            return Page(links(*following, *(f"http://{host}/" for host in HOSTILE)))

        for host in GOOD:
            self.site.host(host, answer)

    def _endless(self) -> None:
        def day(visit: Visit) -> Page:
            number = number_of(visit.url)
            return Page(links(f"/{2 * number + 1}", f"/{2 * number + 2}"))

        self.site.host(CALENDAR, day)
        hops = [f"http://{LOOP[hop % len(LOOP)]}/{hop or ''}" for hop in range(HOPS)]
        for hop, url in enumerate(hops):
            self.site.redirect(url, hops[(hop + 1) % HOPS])

    def _large(self) -> None:
        def huge(visit: Visit) -> Page:
            return Page("<html>", headers={"Content-Length": str(HUGE_BYTES)}, chunks=self._without_end(HUGE))

        bomb = gzip.compress(b"<html>" + b"<p>boom</p>\n" * (BOMB_BYTES // 12), 1)
        robots = "User-agent: *\nDisallow: /no\n" + "# and so on\n" * (ROBOTS_BYTES // 12)
        self.site.page(f"http://{HUGE}/", huge)
        self.site.page(f"http://{BOMB}/", Page(bomb, headers={"Content-Encoding": "gzip"}))
        self.site.page(f"http://{LARGE}/robots.txt", robots)
        self.site.page(f"http://{LARGE}/", links("/no", "/yes"))
        self.site.page(f"http://{LARGE}/yes", "fine")

    def _without_end(self, host: str) -> Iterator[bytes]:
        part = b"<p>and so on</p>\n" * 1000
        while self.sent[host] < HUGE_BYTES:
            self.sent[host] += len(part)
            yield part

    def _slow(self) -> None:
        def silent(visit: Visit) -> Page:
            while not visit.is_hung_up() and not self._over.wait(LOOK):
                pass
            return Page(status=HANG_UP)

        self.site.page(f"http://{SILENT}/robots.txt", silent)
        self.site.page(f"http://{DRIPS}/", lambda visit: Page("<html>", chunks=self._dripping()))

    def _dripping(self) -> Iterator[bytes]:
        began = len(self.site.visits)
        try:
            while not self._over.wait(DRIP):
                yield b" "
        finally:
            self.drips.append((began, len(self.site.visits)))

    def _busy(self, asked: int) -> None:
        busy = Page("come again", 503, {"Retry-After": str(asked)})
        for host in (BUSY, ALL_BUSY):
            self.site.host(host, lambda visit: busy)
        self.site.page(f"http://{ALL_BUSY}/robots.txt", busy)

    # -- what was asked for

    def asked(self, host: str, robots: bool = False) -> list[str]:
        """The URLs of a host in the order in which they were asked for: its pages, or its `robots`.txt."""
        found = [visit.url for visit in self.site.visits if visit.host == host]
        return [url for url in found if url.endswith("/robots.txt") == robots]

    def __enter__(self) -> Hostile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()


def number_of(url: str) -> int:
    """The page of this number: 0 for the first one, /."""
    return int(urlsplit(url).path.strip("/") or 0)


def good_pages() -> set[str]:
    """All pages of the good hosts."""
    return {f"http://{host}/{page or ''}" for host in GOOD for page in range(PAGES)}
