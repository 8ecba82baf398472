"""Notes: what an agent keeps of a host beside its URLs (its robots.txt, how long it wants to be left alone, ...).

Rules of this module:

* A host's notes are one JSON object and a version. An agent that notes something raises the version by one; of two
  notes the higher (version, text) wins, as a whole. Merging is therefore commutative, associative and idempotent, as
  that of a host's sets is: duplicates, reordering and resends are harmless.
* One object has one text (`canonical`), of at most `MOST_NOTES` characters, wherever it was written.
* Notes are a convenience: they travel with the host's state, and who loses them loses no URL. Nothing waits for them.
* What they say is their readers' matter, and may come from another agent: a reader validates what it reads.
* Beside the object stands what agents have *spent* on the host (bytes), each its own sum, which only grows. Of two sums
  of one agent the higher counts (a grow-only counter): so what two agents spend at once counts once each, whichever
  object wins, and a heir neither counts twice nor forgets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import NAME, Malformed, fits, is_whole

MOST_NOTES = 4096  # characters of a host's notes: a small fact each of a few kinds, kept in memory for every host
MOST_VERSION = 10**15  # one note a millisecond for thirty thousand years
MOST_SPENT = 2**53 - 1  # of one agent
MOST_SPENDERS = 128  # agents that have loaded from one host; beyond, the smallest sums are forgotten

Spent = tuple[tuple[str, int], ...]  # agent, sum; by agent

_to_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False).encode


class Notes(NamedTuple):
    """`text` is a JSON object as `canonical` writes it; "" with version 0 where nothing was ever noted. The greater of
    two (version, text) wins; `spent` is merged.
    """

    version: int
    text: str
    spent: Spent = ()

    def merged(self, other: Notes) -> Notes:
        """These two notes of one host as one."""
        winner = max(self, other)
        return winner if self.spent == other.spent else winner._replace(spent=_merged(self.spent, other.spent))

    def spend(self, agent: str, amount: int) -> Notes:
        """With so much more spent by this agent."""
        own = min(dict(self.spent).get(agent, 0) + amount, MOST_SPENT)
        return Notes(max(self.version, 1), self.text or "{}", _merged(self.spent, ((agent, own),)))

    @property
    def total_spent(self) -> int:
        """By all agents."""
        return sum(amount for _, amount in self.spent)

    def shown(self) -> str:
        """As JSON, in a letter or in a row: [version, object], and what was spent by agent where something was."""
        return f"[{self.version},{self.text}{f',{_to_json(dict(self.spent))}' if self.spent else ''}]"


def _merged(one: Spent, other: Spent) -> Spent:
    sums = dict(one)
    for agent, amount in other:
        sums[agent] = max(amount, sums.get(agent, 0))
    if len(sums) > MOST_SPENDERS:
        sums = dict(sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_SPENDERS])
    return tuple(sorted(sums.items()))


NOTHING = Notes(0, "")


def canonical(value: Mapping[str, object]) -> str:
    """The text of an object: ASCII, keys in order, no spaces. Raises ValueError when it is not JSON."""
    try:
        return _to_json(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def read_notes(row: object) -> Notes:
    """The notes of a list [version, object] or [version, object, spent] that was JSON. Raises `Malformed` with the
    reason."""
    if not isinstance(row, list) or len(row) not in (2, 3) or type(row[0]) is not int or not isinstance(row[1], dict):
        raise Malformed("notes are not a list of a version and an object")
    if not 0 < row[0] <= MOST_VERSION:
        raise Malformed("the version of notes is not a number in bounds")
    try:
        text = canonical(row[1])
    except ValueError as error:  # Python reads 1e999, NaN and Infinity; JSON has none of them
        raise Malformed("notes are not JSON") from error
    if len(text) > MOST_NOTES:
        raise Malformed(f"notes of {len(text)} characters, more than {MOST_NOTES}")
    return Notes(row[0], text, _read_spent(row[2]) if len(row) == 3 else ())


def _read_spent(value: object) -> Spent:
    if not isinstance(value, dict) or not 0 < len(value) <= MOST_SPENDERS:
        raise Malformed("notes of what was spent are no object, or have too many agents")
    if not all(fits(agent, NAME) and is_whole(amount, 0, MOST_SPENT) for agent, amount in value.items()):
        raise Malformed("notes of what was spent are not whole numbers by agent")
    return tuple(sorted(value.items()))
