"""The page of `scrapy ubi web`: one document with its style and its script inside, which asks for nothing else.

Rules of this module:

* The files beside it are the page, in the order of `SCRIPTS`: each is a part of one script, with one idea. They share
  one scope, and `page.html` has a place for each of `{nonce}`, `{style}` and `{script}`.
* Data of a crawl never comes in here. The script asks for it, and shows it as text.
* There is no step that builds: the page is put together when it is first wanted (`packed` saves bytes on the way).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from scrapy_ubi.web.page import packed

SCRIPTS = (
    *("text.js", "dom.js", "server.js", "verbs.js", "table.js", "chart.js"),
    *("view_crawl.js", "view_ring.js", "view_hosts.js", "view_failures.js"),
    *("view_mail.js", "view_outputs.js", "view_settings.js", "main.js"),
)
MOST_BYTES = 120_000  # of the whole page
_LONGEST_NONCE = 200


def write_page(nonce: str) -> str:
    """The page, whose style and script carry this nonce of the content security policy: letters, digits, `+/-_=`.

    Raises ValueError for any other nonce.
    """
    if not 0 < len(nonce) < _LONGEST_NONCE or not nonce.isascii() or not nonce.translate(_MARKS).isalnum():
        raise ValueError("a nonce has letters, digits and + / - _ = only")
    return _whole().replace("{nonce}", nonce, 2)


_MARKS = str.maketrans("", "", "+/-_=")


@cache
def _whole() -> str:
    """The page with its style and script, and a place for the nonce in both their tags."""
    style = packed.style(_read("page.css"))
    script = "\n".join(packed.script(_read(name)) for name in SCRIPTS)
    head, rest = _read("page.html").split("{style}")
    between, end = rest.split("{script}")
    return "".join((head, style, between, f'"use strict";\n(() => {{\n{script}\n}})();\n', end))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text("utf-8")
