"""Links off a page that lxml has parsed already, as it has once a spider asks it for anything by `css` or `xpath`.

To read them off that tree takes a quarter of what it takes to parse the page once more. They are what Scrapy's own
extractor finds, which reads the same tree; what a spider has dropped from it is no link to either. For one attribute of
plain tags only: the usual extractor.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from lxml import etree

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]*+\Z")

Element = Any  # lxml's, which is not typed


def can_read(tags: Collection[str], attribute: str) -> bool:
    """Whether links in this attribute of these tags are found here."""
    return bool(tags) and all(map(_PLAIN_NAME.match, (*tags, attribute)))


def values_of(tree: Element, tags: Sequence[str], attribute: str) -> Collection[str]:
    """The values of this attribute in the order of the page, each once."""
    there = [tag for tag in tags if next(tree.iter(tag), None) is not None]
    if len(there) == 1:  # in a third of the time; to put two in order takes XPath longer than this does
        return dict.fromkeys(_values(there[0], attribute)(tree)).keys()
    found = dict.fromkeys(element.get(attribute) for element in tree.iter(*tags))
    found.pop(None, None)
    return found.keys()


@lru_cache(32)
def _values(tag: str, attribute: str) -> Any:
    return etree.XPath(f"descendant-or-self::{tag}/@{attribute}", smart_strings=False)


def elements(tree: Element, tags: Sequence[str], attribute: str) -> tuple[dict[str, Element], dict[str, str | None]]:
    """The same values, each with its first element; and the `rel` of those elements that have one, by value."""
    first: dict[str, Element] = {}
    rels: dict[str, str | None] = {}
    for element in tree.iter(*tags):
        value = element.get(attribute)
        if value is not None and value not in first:
            first[value] = element
            if (rel := element.get("rel")) is not None:
                rels[value] = rel
    return first, rels


def text_of(element: Element) -> str:
    """All text in an element."""
    text: str = _text(element) if len(element) else element.text or ""
    return text


_text = etree.XPath("string()", smart_strings=False)
