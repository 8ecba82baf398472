"""The title and the text of a page, as a reader sees it; and the text of its content alone.

Rules of this module:

* HTML is read by lexbor; what is in `script`, `style`, `template` and `noscript` is no text. Runs of white space and
  control characters are one space.
* Elements of a line (`b`, `span`, `wbr`, ...) part no words; blocks, cells, `br`, and what is shown as a thing of its
  own (images, buttons, fields) do.
* What is read is bounded: `MOST_READ` bytes of a page, `MOST_TEXT` characters of its text, `MOST_TITLE` of its title.
  Pages that cost a parser seconds have no text, and say so (`unread`).
* Plain text and Markdown are taken as they are.
* The content of a page is without what surrounds it: navigation, headers, footers, asides, forms, advertisements that
  say so, and the words of links.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scrapy.http import HtmlResponse, Response, TextResponse
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.page import Page, written

MOST_READ = 1 << 20
MOST_TEXT = 100_000
MOST_TITLE = 1000
MOST_TITLE_AT = 4096  # characters of a Markdown text in which its title may be
MOST_LANGUAGE = 35  # characters of the longest tag that is registered

MARKDOWN = frozenset({b"text/markdown", b"text/x-markdown"})
AS_IT_IS = MARKDOWN | {b"text/plain"}  # types whose text is taken as it is
_heading = re.compile(r"^#[ \t]+(.{1,4000}?)[ \t#]*$", re.MULTILINE)
_UNSEEN = ("script", "style", "template", "noscript")
_LEFT_OUT = (
    "script", "style", "noscript", "template", "iframe", "svg", "math", "object", "select", "nav", "header", "footer",
    "aside", "form", "button", "ins", "dialog", "a",
)  # fmt: skip
_MARKED = (
    '[role="navigation"],[role="banner"],[role="contentinfo"],[role="search"],[role="complementary"],[hidden],'
    ".ad,.ads,.advert,.advertisement,.sponsored,.banner,.sidebar,.cookie-banner"
)
# The tags of all other elements part words; so do those of unknown elements, as they may be anything.
_IN_LINES = (
    rb"a(?:bbr|cronym)?|b(?:d[io]|ig)?|c(?:ite|ode)|d(?:ata|el|fn)|em|font|i(?:ns)?|kbd|mark|nobr|q|s(?:amp|mall|pan|trike"
    rb"|trong|u[bp])?|t(?:ime|t)|u|var|wbr"
)
_parts = re.compile(rb"<(?!/?+(?:%b)[ \t\n\r\f/>])(?=/?+[a-z])" % _IN_LINES, re.IGNORECASE)
_controls = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_language = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*\Z").match


class PageText(NamedTuple):
    """What is searched of a page. `language`: as the page says it (`<html lang>`), '' where it does not."""

    title: str
    text: str
    language: str
    unread: bool = False  # it would have cost the parser seconds, or gigabytes


class PageContent(NamedTuple):
    """`title` and `heading` (the first h1), and the `text` of the content, with the white space that it has."""

    title: str
    heading: str
    text: str
    unread: bool = False  # as above


def has_text(response: Response) -> bool:
    """Whether the text of such a response is known how to read: HTML, plain text, and Markdown."""
    return isinstance(response, HtmlResponse) or (isinstance(response, TextResponse) and kind_of(response) in AS_IT_IS)


def kind_of(response: Response) -> bytes:
    """The type that a response says to have, in small letters; empty where it says none."""
    return (response.headers.get("Content-Type") or b"").partition(b";")[0].strip().lower()


def text_of(response: Response) -> PageText:
    """The text of a response that `has_text`."""
    if not isinstance(response, HtmlResponse):
        text = response.text[:MOST_READ]
        return PageText(markdown_title(text) if kind_of(response) in MARKDOWN else "", clean(text)[:MOST_TEXT], "")
    page = _parts.sub(b" <", written(response.text[:MOST_READ])[:MOST_READ])
    if is_costly(page):
        return PageText("", "", "", unread=True)
    parsed = Page(page)
    # By tags: a first CSS query takes ten times as long as looking for a tag.
    titles = [node for node in parsed.tags("title") if (up := node.parent) is not None and up.tag == "head"]
    said = [found["lang"] for node in parsed.tags("html") if "lang" in (found := node.attributes)]
    language = (said[0] or "").strip()[:MOST_LANGUAGE] if said else ""
    for tag in _UNSEEN:
        for node in parsed.tags(tag):
            node.decompose()
    bodies = parsed.tags("body")
    text = bodies[0].text(deep=True) if bodies else ""
    title = clean(titles[0].text(deep=True)[: 4 * MOST_TITLE])[:MOST_TITLE] if titles else ""
    return PageText(title, clean(text)[:MOST_TEXT], language if _language(language) else "")


def content_of(response: Response) -> PageContent:
    """The content of a response; empty where it has no text."""
    if not has_text(response):
        return PageContent("", "", "")
    if not isinstance(response, HtmlResponse):
        return PageContent("", "", response.text[:MOST_TEXT] if isinstance(response, TextResponse) else "")
    page = written(response.text[:MOST_READ])[:MOST_READ]
    if is_costly(page):
        return PageContent("", "", "", unread=True)
    tree = Page(page).tree
    title, heading = _first(tree, "title"), _first(tree, "h1")
    for tag in _LEFT_OUT:
        for node in tree.tags(tag):
            node.decompose()
    body = tree.body
    for node in body.css(_MARKED) if body is not None else ():
        if node.tag != "body":
            node.decompose()
    return PageContent(title, heading, body.text(separator=" ")[:MOST_TEXT] if body is not None else "")


def markdown_title(text: str) -> str:
    """The first heading of a Markdown text; '' where it begins with none."""
    found = _heading.search(text[:MOST_TITLE_AT])
    return clean(found[1])[:MOST_TITLE] if found else ""


def _first(tree: LexborHTMLParser, tag: str) -> str:
    """The text of the first element with this tag."""
    nodes = tree.tags(tag)
    return clean(nodes[0].text()[: 4 * MOST_TITLE])[:MOST_TITLE] if nodes else ""


def clean(text: str) -> str:
    """With single spaces, and without control characters."""
    text = " ".join(text.split())
    if text.isprintable():  # a tenth of what the search for control characters takes
        return text
    return " ".join(_controls.sub(" ", text).split()) if _controls.search(text) else text
