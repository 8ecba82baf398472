"""The short way through a page: one attribute, every URL once, no function of the user's in between. Most extractors
want that.

What could be asked of each link is asked of all of a page's links at once, by regular expressions over all values, one
a line: which of them mean a URL by no more than putting two strings together, and which of these end with an extension
that may be unwanted. The others go the long way, one by one. The answer is that of Joiner and Allowed; tests compare it
with theirs and with Scrapy's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from selectolax.lexbor import LexborNode

from scrapy_ubi.urls.links.allowed import Allowed
from scrapy_ubi.urls.links.joiner import FRAGMENT, NAME, ORIGIN, QUERY, WEB, Joiner

_NONE = "\x00 no such attribute"

Strip = Callable[[str], str]

# Nine links in ten are one of these: a whole URL, or a path (down from the site, or up some levels from the page and
# down) without empty parts and parts that begin with a dot, a query, a fragment.
_NAME = NAME.replace(";", "")  # what ends with an extension before a parameter is told one by one
_PART = f"[{_NAME}][{_NAME}.]*+"
_LOCAL = rf"(?!\n)(?:/|(?:\.\./)*+)(?:{_PART}(?:/{_PART})*+/?+)?+"
_WHOLE = rf"{ORIGIN}(?:/[{_NAME}./:]*+(?:{QUERY})?+)?+"
# All such lines up to one that is none, which is what is found; at the end of the text that is an empty one.
_others = re.compile(
    rf"(?:(?:{_LOCAL}(?:{QUERY})?+(?:{FRAGMENT})?+|{_WHOLE}(?:{FRAGMENT})?+)\n)*+([^\n]*+)\n?+"
).findall


def elements(nodes: Iterable[LexborNode], attribute: str) -> tuple[dict[str, LexborNode], dict[str, str | None]]:
    """The values of this attribute in the order of the nodes, each with its first element; and the `rel` of those
    elements that have one, by value."""
    first: dict[str, LexborNode] = {}
    rels: dict[str, str | None] = {}
    for node in nodes:
        attributes = node.attributes
        if attribute in attributes:
            value = attributes[attribute] or ""
            if value not in first:
                first[value] = node
                if "rel" in attributes:
                    rels[value] = attributes["rel"]
    return first, rels


def values_of(nodes: Iterable[LexborNode], attribute: str) -> Collection[str]:
    """The values of this attribute, in the order of the nodes, each once."""
    found: dict[str, None] = {}
    for node in nodes:
        value = node.attrs.get(attribute, _NONE)  # two thirds of the time that all attributes take
        if value is not _NONE:
            found[value or ""] = None
    return found.keys()


def urls(values: Collection[str], joiner: Joiner, allowed: Allowed, strip: Strip) -> dict[str, str]:
    """The allowed URLs that these values mean, in their order, each with the first value that means it. `values`: all
    different."""
    lines = "\n".join(values) + "\n"
    others = long_way(values, lines, joiner)
    root = joiner.root
    folder = joiner.folder
    join = joiner.join
    passes = allowed.passes
    quick = allowed.by_extension
    own: bool | None = None  # whether this page's queries and fragments are wanted
    found: dict[str, str] = {}
    for value in values:
        if value in others:
            url = join(strip(value))
            if url is None or (quick and not passes(url)):
                continue
        elif (first := value[0]) == "/":
            url = root + value
        elif first == "h" and value.startswith(WEB):
            url = value
        elif first in ".?#":
            if first != ".":
                own = not quick or passes(joiner.search) if own is None else own
                if not own:
                    continue
            url = joiner.special(value)
        else:
            url = folder + value
        if url not in found:
            found[url] = value
    return _allowed(found, lines, allowed)


def _allowed(found: dict[str, str], lines: str, allowed: Allowed) -> dict[str, str]:
    """Those of these URLs that are wanted; of the values that went the long way, it is known already."""
    passes = allowed.passes
    if not allowed.by_extension:
        return {url: value for url, value in found.items() if passes(url)}
    if doubtful := allowed.doubtful(lines):
        return {url: value for url, value in found.items() if value.lower() not in doubtful or passes(url)}
    return found


def long_way(values: Collection[str], lines: str, joiner: Joiner) -> set[str]:
    """The values that take more than putting two strings together. `lines`: all of them, one a line."""
    if not joiner.folder:
        return set(values)
    if lines.count("\n") == len(values):
        return set(_others(lines))
    broken = {value for value in values if "\n" in value}
    return broken.union(_others("\n".join(value for value in values if value not in broken) + "\n"))
