"""Requests that belong to no host: they are fetched by the agent that finds them and never leave it.

`data:`, `file:`, `ftp:`, `s3:` and `about:` URLs, and http URLs so malformed that they have no host: existing spiders
yield them, Scrapy's download handlers serve them or fail them, and the spider's callback or errback expects that. They
are taken in order of priority, then arrival; the same request once, unless it asks to be fetched anyway. No frontier
knows of them, so it is kept here whether any is left: the crawl is not over while their callbacks may find pages.

Any page may hold thousands of links to an FTP server that never answers. So a share of the downloader's places is all
that such requests take, and no more than `MOST_WAITING` of them wait.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from scrapy import Request
from scrapy.utils.request import RequestFingerprinterProtocol

SHARE = 4  # one in so many places of the downloader, CONCURRENT_REQUESTS, may be taken by them; at least one
MANY_WAITING = 1000  # start() waits with more
MOST_WAITING = 100_000  # some 100 MB; what a page has beyond is dropped
MOST_SEEN = 1_000_000  # remembered, in some 100 MB; the oldest are forgotten


class Hostless:
    """A queue in memory. O(log n) a request. `changed` is called when one was added, and when one is done; `most_out`
    are out at once."""

    def __init__(
        self, fingerprinter: RequestFingerprinterProtocol, changed: Callable[[], object], most_out: int = 1
    ) -> None:
        self._fingerprinter = fingerprinter
        self._changed = changed
        self._most_out = most_out
        self._seen: set[bytes] = set()
        self._order: deque[bytes] = deque()  # the same, oldest first: a dict is slow to find its first when many went
        self._heap: list[tuple[int, int, Request]] = []
        self._count = 0
        self._out = 0

    def add(self, request: Request) -> bool:
        """Queue a request; False when it is a duplicate."""
        if not request.dont_filter:
            fingerprint = self._fingerprinter.fingerprint(request)
            if fingerprint in self._seen:
                return False
            self._seen.add(fingerprint)
            self._order.append(fingerprint)
            if len(self._order) > MOST_SEEN:
                self._seen.remove(self._order.popleft())
        self._count += 1
        heapq.heappush(self._heap, (-request.priority, self._count, request))
        self._changed()
        return True

    def next_request(self) -> Request | None:
        """The next request, None when there is none, or enough are out. It is out until it is `done`."""
        if not self._heap or self._out >= self._most_out:
            return None
        self._out += 1
        return heapq.heappop(self._heap)[2]

    def done(self) -> None:
        """A request that was out, and all that its callback has yielded, was taken."""
        self._out -= 1
        self._changed()

    @property
    def many(self) -> bool:
        """Whether more should wait to be found."""
        return len(self._heap) > MANY_WAITING

    @property
    def full(self) -> bool:
        """Whether none is taken now."""
        return len(self._heap) >= MOST_WAITING

    @property
    def over(self) -> bool:
        """Whether none waits and none is out."""
        return not self._heap and not self._out

    def __len__(self) -> int:
        return len(self._heap)
