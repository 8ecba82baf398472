"""Retry-After (RFC 9110, 10.2.3): how long a server wants to be left alone, and how often it has said so in a row.

What a server writes is data: what cannot be read is None, never an exception. A date that has passed is 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_list, is_whole
from scrapy_ubi.policy.politeness.health import MOST_COUNT

STATUSES = (429, 503)  # those with which the header means: come again later

LONGEST = 100  # characters looked at; a date has 30
FOREVER = 1e9  # s; more than anybody waits, and still a number to reckon with

MOST_PAGES = 20  # that have asked: they are noted with the host, and travel
MOST_PAGE = 2**32 - 1

_SECONDS = re.compile(r"[0-9]+")


def seconds(value: bytes, now: float) -> float | None:
    """The seconds that one header value asks for at `now` (unix seconds), at most `FOREVER`; None if it is unreadable.

    RFC 9110: a number of seconds, or a date in any of the three forms of HTTP.
    """
    text = value[:LONGEST].decode("latin-1").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), FOREVER)
    if not text[:1].isalpha():  # dates of HTTP begin with the day of the week
        return None
    try:
        date = parsedate_to_datetime(text)
        when = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):  # whatever the parser makes of such text
        return None
    return min(max(0.0, when - now), FOREVER)


def longest(values: Iterable[bytes], now: float) -> float | None:
    """What a response asks for that has the header so often: the longest that can be read."""
    return max((one for value in values if (one := seconds(value, now)) is not None), default=None)


def asked(status: int, values: Iterable[bytes], most: float) -> float | None:
    """For how long (s) a response with this status and these headers wants its server to be left alone, `most` at most;
    None where it does not say so, or it cannot be read, or `most` is 0: nothing of it is obeyed."""
    if status not in STATUSES or not most:
        return None
    found = longest(values, time.time())
    return None if found is None else min(found, most)


class Asks(NamedTuple):
    """How often a host has asked in a row, and for which different pages (the last 32 bits of their keys)."""

    times: int = 0
    pages: tuple[int, ...] = ()

    def once_more(self, page: int | None) -> Asks:
        """The same with one more, for this page by its key; None where what bypasses the scheduler was loaded."""
        pages = self.pages
        if page is not None and (page := page & MOST_PAGE) not in pages:
            pages = (*pages, page)[-MOST_PAGES:]
        return Asks(min(self.times + 1, MOST_COUNT), pages)

    def value(self) -> list[int]:
        """As JSON has it."""
        return [self.times, *self.pages]


def read(value: object) -> Asks:
    """What a JSON value says of a host; none where it does not hold."""
    if not is_list(value, MOST_PAGES + 1, lambda number: is_whole(number, 0, MOST_PAGE)) or not value:
        return Asks()
    times, *pages = value
    return Asks(min(times, MOST_COUNT), tuple(pages))
