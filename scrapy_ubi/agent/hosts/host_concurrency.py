"""How many loads of a host may be open at once (UBI_HOST_CONCURRENCY), at this moment.

Rules of this module:

* The owner of a host alone counts its loads: a new one begins when nothing of the host is open at the former (P2).
* `limit` is 0 for a host that is loaded one page at a time, and so never differs in time for any of these. Of all
  others the delay counts from start to start, also while `auto` is at one.
* Of a host that is cut into shards each has the number of the host: the product of both is what the site may see.
* What `auto(n)` has found out (`LoadPace`) is noted with the host (section `pace`), when the number has changed. The
  round under way is here only, for at most `MOST_ROUNDS` hosts: one that is forgotten begins a new round, as does one
  of which the notes say another number, since another agent owned it.

What `auto(n)` finds out by trying is a rule without clock, host and I/O (additive increase, multiplicative decrease, as
TCP has it):

* It begins with one load at a time. The responses of a *round*, as many as there may be loads in parallel, are looked
  at together: where their mean time is less than `SLOWER` x the best mean of a round so far, there may be one more.
* Slower than that: as many as before. More loads would only wait in the queue of the host.
* The best mean is forgotten slowly (`FADES`): else a round of short error pages would be the measure of all others.
* A response that asks to slow down (429, 503) and a load that does not end in time halve the number, and begin a new
  round. Loads that began before that are of the former number: they say nothing more, else eight time-outs in a moment
  would count as eight.
* What is known is noted with the host as a list of two numbers, so that it survives a handoff and a restart.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.ground.untrusted.checks import is_number, is_whole
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.loads_at_once import LoadsByHost
from scrapy_ubi.urls.host_shards import host_of_key

SLOWER = 1.5  # x the best mean: beyond that there is no room for one more
FADES = 1.02  # the best mean grows so much a round
MOST_SECONDS = 86_400.0  # of a mean, as noted


class LoadPace(NamedTuple):
    """What is known of one host. `loads`: how many may be open at once; `best`: the shortest mean of a round (s; 0 for
    none yet). Of the round under way: how many responses came, and their sum (s)."""

    loads: int = 1
    best: float = 0.0
    came: int = 0
    took: float = 0.0

    def value(self) -> list[float]:
        """As JSON has it: what is to survive."""
        return [self.loads, round(self.best, 3)]


def read_pace(value: object, most: int) -> LoadPace:
    """The pace in a JSON value, that of a host met first where it holds none; never more than `most` at once."""
    if not isinstance(value, list) or len(value) != 2:
        return LoadPace()
    loads, best = value
    if not is_whole(loads, 1, 1_000_000) or not is_number(best, MOST_SECONDS) or best < 0:
        return LoadPace()
    return LoadPace(min(loads, most), float(best))


def answered(pace: LoadPace, seconds: float, most: int) -> LoadPace:
    """A load has ended with a response, after so many seconds; at most `most` at once are wanted."""
    came, took = pace.came + 1, pace.took + seconds
    if came < pace.loads:
        return pace._replace(came=came, took=took)
    mean = took / came
    best = min(mean, pace.best * FADES) if pace.best else mean
    more = pace.loads < most and mean <= best * SLOWER
    return LoadPace(pace.loads + more, best)


def slowed(pace: LoadPace) -> LoadPace:
    """The host has asked to slow down, or has not answered in time."""
    return LoadPace(max(1, pace.loads // 2), pace.best)


PACE = "pace"  # section of a host's notes
MOST_ROUNDS = 10_000  # some 300 bytes each


class SinglePages:
    """Every host is loaded one page at a time: nothing is counted."""

    counts = False

    def limit(self, host: str) -> int:
        """How many loads of this host may be open at once; 0 where it is loaded one page at a time."""
        return 0

    def shown(self, host: str) -> str:
        """The number of loads at once, for people: "8", "3 of auto(8)"; empty for one page at a time."""
        return ""


SINGLE_PAGES = SinglePages()


class HostConcurrency(SinglePages):
    """The numbers of one agent's hosts."""

    counts = True

    def __init__(self, wanted: LoadsByHost, notes: HostNotes) -> None:
        self._wanted = wanted
        self._notes = notes
        self._rounds: OrderedDict[str, tuple[LoadPace, float]] = OrderedDict()  # -> and when it was slowed (s)

    def limit(self, host: str) -> int:
        """How many loads of this host may be open at once; 0 where it is loaded one page at a time."""
        wanted = self._wanted.for_host(host_of_key(host))
        if wanted.auto:
            return self._pace(host, wanted.most)[0].loads
        return wanted.most if wanted.most > 1 else 0

    def answered(self, host: str, seconds: float, began: float) -> None:
        """A load that began then (s, any clock that all calls share) has ended with a response, after so many
        seconds."""
        wanted = self._wanted.for_host(host_of_key(host))
        if wanted.auto:
            pace, slowed_at = self._pace(host, wanted.most)
            if began >= slowed_at:
                self._keep(host, pace, answered(pace, seconds, wanted.most), slowed_at)

    def slow_down(self, host: str, began: float, now: float) -> None:
        """A load that began then has ended, now, with the wish to slow down, or with none in time."""
        wanted = self._wanted.for_host(host_of_key(host))
        if wanted.auto:
            pace, slowed_at = self._pace(host, wanted.most)
            if began >= slowed_at:
                self._keep(host, pace, slowed(pace), now)

    def shown(self, host: str) -> str:
        """The same for people: "8", "3 of auto(8)"; empty for one page at a time."""
        wanted = self._wanted.for_host(host)
        return f"{self.limit(host)} of {wanted}" if wanted.auto else str(self.limit(host) or "")

    @property
    def rounds(self) -> int:
        """Of how many hosts a round is under way."""
        return len(self._rounds)

    def _pace(self, host: str, most: int) -> tuple[LoadPace, float]:
        state = self._notes.find(host)
        noted = read_pace(self._notes.get(state, PACE) if state is not None else None, most)
        known = self._rounds.get(host)
        return known if known is not None and known[0].loads == noted.loads else (noted, 0.0)

    def _keep(self, host: str, before: LoadPace, after: LoadPace, slowed_at: float) -> None:
        self._rounds[host] = after, slowed_at
        self._rounds.move_to_end(host)
        if len(self._rounds) > MOST_ROUNDS:
            self._rounds.popitem(last=False)
        if after.loads != before.loads and (state := self._notes.find(host)) is not None:
            self._notes.put(state, PACE, after.value())


def concurrency_of(settings: UbiSettings, notes: HostNotes) -> SinglePages:
    """What these settings want."""
    return HostConcurrency(settings.host_concurrency, notes) if settings.host_concurrency.most > 1 else SINGLE_PAGES
