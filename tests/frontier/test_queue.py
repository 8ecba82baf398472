"""The queue of one host: by priority, then depth, then arrival."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_ubi.frontier.memory import HostQueue
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.memory_state import SetState


def entry(key: int, depth: int = 0, priority: int = 0) -> Entry:
    return Entry(key, f"http://h.example/{key}", depth, priority)


def popped(queue: HostQueue, queued: dict[int, Entry]) -> list[int]:
    """All keys, in the order they come."""
    keys = []
    while (key := queue.pop(queued)) is not None:
        del queued[key]
        keys.append(key)
    return keys


def pushed(*entries: Entry) -> tuple[HostQueue, dict[int, Entry]]:
    queue = HostQueue()
    for one in entries:
        queue.push(one)
    return queue, {one.key: one for one in entries}


def test_breadth_first() -> None:
    queue, queued = pushed(entry(1, 2), entry(2, 0), entry(3, 1), entry(4, 0))
    assert popped(queue, queued) == [2, 4, 3, 1]


def test_in_the_order_of_arrival_at_one_depth() -> None:
    queue, queued = pushed(*(entry(key) for key in (9, 3, 7, 1)))
    assert popped(queue, queued) == [9, 3, 7, 1]


def test_priority_comes_first() -> None:
    queue, queued = pushed(entry(1, 0, 0), entry(2, 9, 5), entry(3, 0, -5), entry(4, 1, 5))
    assert popped(queue, queued) == [4, 2, 1, 3]


def test_what_waits_is_the_hosts_to_say() -> None:
    """What was done elsewhere meanwhile is passed over."""
    queue, queued = pushed(*(entry(key) for key in (1, 2, 3)))
    del queued[1], queued[3]
    assert popped(queue, queued) == [2]
    assert queue.pop({}) is None


def test_an_entry_met_again_at_a_smaller_depth_moves_ahead_and_comes_once() -> None:
    queue, queued = pushed(entry(1, 3), entry(2, 2))
    queue.push(entry(1, 1))
    queued[1] = entry(1, 1)
    assert popped(queue, queued) == [1, 2]


def test_an_earlier_place_does_not_count_any_more() -> None:
    """A better version may come later: at a smaller depth with less priority. Or a retry, put back with less of it."""
    queue, queued = pushed(entry(1, 5, priority=10), entry(2, 3, priority=5))
    queue.push(entry(1, 2, priority=0))
    queued[1] = entry(1, 2, priority=0)
    assert popped(queue, queued) == [2, 1]

    queue, queued = pushed(entry(1, 4), entry(2, 3))
    queue.push(entry(1, 1))
    queued[1] = entry(1, 1)
    assert queue.pop(queued) == 1
    queue.push(entry(1, 1, priority=-1))
    queued[1] = entry(1, 1, priority=-1)
    assert popped(queue, queued) == [2, 1]


def test_empty() -> None:
    assert HostQueue().pop({1: entry(1)}) is None


class QueueLife(RuleBasedStateMachine):
    """A host's queue beside its state, as a frontier keeps them, against a sorted list."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.queue = SetState("h.example"), HostQueue()
        self.arrival: dict[int, int] = {}
        self.count = 0

    def _push(self, one: Entry) -> None:
        self.queue.push(one)
        self.count += 1
        self.arrival[one.key] = self.count

    @rule(key=st.integers(0, 9), depth=st.integers(0, 3), priority=st.integers(-1, 1))
    def learn(self, key: int, depth: int, priority: int) -> None:
        one = entry(key, depth, priority)
        if self.state.learn(one):
            self._push(one)

    @rule(key=st.integers(0, 9))
    def done_elsewhere(self, key: int) -> None:
        if key not in self.state.out:
            self.state.mark_done(key)

    @rule()
    def pop(self) -> None:
        waiting = self.state.queued.values()
        first = min(waiting, key=lambda one: (-one.priority, one.depth, self.arrival[one.key]), default=None)
        key = self.queue.pop(self.state.queued)
        assert key == (None if first is None else first.key)
        if key is not None:
            self.state.hand_out(key)
            self.state.open_work += 1

    @precondition(lambda self: self.state.out)
    @rule(data=st.data(), priority=st.none() | st.integers(-1, 1))
    def put_back(self, data: st.DataObject, priority: int | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.state.out)))
        old = self.state.out[key]
        if self.state.put_back(key, None if priority is None else old._replace(priority=priority)):
            self._push(self.state.queued[key])
        self.state.open_work -= 1

    @invariant()
    def holds(self) -> None:
        self.state.check_invariants()


TestQueueLife = QueueLife.TestCase
TestQueueLife.settings = settings(max_examples=40, stateful_step_count=30)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=30))
def test_order_is_a_sort(places: list[tuple[int, int]]) -> None:
    entries = [entry(key, depth, priority) for key, (depth, priority) in enumerate(places)]
    queue, queued = pushed(*entries)
    expected = sorted(entries, key=lambda one: (-one.priority, one.depth))  # stable: then by arrival
    assert popped(queue, queued) == [one.key for one in expected]
