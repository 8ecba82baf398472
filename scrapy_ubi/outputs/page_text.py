"""The text of a page of HTML, as people read it: for whatever judges or indexes words.

Rules of this module:

* What is never read (scripts, styles, templates) is no text. `content_of` leaves out, too, what surrounds the content:
  navigation, headers, footers, asides, forms, advertisements that say so, and the words of links.
* Elements are parted by a space: a word never ends up glued to that of the next cell.
* A page that would take the parser seconds has no text.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy.http import HtmlResponse, Response, TextResponse
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.links.costly import is_costly
from scrapy_ubi.links.page import written

UNREAD = ("script", "style", "noscript", "template", "iframe", "svg", "math", "object", "select")
AROUND = ("nav", "header", "footer", "aside", "form", "button", "ins", "dialog", "a")
_MARKED = (
    '[role="navigation"],[role="banner"],[role="contentinfo"],[role="search"],[role="complementary"],[hidden],'
    ".ad,.ads,.advert,.advertisement,.sponsored,.banner,.sidebar,.cookie-banner"
)
LONGEST = 1 << 18  # characters of a text
LONGEST_TITLE = 1000


class PageText(NamedTuple):
    """`title` and `heading` (the first h1) as they are, and the `text`."""

    title: str
    heading: str
    text: str


NOTHING = PageText("", "", "")


def text_of(response: Response) -> PageText:
    """All that is read of a page; of a plain text all of it. Empty for what is no text."""
    return _read(response, around=True)


def content_of(response: Response) -> PageText:
    """What is read of a page, without what surrounds its content."""
    return _read(response, around=False)


def _read(response: Response, around: bool) -> PageText:
    if not isinstance(response, HtmlResponse):
        is_plain = isinstance(response, TextResponse) and _is_plain(response)
        return PageText("", "", response.text[:LONGEST]) if is_plain else NOTHING
    page = written(response.text)
    if is_costly(page):
        return NOTHING
    tree = LexborHTMLParser(page)
    title, heading = _first(tree, "title"), _first(tree, "h1")
    tree.strip_tags([*UNREAD, *(() if around else AROUND)])
    if tree.body is None:
        return PageText(title, heading, "")
    if not around:
        for node in tree.body.css(_MARKED):
            node.decompose()
    return PageText(title, heading, tree.body.text(separator=" ")[:LONGEST])


def _is_plain(response: TextResponse) -> bool:
    kind = response.headers.get("Content-Type") or b""
    return kind.partition(b";")[0].strip().lower() == b"text/plain"


def _first(tree: LexborHTMLParser, tag: str) -> str:
    node = tree.css_first(tag)
    return " ".join(node.text().split())[:LONGEST_TITLE] if node is not None else ""
