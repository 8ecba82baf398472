"""Host states in memory: the laws of their merge, and the life of a key (known, queued, out, done)."""

from __future__ import annotations

from collections.abc import Iterable

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_ubi.protocol.host import Entry, Summary, retried, retries_of
from scrapy_ubi.protocol.memory_state import SetState

# Keys are hashes, as they are in a crawl: the XOR in a summary is meant for such.
KEYS = [mmh3.hash64(f"http://h.example/{i}", signed=False)[0] for i in range(6)]

entries = st.builds(
    Entry,
    key=st.sampled_from(KEYS),
    url=st.sampled_from(["http://h.example/a", "http://h.example/A"]),
    depth=st.integers(0, 3),
    priority=st.integers(-1, 1),
    request=st.sampled_from(["", '{"method":"POST"}', '{"retries":1}', '{"retries":2,"method":"POST"}']),
)


@st.composite
def states(draw: st.DrawFn) -> SetState:
    """Any state of one host that nothing was handed out of."""
    state = SetState("h.example")
    for fact in draw(st.lists(st.one_of(entries, st.sampled_from(KEYS)), max_size=12)):
        tell(state, fact)
    return state


def tell(state: SetState, fact: Entry | int) -> bool:
    """Merge an entry, or the key of one that is done."""
    return state.learn(fact) if isinstance(fact, Entry) else state.mark_done(fact)


def merged(*parts: SetState) -> SetState:
    """A new state that was told all of these, in this order."""
    state = SetState("h.example")
    for part in parts:
        for fact in [*part.undone(), *part.done]:
            tell(state, fact)
    return state


def facts(state: SetState) -> tuple[dict[int, Entry], set[int], Summary]:
    """All that a state knows."""
    state.check_invariants()
    return {entry.key: entry for entry in state.undone()}, state.done, state.summary()


# -- the merge


@settings(max_examples=60)
@given(states(), states())
def test_merge_is_commutative(a: SetState, b: SetState) -> None:
    assert facts(merged(a, b)) == facts(merged(b, a))


@settings(max_examples=60)
@given(states(), states(), states())
def test_merge_is_associative(a: SetState, b: SetState, c: SetState) -> None:
    assert facts(merged(merged(a, b), c)) == facts(merged(a, merged(b, c)))


@settings(max_examples=60)
@given(states(), states())
def test_merge_is_idempotent(a: SetState, b: SetState) -> None:
    assert facts(merged(a)) == facts(a)
    both = merged(a, b)
    assert facts(merged(both, b, a, a)) == facts(both)
    again = [fact for part in (a, b) for fact in [*part.undone(), *part.done]]
    assert not any(tell(both, fact) for fact in again), "nothing is news"


