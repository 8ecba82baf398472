"""What a page shows: its words and its links; and whether scripts have made that, by comparing the page as it was sent
with the page as a browser has it.

Rules of this module:

* Words are those that people see: not what stands in scripts, styles, templates and `noscript`.
* Scripts have made a page where a good part of the words or of the links that the browser shows was not sent. A banner
  or a date beside a text is no such part.
* A page is data from outside: of a longer one the beginning is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

MOST_CHARACTERS = 2_000_000  # of a page that are looked at
MOST_WORDS, MOST_LINKS = 50_000, 10_000
UNSEEN = ("script", "style", "noscript", "template")

SHARE = 0.25  # of what the browser shows, from which on scripts have made the page
WORDS, LINKS = 25, 5  # fewer that are new never count: a date, a banner, a menu
SHELL = 25  # words: a page with scripts that shows fewer may be one that is filled by them


@dataclass(frozen=True)
class PageContent:
    """The words of a page, with how often each stands there, and where its links lead as they are written."""

    words: Mapping[str, int]
    links: frozenset[str]

    @property
    def is_shell(self) -> bool:
        """Whether it shows next to nothing."""
        return sum(self.words.values()) < SHELL


def read_content(html: str) -> PageContent:
    """Read what a page shows."""
    tree = LexborHTMLParser(html[:MOST_CHARACTERS])
    tree.strip_tags(list(UNSEEN))
    body = tree.body
    words = body.text(separator=" ").split()[:MOST_WORDS] if body is not None else []
    links = (node.attributes.get("href") for node in tree.css("a[href]")[:MOST_LINKS])
    return PageContent(Counter(words), frozenset(link.strip() for link in links if link and link.strip()))


def is_made_by_scripts(sent: PageContent, shown: PageContent) -> bool:
    """Return whether scripts have made a page, which was `sent` so and which a browser has `shown` so."""
    new_words = sum((Counter(shown.words) - Counter(sent.words)).values())
    new_links = len(shown.links - sent.links)
    return (new_words >= WORDS and new_words >= SHARE * sum(shown.words.values())) or (
        new_links >= LINKS and new_links >= SHARE * len(shown.links)
    )


_script = re.compile(rb"<script", re.IGNORECASE)


def has_scripts(body: bytes) -> bool:
    """Return whether a page has a script at all. One without is what it is."""
    return _script.search(body) is not None
