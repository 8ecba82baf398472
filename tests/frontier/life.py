"""The life of any frontier at random, against a plain account of what is known, done, out, busy and delayed."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_ubi.protocol.host import Entry, HostState, Notes
from scrapy_ubi.protocol.notes import NOTHING
from tests.frontier.frontiers import Checked, Make, Reading

NOW = 100.0


def entry(host: str, key: int, depth: int = 0, priority: int = 0) -> Entry:
    return Entry(key, f"http://{host}/{key}", depth, priority)


def add(frontier: Checked, host: str, *keys: int, depth: int = 0) -> HostState:
    state, news = frontier.add(host, [entry(host, key, depth) for key in keys])
    assert [one.key for one in news] == list(keys)
    return state


def waiting(state: HostState) -> dict[int, Entry]:
    """What waits."""
    return {one.key: one for one in state.undone() if one.key not in state.out and one.key not in state.closing}


def always(state: HostState) -> bool:
    return True


def never(state: HostState) -> bool:
    return False


def pop(frontier: Checked, now: float = NOW, allowed: Callable[[HostState], bool] = always) -> tuple[str, int] | None:
    """Host and key of the next request; its host is busy then."""
    found = frontier.pop(now, allowed)
    if found is None:
        return None
    state, one = found
    state.open_work += 1
    frontier.check_invariants()
    return state.host, one.key


# -- all of it at random


def life(make: Make) -> type[RuleBasedStateMachine]:
    """A frontier against a plain account of what is known, done, out, busy and delayed."""

    class Life(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.frontier = make(2.0)
            self.now = NOW
            self.queued: dict[str, dict[int, Entry]] = {}
            self.done: dict[str, set[int]] = {}
            self.out: dict[tuple[str, int], Entry] = {}
            self.busy: set[str] = set()
            self.ready: dict[str, float] = {}
            self.notes: dict[str, Notes] = {}
            self.parked: set[str] = set()
            self.mine = {"a"}

        def state(self, host: str) -> HostState:
            state = self.frontier.find(host)
            assert state is not None
            return state

        @rule(host=st.sampled_from("abc"), key=st.integers(0, 5), depth=st.integers(0, 2), priority=st.integers(-1, 1))
        def add(self, host: str, key: int, depth: int, priority: int) -> None:
            one = entry(host, key, depth, priority)
            far = isinstance(self.frontier, Reading)
            state, news = self.frontier.add(host, [one])
            assert state is self.state(host)
            queued = self.queued.setdefault(host, {})
            done = self.done.setdefault(host, set())
            old = queued.get(key)
            better = old is None or (depth, -priority) < (old.depth, -old.priority)
            fresh = better and key not in done and (host, key) not in self.out
            assert bool(news) == fresh or (far and old is not None and not news), "nearer, but not next"
            if news:
                queued[key] = one

        @precondition(lambda self: self.queued)
        @rule(data=st.data(), key=st.integers(0, 7))
        def add_done(self, data: st.DataObject, key: int) -> None:
            host = data.draw(st.sampled_from(sorted(self.queued)))
            news = self.frontier.add_done(self.state(host), [key])
            assert news == ([] if key in self.done[host] else [key])
            self.done[host].add(key)
            self.queued[host].pop(key, None)

        @rule(forbidden=st.sets(st.sampled_from("abc")), seconds=st.sampled_from([0.0, 1.0, 3.0]))
        def pop(self, forbidden: set[str], seconds: float) -> None:
            self.now += seconds
            asked: set[str] = set()

            def allowed(state: HostState) -> bool:
                asked.add(state.host)
                return state.host not in forbidden

            may = {
                host
                for host, queued in self.queued.items()
                if queued and host not in self.busy | self.parked and self.ready.get(host, 0.0) <= self.now
            }
            found = self.frontier.pop(self.now, allowed)
            self.parked |= asked & forbidden
            if found is None:
                full = isinstance(self.frontier, Reading) and self.frontier.is_full_at(self.now)
                assert full or not may - forbidden
                return
            state, one = found
            assert state.host in may - forbidden
            first = min((-e.priority, e.depth) for e in self.queued[state.host].values())
            assert (-one.priority, one.depth) == first
            assert self.queued[state.host].pop(one.key) == one
            state.open_work += 1
            self.out[state.host, one.key] = one
            self.busy.add(state.host)

        @precondition(lambda self: self.busy)
        @rule(data=st.data())
        def free(self, data: st.DataObject) -> None:
            host = data.draw(st.sampled_from(sorted(self.busy)))
            self.frontier.free(self.state(host), self.now)
            self.busy.remove(host)
            self.ready[host] = max(self.ready.get(host, 0.0), self.now + 2.0)

        @precondition(lambda self: self.queued)
        @rule(data=st.data(), seconds=st.sampled_from([0.5, 3.0, 20.0]))
        def postpone(self, data: st.DataObject, seconds: float) -> None:
            host = data.draw(st.sampled_from(sorted(self.queued)))
            self.frontier.postpone(self.state(host), self.now + seconds)
            self.ready[host] = max(self.ready.get(host, 0.0), self.now + seconds)

        @precondition(lambda self: self.queued)
        @rule(data=st.data(), version=st.integers(1, 3), text=st.sampled_from(["{}", '{"a":1}']))
        def note(self, data: st.DataObject, version: int, text: str) -> None:
            host = data.draw(st.sampled_from(sorted(self.queued)))
            before = self.notes.get(host, NOTHING)
            assert self.frontier.note(self.state(host), Notes(version, text)) == (Notes(version, text) > before)
            self.notes[host] = max(before, Notes(version, text))

        @precondition(lambda self: self.out)
        @rule(data=st.data(), how=st.sampled_from(["finish", "put back", "retry"]))
        def end(self, data: st.DataObject, how: str) -> None:
            host, key = data.draw(st.sampled_from(sorted(self.out)))
            one = self.out.pop((host, key))
            state = self.state(host)
            state.open_work -= 1
            if how == "finish":
                assert self.frontier.finish(state, key) == (key not in self.done[host])
                self.done[host].add(key)
                return
            again = one._replace(priority=one.priority - 1) if how == "retry" else one
            self.frontier.put_back(state, key, again if how == "retry" else None)
            if key not in self.done[host]:
                self.queued[host][key] = again

        @precondition(lambda self: self.queued)
        @rule(data=st.data())
        def drop(self, data: st.DataObject) -> None:
            host = data.draw(st.sampled_from(sorted(self.queued)))
            if host in self.busy or any(h == host for h, _ in self.out):
                return  # nobody drops a host with work open
            self.frontier.drop(host)
            for book in (self.queued, self.done, self.ready, self.notes):
                book.pop(host, None)
            self.parked.discard(host)

        @rule(mine=st.sets(st.sampled_from("abc")))
        def look_again(self, mine: set[str]) -> None:
            self.frontier.look_again()
            self.mine = mine
            self.parked.clear()

        @invariant()
        def holds(self) -> None:
            self.frontier.check_invariants()
            assert {state.host for state in self.frontier.states()} == self.queued.keys()
            assert len(self.frontier) == len(self.queued)
            for host, queued in self.queued.items():
                state = self.state(host)
                assert waiting(state) == queued
                assert set(state.told_done()) == self.done[host]
                assert state.notes == self.notes.get(host, NOTHING)
                assert state.out == {key: one for (h, key), one in self.out.items() if h == host}
            unserved = any(queued and host in self.mine - self.busy for host, queued in self.queued.items())
            assert self.frontier.waits(lambda state: state.host in self.mine) >= unserved
            ready = self.frontier.next_ready()
            ready_some = [h for h, queued in self.queued.items() if queued and h not in self.busy | self.parked]
            if ready_some:
                assert ready is not None
                assert ready <= max(self.now, *(self.ready.get(host, 0.0) for host in ready_some))

    return Life
