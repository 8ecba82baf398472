"""A page of HTML and the elements in it that hold links, by lexbor (the HTML Living Standard's parser, in C).

Elements come in the order of the document, each once. Values are as written, with their character references resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

_OPTIONS = LexborDocumentOptions.WO_EVENTS.value  # nothing is going to change the tree
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9]*\Z")
_FRAMES = frozenset({"frame", "iframe"})
_IMAGES = frozenset({"img", "source"})

MANY_OPTIONS = 1000
_select = re.compile(rb"<select(?=[ \t\n\r\f/>])", re.IGNORECASE)

# A URL of a `srcset` is what stands before white space; commas at its end separate it from the next one, and so does a
# comma after its descriptors. Commas within parentheses belong to a descriptor.
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*([^ \t\n\f\r]+)")
_DESCRIPTORS = re.compile(r"(?:[^,(]|\([^)]*(?:\)|\Z))*")

Wanted = Callable[[str], bool]
Attributes = dict[str, str | None]


def written(text: str) -> bytes:
    """A page as it is parsed: in UTF-8, without NUL characters, as parsel has it."""
    page = text.encode("utf-8", "ignore")
    return page.replace(b"\x00", b"") if b"\x00" in page else page


def eased(page: bytes) -> bytes:
    """A page of very many options in such a way that lexbor does not look through all that a `select` has at each of
    them: where several may be chosen, it does not look which one is."""
    if page.count(b"<option") + page.count(b"<OPTION") <= MANY_OPTIONS:
        return page
    return _select.sub(rb"\g<0> multiple", page)


class Page:
    """One parsed page."""

    def __init__(self, page: bytes) -> None:
        """`page`: all of it, as `written` has it."""
        self._tree = LexborHTMLParser(eased(page), options=_OPTIONS)

    @property
    def tree(self) -> LexborHTMLParser:
        """All of it, as lexbor has it, to be read."""
        return self._tree

    def elements(self, places: LinkSources, region: LexborNode | None = None) -> list[LexborNode]:
        """The elements that may hold links, in the page or in the region, itself included."""
        if not places.selector:  # no tag is left: no selector either, for lexbor
            return []
        if region is not None:
            return region.css(places.selector)
        if places.single is None:
            return self._tree.css(places.selector)
        # Looking for tags by their names takes a tenth of a first CSS query. Their order is known if only one occurs.
        found = [nodes for nodes in map(self._tree.tags, places.tags) if nodes]
        return self._tree.css(places.selector) if len(found) > 1 else found[0] if found else []

    def chosen(self, selector: str) -> list[LexborNode]:
        """What a CSS selector matches in the page."""
        return self._tree.css(selector)

    def tags(self, tag: str) -> list[LexborNode]:
        """All elements with this tag, in less time than `chosen` takes."""
        return self._tree.tags(tag)

    def first_text(self, tag: str) -> str:
        """The text of the first element with this tag; '' where there is none."""
        nodes = self._tree.tags(tag)
        return nodes[0].text(deep=True) if nodes else ""

    def regions(self, selectors: Iterable[str], outermost: bool) -> Iterator[LexborNode]:
        """What CSS selectors match in the page, one after the other. `outermost`: without what is in one that came
        before. Pages may nest a thousand of them."""
        came: set[int] = set()
        for selector in selectors:
            outside: set[int] = set()  # elements around those that came: they stand before them, so they are none
            for node in self._tree.css(selector):
                if not outermost:
                    yield node
                elif not _is_within(node, came, outside):
                    came.add(node.mem_id)
                    yield node

    def forbids_following(self) -> bool:
        """Whether a `<meta name="robots">` says `nofollow` or `none`, whichever robots it is otherwise about."""
        for node in self._tree.css("meta[name][content]"):
            attributes = node.attributes
            if (attributes.get("name") or "").strip().lower() == "robots":
                says = (attributes.get("content") or "").lower().replace(",", " ").split()
                if "nofollow" in says or "none" in says:
                    return True
        return False


class LinkSources:
    """Where links are: which elements to look at (`selector`), and which of an element's values are links (`values`).

    `tags`, `attrs`, without `no_tags`, `no_attrs`: names, or `*` for all of them, as Scrapy's extractor has them.
    `frames`, `canonical`, `srcset`: as UbiLinkExtractor says.
    """

    def __init__(
        self,
        tags: Collection[str],
        attrs: Collection[str],
        no_tags: Collection[str] = (),
        no_attrs: Collection[str] = (),
        *,
        frames: bool = False,
        canonical: bool = False,
        srcset: bool = False,
    ) -> None:
        self._tag = _names(tags, no_tags)
        self._attr = _names(attrs, no_attrs)
        self._frames = frames
        self._canonical = canonical
        self._srcset = srcset
        extra = [
            selector
            for selector, asked in (
                ("frame[src],iframe[src]", frames),
                ("link[rel][href]", canonical),
                ("img[srcset],source[srcset]", srcset),
            )
            if asked
        ]
        self.tags = sorted(set(tags) - set(no_tags))
        names = sorted(set(attrs) - set(no_attrs))
        plain = all(_PLAIN_NAME.match(name) for name in self.tags)  # others would have to be escaped in a selector
        # The one attribute of the one kind of place; None where an element may hold several links. Written as pages
        # have it after parsing, so that it is found whichever way it is looked for.
        single = len(names) == 1 and names != ["*"] and names[0] == names[0].lower()
        self.single = names[0] if plain and not extra and single else None
        self.selector = ",".join(self.tags + extra) if plain else "*"

    def values(self, tag: str, attributes: Attributes) -> Iterator[str]:
        """The values in one element that are links, as written."""
        wanted = self._tag(tag)
        for name, value in attributes.items():
            if (wanted and self._attr(name)) or self._is_extra(tag, name, attributes):
                yield value or ""
            elif self._srcset and name == "srcset" and tag in _IMAGES:
                yield from candidates(value or "")

    def _is_extra(self, tag: str, name: str, attributes: Attributes) -> bool:
        """Whether an attribute is the address of a frame or of the canonical page, and these are asked for."""
        if name == "src":
            return self._frames and tag in _FRAMES
        if name == "href" and self._canonical and tag == "link":
            return "canonical" in (attributes.get("rel") or "").lower().split()
        return False


def _is_within(node: LexborNode | None, some: Collection[int], outside: set[int]) -> bool:
    """Whether an element is one of these, or in one. `outside`: elements that are not; those found are added."""
    around: list[int] = []
    while node is not None and (number := node.mem_id) not in outside:
        if number in some:
            return True
        around.append(number)
        node = node.parent
    outside.update(around[1:])
    return False


def readable(selectors: Iterable[str]) -> bool:
    """Whether lexbor can read all of these CSS selectors."""
    nothing = LexborHTMLParser("")
    try:
        for selector in selectors:
            nothing.css(selector)
    except (SelectolaxError, ValueError):
        return False
    return True


def _names(some: Collection[str], none: Collection[str]) -> Wanted:
    """A check whether a name is one of `some` (`*`: any), and none of `none`. No lambda: extractors are pickled."""
    return partial(_is_other, none) if "*" in some else frozenset(some).difference(none).__contains__


def _is_other(none: Collection[str], name: str) -> bool:
    return name not in none


def candidates(srcset: str) -> list[str]:
    """The URLs of a `srcset` attribute in their order, as they are written (`a.png 1x, b.png 2x` has two), by the HTML
    Living Standard ("parsing a srcset attribute"). Any text has an answer."""
    found: list[str] = []
    at = 0
    while (match := _CANDIDATE.match(srcset, at)) is not None:
        url = match[1].rstrip(",")
        at = match.end()
        if url:
            found.append(url)
        if url == match[1]:
            at = _DESCRIPTORS.match(srcset, at).end()  # type: ignore[union-attr]  # it matches nothing, too
    return found
