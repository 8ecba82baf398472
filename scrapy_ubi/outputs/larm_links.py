"""The links of a page, with the texts that people see, as lines of LARM's links.log.

Rules of this module:

* Read in the writer's thread: off the tree that the link extractor has made of the page, where there is one, else off
  one that is made here. A page that costs a parser seconds is not read.
* LINK elements count where they are hyperlinks (canonical, alternate, next, ...), not where the page loads what they
  name (stylesheet, icon, ...): HTML Living Standard, 4.6.7. A meta refresh is a redirect. Both come before the others.
* What would break a line in a text (tabs, line ends, other control characters) is a space.
* What can be asked of all of a page's links at once is not asked of each: which URLs take more than putting two strings
  together, whether any text has to be cleaned, whether there are frames or areas. The answers are the same.
* Normal forms are those of the frontier (UBI_NORMALISE). What a line says after the page's own URL is remembered, by
  the folder of the page and the value of the link: pages of a site share links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, islice, repeat
from operator import add
from typing import NamedTuple

from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url
from selectolax.lexbor import LexborNode
from w3lib.html import strip_html5_whitespace

from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.joiner import WEB, Joiner, plain
from scrapy_ubi.urls.links.page import Page, written
from scrapy_ubi.urls.links.usual import long_way

LINK, FRAME, REDIRECT = 0, 1, 2
LONGEST = 1000  # characters of a link's text
MOST_TEXT = 50_000_000  # characters of all texts of a page's links
FEW = 64  # elements of a link that are looked at for the ALT of an image
FORMS = 16_384  # URLs of links remembered: some MB; and as many values, by folder

_FRAMES = ("frame", "iframe")
_OTHERS = ("area", *_FRAMES)
# Keywords of `rel` that make a LINK an external resource, or nothing to go to: the standard's, and those of browsers.
_RESOURCES = frozenset(
    "apple-touch-icon apple-touch-icon-precomposed apple-touch-startup-image dns-prefetch expect fluid-icon icon "
    "manifest mask-icon modulepreload pingback preconnect prefetch preload prerender stylesheet".split()
)
_SELECTOR = "a[href],area[href],frame[src],iframe[src]"
_blank = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")


# What META http-equiv=refresh says (HTML Living Standard, 4.2.5.3): seconds, then a URL, in quotes or not.
_refresh = re.compile(
    r"""\s*+(?:\d[\d.]*+|\.[\d.]*+)(?:\s*+[;,]\s*+|\s++)(?:url\s*+=\s*+)?+(?:"([^"]*)|'([^']*)|([^"'].*))""",
    re.I | re.S,
).match


class LinksRead(NamedTuple):
    """What was read off a page: of each link what its attribute says, its type, its text. `joiner` makes URLs."""

    title: str
    values: Sequence[str]
    types: Sequence[int]
    texts: Sequence[str]
    joiner: Joiner


def parse_page(text: str) -> Page | None:
    """A page as it is read for links; None where that would take a parser seconds, or gigabytes."""
    page = written(text)
    return None if is_costly(page) else Page(page)


def read(response: HtmlResponse, text: str, page: Page) -> LinksRead:
    """The links of a response with this text, which was parsed into `page`."""
    title, joiner = page.first_text("title"), _joiner(response, text)
    head = [*_refreshes(page), *_hyperlinks(page)]
    if any(map(page.tags, _OTHERS)):
        values, types, texts = _of_any(page.chosen(_SELECTOR), len(text))
    else:
        values, types, texts = _of_links(page.tags("a"), len(text))
    if head:
        values = [*(one[0] for one in head), *values]
        types = [*(one[1] for one in head), *types]
        texts = [*(one[2] for one in head), *texts]
    return LinksRead(title, values, types, texts, joiner)


def _refreshes(page: Page) -> Iterator[tuple[str, int, str]]:
    """Yield where a page sends its readers by itself."""
    for node in page.tags("meta"):
        attrs = node.attrs
        if (attrs.get("http-equiv") or "").strip().lower() != "refresh":
            continue
        if (found := _refresh(attrs.get("content") or "")) and (url := found[1] or found[2] or found[3] or "").strip():
            yield url.strip(), REDIRECT, ""


def _hyperlinks(page: Page) -> Iterator[tuple[str, int, str]]:
    """Yield the LINK elements that lead to other pages, with their titles."""
    for node in page.tags("link"):
        attrs = node.attrs
        value, rel = attrs.get("href"), (attrs.get("rel") or "").lower().split()
        if value and rel and _RESOURCES.isdisjoint(rel):
            yield value, LINK, clean((attrs.get("title") or "")[:LONGEST])


def _of_links(nodes: Sequence[LexborNode], most: int) -> tuple[Sequence[str], Sequence[int], Sequence[str]]:
    """Return values, types and texts of links alone."""
    try:
        values = [node.attrs["href"] for node in nodes]
    except KeyError:
        values = [node.attrs.get("href") for node in nodes]
    found = [value for value in values if value is not None]  # it is None where nothing is written
    if len(found) < len(nodes):
        nodes = [node for node, value in zip(nodes, values, strict=True) if value is not None]
    return found, bytes(len(found)), _texts(nodes, most)


def _joiner(response: HtmlResponse, text: str) -> Joiner:
    """What joins links to the page's base. To look for a base takes as long as to join 20 links."""
    url, encoding = response.url, response.encoding
    if "<base" not in text[:4096].lower():
        joiner = Joiner(url, url, encoding)
        if joiner.root or plain(url):  # what is usual enough to have a root is plain
            return joiner
    return Joiner(get_base_url(response), url, encoding)


def _of_any(nodes: Sequence[LexborNode], most: int) -> tuple[Sequence[str], Sequence[int], Sequence[str]]:
    """Values, types and texts of links, areas and frames."""
    found = []
    for node, text in zip(nodes, _written_texts(nodes, most), strict=True):
        is_frame = node.tag in _FRAMES
        value = node.attrs.get("src" if is_frame else "href")
        if value is None:
            continue
        if is_frame:
            found.append((value, FRAME, ""))
        else:
            found.append((value, LINK, _text(node, text if node.tag == "a" else "")))
    return [one[0] for one in found], [one[1] for one in found], [one[2] for one in found]


def _texts(nodes: Sequence[LexborNode], most: int) -> list[str]:
    """The texts of these links, each on one line. `most`: the characters of the page."""
    texts = _written_texts(nodes, most)
    if are_clean(texts) and all(texts) and max(map(len, texts), default=0) <= LONGEST:
        return texts
    return [_text(node, text) for node, text in zip(nodes, texts, strict=True)]


def _written_texts(nodes: Sequence[LexborNode], most: int) -> list[str]:
    """The texts of these elements as they are. What is in links within links counts for each of them: where that comes
    to more than `MOST_TEXT` characters, the others have none."""
    if len(nodes) * most <= MOST_TEXT:
        return [node.text_lexbor() for node in nodes]
    texts, left = [], MOST_TEXT
    for node in nodes:
        texts.append(node.text_lexbor() if left > 0 else "")
        left -= len(texts[-1])
    return texts


def _text(node: LexborNode, text: str) -> str:
    """The text of a link, else the ALT of an image in it."""
    text = text[:LONGEST]
    return clean(text if text.strip() else _alt(node))


def _alt(node: LexborNode) -> str:
    """The ALT of an area, or of an image among the first elements of a link."""
    return next((alt for one in islice(node.traverse(), FEW) if (alt := _alt_of(one))), "")


def _alt_of(node: LexborNode) -> str:
    return node.attributes.get("alt") or "" if node.tag in ("area", "img") else ""


def are_clean(texts: Iterable[str]) -> bool:
    """Whether `clean` would leave all of these as they are. No may be wrong."""
    joined = f"|{'|'.join(texts)}|"
    return joined.isprintable() and not ("  " in joined or "| " in joined or " |" in joined)


def clean(text: str) -> str:
    """A text on one line, without tabs and other control characters."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    return _blank.sub(" ", text).strip()


class LinkLines:
    """Makes the lines of links.log. What stands in a line between the page's own URL and the text is a link's *middle*;
    '' stands for that of a link that means no URL."""

    def __init__(self) -> None:
        self._middles: dict[str, str] = {}  # by URL
        self._folders: dict[str, dict[str, str]] = {}  # by folder and value: of values that mean one URL in all of it
        self._values = 0  # in all folders

    def format_links(self, page: str, links: LinksRead, normal: Callable[[str], str | None]) -> bytes:
        """The lines of the links of the page with this URL. `normal` makes normal forms."""
        known, texts = self._folder(links.joiner.folder), links.texts
        middles = [*map(known.get, links.values, repeat(""))]
        if not all(middles):
            self._find(middles, links, known, normal)
        if any(links.types):
            middles = [
                f"{one[:-2]}{kind}\t" if kind and one else one for one, kind in zip(middles, links.types, strict=True)
            ]
        if not all(middles):
            texts, middles = [*compress(texts, middles)], [*filter(None, middles)]
        text = f"\n{page}\t".join(map(add, middles, texts))
        return f"{page}\t{text}\n".encode("utf-8", "replace") if text else b""

    def _folder(self, folder: str) -> dict[str, str]:
        """The middles that are known of pages in this folder; none where it is '', as the base is unusual."""
        if self._values >= FORMS:
            self._folders.clear()
            self._values = 0
        return self._folders.setdefault(folder, {})

    def _find(
        self, middles: list[str], links: LinksRead, known: dict[str, str], normal: Callable[[str], str | None]
    ) -> None:
        """Fill in the middles that are not known."""
        joiner, middle_of, before = links.joiner, self._middles.get, len(known)
        missing = [number for number, middle in enumerate(middles) if not middle]
        unknown = {links.values[number] for number in missing}
        others = long_way(unknown, "\n".join(unknown) + "\n", joiner)
        for number in missing:
            value = links.values[number]
            url = joiner.join(strip_html5_whitespace(value)) if value in others else _joined(value, joiner)
            if url is None:
                continue
            middles[number] = middle = middle_of(url) or self._middle(url, normal)
            if value not in others and value[0] not in "?#":  # those say where on the page
                known[value] = middle
        self._values += len(known) - before

    def _middle(self, url: str, normal: Callable[[str], str | None]) -> str:
        if len(self._middles) >= FORMS:
            self._middles.clear()
        middle = self._middles[url] = f"{url}\t{normal(url) or url}\t{LINK}\t"
        return middle


def _joined(value: str, joiner: Joiner) -> str:
    """The URL of a value that takes no more than putting two strings together."""
    if (first := value[0]) == "/":
        return joiner.root + value
    if first == "h" and value.startswith(WEB):
        return value
    return joiner.special(value) if first in ".?#" else joiner.folder + value
