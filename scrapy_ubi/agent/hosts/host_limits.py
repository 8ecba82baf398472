"""Limits of a host: how much of one is fetched, judged by its owner when the turn of a page has come.

They are those of the imbWBI crawler (2017), which has them from RCrawler: pages loaded (PLmax), targets known (TTmax),
time of a domain (TDLmax), iterations (Imax), and iterations without a new target (TSTmax); and a depth. Rules of this
module:

* What is judged is the host's state, which is the same for every agent that comes to own it: pages done, URLs known.
  What else is needed (when the first page was loaded, at which depth, how long nothing new was found) is in the host's
  notes, section `limits`, and is written when it changes: once a host, or once an iteration at most.
* A host that has reached a limit is *ended* (`HostNotes.end`): what waits of it fails with the limit's name.
* URLs beyond `host_known` and `host_depth`, and new ones of a host that a limit has ended, are not taken where they
  are found or arrive; what came in otherwise (by a handoff) fails when its turn comes.
* What is taken in again (requeued, or joined wrongly) is no new URL: those limits do not refuse it.
* Of a host that is cut into shards each has its share of the limits of pages, URLs and iterations; depth and time are
  counted from its own first page, and iterations without a new URL are its own.
* An *iteration* is as many pages as UBI_HOST_LOAD_TAKE says (imbWBI's load take, LT).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.keys import taken_first
from scrapy_ubi.ground.clock import no_later
from scrapy_ubi.ground.untrusted.checks import is_count
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.settings import UbiSettings

SECTION = "limits"
MOST_WATCHED = 100_000  # hosts of which it is known what was known at an iteration's beginning; beyond, it begins again
PREFIX = "limit/"
PAGES, KNOWN, DEPTH = "limit/host_pages", "limit/host_known", "limit/host_depth"
SECONDS, ITERATIONS, STABLE = "limit/host_seconds", "limit/host_iterations", "limit/host_stable"


class _Facts(NamedTuple):
    """What the notes hold: when the first page was loaded (unix s), the least depth loaded, iterations without news."""

    begun: int | None = None
    depth: int | None = None
    still: int = 0

    @classmethod
    def read(cls, value: object) -> _Facts:
        """From notes, which may be another agent's: what does not hold counts as not there."""
        if not isinstance(value, list) or len(value) != 3:
            return cls()
        begun, depth, still = (one if is_count(one, 2**53) else None for one in value)
        return cls(begun, depth, still or 0)

    def since(self, wall: float) -> float:
        """For how long (s) pages of the host are loaded."""
        return wall - no_later(self.begun, wall, 0.0) if self.begun is not None else 0.0


