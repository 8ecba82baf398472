"""A visit row: what is kept of a page that is done, so that it is visited again (docs/explanation/protocol.md#visits).

Rules of this module:

* A visit is a *generation* of a key: the first one is 1, and each further one is one more. There is one row a key:
  that of its last visit.
* Two rows of a key merge into one of them: that of the higher generation; of two that are equal in this the one that
  comes later in the order of their values. So merging is commutative, associative and idempotent.
* Times are unix seconds. `due` 0: the page is never visited again.
* The text of the request stays in the row: of a page that is done nothing else has it.
"""

from __future__ import annotations

from typing import NamedTuple

import mmh3

from scrapy_ubi.protocol.entry import Entry

MOST_VALIDATOR = 200  # characters of an ETag or a Last-Modified: a longer one is not kept
MOST_GENERATION = (1 << 31) - 1
MOST_TIME = (1 << 32) - 1  # s: of any of the times, and of an interval
MOST_COUNT = (1 << 8) - 1  # of failures, and of visits that the record counts


class VisitRow(NamedTuple):
    """The last visit of a page. `due`: when the next one is (unix s), 0 for never; `failures`: how many visits have
    failed since one that did not; `compared`, `changes`, `last`, `interval`, `watched` are the record of its visits by
    which the rule decides (`recrawl.Past`); `digest`: 64 bits of what it was; `etag` and `modified` are the validators
    of the server, empty for none; `entry` is the request.
    """

    generation: int
    due: int
    failures: int
    compared: int
    changes: int
    last: int
    interval: int
    watched: int
    digest: int
    etag: str
    modified: str
    entry: Entry

    @property
    def key(self) -> int:
        """The key of the page."""
        return self.entry.key


def merged(one: VisitRow, other: VisitRow) -> VisitRow:
    """What two rows of a key become."""
    return max(one, other)


def fingerprint(row: VisitRow | None) -> int:
    """64 bits of what a row says of the visits of its page; 0 for none. The text of the request is no part of it: two
    that differ in it only are alike to those who visit.
    """
    return mmh3.hash64(repr((*row[:-1], row.entry.key)), signed=False)[0] if row is not None else 0