@settings(max_examples=60)
@given(st.lists(st.one_of(entries, st.sampled_from(KEYS)), max_size=12), st.randoms(use_true_random=False))
def test_order_and_repetition_of_facts_make_no_difference(told: list[Entry | int], random: object) -> None:
    one, other = SetState("h.example"), SetState("h.example")
    for fact in told:
        tell(one, fact)
    again = told + told[: len(told) // 2]
    random.shuffle(again)  # type: ignore[attr-defined]
    for fact in again:
        tell(other, fact)
    assert facts(one) == facts(other)


@settings(max_examples=60)
@given(st.lists(entries, min_size=1, max_size=6))
def test_most_retries_win_then_smallest_depth_then_highest_priority(found: list[Entry]) -> None:
    state = SetState("h.example")
    same = [entry._replace(key=KEYS[0]) for entry in found]
    for entry in same:
        state.learn(entry)
    kept = state.queued[KEYS[0]]
    assert kept in same
    ranks = [(-retries_of(entry.request), entry.depth, -entry.priority) for entry in same]
    assert ranks[same.index(kept)] == min(ranks)


def test_a_better_version_is_news_and_a_worse_one_is_not() -> None:
    state = SetState("h.example")
    assert state.learn(Entry(KEYS[0], "http://h.example/a", 3))
    assert not state.learn(Entry(KEYS[0], "http://h.example/a", 3))
    assert not state.learn(Entry(KEYS[0], "http://h.example/a", 4))
    assert state.learn(Entry(KEYS[0], "http://h.example/a", 2))
    assert state.known == 1


def test_what_is_retried_is_not_as_new_when_it_is_found_again() -> None:
    state = SetState("h.example")
    first = Entry(KEYS[0], "http://h.example/a", 3)
    state.learn(first)
    state.put_back(KEYS[0], retried(first._replace(priority=-1), state.hand_out(KEYS[0])))
    assert state.holds(KEYS[0], 2, 5) and not state.learn(first._replace(depth=2, priority=5))
    assert retries_of(state.queued[KEYS[0]].request) == 1


def test_done_before_discovered() -> None:
    state = SetState("h.example")
    assert state.mark_done(KEYS[0])
    assert state.known == 1
    before = facts(state)
    assert not state.learn(Entry(KEYS[0], "http://h.example/a", 0)), "it is done already"
    assert facts(state) == before
    assert not state.queued


# -- the summary


def key_sets(state: SetState) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(entry.key for entry in state.undone()) | state.done, frozenset(state.done)


@settings(max_examples=60)
@given(states(), states())
def test_summaries_are_equal_exactly_when_the_key_sets_are(a: SetState, b: SetState) -> None:
    assert (a.summary() == b.summary()) == (key_sets(a) == key_sets(b))


def test_summary_in_numbers() -> None:
    state = SetState("h.example")
    assert state.summary() == Summary(0, 0, 0, 0)
    for key in KEYS[:3]:
        state.learn(Entry(key, "http://h.example/", 0))
    state.mark_done(KEYS[1])
    state.hand_out(KEYS[2])
    assert state.summary() == Summary(3, KEYS[0] ^ KEYS[1] ^ KEYS[2], 1, KEYS[1])


def test_handing_out_does_not_change_the_summary() -> None:
    state = SetState("h.example")
    state.learn(Entry(KEYS[0], "http://h.example/", 0))
    before = state.summary()
    state.hand_out(KEYS[0])
    assert state.summary() == before
    assert list(state.undone()) == [Entry(KEYS[0], "http://h.example/", 0)], "what is out is handed on, too"


# -- the life of a key


class Life(RuleBasedStateMachine):
    """A host's state against the three sets it stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.state = SetState("h.example")
        self.known: set[int] = set()
        self.done: set[int] = set()
        self.out: set[int] = set()

    @property
    def queued(self) -> set[int]:
        return self.known - self.done - self.out

    @rule(entry=entries)
    def learn(self, entry: Entry) -> None:
        news = self.state.learn(entry)
        if entry.key in self.done | self.out:
            assert not news
        elif entry.key not in self.known:
            assert news
        self.known.add(entry.key)

    @rule(key=st.sampled_from(KEYS))
    def mark_done(self, key: int) -> None:
        """Another agent fetched it, perhaps while it is out here."""
        assert self.state.mark_done(key) == (key not in self.done)
        self.known.add(key)
        self.done.add(key)

    @precondition(lambda self: self.queued)
    @rule(data=st.data())
    def hand_out(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.queued)))
        waiting = self.state.queued[key]
        assert self.state.hand_out(key) == waiting
        self.state.open_work += 1
        self.out.add(key)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), priority=st.none() | st.integers(-5, 5))
    def put_back(self, data: st.DataObject, priority: int | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.out)))
        old = self.state.out[key]
        new = None if priority is None else old._replace(priority=priority)
        assert self.state.put_back(key, new) == (key not in self.done)
        if key not in self.done:
            assert self.state.queued[key] == (new or old)
        self.state.open_work -= 1
        self.out.remove(key)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.out)))
        assert self.state.finish(key) == (key not in self.done)
        self.state.open_work -= 1
        self.out.remove(key)
        self.done.add(key)

    @invariant()
    def is_what_it_stands_for(self) -> None:
        state = self.state
        state.check_invariants()
        assert state.queued.keys() == self.queued
        assert state.out.keys() == self.out
        assert state.done == self.done
        assert state.known == len(self.known)
        assert {entry.key for entry in state.undone()} == self.known - self.done
        assert state.summary() == Summary(len(self.known), xor(self.known), len(self.done), xor(self.done))


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=30)


def xor(keys: Iterable[int]) -> int:
    total = 0
    for key in keys:
        total ^= key
    return total


def test_only_what_waits_is_handed_out_and_only_what_is_out_comes_back() -> None:
    state = SetState("h.example")
    for wrong in (state.hand_out, state.put_back):
        with pytest.raises(KeyError):
            wrong(KEYS[0])


def test_a_found_entry_while_its_key_is_out_is_not_queued_twice() -> None:
    state = SetState("h.example")
    state.learn(Entry(KEYS[0], "http://h.example/", 1))
    state.hand_out(KEYS[0])
    assert not state.learn(Entry(KEYS[0], "http://h.example/", 0))
    assert not state.queued


def test_what_another_agent_did_while_it_was_out_is_not_fetched_again() -> None:
    state = SetState("h.example")
    state.learn(Entry(KEYS[0], "http://h.example/", 1))
    state.hand_out(KEYS[0])
    assert state.mark_done(KEYS[0])
    assert not list(state.undone())
    assert not state.put_back(KEYS[0])
    assert not state.queued
    assert state.summary() == Summary(1, KEYS[0], 1, KEYS[0])
