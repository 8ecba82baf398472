"""Retry-After (RFC 9110, 10.2.3): how long a server wants to be left alone.

What a server writes is data: what cannot be read is None, never an exception. A date that has passed is 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

STATUSES = (429, 503)  # those with which the header means: come again later

LONGEST = 100  # characters looked at; a date has 30
FOREVER = 1e9  # s; more than anybody waits, and still a number to reckon with

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


def asked(status: int, values: Iterable[bytes]) -> float | None:
    """For how long (s) a response with this status and these headers wants its server to be left alone; None where it
    does not say so, or it cannot be read."""
    return longest(values, time.time()) if status in STATUSES else None
