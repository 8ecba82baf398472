"""Limits of a host: how much of one is fetched, judged by its owner when the turn of a page has come.

They are those of the imbWBI crawler (2017), which has them from RCrawler: pages loaded (PLmax), targets known (TTmax),
time of a domain (TDLmax), iterations (Imax), and iterations without a new target (TSTmax); and a depth, and bytes.
Rules of this module:

* Which limits a host has: what people have said of it while the crawl runs (`scrapy ubi set --host`), before what its
  seeds have brought (section `budget` of its notes), before the table (UBI_HOST_LIMITS); each limit by itself.
* Bytes are those of bodies as they came, of all loads of the host by its owner, also of those that are made again. They
  are counted where a limit of them holds, as what was spent (`protocol/notes.py`): exact across hand-overs, and no less
  than what the pages that are known to be done have cost.

* What is judged is the host's state, which is the same for every agent that comes to own it: pages done, URLs known.
  What else is needed (when the first page was loaded, at which depth, how long nothing new was found) is in the host's
  notes, section `limits`, and is written when it changes: once a host, or once an iteration at most.
* A host that has reached a limit is *ended* (`HostNotes.end_host`): what waits of it fails with the limit's name.
* URLs beyond the limits `known` and `depth`, and new ones of a host that a limit has ended, are not taken where they
  are found or arrive; what came in otherwise (by a handoff) fails when its turn comes.
* What is taken in again (requeued, or joined wrongly) is no new URL: those limits do not refuse it.
* Of a host that is cut into shards each has its share of the limits of pages, URLs, bytes and iterations; depth and
  time are counted from its own first page, and iterations without a new URL are its own.
* An *iteration* is as many pages as UBI_HOST_LOAD_TAKE says (imbWBI's load take, LT).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import BUDGET, HostNotes
from scrapy_ubi.agent.keys import taken_first
from scrapy_ubi.ground.clock import no_later
from scrapy_ubi.ground.untrusted.checks import is_count
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.host_limits import UNSAID, HostLimitsTable, Limits, read_limits
from scrapy_ubi.urls.host_shards import host_of_key

SECTION = "limits"
MOST_WATCHED = 100_000  # hosts of which it is known what was known at an iteration's beginning; beyond, it begins again
PREFIX = "limit/"
MOST_BASES = 10_000  # hosts of which it is remembered what the table says
NO_TABLE = HostLimitsTable()
PAGES, KNOWN, DEPTH, BYTES = "limit/host_pages", "limit/host_known", "limit/host_depth", "limit/host_bytes"
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
        self._load_take = settings.host_load_take
        self._table = settings.host_limits or NO_TABLE
        said = {host: one.host_limits for host, one in of_host.items() if one.host_limits is not settings.host_limits}
        self._own = {host: table.others for host, table in said.items() if table is not None}
        self._bases: dict[str, Limits] = {}
        self.idle = settings.host_limits is None and not self._own

    def of(self, state: HostState) -> Limits:
        """The limits of this host."""
        host = state.host
        found = self._bases.get(host)
        if found is None:
            if len(self._bases) >= MOST_BASES:
                self._bases.clear()
            found = self._bases[host] = self._table.for_host(host_of_key(host))
        if state.notes.text and (brought := self._hosts.get(state, BUDGET)) is not None:
            found = read_budget(brought).over(found)
        return self._own[host].over(found) if host in self._own else found

    def delay(self, state: HostState) -> float:
        """The delay (s) that these want of the host."""
        return 0.0 if self.idle else self.of(state).delay or 0.0

    def bring(self, state: HostState, limits: Limits) -> None:
        """A seed has brought limits of the host: what it says holds from now on, beside what others have said. Where
        that is news, a host that a limit has ended is fetched again, until it reaches one of these."""
        brought = self._hosts.get(state, BUDGET)
        before = read_budget(brought) if brought is not None else UNSAID
        if (after := limits.over(before)) == before:
            return
        self._hosts.put(state, BUDGET, after.said)
        if self._hosts.read_end_reason(state).startswith(PREFIX):
            self._hosts.lift(state.host)

    def received(self, state: HostState, size: int) -> None:
        """So many bytes of this host have come."""
        if self.of(state).bytes:
            self._hosts.spend(state, size)

    # -- a URL is found

    def refuses(self, state: HostState | None, entry: Entry) -> bool:
        """Whether a URL of an own host is not taken; counted if so. `state` is None for a host not met before."""
        if self.idle or state is None or state.is_known(entry.key) or _is_again(state, entry):
            return False
        reason = self._hosts.read_end_reason(state)
        if not reason.startswith(PREFIX):
            limits = self.of(state)
            most = limits.known
            reason = KNOWN if most and self._share(state.host, most) <= state.known else ""
            if not reason and limits.depth:
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
        limits = self.of(state)
        if reason := self._reached(state, entry, limits):
            return self._end(state, reason)
        if not (limits.depth or limits.seconds or limits.stable):
            return ""
        before = self._facts(state)
        facts = self._counted(state, before, limits)
        if 0 < (limits.stable or 0) <= facts.still:
            return self._end(state, STABLE)
        if 0 < (limits.seconds or 0) <= facts.since(self._wall()):
            return self._end(state, SECONDS)
        deep = _is_too_deep(facts, entry, limits)
        if not deep:
            facts = self._begun(facts, entry, limits)
        if facts != before:
            self._hosts.put(state, SECTION, list(facts))
        return DEPTH if deep else ""

    def pages_left(self, state: HostState) -> int:
        """How many pages of this host its limit allows yet, whatever waits."""
        most = 0 if self.idle else self.of(state).pages or 0
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
        self._hosts.end_host(state, reason)
        self._note(f"ended/{reason}", state.host)
        self._watched.pop(state.host, None)
        return reason

    def _reached(self, state: HostState, entry: Entry, limits: Limits) -> str:
        """The limit that the host's state has reached, if any, where it is this page's turn."""
        host, share, done = state.host, self._share, self._hosts.before(state)
        if limits.pages and share(host, limits.pages) <= done:
            return PAGES
        if limits.known and share(host, limits.known) <= done and not _is_again(state, entry):
            return KNOWN  # more were known, from elsewhere: these are the first
        if limits.bytes and share(host, limits.bytes) <= state.notes.total_spent:
            return BYTES
        most = limits.iterations
        return ITERATIONS if most and share(host, most) <= done // self._load_take else ""

    def _begun(self, facts: _Facts, entry: Entry, limits: Limits) -> _Facts:
        """With what is to be known of the first page."""
        if limits.seconds and facts.begun is None:
            facts = facts._replace(begun=int(self._wall()))
        if limits.depth and (facts.depth is None or entry.depth < facts.depth):
            facts = facts._replace(depth=entry.depth)
        return facts

    def _counted(self, state: HostState, facts: _Facts, limits: Limits) -> _Facts:
        """With the iterations that have passed without a new URL, if one has just ended."""
        if not limits.stable:
            return facts
        number, known = self._hosts.before(state) // self._load_take, state.known
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


def read_budget(value: object) -> Limits:
    """Limits that notes say, which may be another agent's; what does not hold counts as not there."""
    try:
        return read_limits(value)
    except ValueError:
        return UNSAID


def _is_too_deep(facts: _Facts, entry: Entry, limits: Limits) -> bool:
    return facts.depth is not None and entry.depth - facts.depth > (limits.depth or 0) > 0


def _is_again(state: HostState, entry: Entry) -> bool:
    """Whether this is a request of the host that was taken before, under another key."""
    first = taken_first(entry)
    return first is not None and state.is_known(first[1])
