"""The page of `scrapy ubi web`: one document with its style and its script inside, which asks for nothing else.

Rules of this module:

* The files beside it are the page, in the order of `SCRIPTS`: each is a part of one script, with one idea. They share one scope, and
  `page.html` has a place for each of `{nonce}`, `{style}` and `{script}`.
* Data of a crawl never comes in here. The script asks for it, and shows it as text.
* Nothing is built: what is left out on the way (indentation, comments) only saves bytes. So a file holds no text that goes over
  several lines.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

SCRIPTS = (
    *("text.js", "dom.js", "server.js", "verbs.js", "table.js", "chart.js"),
    *("view_crawl.js", "view_ring.js", "view_hosts.js", "view_failures.js"),
    *("view_mail.js", "view_outputs.js", "view_settings.js", "main.js"),
)
MOST_BYTES = 100_000  # of the whole page
_LONGEST_NONCE = 200


def page(nonce: str) -> str:
    """The page, whose style and script carry this nonce of the content security policy: letters, digits, `+/-_=`.

    Raises ValueError for any other nonce.
    """
    if not 0 < len(nonce) < _LONGEST_NONCE or not nonce.isascii() or not nonce.translate(_MARKS).isalnum():
        raise ValueError("a nonce has letters, digits and + / - _ = only")
    return _whole().replace("{nonce}", nonce, 2)


_MARKS = str.maketrans("", "", "+/-_=")
_SPACES = re.compile(r"\s*([{};,])\s*")  # in a style, where they mean nothing


@cache
def _whole() -> str:
    """The page with its style and script, and a place for the nonce in both their tags."""
    style = _read("page.css")
    script = "\n".join(_packed(_read(name)) for name in SCRIPTS)
    html = _read("page.html")
    head, rest = html.split("{style}")
    between, end = rest.split("{script}")
    return "".join((head, _SPACES.sub(r"\1", _packed(style)), between, f'"use strict";\n(() => {{\n{script}\n}})();\n', end))


def _packed(text: str) -> str:
    """The lines of a script or a style without what surrounds them, and without lines that are a comment."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
