"""The short way through a page: one attribute, every URL once, nobody's function in between. Most extractors want that.

It is one loop, written out: a call of a Python function for each link would be half of the time that a page takes. The
answer is that of Joiner and Allowed; tests compare it with theirs and with Scrapy's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from selectolax.lexbor import LexborNode

from scrapy_ubi.links.allowed import Allowed
from scrapy_ubi.links.join import FRAGMENT, ORIGIN, PATH, QUERY, Joiner

Link = TypeVar("Link")

# Nine links in ten are one of these: a path that does not begin with a dot, and a whole URL.
_path = re.compile(rf"/?(?![./])[{PATH}]++(?:{QUERY})?+(?:{FRAGMENT})?+\Z").match
_whole = re.compile(rf"{ORIGIN}(?:/[{PATH}:]*+(?:{QUERY})?+)?+(?:{FRAGMENT})?+\Z").match


def usual(
    nodes: list[LexborNode],
    attribute: str,
    joiner: Joiner,
    allowed: Allowed,
    strip: Callable[[str], str],
    make: Callable[[str, str, str, bool], Link],
    nofollow: Callable[[str | None], bool],
) -> list[Link]:
    """The allowed links in this attribute of these elements, each URL where it is found first. `make` is given the URL,
    the text, no fragment, and what `nofollow` says of the element's `rel`."""
    found: list[Link] = []
    append = found.append
    urls, unusual = set[str](), set[str]()
    root, folder, parent, join = joiner.root, joiner.folder, joiner.parent, joiner.join
    passes, suspects, quick = allowed.passes, allowed.suspects, allowed.by_extension
    for node in nodes:
        attributes = node.attributes
        value = attributes.get(attribute) or ""
        up = 3 if value[:3] == "../" else 0
        short = quick
        if folder and _path(value, up) and "//" not in value and "/." not in value and not (up and value[3] == "/"):
            url = parent + value[3:] if up else root + value if value[0] == "/" else folder + value
        elif folder and _whole(value):
            url = value
        elif value in unusual or attribute not in attributes:
            continue
        else:
            unusual.add(value)
            if (joined := join(strip(value))) is None:
                continue
            url, short = joined, False
        if url in urls:
            continue
        urls.add(url)
        if short:
            path = url.partition("#")[0].partition("?")[0] if "#" in url or "?" in url else url
            short = ";" not in path and path[path.rfind(".") + 1 :].lower() not in suspects
        if short or passes(url):
            append(make(url, node.text_lexbor(), "", "rel" in attributes and nofollow(attributes["rel"])))
    return found
