"""Which handler reads a document: what kind it is (`kind_of`), and the handlers that UBI_LINKS_OF names: those of this
package by their names, the user's by their dotted paths.

Rules of this module:

* A Content-Type that names one kind is believed. XML, text, and what servers send for everything they do not know, are
  looked at: the root element, `%PDF-`, the beginning of JSON, the path.
* What is none of the kinds has none, and is treated as if there were no handlers.
* What does not hold is a `UbiSettingError` with the entry and the remedy, before anything is fetched: an unknown name,
  a path that leads nowhere, something that is no handler, `pdf` without pypdf.
* A handler of the user's goes first for its content types.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.meant_names import ask_meant
from scrapy_ubi.urls.links.handlers import css, feed, header, json_urls, sitemap
from scrapy_ubi.urls.links.handlers.bounds import FetchedBody, Values
from scrapy_ubi.urls.links.handlers.unpacked import head

SETTING = "UBI_LINKS_OF"
HTML, HEADER, FEED, SITEMAP, PDF, CSS, JSON = "html", "header", "feed", "sitemap", "pdf", "css", "json"
BY_KIND: Mapping[str, Callable[[FetchedBody], Values]] = {
    FEED: feed.links,
    SITEMAP: sitemap.links,
    CSS: css.links,
    JSON: json_urls.links,
}
NAMES = (HTML, HEADER, FEED, SITEMAP, PDF, CSS, JSON)
# What Scrapy's extractors leave out by default, and a handler reads.
EXTENSIONS: Mapping[str, tuple[str, ...]] = {PDF: ("pdf",), CSS: ("css",), FEED: ("rss",)}

_NAMED = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "application/vnd.wap.xhtml+xml": HTML,
    "application/rss+xml": FEED,
    "application/atom+xml": FEED,
    "application/rdf+xml": FEED,
    "application/pdf": PDF,
    "application/x-pdf": PDF,
    "text/css": CSS,
    "application/json": JSON,
    "application/x-json": JSON,
    "text/json": JSON,
}
_VAGUE = frozenset(
    "text/plain text/xml application/xml application/octet-stream binary/octet-stream application/download "
    "application/force-download application/x-download application/unknown application/gzip application/x-gzip "
    "application/x-gunzip".split()
) | {""}
_ROOTS = {b"rss": FEED, b"feed": FEED, b"RDF": FEED, b"urlset": SITEMAP, b"sitemapindex": SITEMAP, b"html": HTML}

_LOOKED_AT = 4_096  # bytes
_PDF_HEAD = 1_024  # bytes in which %PDF- may begin
_BEFORE = b"\xef\xbb\xbf\xfe\xff \t\r\n"  # byte order marks and white space
_comments = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_root = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,99}:)?([A-Za-z_][\w.-]{0,99})")
_json = re.compile(rb'[\[{]\s*["\[{\]}]')


def kind_of(received: FetchedBody) -> str:
    """The kind of a document; empty for none of those above."""
    named = _NAMED.get(received.content_type)
    if named is not None:
        return named
    if received.content_type.endswith("+json"):
        return JSON
    if received.content_type in _VAGUE or received.content_type.endswith("+xml"):
        return _sniffed(received)
    return ""


def _sniffed(received: FetchedBody) -> str:
    if b"%PDF-" in received.body[:_PDF_HEAD]:
        return PDF
    first = head(received.body, _LOOKED_AT).replace(b"\x00", b"").lstrip(_BEFORE)
    if first.startswith(b"<"):
        found = _root.search(_comments.sub(b"", first))
        return _ROOTS.get(found[1], "") if found else ""
    path = _path(received.url)
    if first.startswith((b"http://", b"https://")):
        return SITEMAP if "sitemap" in path else ""
    if _json.match(first):
        return JSON
    return CSS if path.endswith(".css") else ""


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""


@dataclass(frozen=True)
class OwnHandler:
    """A handler of the user's: for which content types (`image/svg+xml`, `image/*`), and what gives URLs."""

    name: str
    types: frozenset[str]
    links: Callable[..., Iterable[str]]
    extensions: tuple[str, ...] = ()

    def takes(self, content_type: str) -> bool:
        """Whether a content type, in small letters and without parameters, is one of its own."""
        return content_type in self.types or f"{content_type.partition('/')[0]}/*" in self.types

    def values(self, received: FetchedBody) -> Values:
        """The links, as written. What the user's code raises passes."""
        yield from self.links(received.body, received.url, received.headers)


