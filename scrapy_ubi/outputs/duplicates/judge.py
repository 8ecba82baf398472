"""Tells which pages are duplicates of one that the agent has fetched before, while it crawls (UBI_DUPLICATES).

Rules of this module:

* Pages of one host are compared: that host is this agent's, so no other agent has to be asked. Whole answers to GET
  with status 200 only; nothing is compared with itself, fetched again.
* What is judged near has `FEWEST` words of content at least, and says nowhere in its title or first heading that there
  is no such page (`says_missing`).
* Of all hosts together `MOST_PAGES` digests and sketches are kept: the host that was compared longest ago is forgotten
  first, whole. What is forgotten is counted.
* What is known comes back after a restart: it stands in the records of the store `duplicates`, of pages that are done.
  A host that comes from another agent comes without: pages that were fetched there are not compared with.
* The mark (`DUPLICATE_OF` in meta) is taken off what a spider has copied along, before a page is judged.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

import numpy as np
from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.judged import DUPLICATE_OF, Judged
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent.hosts.learned_forms import CUT
from scrapy_ubi.outputs.duplicates.host_pages import SHELL, HostPages
from scrapy_ubi.outputs.duplicates.sketch import (
    FEWEST,
    Bands,
    Bins,
    bands_of,
    digest_of,
    resemblance_of,
    sketch_of,
    words_of,
)
from scrapy_ubi.outputs.page_text import PageContent, content_of
from scrapy_ubi.urls import partition_key

LINKS = "ubi/duplicates/links"
MOST_PAGES = 131_072  # digests, and sketches apart, of one agent: some 20 MB, and 40

_MISSING = re.compile(
    r"\b404\b|\bnot[ -]found\b|\bno (?:such|longer) (?:page|available|exists?)\b|\bno longer (?:available|exists?)\b"
    r"|\b(?:does not|doesn['’]t|could(?: not|n['’]t)|can(?:not|['’]t)) (?:seem to )?(?:exist|be found|find)\b"
    r"|\bpage (?:is )?(?:missing|unavailable|gone|removed)\b|\bnothing (?:was )?found\b|\bno results?\b"
    r"|\bnicht (?:gefunden|vorhanden|verfügbar)\b|\bintrouvable\b|\bn['’]existe pas\b"
    r"|\bno (?:se )?(?:ha )?encontrad[oa]\b"
    r"|\bno existe\b|\bnon (?:è stata )?trovat[ao]\b|\bnão encontrad[oa]\b|\bniet gevonden\b|\bne najden[aoe]?\b"
    r"|\bnie znaleziono\b|\bне найден[ао]?\b|\bне существует\b|\bhittades inte\b|\bikke funnet\b",
    re.IGNORECASE,
)


class Fingerprint(NamedTuple):
    """Of what pages are compared by. `why`: why there is no sketch: "short", "missing" or "unread"."""

    digest: bytes
    words: int
    sketch: bytes
    why: str


def says_missing(text: PageContent) -> bool:
    """Whether a page says in its title, or first heading, that there is no such page, though its status does not."""
    return bool(_MISSING.search(text.title) or _MISSING.search(text.heading))


def fingerprint(response: Response, near: bool) -> Fingerprint:
    """What a page is compared by."""
    digest = digest_of(response.body)
    if not near:
        return Fingerprint(digest, 0, b"", "")
    text = content_of(response)
    if text.unread:
        return Fingerprint(digest, 0, b"", "unread")
    words = words_of(text.text)
    if len(words) < FEWEST:
        return Fingerprint(digest, len(words), b"", "short")
    if says_missing(text):
        return Fingerprint(digest, len(words), b"", "missing")
    return Fingerprint(digest, len(words), sketch_of(words).tobytes(), "")


def is_compared(request: Request, response: Response) -> bool:
    """Whether it is a page that may be compared."""
    whole = not any(flag in response.flags for flag in CUT)
    return response.status == 200 and request.method == "GET" and whole and bool(response.body)


class Judge(PageObserver):
    """Judges the pages of one agent. `near`: words of a hundred that may differ; 0: only exact. `action`: mark,
    unfollow or skip. `count` counts in the stats, `note(what, host)` for the report. Of the pages under way `judged`
    says what was found out, and `unfollowed` has those whose links are not taken."""

    marks = (DUPLICATE_OF,)

    def __init__(self, near: int, action: str, count: Callable[[str], None], note: Callable[[str, str], None]) -> None:
        self._near = near
        self.action = action
        self._count = count
        self._note = note
        self._hosts: OrderedDict[str, HostPages] = OrderedDict()
        self._digests = self._sketches = 0
        self.judged: dict[Flight, Judged] = {}
        self.unfollowed: set[Flight] = set()

    def passes_over(self, flight: Flight, response: Response) -> bool:
        """Compare a page that came with those of its host. True where its callback is not to be called."""
        return flight.failed is None and self.judge(flight, response)

    def ended(self, flight: Flight) -> None:
        """Forget what was found out: its outputs have it."""
        self.judged.pop(flight, None)
        self.unfollowed.discard(flight)

    withdrawn = ended

    def judge(self, flight: Flight, response: Response) -> bool:
        """Compare a page that did not fail with those of its host. True where its callback is not to be called."""
        request = flight.request
        request.meta.pop(DUPLICATE_OF, None)
        host = partition_key(request.url)
        if host is None or REQUISITE in request.meta or not is_compared(request, response):
            return False
        print_ = fingerprint(response, bool(self._near))
        kind, of = self._compare(host, request.url, print_)
        self.judged[flight] = Judged(print_.digest, print_.words, print_.sketch, kind, of)
        if not kind:
            return False
        request.meta[DUPLICATE_OF] = of
        if self.action == "unfollow":
            self.unfollowed.add(flight)
        self._count(f"ubi/duplicates/{kind}")
        self._note(f"duplicates/{kind}", host)
        if self.action != "mark":
            self._count("ubi/duplicates/skipped" if self.action == "skip" else "ubi/duplicates/unfollowed")
        return self.action == "skip"

    def restore(self, records: Iterable[tuple[str, str, Judged]]) -> None:
        """Pages known before: host, URL, and what was found out."""
        for host, url, judged in records:
            if not judged.kind:
                self._keep(self._of(host), url, judged.digest, judged.sketch)

    def _compare(self, host: str, url: str, print_: Fingerprint) -> tuple[str, str]:
        pages = self._of(host)
        first = pages.exact.get(_number(print_.digest))
        if first is not None:
            return ("exact", first) if first != url else ("", "")
        if print_.why:
            self._count(f"ubi/duplicates/not_near/{print_.why}")
        sketch = print_.sketch
        if sketch and self._near:
            bins, bands = _read(sketch)
            of = pages.near(bins, bands, resemblance_of(self._near, print_.words))
            if of == SHELL:
                self._count("ubi/duplicates/not_near/shell")
                sketch = b""  # or it would be what the next one is compared with
            elif of and of != url:
                return "near", of
        self._keep(pages, url, print_.digest, sketch)
        return "", ""

    def _keep(self, pages: HostPages, url: str, digest: bytes, sketch: bytes) -> None:
        before = len(pages)
        forgotten = pages.add_exact(_number(digest), url)
        self._digests += len(pages) - before
        if sketch and self._near:
            lost = pages.add_near(*_read(sketch), url)
            self._sketches += 1 - lost
            forgotten += lost
        while (self._digests > MOST_PAGES or self._sketches > MOST_PAGES // 2) and len(self._hosts) > 1:
            _, oldest = self._hosts.popitem(last=False)
            self._digests -= len(oldest)
            self._sketches -= oldest.sketches
            forgotten += len(oldest)
        for _ in range(forgotten):
            self._count("ubi/duplicates/forgotten")

    def _of(self, host: str) -> HostPages:
        pages = self._hosts.get(host)
        if pages is None:
            pages = self._hosts[host] = HostPages()
        self._hosts.move_to_end(host)
        return pages


class DuplicateLinks(PageObserver):
    """Takes no link that the callback of a duplicate asks for, of `pages`, now and later: it is counted, and the stores
    that keep links have it. The page itself, asked for once more, is no link."""

    def __init__(self, pages: Container[Flight], stats: StatBuffer) -> None:
        self._pages = pages
        self._stats = stats

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        """Whether this is a link that the callback of such a page yields: it is not taken."""
        if flight not in self._pages or not isinstance(found, Request | PlainLinks):
            return False
        if isinstance(found, Request) and found.url == response.url:
            return False
        urls = [url for url in found.urls if isinstance(url, str)] if isinstance(found, PlainLinks) else [found.url]
        self._stats.sums[LINKS] += len(urls)
        if flight.links is not None:
            flight.links.urls.extend(urls)
        return True


def _read(sketch: bytes) -> tuple[Bins, Bands]:
    bins = np.frombuffer(sketch, np.uint8)
    return bins, bands_of(bins[None])[0]


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big")
