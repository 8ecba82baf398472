"""When the crawl is over (P6).

An agent is passive when nothing is queued, held or in flight at it, its outbox is empty, its `start()` is exhausted,
and it is neither fenced nor unsettled; its activity counter moves with whatever it does, and is told while it is
passive. The crawl is over when two atomic reads show the same agents, all passive in one settled view, with the same
activity, and each has beaten in between: every one of them was then passive at the moment of the first read, and mail
that is not acknowledged would have kept its sender from being so. (The double count of distributed termination
detection; a single wave would not do.)
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.protocol.beat import LEFT, PASSIVE, Beat


class Quiescence:
    """Compares successive reads of all beats. `activity` is the own counter, which the own beat tells the others."""

    def __init__(self) -> None:
        self.activity = 0
        self._first: dict[str, Beat] | None = None

    def read(self, beats: Mapping[str, Beat], digest: str, members: frozenset[str]) -> bool:
        """Take in a read; True when the crawl is over. `members` are those alive, `digest` names the reader's view."""
        now = {agent: beat for agent, beat in beats.items() if agent in members}
        quiet = bool(now) and now.keys() == members and all(_quiet(beat, digest) for beat in now.values())
        if not quiet:
            self._first = None
            return False
        first = self._first
        if first is None or not _same(first, now):
            self._first = now
            return False
        return all(now[agent].counter > first[agent].counter for agent in now)


def _quiet(beat: Beat, digest: str) -> bool:
    alone = PASSIVE in beat.flags and LEFT not in beat.flags
    return alone and beat.digest == digest and beat.settled == digest and not beat.pending


def _same(first: Mapping[str, Beat], now: Mapping[str, Beat]) -> bool:
    return first.keys() == now.keys() and all(
        (first[a].incarnation, first[a].epoch, first[a].activity) == (b.incarnation, b.epoch, b.activity)
        for a, b in now.items()
    )
