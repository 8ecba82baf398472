"""What is noted of hosts, by section; how long they are left alone, and when they are fetched again.

Rules of this module:

* A host's notes are one JSON object (`protocol/notes.py`), written with its row, told to the host's other keepers when
  it changes, and part of every handoff. Each key of it is a *section* of one component, which validates its value
  whenever it reads it, for it may come from another agent. What `get` gives is shared: it is not to be changed.
* Two sections are this module's: `delay` (source -> seconds between the end of one load and the start of the next) and
  `until` ([unix seconds, why, seconds that it was set for]: not to be fetched before). The host state follows them
  wherever they come from: `pause` is the largest delay, `next_at` no earlier than `until`. Of these nothing holds for
  more than `MOST_POSTPONE`.
* What lies further ahead than it was set for is of a clock that was ahead: it counts as set when it comes in. So does
  a host's `next_at` of the disk that neither its delays nor `until` explain.
* A host may be *ended* (section `end`: why). Nothing of it is fetched any more: what waits, and what is found later,
  fails with that reason when its turn comes, a slice at a time (`Node.next_visit`). All else that was noted of it, but
  its last error and limits of its own, is forgotten, until it is lifted. What failed so is done and was not loaded: how
  much that was is noted when it is lifted (section `passed`), for limits that count pages.
* Where a requeued request comes from another agent, it lifts its host: who had the record of its failure may keep
  nothing of the host any more.
* A section that wants more room than `MOST_NOTES` is left out and counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping

from scrapy_ubi.agent.hosts.host_times import HostTimes
from scrapy_ubi.agent.keys import REQUEUED, taken_first
from scrapy_ubi.ground.clock import is_ahead, no_later
from scrapy_ubi.ground.untrusted.checks import is_number
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import MOST_NOTES, Entry, HostState, Notes
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.urls.host_shards import MARK, NO_SHARDS, HostShards

MOST_POSTPONE = 86_400.0  # s: a day; whatever a host has said, it is asked again then
DELAY, UNTIL, END = "delay", "until", "end"
COMPLETE = "complete"  # since when (unix s) nothing of it is left (`complete_hosts`)
BUDGET = "budget"  # limits of its own: kept when it is ended
ERROR = "error"  # what its last load has ended with, where that was an error: `http/503`, `exception/...`
LOADED, PASSED = "loaded", "passed"  # pages done when the host was ended; those done without a load
RETRY_AFTER = "retry-after"  # why a host is left alone that has asked for it
RESTS = frozenset({"health", "failing", "robots"})  # why a host is left alone that has not asked for it
PARSED = 1024  # texts of notes kept as objects: a hundred hosts are fetched at a time, and many have equal notes
NEVER = 1e12  # unix seconds: far beyond any date that is meant
UNNOTED = 60.0  # s by which a host may be put off without a note: for other hosts of its address, by a delay of here
MOST_BRIEF = 1024  # hosts with delays for here and now only, before those not held any more are forgotten

_WHY = re.compile(r"[\w/.-]{1,64}")
_ASKED = re.compile(r"http/(429|503)")

Change = Callable[[HostState], None]


class HostNotes:
    """The notes of one agent's hosts. `clock` is the agent's, `wall` gives unix time (both s).

    With `shards` the delays of a host that is cut are as many times as long (`HostShards.slowed`): what is noted is
    what the host wants, the `pause` of a shard's state what follows. What follows for one shard (a rest, the end of
    the host) follows for all that are here; what leads to it is counted for each.

    `counted` counts: `notes_too_large` (a section left out), `postponed/<why>`, `clipped` (a time beyond
    `MOST_POSTPONE`). `ahead`: times of a clock that was ahead.
    """

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float], shards: HostShards = NO_SHARDS) -> None:
        self._clock = clock
        self._wall = wall
        self._shards = shards
        self.counted: Counter[str] = Counter()
        self.ahead = 0
        self.times = HostTimes()
        self._callbacks: list[Change] = []
        self._parsed: dict[str, dict[str, object]] = {}
        self._brief: dict[str, dict[str, float]] = {}  # host -> delays for here and now only
        self._most_brief = self._most_believed = MOST_BRIEF
        self._believed: dict[str, tuple[float, float]] = {}  # host -> what is noted (unix s), of a clock that is ahead

    def work_for(self, agent: Agent, frontier: Frontier) -> None:
        """Work for this agent and its frontier: what is noted there is followed. Linear in the hosts held. Comes before
        all else."""
        self._agent = agent
        self._frontier = frontier
        self._brief.clear()
        if self._shards:
            frontier.on_new = self._met
        for state in frontier.states():
            if self._shards:
                self.follow_delays(state)
            if state.notes.version:
                self.arrived(state)
                if state.pause:  # what was under way when the last process ended is not known
                    frontier.defer(state, self._clock())
            if state.next_at:
                self._judge(state)

    def _judge(self, state: HostState) -> None:
        """The disk says when a host may be fetched: no later than can be explained."""
        now, most = self._clock(), max(self._frontier.delay, state.pause, self._until(state) - self._wall())
        if state.next_at > now + max(most, UNNOTED):
            self.ahead += is_ahead(state.next_at, now, most)
            self._frontier.hasten(state, no_later(state.next_at, now, most))

    def find(self, host: str) -> HostState | None:
        """The state of a host that is held, None of any other."""
        return self._frontier.find(host)

    # -- sections

    def get(self, state: HostState, section: str) -> object | None:
        """The value of a section, None when there is none: JSON, as its writer left it, not to be changed."""
        return self._read(state).get(section)

    def put(self, state: HostState, section: str, value: object | None) -> None:
        """Note this of a host; None takes it out. Of a host that is not held any more nothing is noted.

        Raises ValueError when the value is not JSON.
        """
        notes = {name: kept for name, kept in self._read(state).items() if name != section}
        if value is not None:
            notes[section] = value
        elif not notes and not state.notes.version:
            return
        text = canonical(notes)
        if len(text) > MOST_NOTES:
            self.counted["notes_too_large"] += 1
            notes.pop(section, None)
            text = canonical(notes)
        self._agent.keeping.note(state, text)

    def spend(self, state: HostState, amount: int) -> None:
        """So much was spent on this host (`Keepers.spend`)."""
        self._agent.keeping.spend(state, amount)

    @property
    def parsed(self) -> int:
        """How many texts of notes are kept parsed."""
        return len(self._parsed)

    @property
    def brief(self) -> int:
        """How many hosts have delays for here and now only."""
        return len(self._brief)

    def _read(self, state: HostState) -> dict[str, object]:
        text = state.notes.text
        if not text:
            return {}
        notes = self._parsed.get(text)
        if notes is None:
            if len(self._parsed) >= PARSED:
                self._parsed.clear()
            notes = self._parsed[text] = json.loads(text)
        return notes

    # -- when it may be fetched

    def wait_until(self, state: HostState, turn: float) -> None:
        """The host is not fetched before this time (s, the agent's clock); nothing of that is noted."""
        self._frontier.postpone(state, turn)

    def postpone(self, state: HostState, seconds: float, why: str, asked: float | None = None) -> None:
        """The host, with all of its shards that are here, is not fetched for so long from now on, `MOST_POSTPONE` at
        most, unless that is so already. `why` is a word that people see. `asked`: for
        how much of it (s) the host itself has asked, where that is less.
        """
        seconds = self._clipped(seconds)
        until = self._wall() + seconds
        self.times.rested(state.host, seconds)
        for one in self._together(state):
            self._put_off(one, seconds)
            if until > self._until(one):
                self.counted[f"postponed/{why}"] += 1
                noted: list[object] = [round(until, 3), why, round(seconds, 3)]
                self.put(one, UNTIL, noted if asked is None or asked >= seconds else [*noted, round(asked, 3)])

    def set_delay(self, state: HostState, source: str, seconds: float, kept: bool = True) -> None:
        """This source wants so many seconds between the end of one load and the start of the next, 0 for none.

        The largest of all sources, and of `UBI_HOST_DELAY`, counts. `kept`: it travels with the host and survives; else
        it holds here and now.
        """
        seconds = self._clipped(seconds)
        if kept:
            self._note_delay(state, source, seconds)
        else:
            self._set_brief(state.host, source, seconds)
        self.follow_delays(state)

    def _note_delay(self, state: HostState, source: str, seconds: float) -> None:
        delays = self.delays(state, brief=False)
        delays.pop(source, None)
        if seconds:
            delays[source] = round(seconds, 3)
        self.put(state, DELAY, delays or None)

    def _set_brief(self, host: str, source: str, seconds: float) -> None:
        if host not in self._brief and len(self._brief) >= self._most_brief:
            self._brief = {name: kept for name, kept in self._brief.items() if self._frontier.find(name) is not None}
            self._most_brief = MOST_BRIEF + 2 * len(self._brief)  # so that looking costs little a host
        delays = self._brief.setdefault(host, {})
        delays[source] = seconds
        if not seconds:
            del delays[source]
        if not delays:
            del self._brief[host]

    def delays(self, state: HostState, brief: bool = True) -> dict[str, float]:
        """Who wants which delay (s) of this host; `brief`: those for here and now, too."""
        noted = self._read(state).get(DELAY)
        found = {}
        if isinstance(noted, Mapping):
            found = {name: float(s) for name, s in noted.items() if is_number(s, NEVER) and 0 < s <= MOST_POSTPONE}
        for source, seconds in self._brief.get(state.host, {}).items() if brief else ():
            found[source] = max(seconds, found.get(source, 0.0))
        return found

    def postponed(self, state: HostState) -> tuple[float, str] | None:
        """Until when (unix seconds) the host is left alone, and why; None when it is not."""
        until = self._until(state)
        return (until, self._why(state)) if until > self._wall() else None

    def rests(self, state: HostState) -> bool:
        """Whether its pages wait for a time that the host itself has not asked for."""
        postponed = self.postponed(state) if state.notes.text else None
        if postponed is None:
            return False
        return postponed[1] in RESTS or (postponed[1] == RETRY_AFTER and self._longer(state) > 0)

    def asked_left(self, state: HostState) -> float:
        """For how long (s) the host has asked to be left alone; 0.0 where it has not, as far as is noted."""
        postponed = self.postponed(state) if state.notes.text else None
        if postponed is None or postponed[1] != RETRY_AFTER:
            return 0.0
        return max(0.0, postponed[0] - self._longer(state) - self._wall())

    def asked_status(self, state: HostState) -> int | None:
        """The status with which the host has asked to be left alone last, as far as is noted."""
        found = _ASKED.fullmatch(error_of(self._read(state)))
        return int(found[1]) if found is not None else None

    def _longer(self, state: HostState) -> float:
        """For how much longer (s) than it has asked for a host is left alone."""
        noted = self._read(state).get(UNTIL)
        if not isinstance(noted, list) or len(noted) < 4:
            return 0.0
        seconds, asked = noted[2:4]
        known = is_number(seconds, MOST_POSTPONE) and is_number(asked, MOST_POSTPONE)
        return float(seconds - asked) if known and 0 <= asked < seconds else 0.0

    def _until(self, state: HostState) -> float:
        """What is noted, as far as it holds: 0.0 when nothing is, or nothing sensible; of a clock that was ahead, what
        was believed when it came in."""
        until, _, _ = _noted_until(self._read(state))
        noted, believed = self._believed.get(state.host, (0.0, 0.0))
        return believed if noted == until else until

    def _believe(self, state: HostState) -> None:
        """Something of this host has just come in: judge until when it is left alone."""
        until, most, _ = _noted_until(self._read(state))
        wall = self._wall()
        if until > wall + most:
            self.ahead += is_ahead(until, wall, most)
            if len(self._believed) >= self._most_believed:
                self._believed = {host: known for host, known in self._believed.items() if known[1] > wall}
                self._most_believed = MOST_BRIEF + 2 * len(self._believed)
            self._believed[state.host] = until, no_later(until, wall, most)

    def _why(self, state: HostState) -> str:
        return _noted_until(self._read(state))[2]

    def _clipped(self, seconds: float) -> float:
        if seconds > MOST_POSTPONE:
            self.counted["clipped"] += 1
            return MOST_POSTPONE
        return seconds if seconds > 0 else 0.0  # not a number, too

    # -- when it is fetched no longer

    def end_host(self, state: HostState, reason: str, whole: bool = False) -> None:
        """Fetch nothing of this host any more: what waits of it fails. `reason` is a short word as `host/dead`.
        `whole`: nor of its other shards that are here."""
        for one in self._together(state) if whole else [state]:
            if not self.read_end_reason(one):
                self.counted[f"ended/{reason}"] += 1
                known = error_of(self._read(one))
                budget = self.get(one, BUDGET)
                kept: dict[str, object] = {END: reason, LOADED: max(0, self.before(one))}
                kept |= {name: value for name, value in ((ERROR, known), (BUDGET, budget)) if value}
                self._agent.keeping.note(one, canonical(kept))
                self.follow_delays(one)
                self._hasten(one)

    def read_end_reason(self, state: HostState) -> str:
        """Why nothing of this host is fetched any more; empty while it is."""
        return ended_by(self._read(state)) if state.notes.text else ""

    def blocked_reason(self, state: HostState) -> str:
        """`read_blocked_reason` of this host."""
        if not state.notes.text:
            return ""
        if self.read_end_reason(state):
            return "ended"
        return self._why(state) if self._until(state) > self._wall() else ""

    def lift(self, host: str) -> None:
        """Fetch of this host again, if it was ended: nothing is held against it."""
        state = self._frontier.find(host)
        if state is not None and self.read_end_reason(state):
            self._agent.keeping.note(state, lifted(state.notes, state.done_count).text)

    def lift_for(self, state: HostState, entry: Entry) -> None:
        """This request of an own host comes from elsewhere."""
        first = taken_first(entry)
        if first is None or first[0] != REQUEUED or state.is_known(entry.key) or not state.is_known(first[1]):
            return
        self.lift(state.host)

    def before(self, state: HostState) -> int:
        """How many pages of the host were loaded before the one that has its turn: done, or in their callbacks still;
        not those that failed as the host was ended.
        """
        passed = self._read(state).get(PASSED)
        done = state.done_count + len(state.out) - 1
        return done - passed if type(passed) is int and 0 <= passed <= done else done

    def loaded(self, state: HostState) -> int:
        """How many pages of the host were loaded: done, but for those that failed as the host was ended."""
        noted = self._read(state).get(LOADED) if self.read_end_reason(state) else None
        return noted if type(noted) is int and 0 <= noted <= state.done_count else max(0, self.before(state) + 1)

    def pass_one(self, state: HostState) -> None:
        """One of its requests that are out is done without a load: it does not count as a page of `before`."""
        passed = self._read(state).get(PASSED)
        self.put(state, PASSED, passed + 1 if type(passed) is int and passed > 0 else 1)

    def _hasten(self, state: HostState) -> None:
        """Let what waits of it have its turn, though something else of the host may have been loaded just now."""
        if self._frontier.find(state.host) is state:
            self._frontier.hasten(state, self._clock() + max(self._frontier.delay, state.pause))

    # -- what comes from elsewhere

    def on_change(self, callback: Change) -> None:
        """Tell this callback of every host whose notes arrive from elsewhere; and, now, of those found on the disk."""
        self._callbacks.append(callback)
        for state in self._frontier.states():
            if state.notes.version:
                callback(state)

    def arrived(self, state: HostState) -> None:
        self.follow_delays(state)
        self._believe(state)
        self.put_off_again(state)
        if self.read_end_reason(state):
            self._hasten(state)
        for callback in self._callbacks:
            callback(state)

    def put_off_again(self, state: HostState) -> bool:
        """Whether the host is left alone, as is noted; its turn comes no earlier."""
        left = self._until(state) - self._wall()
        if left > 0:
            self._put_off(state, left)
        return left > 0

    def follow_delays(self, state: HostState) -> None:
        """Its delay is the largest of those noted; that of a shard hangs on the crawl's, too."""
        pause = max(self.delays(state).values(), default=0.0)
        if MARK in state.host:
            pause = min(self._shards.slowed(state.host, max(pause, self._frontier.delay)), MOST_POSTPONE)
        state.pause = pause

    # -- shards

    def begin_delay(self, state: HostState) -> None:
        """The delay of this host begins now. Shards wait each by its place, so that they do not begin all at once."""
        if MARK not in state.host:
            self._frontier.defer(state, self._clock())
        else:
            self._put_off(state, (self._shards.place(state.host) + 1) / self._shards.number(state.host) * state.pause)

    def _together(self, state: HostState) -> list[HostState]:
        """The states here of all shards of a host that is cut, this one among them; itself where it is not cut."""
        if MARK not in state.host:
            return [state]
        found = map(self._frontier.find, self._shards.siblings(state.host))
        return [one for one in found if one is not None]

    def _met(self, state: HostState) -> None:
        """A host is met for the first time."""
        if MARK in state.host:
            self.follow_delays(state)
            self._put_off(state, self._shards.place(state.host) / self._shards.number(state.host) * state.pause)

    def _put_off(self, state: HostState, seconds: float) -> None:
        if self._frontier.find(state.host) is state:
            self._frontier.postpone(state, self._clock() + seconds)


def ended_by(notes: Mapping[str, object]) -> str:
    """Why nothing of a host with these notes is fetched any more; empty while it is."""
    reason = notes.get(END)
    return reason if isinstance(reason, str) and _WHY.fullmatch(reason) else ""


def error_of(notes: Mapping[str, object]) -> str:
    """What the last load of a host with these notes has ended with; empty where that was no error, or is not known."""
    noted = notes.get(ERROR)
    return noted if isinstance(noted, str) and _WHY.fullmatch(noted) else ""


def read_blocked_reason(notes: Mapping[str, object], wall: float) -> str:
    """What keeps a host with these notes from being fetched at that time (unix seconds), in a word for people: `ended`;
    why it is left alone, as `retry-after`; empty when nothing does.
    """
    if ended_by(notes):
        return "ended"
    until, most, why = _noted_until(notes)
    return why if until > wall and not is_ahead(until, wall, most) else ""


def _noted_until(notes: Mapping[str, object]) -> tuple[float, float, str]:
    """Until when (unix s) a host is left alone, for how long (s) that was set at most, and why; 0.0 for no time."""
    noted = notes.get(UNTIL)
    if not isinstance(noted, list) or len(noted) not in (2, 3, 4) or not is_number(noted[0], NEVER):
        return 0.0, MOST_POSTPONE, ""
    most = noted[2] if len(noted) > 2 and is_number(noted[2], MOST_POSTPONE) else MOST_POSTPONE
    why = noted[1] if isinstance(noted[1], str) and _WHY.fullmatch(noted[1]) else "?"
    return float(noted[0]), float(most), why


def lifted(notes: Notes, done: int) -> Notes:
    """The same without what ends the host, of which so many pages are `done`, loaded or not."""
    said = json.loads(notes.text) if notes.text else {}
    if not ended_by(said):
        return notes
    del said[END]
    loaded = said.pop(LOADED, None)
    if type(loaded) is int and 0 <= loaded < done:
        said[PASSED] = done - loaded
    return Notes(notes.version + 1, canonical(said))
