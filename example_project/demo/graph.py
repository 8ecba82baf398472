"""The web as a pure function of (seed, hosts, pages): which documents there are, what they link to, how they read.

Rules of this module: no clock, no state, no I/O. Two graphs of equal arguments are equal on every machine.

A *document* is what one GET can be asked for: a page, a redirect to a page of another host, a page that robots.txt
forbids, or a link that leads nowhere (404). Every page but a host's home is linked from an earlier page of its host,
and every home but the first host's from an earlier host, so all of the web is reachable from `Graph.home(0)`; links
drawn at random come on top. Some pages are *flaky*: the server answers their first request with 503.
"""

from __future__ import annotations

import html
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

Kind = Literal["page", "private", "redirect", "missing"]

# One document in so many of its host is of the rarer kinds; primes, so that the kinds do not always fall together.
REDIRECT_EVERY, PRIVATE_EVERY, MISSING_EVERY, FLAKY_EVERY = 7, 11, 13, 17
HOST_FANOUT = 3  # links from host i lead to the homes of hosts 3i+1 .. 3i+3
PAGE_FANOUT = 2  # page k links to pages 2k+1 and 2k+2 of its host
DRAWS = 16  # 32-bit numbers drawn for a document
SKEW = 0.5  # host sizes fall like rank ** -SKEW, as on the real web some hosts are much larger than others

NOUNS = (
    "alder birch cedar dune elm fjord glen heath isle juniper kelp lagoon marsh nook oak pine quarry reef spring "
    "tarn upland vale willow yew"
).split()
SUBDOMAINS = ("docs", "blog", "shop")  # every fourth host is a subdomain of the host before
SECTIONS = ("notes", "reports", "maps", "letters", "pictures")
WORDS = (
    "a slow river bends past the old mill where two paths meet and every stone has a name that nobody wrote down "
    "until someone walked from door to door asking for stories of rain bread boats bells and the long winter"
).split()


class Document(NamedTuple):
    kind: Kind
    host: int
    number: int


