"""The reason phrase of a response: what a server has written behind its status, which Scrapy's `Response` leaves out.

Rules of this module:

* Only a phrase that is not the standard's is kept, for as long as its response lives: of most pages there is none.
* A response that a middleware has put in the place of another one has the standard's.
"""

from __future__ import annotations

from http import HTTPStatus
from weakref import WeakKeyDictionary

from scrapy.http import Response

REPLAYED = "replayed"  # flag of a response that comes from WARC files (UBI_REPLAY)

_USUAL = {status.value: status.phrase for status in HTTPStatus}
_unusual: WeakKeyDictionary[Response, str] = WeakKeyDictionary()


def keep_reason(response: Response, reason: str) -> None:
    """Note what a server has written."""
    if reason != _USUAL.get(response.status):
        _unusual[response] = reason


def reason_of(response: Response) -> str:
    """What the server has written, as far as that is known; else the phrase of the standard, '' where there is none."""
    found = _unusual.get(response)
    return found if found is not None else _USUAL.get(response.status, "")
