"""What a page of HTML says of itself: its title, language, date and canonical URL.

Rules of this module: all of it is data from outside. What is malformed is left out; lengths are bounded.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapy_ubi.outputs.page_text import MOST_LANGUAGE, MOST_TITLE, clean

MARKS = " \t\n¶#§🔗\uf0c1"  # that link a heading to itself
MOST_URL = 8192
MOST_SCRIPT = 100_000  # characters of JSON-LD that are looked at for a date
_DATES = (
    "article:published_time", "datepublished", "og:published_time", "date", "dc.date", "dc.date.issued", "dcterms.date",
    "dcterms.created", "dcterms.issued", "pubdate", "publishdate", "publish-date", "publish_date", "parsely-pub-date",
    "sailthru.date", "article:modified_time", "og:updated_time", "last-modified", "dcterms.modified", "datemodified",
)  # fmt: skip
_date = re.compile(
    r"\s*((?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))"
    r"([T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?(?![\d-])"
)
_json_date = re.compile(r'"datePublished"\s*:\s*"([^"]{8,40})"')
_language = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8})*\Z")


class PageFacts(NamedTuple):
    """What a page says; '' for what it does not. `date`: ISO 8601, when it was published, or else changed."""

    title: str = ""
    language: str = ""
    date: str = ""
    canonical: str = ""


def facts_of(tree: LexborHTMLParser, base: str) -> PageFacts:
    """The facts of a page; relative URLs are joined to `base`."""
    metas: dict[str, str] = {}
    for node in tree.tags("meta"):
        attributes = node.attributes
        key = attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or ""
        content = attributes.get("content")
        if key and content:
            metas.setdefault(key.strip().lower(), content)
    return PageFacts(_title(tree, metas), _language_of(tree, metas), _date_of(tree, metas), _canonical(tree, base))


def _title(tree: LexborHTMLParser, metas: dict[str, str]) -> str:
    for node in tree.tags("title"):
        if (up := node.parent) is not None and up.tag == "head" and (text := node.text(deep=True).strip()):
            return _text(text)
    return _text(metas.get("og:title", "")) or first_heading(tree)


def first_heading(tree: LexborHTMLParser) -> str:
    """The text of the first h1; '' where there is none."""
    nodes = tree.tags("h1")
    return _text(nodes[0].text(deep=True).rstrip(MARKS)) if nodes else ""


def _text(text: str) -> str:
    return clean(text[: 4 * MOST_TITLE])[:MOST_TITLE]


def _language_of(tree: LexborHTMLParser, metas: dict[str, str]) -> str:
    roots = tree.tags("html")
    said = (roots[0].attributes.get("lang") or roots[0].attributes.get("xml:lang") or "") if roots else ""
    for text in (said, metas.get("og:locale", "")):
        text = text.strip()
        if len(text) <= MOST_LANGUAGE and _language.match(text):
            return text.replace("_", "-")
    return ""


def read_date(text: str) -> str:
    """A date at the beginning of a text, as ISO 8601; '' where there is none."""
    found = _date.match(text[:100])
    return found[1] + (found[2] or "").replace(" ", "T") if found else ""


def _date_of(tree: LexborHTMLParser, metas: dict[str, str]) -> str:
    for key in _DATES[:15]:
        if key in metas and (date := read_date(metas[key])):
            return date
    for node in tree.tags("script"):
        if (node.attributes.get("type") or "").strip().lower() == "application/ld+json":
            found = _json_date.search((node.text(deep=True) or "")[:MOST_SCRIPT])
            if found and (date := read_date(found[1])):
                return date
    times = [node for node in tree.tags("time") if node.attributes.get("datetime")]
    marked = [node for node in times if _says_published(node)]
    for node in [*marked, *times[:1]]:
        if date := read_date(node.attributes.get("datetime") or ""):
            return date
    for key in _DATES[15:]:
        if key in metas and (date := read_date(metas[key])):
            return date
    return ""


def _says_published(node: LexborNode) -> bool:
    attributes = node.attributes
    return "pubdate" in attributes or attributes.get("itemprop") == "datePublished"


def _canonical(tree: LexborHTMLParser, base: str) -> str:
    for node in tree.tags("link"):
        attributes = node.attributes
        if "canonical" in (attributes.get("rel") or "").lower().split():
            return absolute(base, attributes.get("href") or "")
    return ""


def absolute(base: str, href: str) -> str:
    """The URL that a link of http or https leads to; '' for any other."""
    try:
        url = urljoin(base, href.strip()) if href.strip() else ""
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in ("http", "https") and parts.netloc and len(url) <= MOST_URL else ""
