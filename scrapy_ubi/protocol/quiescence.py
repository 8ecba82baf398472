"""When the crawl is over (P6).

An agent is passive when nothing is queued, held or in flight at it, its outbox is empty, its `start()` is exhausted,
it is neither fenced nor unsettled, it has seen that all have settled, and others can read what it knows of losses; its
activity counter moves with whatever it does, and is told while it is passive. The crawl is over when two atomic reads
show the same agents, all passive in one settled view, with the same activity, and each has beaten in between: every one
of them was then passive at the moment of the first read, and mail that is not acknowledged would have kept its sender
from being so. (The double count of distributed termination detection; a single wave would not do.)

Where entries may come from outside (seeds), that is half of it: one may have come, and been taken, meanwhile. So such a
crawl is over when besides, at one instant later, no entry waits and none was written since before the first of the two
reads was asked for. Of the entries before it, each was answered, so what it has brought was there in those reads; and
none is after it: who writes `finished` looks in the same step. What tells whether one was written is a *mark* (the
transport's contract): the same text as long as none was, and nothing was forgotten.

What one agent knows of its crawl's end, by what it has seen (`Quiescence`) or was told, is its `CrawlEnd`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from scrapy_ubi.protocol.beat import LEFT, PASSIVE, Beat


class Quiescence:
    """Compares successive reads of all beats. `activity` is the own counter, which the own beat tells the others;
    `mark` that of what comes from outside, as last looked at, "" where an entry waits, or nothing may come."""

    def __init__(self) -> None:
        self.activity = 0
        self.mark = ""
        self._since = -math.inf  # since when (s) the mark is known to be this one
        self._first: dict[str, Beat] | None = None

    def allow_outside_entries(self) -> None:
        """Entries may come from outside."""
        self.look("", 0.0)

    def look(self, mark: str, now: float) -> None:
        """What comes from outside was looked at before this time (s): its mark."""
        if mark != self.mark or not mark:
            self.mark, self._since, self._first = mark, now if mark else math.inf, None

    @property
    def is_half_seen(self) -> bool:
        """Whether the crawl is over if the next read shows the same, and that each agent has beaten."""
        return self._first is not None

    def begin_again(self) -> None:
        """Forget what was read."""
        self._first = None

    def read(self, beats: Mapping[str, Beat], digest: str, members: frozenset[str], sent: float = 0.0) -> bool:
        """Take in a read that was asked for at this time (s); True when the crawl is over, if `mark` is still the same.
        `members` are those alive, `digest` names the reader's view."""
        now = {agent: beat for agent, beat in beats.items() if agent in members}
        quiet = bool(now) and now.keys() == members and all(_quiet(beat, digest) for beat in now.values())
        quiet = quiet and sent >= self._since
        if not quiet:
            self._first = None
            return False
        first = self._first
        if first is None or not _same(first, now):
            self._first = now
            return False
        return all(now[agent].counter > first[agent].counter for agent in now)


class Ending(NamedTuple):
    """The crawl is over if what comes from outside still has this mark. `lossy`: as of `Agent.accept_end`."""

    mark: str
    lossy: bool


class CrawlEnd:
    """How near the end one agent's crawl is.

    `start_exhausted`: `start()` has nothing more, nor has anybody else whom this agent serves; `start_over`: `start()`
    itself has nothing more. `is_open`: requests may come from outside. `seen`: nothing is left to do, and the crawl is
    over if nothing came from outside meanwhile, which is to be asked for. `finished`: the crawl is over; `outlived`:
    and the agents that are there now have begun another run, so this one tells the others nothing.
    """

    def __init__(self, quiescence: Quiescence) -> None:
        self.start_exhausted = self.start_over = False
        self.is_open = False
        self.seen: Ending | None = None
        self.finished = self.outlived = False
        self._quiescence = quiescence
        self._took = False  # something from outside, and was not passive since

    def allow_outside_entries(self) -> None:
        """Requests may come from outside: no end is one before it is known that none has (`Ending`)."""
        self.is_open = True
        self._quiescence.allow_outside_entries()

    def took_outside(self) -> None:
        """A request from outside was taken."""
        self._took = True

    def said(self, beat: Beat) -> None:
        """The agent says that of itself: whoever is passive is through with what it has taken from outside."""
        self._took = self._took and PASSIVE not in beat.flags

    def not_over(self) -> None:
        """The end that was seen is none, or it could not be asked: it has to be seen again."""
        self.seen = None
        self._quiescence.begin_again()

    def is_doubtful(self, lossy: bool) -> bool:
        """Whether word that the crawl is over does not hold for an agent with work left: those who say so had lost
        agents (`lossy`), or it has taken something from outside (Redis had forgotten the end)."""
        return lossy or self._took


def _quiet(beat: Beat, digest: str) -> bool:
    alone = PASSIVE in beat.flags and LEFT not in beat.flags
    return alone and beat.digest == digest and beat.settled == digest and not beat.pending


def _same(first: Mapping[str, Beat], now: Mapping[str, Beat]) -> bool:
    return first.keys() == now.keys() and all(
        (first[a].incarnation, first[a].epoch, first[a].activity) == (b.incarnation, b.epoch, b.activity)
        for a, b in now.items()
    )
