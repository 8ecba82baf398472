"""Original request objects of what cannot travel whole, for as long as they may be fetched here.

A request that loses something as text (a lambda for a callback, a page object in its meta) is kept as the object it is,
beside its entry in the frontier. When this agent fetches it, the spider gets that very object and nothing is lost. When
another agent fetches it, it gets the text, which says what it lacks. Only such requests are kept, at most `MOST` of
them: when there are more the oldest goes, and is as if it had travelled. An agent whose requests never travel keeps
`MOST_ALONE`: Scrapy's own queue would hold them in memory as well.
"""

from __future__ import annotations

from collections import OrderedDict

from scrapy import Request

# Some kilobytes each with their metadata: tens of megabytes at most. A spider whose every request is such is better
# served by making them travel; the warning says which value is in the way.
MOST = 10_000
MOST_ALONE = 1_000_000


class Originals:
    """Key -> original request, bounded, oldest out first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._requests: OrderedDict[int, Request] = OrderedDict()

    def add(self, key: int, request: Request) -> bool:
        """Keep a request; False when another had to go for it."""
        self._requests.pop(key, None)
        self._requests[key] = request
        if len(self._requests) <= self._most:
            return True
        self._requests.popitem(last=False)
        return False

    def take(self, key: int) -> Request | None:
        """The original of this key, which is not kept any more."""
        return self._requests.pop(key, None)

    def __len__(self) -> int:
        return len(self._requests)
