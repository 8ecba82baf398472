"""What pages say to crawlers of themselves (`policy.politeness.page_robots`): noted for stores, and obeyed for links.

Rules of this module:

* It is there where UBI_NOFOLLOW is on, or a store keeps pages themselves. What a page says is in its `meta`, where
  stores find it.
* The head of a page is parsed only where a name that may address this crawler stands in it; of one without an end the
  first `MOST_BYTES`.
* With UBI_NOFOLLOW what the callback of a page that says `nofollow` asks for is left out, and counted; the page itself,
  asked for once more, is no link. Items are taken.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.policy.politeness.page_robots import NOFOLLOW, PAGE_ROBOTS, in_order, read_fields, read_meta
from scrapy_ubi.policy.robots.text import product

MOST_BYTES = 65_536  # of a page, in which its head may be
_HEADER = b"X-Robots-Tag"


class PageRobots(PageObserver):
    """Reads what pages say. `bot`: the name of this crawler's product; `obeys`: UBI_NOFOLLOW; `note` notes what
    pages say, and where."""

    marks = (PAGE_ROBOTS,)

    def __init__(
        self, bot: str, obeys: bool, stats: StatBuffer, note: Callable[[str, str], None], now: Callable[[], float]
    ) -> None:
        self._names = {"robots", bot.lower()} - {""}
        self._bot = bot.lower()
        self._obeys = obeys
        self._stats = stats
        self._note = note
        self._now = now
        self._written = [name.encode() for name in self._names]

    def answered(self, flight: Flight, response: Response) -> None:
        """Note what a page says."""
        said = frozenset[str]()
        if fields := response.headers.getlist(_HEADER):
            said = read_fields([field.decode("latin-1") for field in fields], self._bot, self._now())
        if isinstance(response, HtmlResponse):
            said |= self._of_metas(response.body)
        if said:
            flight.request.meta[PAGE_ROBOTS] = in_order(said)
            for directive in said:
                self._stats.sums[f"ubi/page_robots/{directive}"] += 1
                if directive != NOFOLLOW or self._obeys:
                    self._note(f"page_robots/{directive}", flight.host or "")
        else:
            flight.request.meta.pop(PAGE_ROBOTS, None)

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Whether this is a link of a page that says `nofollow`."""
        if not self._obeys or NOFOLLOW not in flight.request.meta.get(PAGE_ROBOTS, ()):
            return False
        if not isinstance(found, Request | PlainLinks) or (isinstance(found, Request) and found.url == response.url):
            return False
        urls = [url for url in found.urls if isinstance(url, str)] if isinstance(found, PlainLinks) else [found.url]
        self._stats.sums["ubi/page_robots/links_left_out"] += len(urls)
        if flight.links is not None:
            flight.links.urls.extend(urls)
        return True

    def _of_metas(self, body: bytes) -> frozenset[str]:
        end = body.find(b"</head", 0, MOST_BYTES)
        head = body[: end if end >= 0 else MOST_BYTES]
        lowered = head.lower()
        if not any(name in lowered for name in self._written):
            return frozenset()
        said = frozenset[str]()
        for meta in LexborHTMLParser(head).css("meta[name][content]"):
            if (meta.attributes.get("name") or "").strip().lower() in self._names:
                said |= read_meta(meta.attributes.get("content") or "", self._now())
        return said


def bot_of(settings: BaseSettings) -> str:
    """The name by which pages may address this crawl: the product of ROBOTSTXT_USER_AGENT or USER_AGENT."""
    return product(str(settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"] or ""))