class Graph:
    """The whole web. `pages` counts ordinary pages over all hosts; each host has at least its home."""

    def __init__(self, seed: int = 1, hosts: int = 60, pages: int = 1500) -> None:
        if hosts < 1 or pages < hosts:
            raise ValueError(f"a web of {hosts} hosts and {pages} pages: at least 1 host, and a page for each, please")
        self.seed = seed
        self.names = tuple(_name(i) for i in range(hosts))
        self.index = {name: i for i, name in enumerate(self.names)}
        self.sizes = _sizes(seed, hosts, pages)
        self._ends = list(accumulate(self.sizes))

    # -- what there is -------------------------------------------------------------------------------------------

    def documents(self) -> Iterator[Document]:
        """Every document of the web but the missing ones."""
        for host, size in enumerate(self.sizes):
            for number in range(size):
                yield Document("page", host, number)
                if _has(number, REDIRECT_EVERY):
                    yield Document("redirect", host, number)
                if _has(number, PRIVATE_EVERY):
                    yield Document("private", host, number)

    def home(self, host: int) -> str:
        """The URL of a host's first page."""
        return self.url(Document("page", host, 0))

    def path(self, document: Document) -> str:
        kind, _, number = document
        if kind == "page":
            return "/" if number == 0 else f"/{SECTIONS[number % len(SECTIONS)]}/{number}.html"
        return f"/{ {'private': 'private', 'redirect': 'go', 'missing': 'gone'}[kind] }/{number}"

    def url(self, document: Document) -> str:
        return f"http://{self.names[document.host]}{self.path(document)}"

    def find(self, host: str, path: str) -> Document | None:
        """The document at `path` (without query) of `host`; None for an unknown host or a path of no document."""
        index = self.index.get(host)
        if index is None:
            return None
        if path == "/":
            return Document("page", index, 0)
        folder, _, leaf = path[1:].partition("/")
        leaf = leaf.removesuffix(".html")
        if not leaf.isascii() or not leaf.isdigit():
            return None
        kinds: dict[str, Kind] = {"private": "private", "go": "redirect", "gone": "missing"}
        document = Document(kinds.get(folder, "page"), index, int(leaf))
        return document if document.number < self.sizes[index] and self.path(document) == path else None

    def flaky(self, document: Document) -> bool:
        """Whether the first request for it is answered with 503."""
        return document.kind == "page" and _has(document.number, FLAKY_EVERY)

    # -- what leads where ----------------------------------------------------------------------------------------

    def target(self, redirect: Document) -> Document:
        """Where a redirect leads: a page anywhere in the web, drawn by host size."""
        return self._anywhere(self._draws(redirect)[0])

    def links(self, document: Document) -> list[Document]:
        """The documents a document leads to, in the order of its text, repetitions included."""
        kind, host, number = document
        if kind == "missing":
            return []
        if kind == "redirect":
            return [self.target(document)]
        if kind == "private":
            return [Document("page", host, 0)]
        size, draws = self.sizes[host], self._draws(document)
        found = [Document("page", host, k) for k in _children(number, PAGE_FANOUT, size)]
        if number == min(1, size - 1):  # the way to other hosts starts one page below the home, where there is one
            found += [Document("page", k, 0) for k in _children(host, HOST_FANOUT, len(self.names))]
        found += [Document("page", host, draw % size) for draw in draws[:3]]
        found += [self._anywhere(draw) for draw in draws[3 : 5 + draws[5] % 2]]
        rare: tuple[tuple[Kind, int], ...] = (
            ("redirect", REDIRECT_EVERY),
            ("private", PRIVATE_EVERY),
            ("missing", MISSING_EVERY),
        )
        return found + [Document(name, host, number) for name, every in rare if _has(number, every)]

    def reachable(self, seeds: Iterable[str], *, obey_robots: bool = True) -> set[str]:
        """The truth about coverage: the URLs a complete crawl from `seeds` asks for, each exactly once.

        Redirects and missing documents are asked for too, and count. Seeds outside the web are left out.
        """
        todo = [found for url in seeds if (found := self._find_url(url)) is not None]
        seen = set(todo)
        while todo:
            for link in self.links(todo.pop()):
                if link not in seen and not (obey_robots and link.kind == "private"):
                    seen.add(link)
                    todo.append(link)
        return {self.url(document) for document in seen}

    # -- how it reads --------------------------------------------------------------------------------------------

    def html(self, document: Document) -> str:
        """A page or private page as HTML, with one value to scrape and its links in several spellings."""
        name, draws = self.names[document.host], self._draws(document)
        title = f"{self.path(document)} of {name}"
        body = [f"<h1>{title}</h1>", f'<p class="fact">{draws[6] % 10_000}</p>']
        for i, link in enumerate(self.links(document)):
            draw = draws[7 + i % (DRAWS - 7)] + i
            text = " ".join(WORDS[(draw + k * 7) % len(WORDS)] for k in range(24))
            href = html.escape(self._spelling(document, link, draw))
            body.append(f'<p>{text} <a href="{href}">{WORDS[draw % len(WORDS)]}</a></p>')
        head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        return f"{head}\n<body>\n" + "\n".join(body) + "\n</body></html>\n"

    @staticmethod
    def robots() -> str:
        return "User-agent: *\nDisallow: /private/\n"

    def _spelling(self, source: Document, target: Document, draw: int) -> str:
        """One of several ways to write a link; all of them mean the same document."""
        path = self.path(target)
        if target.host == source.host and draw % 3:
            return path if draw % 3 == 1 else f"..{path}"
        return self.url(target) + ("#part" if draw % 5 == 0 else "")

    def _draws(self, document: Document) -> tuple[int, ...]:
        text = f"{self.seed}|{document.kind}|{document.host}|{document.number}".encode()
        return struct.unpack(f"<{DRAWS}I", blake2b(text, digest_size=4 * DRAWS).digest())

    def _anywhere(self, draw: int) -> Document:
        place = draw % self._ends[-1]
        host = bisect_right(self._ends, place)  # the first host whose end is beyond the place
        return Document("page", host, place - (self._ends[host] - self.sizes[host]))

    def _find_url(self, url: str) -> Document | None:
        parts = urlsplit(url)
        return self.find(parts.hostname or "", parts.path or "/")


def digest(urls: Iterable[str]) -> str:
    """A short name for a set of URLs: equal for equal sets."""
    return blake2b("\n".join(sorted(urls)).encode(), digest_size=8).hexdigest()


def _name(i: int) -> str:
    """alder.example, birch.example, cedar.example, docs.cedar.example, ...; numbered once the nouns are used up."""
    group, place = divmod(i, 4)
    order = 3 * group + min(place, 2)
    noun, round_ = NOUNS[order % len(NOUNS)], order // len(NOUNS)
    domain = f"{noun}{round_ or ''}.example"
    return f"{SUBDOMAINS[group % len(SUBDOMAINS)]}.{domain}" if place == 3 else domain


def _sizes(seed: int, hosts: int, pages: int) -> list[int]:
    """Pages of each host, at least 1, `pages` in sum; large and small ones mixed by the seed."""
    ranks = sorted(range(hosts), key=lambda i: blake2b(f"{seed}|size|{i}".encode(), digest_size=8).digest())
    weights = [(rank + 1) ** -SKEW for rank in ranks]
    total, spare = sum(weights), pages - hosts
    shares = list(accumulate(weights))
    marks = [0, *(round(spare * share / total) for share in shares)]
    return [1 + high - low for low, high in pairwise(marks)]


def _children(number: int, fanout: int, size: int) -> range:
    """The children of a node in a complete tree of `size` nodes laid out breadth first."""
    return range(min(number * fanout + 1, size), min(number * fanout + fanout + 1, size))


def _has(number: int, every: int) -> bool:
    return number % every == every - 1
