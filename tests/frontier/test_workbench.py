"""The workbench: idle, waiting, busy, parked; the host that waits longest first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_ubi.frontier import workbench
from scrapy_ubi.frontier.workbench import PATIENCE, Workbench


def always(host: str) -> bool:
    return True


def but(*hosts: str) -> Callable[[str], bool]:
    return lambda host: host not in hosts


def bench(**hosts: float) -> Workbench:
    """Hosts waiting from these times on, put in in this order. Of those named `old...` something was fetched before."""
    made = Workbench(lambda host: host.startswith("old"))
    for host, at in hosts.items():
        made.activate(host, at)
    made.check_invariants()
    return made


# -- waiting


def test_the_host_ready_first_comes_first() -> None:
    made = bench(a=3.0, b=1.0, c=2.0)
    assert [made.take(5.0, always) for _ in range(4)] == ["b", "c", "a", None]


def test_ties_go_to_the_host_put_in_first() -> None:
    """So hosts take turns."""
    made = bench(c=1.0, a=1.0, b=1.0)
    assert [made.take(1.0, always) for _ in range(3)] == ["c", "a", "b"]
    for host in "cab":
        made.release(host, 1.0)
    assert [made.take(1.0, always) for _ in range(3)] == ["c", "a", "b"]


def test_the_order_is_that_of_the_times_whoever_stands_in_line() -> None:
    made = bench(slow=100.0, b=1.0, c=50.0, d=1.0, e=100.5, f=102.0, g=100.5)
    assert [made.take(102.0, always) for _ in range(8)] == ["b", "d", "c", "slow", "e", "g", "f", None]


def test_nothing_before_its_time() -> None:
    made = bench(a=2.0)
    assert made.take(1.999, always) is None
    assert made.next_ready() == 2.0
    assert made.take(2.0, always) == "a"
    assert made.next_ready() is None


def test_what_waits_already_keeps_its_time_and_place() -> None:
    made = bench(a=2.0, b=3.0)
    made.activate("a", 9.0)
    made.activate("b", 1.0)
    assert made.next_ready() == 2.0
    assert [made.take(5.0, always) for _ in range(2)] == ["a", "b"]


def test_a_flood_of_new_hosts_leaves_every_second_fetch_to_those_that_wait_for_long() -> None:
    made = bench(old=0.0, older=0.0)
    for _ in range(2):
        made.take(0.0, always)
    for number in range(20):
        made.activate(f"new{number}", 1.0)
    made.release("old", 1.0)
    made.release("older", 1.0)
    assert [made.take(1.5, always) for _ in range(2)] == ["new0", "new1"], "in the order of their times"
    taken = []
    for _ in range(8):
        taken.append(host := made.take(2.0, always))
        if host is not None and host.startswith("old"):
            made.release(host, 1.0)
        made.check_invariants()
    assert taken == ["old", "new2", "older", "new3", "old", "new4", "older", "new5"]


def test_a_host_with_one_page_after_the_other_is_no_arrival_each_time() -> None:
    """It is idle between two of them, as its queue is empty."""
    made = Workbench(lambda host: host == "chain")
    for number in range(20):
        made.activate(f"new{number}", 0.0)
    taken = []
    for turn in range(8):
        made.activate("chain", 1.0 + turn)
        taken.append(host := made.take(2.0 + turn, always))
        if host == "chain":
            made.release("chain", None)
        made.check_invariants()
    assert taken.count("chain") == 4, taken


def test_a_flood_of_parked_hosts_that_wait_again_is_one_of_arrivals() -> None:
    made = Workbench(lambda host: host == "old")
    for number in range(20):
        made.activate(f"new{number}", 0.0)
    made.activate("old", 1.0)
    assert made.take(1.0, but("old", *(f"new{number}" for number in range(20)))) is None
    made.look_again(lambda host: 1.0 if host == "old" else 0.0)
    made.check_invariants()
    assert "old" in [made.take(2.0, always) for _ in range(2)]


def test_arrivals_out_of_the_order_of_their_times_stop_no_other_host_either() -> None:
    """As after a restart: hosts found on disk have a time, new ones have none."""
    made = Workbench(lambda host: host == "old")
    made.activate("restored", 5.0)
    for number in range(20):
        made.activate(f"new{number}", 0.0)
    made.activate("old", 5.0)
    assert "old" in [made.take(6.0, always) for _ in range(2)]


def test_a_flood_that_another_agent_owns_does_not_count() -> None:
    made = bench(old=0.0)
    made.take(0.0, always)
    for host in ("theirs", "mine", "too"):
        made.activate(host, 1.0)
    made.release("old", 1.0)
    assert [made.take(3.0, but("theirs")) for _ in range(4)] == ["mine", "old", "too", None]


# -- busy


def test_one_load_at_a_time() -> None:
    made = bench(a=0.0)
    assert made.take(1.0, always) == "a"
    assert made.is_busy("a")
    made.activate("a", 0.0)
    assert made.take(1.0, always) is None
    made.look_again(lambda host: 0.0)
    assert made.take(1.0, always) is None
    made.release("a", 2.0)
    assert not made.is_busy("a")
    assert made.take(1.0, always) is None
    assert made.take(2.0, always) == "a"


def test_released_to_nothing_is_idle() -> None:
    made = bench(a=0.0)
    made.take(1.0, always)
    made.release("a", None)
    assert len(made) == 0
    assert made.next_ready() is None
    made.activate("a", 0.0)
    assert made.take(1.0, always) == "a"


def test_releasing_what_is_not_busy_changes_nothing() -> None:
    """A cancelled load may end a second time."""
    made = bench(a=5.0)
    made.release("a", 0.0)
    made.release("b", 0.0)
    assert made.next_ready() == 5.0
    assert len(made) == 1


# -- moved


def test_a_waiting_host_moves_either_way() -> None:
    made = bench(a=1.0, b=2.0, c=3.0)
    made.move("c", 0.5)
    made.move("a", 9.0)
    made.check_invariants()
    assert [made.take(5.0, always) for _ in range(3)] == ["c", "b", None]
    assert made.next_ready() == 9.0


def test_what_does_not_wait_does_not_move() -> None:
    made = bench(busy=0.0, parked=0.0)
    assert [made.take(1.0, but("parked")) for _ in range(2)] == ["busy", None]
    for host in ("busy", "parked", "unknown"):
        made.move(host, 0.0)
        made.check_invariants()
    assert made.take(1.0, always) is None
    assert len(made) == 2


# -- parked


def test_what_is_not_allowed_is_parked_until_one_looks_again() -> None:
    made = bench(a=0.0, b=1.0)
    assert made.take(2.0, but("a")) == "b"
    assert made.next_ready() is None
    assert made.take(2.0, always) is None, "even when it would be allowed now"
    made.activate("a", 0.0)
    assert made.take(2.0, always) is None
    made.look_again(lambda host: 2.5)
    assert made.take(2.0, always) is None
    assert made.take(2.5, always) == "a"


def test_only_the_ready_are_asked_and_parked() -> None:
    asked = []

    def never(host: str) -> bool:
        asked.append(host)
        return False

    made = bench(a=0.0, b=5.0)
    assert made.take(1.0, never) is None
    assert asked == ["a"]
    assert made.next_ready() == 5.0


def test_looking_again_when_nothing_is_parked() -> None:
    made = bench(a=1.0)
    made.look_again(lambda host: 0.0)
    assert made.next_ready() == 1.0


def test_no_call_looks_at_all_of_very_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million hosts that may not be fetched, or wait again, do not hold the loop."""
    monkeypatch.setattr(workbench, "LOOKED", 10)
    made, asked = Workbench(), 0

    def never(host: str) -> bool:
        nonlocal asked
        asked += 1
        return False

    for number in range(35):
        made.activate(f"h{number}", 0.0)
    for seen in (10, 20, 30, 35):
        assert made.take(1.0, never) is None
        assert asked == seen
        assert made.stopped == (seen < 35)
        assert set(made.unserved(always)) == {f"h{number}" for number in range(35)}
        made.check_invariants()
    assert made.next_ready() is None
    made.look_again(lambda host: 2.0)
    assert not any(made.is_parked(f"h{number}") for number in range(35)), "all wait again, whenever they are put back"
    assert set(made.unserved(but())) == {f"h{number}" for number in range(35)}
    made.remove("h34")
    made.look_at("h33", 0.5)
    made.check_invariants()
    taken = []
    for _ in range(50):
        host = made.take(2.0, always)
        made.check_invariants()
        if host is None and not made.stopped:
            break
        taken += [host] if host is not None else []
    assert sorted(taken) == sorted(f"h{number}" for number in range(34))
    assert taken[0] == "h33"


