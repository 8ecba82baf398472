"""The requests of a letter's entries: most that come from one page are the same, and only the first one is written out.

Rules of this module:

* Where an entry, or several together, have their request there is an object, which is the request, or a number: the
  same as that object of this letter, counted from 0 in the order of the text.
* A request is one text, in ASCII as its sender had it, wherever it came from.
* What is not written out stands for so many characters at most, on both ends: a small letter is not to fill the
  receiver's disk. Beyond it requests are written out, for each entry.
"""

from __future__ import annotations

import json

from scrapy_ubi.ground.untrusted.checks import Malformed

MOST_REPEATED = 1 << 23  # characters of requests that a letter stands for and does not have

TEXTS_KEPT, LONGEST_KEPT = 1024, 1000  # texts of requests read lately, and how long they may be: a megabyte or two

_texts: dict[str, str] = {}  # a request as Python shows it -> its text
_to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Written:
    """The requests of a letter that is being written."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._room = MOST_REPEATED

    def fits(self, request: str, entries: int) -> bool:
        """Whether so many entries may have this request together."""
        return len(request) * entries <= self._room

    def write(self, request: str, entries: int = 1) -> str | int:
        """What to write for this request of an entry, or of as many together as fit."""
        number = self._numbers.get(request)
        if number is not None and self.fits(request, entries):
            self._room -= len(request) * entries
            return number
        self._room -= len(request) * (entries - 1)
        self._numbers[request] = self._count
        self._count += 1
        return request


class RequestReader:
    """The requests of a letter that is being read."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._room = MOST_REPEATED

    def read(self, value: object) -> str:
        """The request that was written so. Raises `Malformed`."""
        if type(value) is not int:
            text = _text(value)
            self._texts.append(text)
            return text
        if not 0 <= value < len(self._texts):
            raise Malformed("a request is a number that no request before it has")
        text = self._texts[value]
        self.repeat(text, 1)
        return text

    def repeat(self, request: str, entries: int) -> None:
        """So many entries more have a request that was read. Raises `Malformed`."""
        self._room -= len(request) * entries
        if self._room < 0:
            raise Malformed(f"requests are repeated to more than {MOST_REPEATED} characters")


def _text(value: object) -> str:
    if not isinstance(value, dict):
        raise Malformed("a request is not an object")
    try:
        # Those that come from one page mostly are alike, and to show one costs a third of writing it.
        shown = repr(value)
        text = _texts.get(shown)
        if text is None:
            text = _to_json(value)
            if len(shown) <= LONGEST_KEPT:
                if len(_texts) >= TEXTS_KEPT:
                    _texts.clear()
                _texts[shown] = text
        return text
    except (ValueError, RecursionError) as error:  # Python reads 1e999, NaN and Infinity; JSON has none of them
        raise Malformed("a request is not JSON") from error
