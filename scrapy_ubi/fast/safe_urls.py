"""A URL that needs no change is its own safe form: requests are made without taking it apart.

Each `Request` asks w3lib's `safe_url_string`, which takes a URL apart, puts it together again, and escapes what is no
URL character. Most URLs of links have none: one regular expression says so. All others are w3lib's matter, as before.

| private name | used for |
| --- | --- |
| `scrapy.http.request.safe_url_string` | what is stood for: w3lib's function, as `Request` knows it |
"""

from __future__ import annotations

import logging
import re
from typing import Any

import scrapy.http.request as requests
from w3lib.url import safe_url_string

from scrapy_ubi.fast.tweaks import ProcessWide, Undo

logger = logging.getLogger(__name__)

# A name of a host in small letters, without what IDNA looks at, or an address, a port that is one, and only characters
# that w3lib leaves as they are.
_PORT = "(?:[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]|[1-9][0-9]{0,3})"
_is_safe = re.compile(
    rf"https?://(?=[^/:]{{1,63}}[/:])[a-z0-9]++(?:[.-][a-z0-9]++)*+(?::{_PORT})?+"
    r"/[A-Za-z0-9_.~!$&'()*+,;=:@%/-]*+(?:\?[A-Za-z0-9_.~!$()*+,;=:@%/?&-]++)?+"
).fullmatch
# Of these, ASCII is a part; the query is written in the encoding of the page.
_ASCII_IS_ASCII = frozenset({"utf-8", "utf8", "ascii", "iso-8859-1", "latin-1", "cp1252", "windows-1252"})


def safe_form(url: str | bytes, encoding: str = "utf8", *more: Any, **named: Any) -> str:
    """As w3lib's `safe_url_string`."""
    if not more and not named and type(url) is str and encoding in _ASCII_IS_ASCII and _is_safe(url):
        return url
    return safe_url_string(url, encoding, *more, **named)


class FastSafeUrls(ProcessWide):
    """While a spider is open, requests ask here for the safe form of their URLs."""

    @classmethod
    def change(cls) -> Undo:
        """See the base class."""
        if getattr(requests, "safe_url_string", None) is not safe_url_string:
            logger.info("UBI_LEAN: URLs are made safe by what is in the place of w3lib's function")
            return lambda: None
        requests.safe_url_string = safe_form  # type: ignore[attr-defined]

        def undo() -> None:
            if requests.safe_url_string is safe_form:  # type: ignore[attr-defined]
                requests.safe_url_string = safe_url_string  # type: ignore[attr-defined]

        return undo