def test_those_that_wait_again_may_be_parked_again_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "LOOKED", 4)
    made = Workbench()
    for number in range(30):
        made.activate(f"h{number}", 0.0)
    for _ in range(20):
        assert made.take(1.0, lambda host: False) is None
    for _ in range(3):
        made.look_again(lambda host: 0.0)
        assert made.take(1.0, lambda host: False) is None
        made.check_invariants()
    assert made.next_ready() == 0.0
    assert set(made.unserved(always)) == {f"h{number}" for number in range(30)}


# -- forgotten


def test_a_removed_host_is_forgotten_whatever_its_state() -> None:
    made = bench(waiting=0.0, busy=0.0, parked=0.0)
    made.activate("late", 9.0)
    made.remove("waiting")
    made.activate("waiting", 9.0)
    assert made.take(1.0, but("parked")) == "busy"
    assert made.take(1.0, but("parked")) is None
    for host in ("waiting", "busy", "parked", "late", "unknown"):
        made.remove(host)
        made.check_invariants()
    assert len(made) == 0
    assert made.next_ready() is None
    made.look_again(lambda host: 0.0)
    assert made.take(99.0, always) is None


def test_a_removed_host_may_come_again() -> None:
    made = bench(a=1.0)
    made.remove("a")
    made.activate("a", 7.0)
    assert made.next_ready() == 7.0
    assert made.take(1.0, always) is None, "its earlier place is void"
    assert made.take(7.0, always) == "a"
    assert made.take(7.0, always) is None


