"""Letters as they arrive: the values that `wire.decode` makes of a stream entry, and `sift`, which takes out what this
receiver cannot take (a callback its spider lacks): the rest is good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.host import Entry, Redo, Summary, VisitRow
from scrapy_ubi.protocol.notes import Notes


class OtherVersion(Malformed):
    """A letter in a form that this version does not know: the reason is the message."""


class Delta(NamedTuple):
    """What a letter says of one host."""

    host: str
    discovered: tuple[Entry, ...]
    done: tuple[int, ...] = ()
    offer: Summary | None = None
    redo: tuple[Redo, ...] = ()
    notes: Notes | None = None
    visited: tuple[VisitRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """A letter as it arrived, validated."""

    sender: str
    lane: str
    kind: str
    seq: int
    floor: int
    view: str
    deltas: tuple[Delta, ...]


class Refused(NamedTuple):
    """An entry of a letter that its receiver cannot take, and why."""

    host: str
    entry: Entry
    reason: str


def sift(letter: Received, judge: Callable[[str, Entry], str | None]) -> tuple[Received, list[Refused]]:
    """The letter without the entries for whose host and text `judge` gives a reason, and these. A redo that lacked one
    of its outlinks would be wrong: it is left out whole, which costs a fetch. Of a page with a visit row the done mark
    is left.
    """
    refused: list[Refused] = []
    for own, discovered, _, _, redos, _, visited in letter.deltas:
        for entry in discovered:  # most often one: a comprehension would be a call more
            if (reason := judge(own, entry)) is not None:
                refused.append(Refused(own, entry, reason))  # noqa: PERF401
        if visited:
            entries = [row.entry for row in visited]
            refused += [Refused(own, entry, reason) for entry in entries if (reason := judge(own, entry)) is not None]
        for redo in redos:
            for host, entry in redo.outlinks:
                if (reason := judge(host, entry)) is not None:
                    refused.append(Refused(host, entry, reason))
    if not refused:
        return letter, refused
    bad = {(host, entry) for host, entry, _ in refused}
    return replace(letter, deltas=tuple(_without(delta, bad) for delta in letter.deltas)), refused


def _without(delta: Delta, bad: set[tuple[str, Entry]]) -> Delta:
    lacking = tuple(row.key for row in delta.visited if (delta.host, row.entry) in bad)
    return delta._replace(
        done=(*delta.done, *lacking),
        visited=tuple(row for row in delta.visited if (delta.host, row.entry) not in bad),
        discovered=tuple(entry for entry in delta.discovered if (delta.host, entry) not in bad),
        redo=tuple(redo for redo in delta.redo if bad.isdisjoint(redo.outlinks)),
    )


class Header(NamedTuple):
    """From whom a letter is: enough to answer it."""

    sender: str
    lane: str
    kind: str
    seq: int
    floor: int
