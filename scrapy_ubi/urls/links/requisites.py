"""What a browser loads to show a page: images, style sheets, scripts, fonts, icons; and what a style sheet loads.

Rules of this module:

* Found are http and https URLs, without fragments, each once, in the order of the document. Frames are pages.
* What scripts load is not found, nor sound and film (`audio`, `video`), whose posters are.
* A page is read by lexbor, within bounds; whatever the bytes are, nothing is raised. What is left out is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.handlers import css
from scrapy_ubi.urls.links.handlers.bounds import MOST_URL, FetchedBody, LinksCut
from scrapy_ubi.urls.links.joiner import Joiner
from scrapy_ubi.urls.links.page import Attributes, Page, candidates, written

MOST_TEXT = 4_000_000  # characters of a page
MOST_LOOKED_AT = 50_000  # values of one document
ICON = "/favicon.ico"  # that of pages which name none

_SELECTOR = (
    "img,source[srcset],source[data-srcset],input[src],video[poster],link[href],link[imagesrcset],script[src],embed[src],"
    "object[data],image,use,feImage,style,[style],[background]"
)
_LOADED = {
    "img": ("src", "srcset", "data-src", "data-srcset"),
    "source": ("srcset", "data-srcset"),
    "video": ("poster",),
    "script": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
}
_LISTS = frozenset(["srcset", "data-srcset", "imagesrcset"])  # attributes with several URLs
_RELATIONS = frozenset([
    "stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "preload", "modulepreload",
    "manifest",
])  # fmt: skip
_NOT_PRELOADED = frozenset(["audio", "document", "embed", "fetch", "object", "track", "video", "worker"])
_namespace = re.compile(rb"@namespace[^;{}]{0,1000};", re.IGNORECASE)  # it names, and loads nothing
_no_style = re.compile(
    r"\.(?:avif|bmp|cur|eot|gif|ico|jpe?g|js|mjs|otf|png|svgz?|tiff?|ttc|ttf|webp|woff2?)\Z", re.IGNORECASE | re.ASCII
)


class Requisites(NamedTuple):
    """URLs that are loaded, and what was left out, by reason: `bytes`, `costly`, `number`, `url`."""

    urls: list[str]
    left_out: Counter[str]


def requisites_of_page(text: str, address: str, encoding: str = "utf-8") -> Requisites:
    """Find those of a page of HTML that has this address."""
    left_out = Counter[str]()
    if len(text) > MOST_TEXT:
        left_out["bytes"] += 1
    body = written(text[:MOST_TEXT])
    if is_costly(body):
        left_out["costly"] += 1
        return Requisites([], left_out)
    page = Page(body)
    base = address
    for node in page.chosen("base[href]")[:1]:
        joined = Joiner(address, address, encoding).join((node.attributes.get("href") or "").strip())
        base = joined if joined is not None and _is_web(joined) else address
    urls = _joined(_values(page), base, address, encoding, left_out)
    if not any("icon" in (node.attributes.get("rel") or "").lower().split() for node in page.chosen("link[rel][href]")):
        urls += _joined(iter([ICON]), address, address, encoding, left_out)
    return Requisites(urls, left_out)


def requisites_of_style(body: bytes, address: str) -> Requisites:
    """Find those of a style sheet that has this address."""
    left_out = Counter[str]()
    return Requisites(_joined(_of_css(body, left_out), address, address, "utf-8", left_out), left_out)


def may_be_style(url: str) -> bool:
    """Whether this may be a style sheet, as far as the ending of its path tells."""
    return _no_style.search(urlsplit(url).path) is None


def _values(page: Page) -> Iterator[str]:
    """The values of a page that are loaded, as written."""
    for node in page.chosen(_SELECTOR):
        tag, attributes = (node.tag or "").lower(), node.attributes
        if tag == "style":
            yield from _of_css(node.text(deep=True).encode(), Counter())
        else:
            yield from _of_element(tag, attributes)
        if style := attributes.get("style"):
            yield from _of_css(style.encode(), Counter())
        yield attributes.get("background") or ""


def _of_element(tag: str, attributes: Attributes) -> Iterator[str]:
    names: Iterable[str] = _LOADED.get(tag, ())
    if tag == "input" and (attributes.get("type") or "").strip().lower() == "image":
        names = ("src",)
    elif tag == "link":
        relations = _RELATIONS.intersection((attributes.get("rel") or "").lower().split())
        purpose = (attributes.get("as") or "").strip().lower()
        if not relations or (relations == {"preload"} and purpose in _NOT_PRELOADED):
            return
        names = ("href", "imagesrcset")
    for name in names:
        value = attributes.get(name) or ""
        if name in _LISTS:
            yield from candidates(value)
        else:
            yield value


def _of_css(body: bytes, left_out: Counter[str]) -> Iterator[str]:
    if b"@namespace" in body.lower():
        body = _namespace.sub(b"", body)
    try:
        for value in css.links(FetchedBody("", "text/css", {}, body)):
            yield value or ""
    except LinksCut as cut:
        left_out[cut.reason] += 1


def _joined(values: Iterator[str], base: str, address: str, encoding: str, left_out: Counter[str]) -> list[str]:
    joiner = Joiner(base, address, encoding)
    found = dict[str, None]()
    for number, value in enumerate(values):
        if number >= MOST_LOOKED_AT:
            left_out["number"] += 1
            break
        value = value.strip(" \t\r\n\f")
        if not value or value[0] == "#" or value[:5].lower() == "data:":
            continue
        joined = joiner.join(value) if len(value) <= MOST_URL else None
        if joined is None:
            left_out["url"] += 1
        elif _is_web(joined):
            found[joined.partition("#")[0]] = None
    return list(found)


def _is_web(url: str) -> bool:
    """Whether it is an http or https URL with a host."""
    try:
        return url.startswith(("http://", "https://")) and bool(urlsplit(url).hostname)
    except ValueError:
        return False
