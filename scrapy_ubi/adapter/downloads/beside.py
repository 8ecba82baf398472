"""What is known of hosts by which a load beside the scheduler ends as soon as with plain Scrapy, and holds up no page.

A page waits in its queue while its host rests. A file, or what a callback awaits, is waited for: by an item, a page,
and a place of the downloader. So such loads know no rests and no end of a host, only its delay. Rules of this module:

* A host that asks to be left alone (429 or 503 with Retry-After) is not asked before that time. A load that comes
  meanwhile waits for it once, `WAITS` seconds at most; else it has the answer that the host gave, without asking: what
  plain Scrapy gets by asking again. Retries, pipelines and callbacks take it from there.
* Loads of one host are made one after the other, each with its time-out. From UBI_HOST_FAILURES failures in a row on
  those that wait for the same server fail with the one that was made, as they would have side by side.
* At most `MOST_HOSTS` servers and answers are remembered; those used least recently are forgotten.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

MOST_HOSTS = 1000
MOST_BODY = 65_536  # bytes of an answer that is remembered; a longer one without its body
WAITS = 5.0  # s
FLAG = "ubi: not asked"  # in `response.flags` of an answer that is given again

Value = TypeVar("Value")


class UnscheduledRests:
    """What one agent's loads have shown. `clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[str, tuple[float, Response]] = OrderedDict()  # by host; until when
        self._failures: OrderedDict[str, int] = OrderedDict()  # server -> failures in a row

    # -- who asks to be left alone

    def asked(self, host: str, seconds: float, response: Response) -> None:
        """A host has asked, with this response, to be left alone for so long."""
        if len(response.body) > MOST_BODY:
            response = response.replace(body=b"")
        _put(self._answers, host, (self._clock() + seconds, response))

    def left(self, host: str) -> float:
        """For how long (s) the host is to be left alone; 0.0 where it has not asked for it."""
        until, _ = self._answers.get(host, (0.0, None))
        return max(0.0, until - self._clock())

    def answer(self, host: str, request: Request, left: float, status: int | None = None) -> Response:
        """The answer that this request would have had: what the host has said, if it is known, else the least of it,
        with the `status` that another agent has got."""
        known = self._answers.get(host)
        headers = {"Retry-After": str(int(left) + 1)}
        if known is None:
            return Response(request.url, status=status or 503, headers=headers, flags=[FLAG], request=request)
        return known[1].replace(url=request.url, request=request, flags=[*known[1].flags, FLAG])

    # -- who does not answer

    def answered(self, request: Request) -> None:
        """Its server has answered."""
        if self._failures:
            self._failures.pop(server_of(request), None)

    def failed(self, request: Request) -> int:
        """Its server has not; how many times in a row."""
        server = server_of(request)
        times = self._failures.get(server, 0) + 1
        _put(self._failures, server, times)
        return times


def server_of(request: Request) -> str:
    """Scheme, host and port of a request: another port is another server."""
    parts = urlparse_cached(request)
    return f"{parts.scheme}://{parts.netloc}"


def same_failure(error: Exception) -> Exception:
    """An error as this one for another request."""
    try:
        same = copy.copy(error)
    except Exception:  # noqa: BLE001 - of a class of the user's that cannot be copied
        same = error
    return same.with_traceback(None)


def _put(known: OrderedDict[str, Value], key: str, value: Value) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > MOST_HOSTS:
        known.popitem(last=False)
