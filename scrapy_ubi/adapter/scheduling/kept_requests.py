"""Original request objects, for as long as they may be fetched here: of what cannot travel whole, and of what holds
objects that others may hold as well.

Rules of this module:

* A request that loses something as text (a lambda for a callback, a page object in its meta) is kept as the object it
  is, beside its entry in the frontier. When this agent fetches it, the spider gets that very object and nothing is
  lost. When another agent fetches it, it gets the text, which says what it lacks.
* A request that *holds objects* (a dict, a list or an item in its meta or cb_kwargs) loses nothing as text, but its
  callback would get a copy. In plain Scrapy several requests may hold one object, to which each page adds: so these are
  kept as well. At another agent, and after a restart, they are copies (`adapter.requests.shared_objects`).
* Only such requests are kept, and of each kind at most so many. When there are more the oldest goes, and is as if it
  had travelled. An agent whose requests never travel keeps more: Scrapy's own queue would hold them in memory as well.
"""

from __future__ import annotations

from collections import OrderedDict

from scrapy import Request

# Some kilobytes each with their metadata: tens of megabytes at most. A spider whose every request is such is better
# served by making them travel; the warning says which value is in the way.
MOST = 10_000
MOST_ALONE = 1_000_000
MOST_HOLDERS_ALONE = 100_000  # of requests that hold objects, which spiders make more of, and need more seldom


class KeptRequests:
    """Key -> original request, bounded, oldest out first. `most` of those that cannot travel whole, `most_holders` of
    those that hold objects."""

    def __init__(self, most: int = MOST, most_holders: int = MOST) -> None:
        self._most = most
        self._most_holders = most_holders
        self._requests: OrderedDict[int, Request] = OrderedDict()
        self._holders: OrderedDict[int, Request] = OrderedDict()

    def add(self, key: int, request: Request) -> bool:
        """Keep a request that cannot travel whole; False when another had to go for it."""
        return _add(self._requests, self._most, key, request)

    def add_holder(self, key: int, request: Request) -> bool:
        """Keep a request that holds objects; False when another had to go for it."""
        return _add(self._holders, self._most_holders, key, request)

    def take_request(self, key: int) -> Request | None:
        """The original of this key, which is not kept any more."""
        return self._requests.pop(key, None) or self._holders.pop(key, None)

    def __len__(self) -> int:
        return len(self._requests) + len(self._holders)


def _add(kept: OrderedDict[int, Request], most: int, key: int, request: Request) -> bool:
    kept.pop(key, None)
    kept[key] = request
    if len(kept) <= most:
        return True
    kept.popitem(last=False)
    return False
