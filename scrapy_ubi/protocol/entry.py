"""An entry: one request to be fetched, and how often it was fetched before.

A request made again after a failure is told from the same one found again: it is *retried*, and says how often at the
start of its text.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Entry(NamedTuple):
    """One request to be fetched, as it waits and as it travels.

    `key` is 64 bits, unsigned, of (method, normal form, body, nonce); `url` is as found, and is what is fetched;
    `depth` and `priority` have Scrapy's meaning (higher priority first); `request` is JSON text with all else of the
    request, empty for a plain GET.
    """

    key: int
    url: str
    depth: int
    priority: int = 0
    request: str = ""


MOST_RETRIES = 10**9 - 1  # it counts no further
_RETRIES = re.compile(r'\{"retries":([1-9][0-9]{0,8})[,}]')


def retries_of(request: str) -> int:
    """How often a request was retried before, as its text says; 0 for one that was not."""
    found = _RETRIES.match(request) if request else None
    return int(found[1]) if found else 0


def retried(again: Entry, before: Entry) -> Entry:
    """The entry `again`, made in the place of `before`, which has failed: retried once more than that."""
    said = f'"retries":{min(retries_of(before.request) + 1, MOST_RETRIES)}'
    rest = again.request[1:] if len(again.request) > 2 else "}"  # all but its brace; none where it says nothing
    return again._replace(request=f"{{{said}{'' if rest == '}' else ','}{rest}")
