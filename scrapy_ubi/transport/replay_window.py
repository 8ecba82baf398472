"""Which numbered entries have come already: the anti-replay window of IPsec (RFC 4303, 3.4.3), one for each stream.

Rules of this module:

* A number is good once. One that is `WINDOW` or more below the highest is not known, and counts as having come.
* Entries may come out of order: bytes that waited in a socket come late, and what was sent again has a number of its
  own.
* So many windows are kept, those that were used last: a stream is one process of one sender.
"""

from __future__ import annotations

from collections import OrderedDict

WINDOW = 1024  # numbers
STREAMS = 20_000  # some 3 MB


class ReplayWindows:
    """The windows of one receiver."""

    def __init__(self, streams: int = STREAMS) -> None:
        self._most = streams
        self._windows: OrderedDict[str, tuple[int, int]] = OrderedDict()  # highest, bits of those at and below it

    def is_new(self, stream: str, number: int) -> bool:
        """Whether this number of the stream has not come before; it has from now on."""
        highest, seen = self._windows.get(stream, (0, 0))
        if number > highest:
            seen = (seen << min(number - highest, WINDOW) | 1) & ((1 << WINDOW) - 1)
            highest = number
        else:
            bit = 1 << (highest - number)
            if highest - number >= WINDOW or seen & bit:
                return False
            seen |= bit
        self._windows[stream] = highest, seen
        self._windows.move_to_end(stream)
        if len(self._windows) > self._most:
            self._windows.popitem(last=False)
        return True


class UsedOnce:
    """Tokens that may be used under one name only: of the last `most` of them, which name has used it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: OrderedDict[str, str] = OrderedDict()

    def use_token(self, token: str, name: str) -> bool:
        """Use a token under this name; False where another has it."""
        if self._used.setdefault(token, name) != name:
            return False
        if len(self._used) > self._most:
            self._used.popitem(last=False)
        return True

    def give_back(self, token: str) -> None:
        """It was not used."""
        self._used.pop(token, None)


class Gone:
    """Names that were there once and are not any more: of the last `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._there: set[str] = set()
        self._gone: OrderedDict[str, None] = OrderedDict()

    def come_again(self, names: set[str]) -> set[str]:
        """These are there now; which of them had gone."""
        if not names and not self._there:
            return names
        again = {name for name in names if name in self._gone}
        self._gone |= dict.fromkeys(self._there - names)
        while len(self._gone) > self._most:
            self._gone.popitem(last=False)
        self._there = names - again
        return again
