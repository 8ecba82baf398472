"""A URL that needs no change is its own safe form: requests are made without taking it apart.

Each `Request` asks w3lib's `safe_url_string`, which takes a URL apart, puts it together again, and escapes what is no
URL character. Most URLs of links have none: one regular expression says so. All others are w3lib's matter, as before.

Where a request's URL is taken apart after all (`urlparse_cached`), one regular expression finds the parts of most.

| private name | used for |
| --- | --- |
| `scrapy.http.request.safe_url_string` | what is stood for: w3lib's function, as `Request` knows it |
| `scrapy.utils.httpobj.urlparse` | what is stood for: Python's function, as `urlparse_cached` knows it |
"""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import ParseResult, urlparse

import scrapy.http.request as requests
from scrapy.utils import httpobj
from w3lib.url import safe_url_string

from scrapy_ubi.fast.tweaks import ProcessWide, Undo

logger = logging.getLogger(__name__)

# A name of a host in small letters, without what IDNA looks at, or an address, a port that is one, and only characters
# that w3lib leaves as they are.
_PORT = "(?:[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]|[1-9][0-9]{0,3})"
is_safe = re.compile(
    rf"https?://(?=[^/:]{{1,63}}[/:])[a-z0-9]++(?:[.-][a-z0-9]++)*+(?::{_PORT})?+"
    r"/[A-Za-z0-9_.~!$&'()*+,;=:@%/-]*+(?:\?[A-Za-z0-9_.~!$()*+,;=:@%/?&-]++)?+"
).fullmatch
# Of these encodings ASCII is a part; the query is written in that of the page.
ASCII_IS_ASCII = frozenset({"utf-8", "utf8", "ascii", "iso-8859-1", "latin-1", "cp1252", "windows-1252"})
# A URL in which no character has a meaning in another place: in the name of the host there are no brackets, in the path
# no parameters.
_parts = re.compile(
    r"(https?)://([A-Za-z0-9_.~%!$&'()*+,;=:@-]*+)(/[A-Za-z0-9_.~%!$&'()*+,=:@/-]*+)?+"
    r"(?:\?([A-Za-z0-9_.~%!$&'()*+,;=:@/?-]*+))?+(?:\#([A-Za-z0-9_.~%!$&'()*+,;=:@/?-]*+))?+"
).fullmatch
_new = tuple.__new__  # a third of the time of calling the class


def parts_of(url: Any) -> Any:
    """As Python's `urlparse`."""
    if type(url) is str and (match := _parts(url)) is not None:
        scheme, netloc, path, query, fragment = match.groups("")
        return _new(ParseResult, (scheme, netloc, path, "", query, fragment))
    return urlparse(url)


def safe_form(url: str | bytes, encoding: str = "utf8", *more: Any, **named: Any) -> str:
    """As w3lib's `safe_url_string`."""
    if not more and not named and type(url) is str and encoding in ASCII_IS_ASCII and is_safe(url):
        return url
    return safe_url_string(url, encoding, *more, **named)


class FastSafeUrls(ProcessWide):
    """While a spider is open, requests ask here for the safe form of their URLs, and for their parts."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        undone = [
            _stand_in(requests, "safe_url_string", safe_url_string, safe_form),
            _stand_in(httpobj, "urlparse", urlparse, parts_of),
        ]

        def undo() -> None:
            for each in undone:
                each()

        return undo


def _stand_in(module: Any, name: str, theirs: Any, ours: Any) -> Undo:
    """Put our function in the place of another in a module; what undoes it."""
    if getattr(module, name, None) is not theirs:
        logger.info("UBI_LEAN: %s.%s is left as it is, in the place of %s", module.__name__, name, theirs.__name__)
        return lambda: None
    setattr(module, name, ours)

    def undo() -> None:
        if getattr(module, name) is ours:
            setattr(module, name, theirs)

    return undo