class HostLimits:
    """The limits of one agent's hosts. `wall` gives unix time (s); `note` tells the report what happened.

    `refused`: how many URLs were not taken.
    """

    def __init__(
        self, settings: UbiSettings, hosts: HostNotes, wall: Callable[[], float], note: Callable[[str, str], object]
    ) -> None:
        self._hosts = hosts
        self._wall = wall
        self._note = note
        self._share = settings.host_shards.share  # of a shard in a limit of its host
        self._watched: dict[str, tuple[int, int]] = {}  # host -> number of the iteration, URLs known at its beginning
        self.refused = 0
        self.counted: Counter[str] = Counter()
        self.follow(settings, {})

    def follow(self, settings: UbiSettings, of_host: Mapping[str, UbiSettings]) -> None:
        """The limits are those of these settings, of some hosts those of others, from now on."""
        self._settings = settings
        self._of_host = of_host
        every = (settings, *of_host.values())
        self._notes = any(one.host_max_seconds or one.host_max_depth or one.host_stable_iterations for one in every)
        self.idle = not (
            self._notes or any(one.host_max_pages or one.host_max_known or one.host_max_iterations for one in every)
        )

    def _of(self, host: str) -> UbiSettings:
        return self._of_host.get(host, self._settings)

    # -- a URL is found

    def refuses(self, state: HostState | None, entry: Entry) -> bool:
        """Whether a URL of an own host is not taken; counted if so. `state` is None for a host not met before."""
        if self.idle or state is None or state.is_known(entry.key) or _is_again(state, entry):
            return False
        reason = self._hosts.read_end_reason(state)
        if not reason.startswith(PREFIX):
            limits = self._of(state.host)
            most = limits.host_max_known
            reason = KNOWN if most and self._share(state.host, most) <= state.known else ""
            if not reason and limits.host_max_depth:
                reason = DEPTH if _is_too_deep(self._facts(state), entry, limits) else ""
        if reason:
            self.refuse(reason, state.host)
        return bool(reason)

    def refuse(self, reason: str, host: str) -> None:
        """Count a URL of this host that is not taken."""
        self.refused += 1
        self.counted[reason.removeprefix(PREFIX)] += 1
        self._note(f"refused/{reason}", host)

    # -- a page has its turn

    def reason(self, state: HostState, entry: Entry) -> str:
        """Why this page is not loaded, though its turn has come; empty when it is. The host is ended where it must."""
        if self.idle:
            return ""
        if reason := self._reached(state, entry):
            return self._end(state, reason)
        if not self._notes:
            return ""
        limits, before = self._of(state.host), self._facts(state)
        facts = self._counted(state, before, limits)
        if 0 < limits.host_stable_iterations <= facts.still:
            return self._end(state, STABLE)
        if 0 < limits.host_max_seconds <= facts.since(self._wall()):
            return self._end(state, SECONDS)
        deep = _is_too_deep(facts, entry, limits)
        if not deep:
            facts = self._begun(facts, entry, limits)
        if facts != before:
            self._hosts.put(state, SECTION, list(facts))
        return DEPTH if deep else ""

    def pages_left(self, state: HostState) -> int:
        """How many pages of this host its limit allows yet, whatever waits."""
        most = self._of(state.host).host_max_pages
        done = self._hosts.before(state) + 1
        return max(0, self._share(state.host, most) - done) if most else state.waiting

    def passed(self, state: HostState) -> None:
        """A request whose turn had come is done without a load, as its page is known: it counts for no limit."""
        if not self.idle:
            self._hosts.pass_one(state)

    @property
    def watched(self) -> int:
        """How many hosts are watched for what an iteration finds."""
        return len(self._watched)

    def _end(self, state: HostState, reason: str) -> str:
        self._hosts.end(state, reason)
        self._note(f"ended/{reason}", state.host)
        self._watched.pop(state.host, None)
        return reason

    def _reached(self, state: HostState, entry: Entry) -> str:
        """The limit that the host's state has reached, if any, where it is this page's turn."""
        host, share = state.host, self._share
        settings, done = self._of(host), self._hosts.before(state)
        if settings.host_max_pages and share(host, settings.host_max_pages) <= done:
            return PAGES
        if settings.host_max_known and share(host, settings.host_max_known) <= done and not _is_again(state, entry):
            return KNOWN  # more were known, from elsewhere: these are the first
        most = settings.host_max_iterations
        return ITERATIONS if most and share(host, most) <= done // settings.host_load_take else ""

    def _begun(self, facts: _Facts, entry: Entry, limits: UbiSettings) -> _Facts:
        """With what is to be known of the first page."""
        if limits.host_max_seconds and facts.begun is None:
            facts = facts._replace(begun=int(self._wall()))
        if limits.host_max_depth and (facts.depth is None or entry.depth < facts.depth):
            facts = facts._replace(depth=entry.depth)
        return facts

    def _counted(self, state: HostState, facts: _Facts, limits: UbiSettings) -> _Facts:
        """With the iterations that have passed without a new URL, if one has just ended."""
        if not limits.host_stable_iterations:
            return facts
        number, known = self._hosts.before(state) // limits.host_load_take, state.known
        then, before = self._watched.get(state.host, (number, known))
        if state.host not in self._watched or number > then:
            if len(self._watched) >= MOST_WATCHED:
                self._watched.clear()
            self._watched[state.host] = (number, known)
        if number <= then:
            return facts
        return facts._replace(still=facts.still + 1 if known <= before else 0)

    def _facts(self, state: HostState) -> _Facts:
        return _Facts.read(self._hosts.get(state, SECTION))


def _is_too_deep(facts: _Facts, entry: Entry, limits: UbiSettings) -> bool:
    return facts.depth is not None and entry.depth - facts.depth > limits.host_max_depth > 0


def _is_again(state: HostState, entry: Entry) -> bool:
    """Whether this is a request of the host that was taken before, under another key."""
    first = taken_first(entry)
    return first is not None and state.is_known(first[1])
