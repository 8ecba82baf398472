"""The fields of an item, read off the tree of a page.

Rules of this module:

* A page is anything: nothing here raises because of one, and what is read is bounded, `MOST_CHARACTERS` of a value and
  `MOST_VALUES` of a field.
* What is excluded is as if it were not there: what is found in it does not count, and it has no part in texts and HTML.
  Expressions are evaluated on the whole page, so positions (`p[2]`) count what is excluded.
* The text of an element is what a reader sees: without scripts and styles, with single spaces. A space stands where an
  element begins a new line or cell, and none where one marks up a part of a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from math import isfinite
from typing import Any

from lxml import etree

from scrapy_ubi.cli.patterns.page_rules import FieldRule
from scrapy_ubi.outputs.page_text import clean

MOST_CHARACTERS = 100_000
MOST_VALUES = 1_000

Value = str | int | float | bool | None

_UNSEEN = frozenset(("script", "style", "template", "noscript"))
_IN_WORDS = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike strong sub "
    "sup time tt u var wbr".split()
)
# What an expression may raise on a page: a function gets what it cannot take.
FAULTS = (etree.XPathError, ValueError, TypeError, RecursionError, re.error)


def has_value(value: Value | list[Value]) -> bool:
    """Whether a field has one."""
    return value is not None and value not in ("", [])


def read_field(rule: FieldRule, root: Any) -> Value | list[Value]:
    """The value of a field on a page with this root element; None, or an empty list, where there is none. Raises one of
    FAULTS where an expression cannot be evaluated on this page."""
    out = {one for expression in rule.exclude for one in _nodes(expression(root))}
    for pattern in rule.patterns:
        found = pattern(root)
        if not isinstance(found, list):
            value = _plain(found, rule.text)
            return [value] if rule.many else value
        values = _values(found, out, rule.text)
        if not rule.many:
            if (first := next(values, None)) is not None:
                return first
        elif several := [value for value, _ in zip(values, range(MOST_VALUES), strict=False)]:
            return several
    return [] if rule.many else None


def _values(found: Iterable[Any], out: set[Any], as_text: bool) -> Iterator[Value]:
    for one in found:
        if out and _is_in(_element_of(one), out):
            continue
        if not etree.iselement(one):
            yield _plain(one, as_text)
        elif as_text:
            yield text_of(one, out)
        else:
            yield html_of(one, out)


def _nodes(found: Any) -> list[Any]:
    return [one for one in found if etree.iselement(one)] if isinstance(found, list) else []


def _element_of(one: Any) -> Any:
    """The element that something found is, or is in."""
    if etree.iselement(one):
        return one
    parent = one.getparent() if hasattr(one, "getparent") else None
    return parent.getparent() if parent is not None and one.is_tail else parent


def _is_in(element: Any, some: set[Any]) -> bool:
    while element is not None:
        if element in some:
            return True
        element = element.getparent()
    return False


def _plain(value: Any, as_text: bool) -> Value:
    """What is no element: a text, an attribute, a number, a truth value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            return None
        return int(value) if value.is_integer() else value
    text = str(value)[: 4 * MOST_CHARACTERS]
    return (clean(text) if as_text else text)[:MOST_CHARACTERS]


def text_of(element: Any, out: set[Any]) -> str:
    """The text of an element, without these."""
    return clean("".join(_pieces(element, out)))[:MOST_CHARACTERS]


def _pieces(element: Any, out: set[Any]) -> Iterator[str]:
    """The parts of a text, until there are enough of them."""
    left = 4 * MOST_CHARACTERS  # much of a page is white space
    hidden = None  # the element whose content is passed over
    for event, node in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        begins = event == "start"
        if hidden is node and not begins:
            hidden = None
        elif hidden is None and begins and (node.tag in _UNSEEN or node in out):
            hidden = node
        if hidden is not None:
            continue
        piece = _piece(node, begins, element)
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _piece(node: Any, begins: bool, top: Any) -> str:
    """The text behind the begin of an element, or behind its end; that behind a comment. A space before it where no
    word goes on."""
    text = node.text if begins else node.tail
    if node is top and not begins:
        text = None
    space = "" if node.tag in _IN_WORDS or not isinstance(node.tag, str) else " "
    return space + (text or "")


def html_of(element: Any, out: set[Any]) -> str:
    """The HTML of an element, without these."""
    if out and any(node in out for node in element.iter()):
        element = _without(element, out)
    html = etree.tostring(element, encoding="unicode", method="html", with_tail=False)
    return str(html)[:MOST_CHARACTERS]


def _without(element: Any, out: set[Any]) -> Any:
    copy = deepcopy(element)
    copy.tail = None
    away = [there for here, there in zip(element.iter(), copy.iter(), strict=True) if here in out]
    for node in away:
        parent = node.getparent()
        if parent is not None:
            _drop(node, parent)
    return copy


def _drop(node: Any, parent: Any) -> None:
    """Take an element out, and leave the text behind it."""
    if node.tail:
        before = node.getprevious()
        if before is None:
            parent.text = (parent.text or "") + node.tail
        else:
            before.tail = (before.tail or "") + node.tail
    parent.remove(node)