def test_unserved_are_the_waiting_and_the_parked() -> None:
    made = bench(a=0.0, b=0.0, c=9.0)
    assert made.take(1.0, but("b")) == "a"
    assert made.take(1.0, but("b")) is None
    assert set(made.unserved(always)) == {"b", "c"}
    assert len(made) == 3


def test_a_parked_host_of_others_is_asked_about_once_until_one_looks_again() -> None:
    made, asked = bench(a=0.0, b=0.0, c=9.0), []

    def mine(host: str) -> bool:
        asked.append(host)
        return host == "b"

    assert made.take(1.0, but("a", "b")) is None
    assert [*made.unserved(mine)] == ["c", "b"]
    assert [*made.unserved(mine)] == ["c", "b"]
    assert asked == ["a", "b", "b"]
    made.look_again(lambda host: 0.0)
    assert set(made.unserved(mine)) == {"a", "b", "c"}, "they wait"
    assert made.take(1.0, but("b")) == "a"


def test_a_parked_host_of_others_may_be_removed_and_come_again() -> None:
    made = bench(a=0.0)
    assert made.take(1.0, but("a")) is None
    assert not [*made.unserved(but("a"))]
    made.remove("a")
    made.check_invariants()
    made.activate("a", 0.0)
    assert [*made.unserved(but("a"))] == ["a"]


# -- all of it at random

HOSTS = st.sampled_from("abcde")


class BenchLife(RuleBasedStateMachine):
    """The workbench against four plain sets."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Workbench()
        self.now = 0.0
        self.waiting: dict[str, tuple[float, int]] = {}
        self.busy: set[str] = set()
        self.parked: dict[str, None] = {}
        self.own = {"a", "b"}
        self.count = 0

    def _wait(self, host: str, at: float) -> None:
        self.count += 1
        self.waiting[host] = (at, self.count)

    @rule(host=HOSTS, wait=st.integers(-2, 3))
    def activate(self, host: str, wait: int) -> None:
        self.bench.activate(host, self.now + wait)
        if host not in self.waiting and host not in self.busy and host not in self.parked:
            self._wait(host, self.now + wait)

    @rule(forbidden=st.sets(HOSTS), seconds=st.integers(0, 2))
    def take(self, forbidden: set[str], seconds: int) -> None:
        self.now += seconds
        taken = self.bench.take(self.now, lambda host: host not in forbidden)
        ready = {host: place for host, place in self.waiting.items() if place[0] <= self.now}
        passed = {host for host in ready if self.bench.is_parked(host)}
        assert passed <= forbidden
        for host in sorted(passed, key=lambda host: ready[host]):
            del self.waiting[host]
            self.parked[host] = None
        if taken is None:
            assert passed == ready.keys()
            return
        assert taken in ready and taken not in forbidden
        before = {host for host, place in ready.items() if place < ready[taken]}
        assert before <= passed or self.now - ready[taken][0] >= PATIENCE, "out of turn"
        del self.waiting[taken]
        self.busy.add(taken)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), wait=st.none() | st.integers(0, 3))
    def release(self, data: st.DataObject, wait: int | None) -> None:
        host = data.draw(st.sampled_from(sorted(self.busy)))
        self.bench.release(host, None if wait is None else self.now + wait)
        self.busy.remove(host)
        if wait is not None:
            self._wait(host, self.now + wait)

    @rule(host=HOSTS)
    def remove(self, host: str) -> None:
        self.bench.remove(host)
        self.waiting.pop(host, None)
        self.parked.pop(host, None)
        self.busy.discard(host)

    @rule(own=st.sets(HOSTS))
    def look_again(self, own: set[str]) -> None:
        self.own = own
        self.bench.look_again(lambda host: self.now + ord(host) % 3)
        for host in self.parked:
            self._wait(host, self.now + ord(host) % 3)
        self.parked.clear()

    @invariant()
    def holds(self) -> None:
        self.bench.check_invariants()
        assert len(self.bench) == len(self.waiting) + len(self.busy) + len(self.parked)
        unserved = set(self.bench.unserved(lambda host: host in self.own))
        assert unserved == self.waiting.keys() | self.own & self.parked.keys()
        assert {host for host in "abcde" if self.bench.is_busy(host)} == self.busy
        assert self.bench.next_ready() == min((at for at, _ in self.waiting.values()), default=None)


TestBenchLife = BenchLife.TestCase
TestBenchLife.settings = settings(max_examples=50, stateful_step_count=30)
