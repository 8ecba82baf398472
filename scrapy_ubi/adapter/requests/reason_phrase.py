"""What a server has written in the head of a response and Scrapy's `Response` leaves out: the reason phrase, and the
header lines with the case and order of their names.

Rules of this module:

* Only a phrase that is not the standard's is kept, for as long as its response lives: of most pages there is none.
* Header lines are kept only where a store asks for them (`kept_heads.wanted`), and only by a handler that has them at
  hand: UBI_FAST's. Those of Scrapy know names in one case, in no order.
* A response that a middleware has put in the place of another one has the standard's phrase, and no lines.
* Scrapy's decompression takes Content-Encoding out of the head that it gets: who is to have the response as it came is
  given one with a head of its own (`as_it_came`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from http import HTTPStatus
from weakref import WeakKeyDictionary

from scrapy.http import Response

REPLAYED = "replayed"  # flag of a response that comes from WARC files (UBI_REPLAY)

Lines = Sequence[tuple[bytes, bytes]]  # names and values of headers

_USUAL = {status.value: status.phrase for status in HTTPStatus}
_unusual: WeakKeyDictionary[Response, str] = WeakKeyDictionary()


class KeptHeads:
    """Header lines by the responses that have them. Nothing is kept until a store asks for it (`wanted`)."""

    def __init__(self) -> None:
        self.wanted = False
        self._lines: WeakKeyDictionary[Response, Lines] = WeakKeyDictionary()

    def keep(self, response: Response, lines: Lines) -> None:
        """Note the lines of a head, in their order."""
        self._lines[response] = lines

    def find_lines(self, response: Response) -> Lines:
        """Return the lines of a response; none where they are not known."""
        return self._lines.get(response, ())


kept_heads = KeptHeads()


def keep_reason(response: Response, reason: str) -> None:
    """Note what a server has written."""
    if reason != _USUAL.get(response.status):
        _unusual[response] = reason


def reason_of(response: Response) -> str:
    """What the server has written, as far as that is known; else the phrase of the standard, '' where there is none."""
    found = _unusual.get(response)
    return found if found is not None else _USUAL.get(response.status, "")


def copy_head(of: Response, to: Response) -> None:
    """Note of a copy of a response what is known of the head."""
    keep_reason(to, reason_of(of))
    if lines := kept_heads.find_lines(of):
        kept_heads.keep(to, lines)


def as_it_came(response: Response) -> Response:
    """The response; where it will be decompressed, another one with a head of its own."""
    if b"Content-Encoding" not in response.headers:
        return response
    own = copy(response)
    own.headers = response.headers.copy()
    copy_head(response, own)
    return own
