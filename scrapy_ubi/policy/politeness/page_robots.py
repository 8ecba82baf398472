"""What a page says to crawlers of itself: the header `X-Robots-Tag`, and `<meta name="robots">`.

Rules of this module, those that search engines have written down (Google's "Robots meta tag specifications"):

* What is addressed to all and what is addressed to this bot by its product's name hold together, the strictest of both;
  what is addressed to another one holds not.
* In a header a name and a colon address what follows, up to the next name or the end of the field. Directives that
  have a colon themselves (`unavailable_after`, `max-snippet`) are no names.
* `none` is `noindex` and `nofollow`; `nocache` is `noarchive`; after the date of `unavailable_after` a page is
  `noindex`. All others say nothing here: `all`, `index`, `max-*`, `nosnippet`.
* They are data from outside: read within bounds, and nothing is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrapy_ubi.urls.listings.entries import read_time

NOFOLLOW, NOINDEX, NOARCHIVE = "nofollow", "noindex", "noarchive"
DIRECTIVES = (NOINDEX, NOFOLLOW, NOARCHIVE)
PAGE_ROBOTS = "ubi_page_robots"  # meta key: what the page says, a list of these
MOST = 8192  # characters of a statement
MOST_PARTS = 100

_MEANS = {
    "none": (NOINDEX, NOFOLLOW),
    "noindex": (NOINDEX,),
    "nofollow": (NOFOLLOW,),
    "noarchive": (NOARCHIVE,),
    "nocache": (NOARCHIVE,),
}
_WITH_COLON = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_UNTIL = "unavailable_after"
_name = re.compile(r"[ \t]*([A-Za-z][\w.-]{0,99})[ \t]*:(.*)", re.ASCII | re.DOTALL)
_ZONES = {"PST": "-0800", "PDT": "-0700", "EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500"}


def read_fields(fields: Iterable[str], bot: str, now: float) -> frozenset[str]:
    """Read the values of `X-Robots-Tag`: what they say to this bot at that unix time."""
    found: set[str] = set()
    for field in fields:
        is_ours = True
        parts = field[:MOST].split(",")[:MOST_PARTS]
        for number, part in enumerate(parts):
            named = _name.fullmatch(part)
            if named is not None and named[1].lower() not in _WITH_COLON:
                is_ours = named[1].lower() == bot.lower()
                part = named[2]
            if is_ours:
                found |= _meaning(part, parts[number + 1 : number + 2], now)
    return frozenset(found)


def read_meta(content: str, now: float) -> frozenset[str]:
    """Read the content of a meta element that is addressed to all, or to this bot."""
    found: set[str] = set()
    parts = content[:MOST].split(",")[:MOST_PARTS]
    for number, part in enumerate(parts):
        found |= _meaning(part, parts[number + 1 : number + 2], now)
    return frozenset(found)


def in_order(said: Iterable[str]) -> list[str]:
    """These directives, in one order."""
    return [one for one in DIRECTIVES if one in said]


def _meaning(part: str, behind: list[str], now: float) -> set[str]:
    """What one part of a statement says. `behind`: the next one, as a date may have a comma."""
    name, colon, value = part.strip().partition(":")
    if colon and name.strip().lower() == _UNTIL:
        return {NOINDEX} if any(0 < _until(text) < now for text in (value, ",".join([value, *behind]))) else set()
    return set(_MEANS.get(part.strip().lower(), ()))


def _until(text: str) -> float:
    """A date as `25 Jun 2010 15:00:00 PST`, `Saturday, 25-Jun-10 15:00:00 GMT`, or ISO 8601; 0 for none."""
    text = text.strip()
    for zone, offset in _ZONES.items():
        text = text.removesuffix(zone) + offset if text.endswith(zone) else text
    return read_time(text)
