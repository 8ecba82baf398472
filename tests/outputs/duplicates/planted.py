"""Webs with planted duplicates: pages of words, and which of them are copies of which.

Words follow a Zipf law or none, over a large vocabulary or a small one; pages of a host share a frame of navigation,
and some share sentences of their content, as pages of a manual do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from scrapy import Request
from scrapy.http import HtmlResponse


class Planted(NamedTuple):
    """A page: pages of one `group` are copies."""

    url: str
    html: str
    group: str


class Plants:
    """Makes pages for one host. `vocabulary` words; `zipf`: their frequencies are those of a language."""

    def __init__(self, seed: int, vocabulary: int = 4000, zipf: bool = True, frame: str = "marked") -> None:
        self.random = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        self.words = ["".join(self.random.choices(letters, k=self.random.randint(2, 9))) for _ in range(vocabulary)]
        self.weights = [1 / (rank + 3) for rank in range(vocabulary)] if zipf else None
        self.host = f"http://h{seed}.example"
        self.menu = [self.text(2) for _ in range(40)]
        self.footer, self.frame = self.text(60), frame
        self.made = 0

    def text(self, number: int) -> str:
        return " ".join(self.random.choices(self.words, self.weights, k=number))

    def body(self, words: int) -> list[str]:
        """Paragraphs."""
        return [self.text(words // 6) for _ in range(6)]

    def changed(self, paragraphs: list[str], percent: float) -> list[str]:
        """The same with so many words of a hundred replaced."""
        words = [paragraph.split() for paragraph in paragraphs]
        places = [(i, j) for i, paragraph in enumerate(words) for j in range(len(paragraph))]
        for i, j in self.random.sample(places, round(len(places) * percent / 100)):
            words[i][j] = self.text(1)
        return [" ".join(paragraph) for paragraph in words]

    def page(self, paragraphs: list[str], extra: str = "", title: str = "") -> str:
        """The page with this content in the frame of the host."""
        links = "".join(f'<li><a href="/{number}">{text}</a></li>' for number, text in enumerate(self.menu))
        content = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        open_, close = ("<nav>", "</nav>") if self.frame == "marked" else ('<div class="m">', "</div>")
        return (
            f"<!doctype html><title>{title or paragraphs[0][:40]}</title><body>{open_}<ul>{links}</ul>{close}"
            f"<h1>{title or paragraphs[0][:30]}</h1>{content}{extra}<footer>{self.footer}</footer>"
        )

    def put(self, html: str, group: str) -> Planted:
        self.made += 1
        return Planted(f"{self.host}/{self.made}?s={self.random.getrandbits(32):x}", html, group)

    def web(self, groups: int, words: int = 300) -> Iterator[Planted]:
        """Groups of an original and its copies of several kinds, and pages that are copies of none."""
        shared = [self.text(12) for _ in range(20)]
        for number in range(groups):
            length = self.random.randint(words // 2, words * 2)
            paragraphs = [*self.body(length), *self.random.sample(shared, 2)]
            original = self.page(paragraphs, self.boilerplate())
            yield self.put(original, f"{self.host}#{number}")
            kind = number % 4
            if kind == 0:
                yield self.put(original, f"{self.host}#{number}")
            if kind in (1, 2):
                copy = paragraphs if kind == 1 else self.changed(paragraphs, 2)
                yield self.put(self.page(copy, self.boilerplate()), f"{self.host}#{number}")

    def boilerplate(self) -> str:
        """A date, an advertisement, and a link with a session."""
        day = f"{self.random.randint(1, 28)} Nov {self.random.randint(1990, 2026)} 12:{self.random.randint(10, 59)}"
        session = f"{self.random.getrandbits(64):x}"
        ad = f'<div class="ad">{self.text(20)}</div>'
        return f'<p>Printed on {day}</p>{ad}<a href="/next?sid={session}">next</a><input value="{session}">'


def response_of(page: Planted) -> HtmlResponse:
    return HtmlResponse(page.url, body=page.html.encode(), encoding="utf-8", request=Request(page.url))
