"""The links of a response by its content type (UBI_LINKS_OF), for the short path of the spiders.

Rules of this module:

* What no handler takes is for the link extractor, as it is without the setting; where only that is asked for, nothing
  of this is made.
* What handlers find is joined to the response's address, must be http or https, and passes the rules of the extractor
  for URLs: each URL once, `MOST_LINKS` of a document.
* The synchronous way reads at once. The other one lets the loop have its turn every `TURN` seconds, and is the only one
  for PDF, which is read elsewhere: a callback that awaits it has not ended, so its page is not done.
* Nothing is left out silently: stats say what was read, cut and refused, and why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.link import Link
from scrapy.linkextractors import IGNORED_EXTENSIONS
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.process.start_errors import process_ended
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import SETTINGS, read_value
from scrapy_ubi.urls.links.handlers import handler_choice, json_urls
from scrapy_ubi.urls.links.handlers.bounds import MOST_LINKS, MOST_SECONDS, MOST_URL, FetchedBody, LinksCut, Unreadable
from scrapy_ubi.urls.links.handlers.handler_choice import HEADER, JSON, PDF, LinksOf, chosen
from scrapy_ubi.urls.links.handlers.pdf_child import PdfQueue
from scrapy_ubi.urls.links.joiner import WEB, Joiner

logger = logging.getLogger("scrapy_ubi")

TURN = 0.01  # s of reading between two turns of the loop

_ROW = next(row for row in SETTINGS if row.name == "links_of")


class Extractor(Protocol):
    """What a link extractor is asked for."""

    def extract_links(self, response: TextResponse) -> list[Link]: ...


def with_texts(extractor: Extractor, response: TextResponse) -> dict[str, str]:
    """The URLs of the links that an extractor finds, and the text of each where it is first."""
    found: dict[str, str] = {}
    for link in extractor.extract_links(response):
        found.setdefault(link.url, link.text)
    return found


def urls_of(extractor: Extractor, response: TextResponse) -> Iterable[str]:
    """The URLs of the links that an extractor finds."""
    # One derived from ours may have an extract_links of its own.
    if getattr(type(extractor), "extract_links", None) is UbiLinkExtractor.extract_links:
        assert isinstance(extractor, UbiLinkExtractor)
        return extractor.extract_urls(response)
    return [link.url for link in extractor.extract_links(response)]


def wanted_of(settings: BaseSettings) -> LinksOf:
    """What UBI_LINKS_OF asks for. Raises UbiSettingError."""
    entries = read_value(_ROW, settings.get(_ROW.setting))
    assert isinstance(entries, tuple)
    return chosen(entries)


def check(settings: BaseSettings) -> None:
    """Raises SystemExit with one sentence where UBI_LINKS_OF does not hold."""
    try:
        wanted_of(settings)
    except UbiSettingError as error:
        raise process_ended(error) from None


class ContentLinks:
    """The links of one spider's responses. `extractor` has a handler's documents not left out by their extensions."""

    def __init__(self, crawler: Crawler, wanted: LinksOf) -> None:
        self._wanted = wanted
        self._stats = crawler.stats
        self._notices = Notices()
        self._pdf = PdfQueue() if wanted.pdf else None
        self.extractor = UbiLinkExtractor(deny_extensions=set(IGNORED_EXTENSIONS) - wanted.extensions)
        crawler.signals.connect(self.close, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ContentLinks | None:
        """None where only extractors are asked. Raises UbiSettingError."""
        wanted = wanted_of(crawler.settings)
        return None if wanted.only_html else cls(crawler, wanted)

    def urls(self, response: Response, extractor: Extractor, anchors: bool = False) -> dict[str, str]:
        """The URLs that a response leads to, all at once; none of a PDF. With the texts of links of HTML where
        `anchors` are asked for, else with empty ones."""
        taken = _Taken(response.url, extractor, anchors)
        received = _fetched(response)
        for _ in self._steps(response, received, extractor, taken):
            pass
        if self._is_pdf(received):
            self._count(f"ubi/links/refused/{PDF}/not_awaited")
            self._notices.once(
                "pdf",
                "UBI_LINKS_OF has 'pdf', but links() gives none of a PDF, since reading it takes time: "
                "write `yield await self.links_of(response)` in an `async def` callback",
            )
        return taken.urls

    async def read_urls(self, response: Response, extractor: Extractor, anchors: bool = False) -> dict[str, str]:
        """The URLs that a response leads to, also of a PDF, as `urls` gives them. The loop turns meanwhile."""
        taken = _Taken(response.url, extractor, anchors)
        received = _fetched(response)
        await _in_turns(self._steps(response, received, extractor, taken))
        if self._pdf is not None and self._is_pdf(received):
            answer = await self._pdf.read(response.body)
            await _in_turns(self._read(PDF, _told(answer.links, answer.cut, answer.refused), taken))
        return taken.urls

    def close(self) -> None:
        """The spider is closed: end what reads PDF."""
        if self._pdf is not None:
            self._pdf.close()

    def _is_pdf(self, received: FetchedBody) -> bool:
        if not self._wanted.pdf or any(one.takes(received.content_type) for one in self._wanted.own):
            return False
        return handler_choice.kind_of(received) == PDF

    def _steps(self, response: Response, received: FetchedBody, extractor: Extractor, taken: _Taken) -> Iterator[None]:
        """Read all but PDF. Yields where others may have their turn."""
        wanted = self._wanted
        if wanted.header is not None and response.headers:
            yield from self._read(HEADER, wanted.header(received), taken)
        for own in wanted.own:
            if own.takes(received.content_type):
                yield from self._read(own.name, own.values(received), taken)
                return
        kind = handler_choice.kind_of(received)
        if (reader := wanted.by_kind.get(kind)) is not None:
            yield from self._read(kind, reader(received), taken)
        elif wanted.html and isinstance(response, TextResponse) and not (wanted.pdf and kind == PDF):
            taken.add_page(response)
        if JSON in wanted.by_kind and isinstance(response, HtmlResponse) and b"ld+json" in response.body:
            yield from self._read(JSON, json_urls.embedded(response.text), taken)

    def _read(self, name: str, values: Iterator[str | None], taken: _Taken) -> Iterator[None]:
        """Take the links that a handler gives, within bounds, and count them."""
        before, spent, began = len(taken.urls), 0.0, time.monotonic()
        try:
            for value in values:
                if value is not None:
                    taken.add(value, name)
                spent += time.monotonic() - began
                if len(taken.urls) - before >= MOST_LINKS:
                    raise LinksCut("links")
                if spent > MOST_SECONDS:
                    raise LinksCut("time")
                yield
                began = time.monotonic()
        except Unreadable as unreadable:
            self._count(f"ubi/links/refused/{name}/{unreadable.reason}")
        except LinksCut as cut:
            self._count(f"ubi/links/cut/{name}/{cut.reason}")
        self._count(f"ubi/links/read/{name}")
        self._count(f"ubi/links/found/{name}", len(taken.urls) - before)
        self._count(f"ubi/links/long/{name}", taken.long)
        taken.long = 0

    def _count(self, stat: str, number: int = 1) -> None:
        if number and self._stats is not None:
            self._stats.inc_value(stat, number)


class _Taken:
    """The URLs of one response, each once, in their order, with their texts where these are asked for. `long`: links
    that were longer than any server takes."""

    def __init__(self, address: str, extractor: Extractor, anchors: bool) -> None:
        self.urls: dict[str, str] = {}
        self.long = 0
        self._extractor = extractor
        self._anchors = anchors
        self._join = Joiner(address, address, "utf-8").join
        allows = extractor.allows if isinstance(extractor, UbiLinkExtractor) else getattr(extractor, "matches", None)
        self._allows: Callable[[str], bool] = allows or _any

    def add(self, value: Any, handler: str) -> None:
        """Take a link as it is written. Raises TypeError for what is no text."""
        if not isinstance(value, str):
            raise TypeError(f"UBI_LINKS_OF: the handler {handler} has given {value!r:.100}: give texts, URLs")
        url = self._join(value.strip()) if len(value) <= MOST_URL else ""
        if url is not None and (len(value) > MOST_URL or len(url) > MOST_URL):
            self.long += 1
        elif url is not None and url.startswith(WEB) and url not in self.urls and self._allows(url):
            self.urls[url] = ""

    def add_page(self, page: TextResponse) -> None:
        """Take the links that the extractor finds."""
        if self._anchors:
            found = with_texts(self._extractor, page)
        else:
            found = dict.fromkeys(urls_of(self._extractor, page), "")
        self.urls.update(found)


def _any(url: str) -> bool:
    return True


def _told(links: Iterable[str], cut: str | None, refused: str | None) -> Iterator[str]:
    """What the child has found, as a handler of this process would give it."""
    yield from links
    if refused is not None:
        raise Unreadable(refused)
    if cut is not None:
        raise LinksCut(cut)


async def _in_turns(steps: Iterator[None]) -> None:
    """Take steps, and let others run every `TURN` seconds."""
    began = time.monotonic()
    for _ in steps:
        if time.monotonic() - began > TURN:
            await asyncio.sleep(0)
            began = time.monotonic()


def _fetched(response: Response) -> FetchedBody:
    """The response as handlers see it."""
    headers = {
        name.decode("latin-1").lower(): b", ".join(values).decode("utf-8", "replace")
        for name, values in response.headers.items()
    }
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return FetchedBody(response.url, content_type, headers, response.body)
