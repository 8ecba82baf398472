"""Notes: what an agent keeps of a host beside its URLs (its robots.txt, how long it wants to be left alone, ...).

Rules of this module:

* A host's notes are one JSON object and a version. An agent that notes something raises the version by one; of two
  notes the higher (version, text) wins, as a whole. Merging is therefore commutative, associative and idempotent, as
  that of a host's sets is: duplicates, reordering and resends are harmless.
* One object has one text (`canonical`), of at most `MOST_NOTES` characters, wherever it was written.
* Notes are a convenience: they travel with the host's state, and who loses them loses no URL. Nothing waits for them.
* What they say is their readers' matter, and may come from another agent: a reader validates what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import Malformed

MOST_NOTES = 4096  # characters of a host's notes: a small fact each of a few kinds, kept in memory for every host
MOST_VERSION = 10**15  # one note a millisecond for thirty thousand years

_to_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False).encode


class Notes(NamedTuple):
    """`text` is a JSON object as `canonical` writes it; "" with version 0 where nothing was ever noted. The greater of
    two, compared as tuples, wins.
    """

    version: int
    text: str

    def merged(self, other: Notes) -> Notes:
        """These two notes of one host as one."""
        return max(self, other)

    def shown(self) -> str:
        """As JSON, in a letter or in a row: [version, object]."""
        return f"[{self.version},{self.text}]"


NOTHING = Notes(0, "")


def canonical(value: Mapping[str, object]) -> str:
    """The text of an object: ASCII, keys in order, no spaces. Raises ValueError when it is not JSON."""
    try:
        return _to_json(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def read_notes(row: object) -> Notes:
    """The notes of a list [version, object] that was JSON. Raises `Malformed` with the reason."""
    if not isinstance(row, list) or len(row) != 2 or type(row[0]) is not int or not isinstance(row[1], dict):
        raise Malformed("notes are not a list of a version and an object")
    if not 0 < row[0] <= MOST_VERSION:
        raise Malformed("the version of notes is not a number in bounds")
    try:
        text = canonical(row[1])
    except ValueError as error:  # Python reads 1e999, NaN and Infinity; JSON has none of them
        raise Malformed("notes are not JSON") from error
    if len(text) > MOST_NOTES:
        raise Malformed(f"notes of {len(text)} characters, more than {MOST_NOTES}")
    return Notes(row[0], text)