@dataclass(frozen=True)
class LinksOf:
    """What UBI_LINKS_OF asks for. `header`: the `Link` field, of every response."""

    html: bool = False
    header: Callable[[FetchedBody], Values] | None = None
    pdf: bool = False
    by_kind: Mapping[str, Callable[[FetchedBody], Values]] = field(default_factory=dict)
    own: tuple[OwnHandler, ...] = ()

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions of what is read, which extractors leave out by default; without dots, in small letters."""
        kinds = [*self.by_kind, PDF] if self.pdf else list(self.by_kind)
        known = [extension for kind in kinds for extension in EXTENSIONS.get(kind, ())]
        return frozenset([*known, *(extension for one in self.own for extension in one.extensions)])

    @property
    def only_html(self) -> bool:
        """Whether nothing is asked for but what extractors do."""
        return self.html and not (self.header or self.pdf or self.by_kind or self.own)


def chosen(entries: Sequence[object]) -> LinksOf:
    """What these entries ask for. Raises UbiSettingError."""
    names = {entry for entry in entries if isinstance(entry, str) and entry in NAMES}
    own = tuple(_own(entry) for entry in entries if entry not in names)
    if PDF in names and importlib.util.find_spec("pypdf") is None:
        raise UbiSettingError(
            SETTING, "has 'pdf', and pypdf is not installed", "install it: pip install 'scrapy-ubi[pdf]'"
        )
    return LinksOf(
        html=HTML in names,
        header=header.links if HEADER in names else None,
        pdf=PDF in names,
        by_kind={kind: reader for kind, reader in BY_KIND.items() if kind in names},
        own=own,
    )


def _own(entry: object) -> OwnHandler:
    """A handler of the user's: what a dotted path leads to, or the object itself."""
    found = _imported(entry) if isinstance(entry, str) else entry
    shown = f"has {entry!r:.200}"
    remedy = "give a class with 'types', a list of content types, and a method links(body, url, headers)"
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:  # the code of users
            raise UbiSettingError(SETTING, f"{shown}, which cannot be made ({error})", remedy) from error
    types = getattr(found, "types", None)
    links = getattr(found, "links", None)
    if not _are_texts(types) or not callable(links):
        raise UbiSettingError(SETTING, f"{shown}, which is no handler", remedy)
    extensions = getattr(found, "extensions", ())
    if not _are_texts(extensions):
        raise UbiSettingError(SETTING, f"{shown}, whose 'extensions' are no list of texts", "give ('epub',)")
    return OwnHandler(
        type(found).__name__,
        frozenset(kind.strip().lower() for kind in types),
        links,
        tuple(extension.lower().lstrip(".") for extension in extensions),
    )


def _imported(path: str) -> Any:
    module, _, last = path.rpartition(".")
    if not module:
        meant = ask_meant(path, map(repr, NAMES))
        known = f"the names are {', '.join(NAMES)}, and your own handlers have dotted paths (my.module.MyHandler)"
        remedy = f"{meant}? {known[0].upper()}{known[1:]}" if meant else known
        raise UbiSettingError(SETTING, f"has {path!r:.200}, which is no handler", remedy)
    try:
        return getattr(importlib.import_module(module), last)
    except Exception as error:  # importing runs the code of users
        raise UbiSettingError(
            SETTING, f"has {path!r:.200}, which cannot be loaded ({error})", "give a dotted path that can be imported"
        ) from error


def _are_texts(value: object) -> TypeGuard[Collection[str]]:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(one, str) for one in value)
