"""Requests that belong to no host: they are fetched by the agent that finds them and never leave it.

`data:`, `file:`, `ftp:`, `s3:` and `about:` URLs, and http URLs so malformed that they have no host: existing spiders
yield them, Scrapy's download handlers serve them or fail them, and the spider's callback or errback expects that. They
are taken in order of priority, then arrival; the same request once, unless it asks to be fetched anyway. No frontier
knows of them, so it is kept here whether any is left: the crawl is not over while their callbacks may find pages.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from scrapy import Request
from scrapy.utils.request import RequestFingerprinterProtocol


class LocalRequests:
    """A queue in memory. O(log n) a request; 20 bytes are kept of each request ever added. `changed` is called when one
    was added, and when one is done."""

    def __init__(self, fingerprinter: RequestFingerprinterProtocol, changed: Callable[[], object]) -> None:
        self._fingerprinter, self._changed = fingerprinter, changed
        self._seen: set[bytes] = set()
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
        self._count += 1
        heapq.heappush(self._heap, (-request.priority, self._count, request))
        self._changed()
        return True

    def next(self) -> Request | None:
        """The next request, None when there is none. It is out until it is `done`."""
        if not self._heap:
            return None
        self._out += 1
        return heapq.heappop(self._heap)[2]

    def done(self) -> None:
        """A request that was out, and all that its callback has yielded, was taken."""
        self._out -= 1
        self._changed()

    @property
    def over(self) -> bool:
        """Whether none waits and none is out."""
        return not self._heap and not self._out

    def __len__(self) -> int:
        return len(self._heap)
