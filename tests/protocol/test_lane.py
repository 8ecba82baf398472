"""Lanes: what waits, what is under way, when it is sent again, and what the receiver remembers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import MOST_LOOKED_AT, MOST_RESEND, MOST_WINDOW, STATE, Bounds, Lane, Letter
from scrapy_ubi.protocol.records import RECORD_SIZE, Record, Sync, weight

BOUNDS = Bounds(window=3, records=4, size=10_000, resend=5.0)
VIEW = "00000000000000ff"


def record(number: int, flush: int = 1, host: str = "h.example") -> Record:
    return Record(host, flush, entry=Entry(number, f"http://{host}/{number}", 0))


def lane(*records: Record) -> Lane:
    made = Lane("store", "b", STATE, "0123abcd")
    for one in records:
        made.put(one)
    return made


def post(made: Lane, now: float = 0.0, bounds: Bounds = BOUNDS) -> list[Letter]:
    letters = made.post(now, VIEW, bounds)
    made.check_invariants(bounds.window)
    return letters


def sync(records: int, host: str = "s.example", flush: int = 0) -> Sync:
    return Sync(host, "b", flush, iter([record(n, flush, host) for n in range(records)]))


# -- letters


def test_records_travel_in_the_order_they_were_put() -> None:
    put = [record(n) for n in range(10)]
    letters = post(lane(*put))
    assert [one for letter in letters for one in letter.records] == put
    assert [len(letter.records) for letter in letters] == [4, 4, 2]
    assert [letter.seq for letter in letters] == [1, 2, 3]
    assert {letter.view for letter in letters} == {VIEW}


def test_nothing_to_send_is_no_letter() -> None:
    assert post(lane()) == []


def test_a_letter_keeps_to_its_size() -> None:
    size = RECORD_SIZE + len("h.example") + weight(record(1).entry)  # type: ignore[arg-type]
    bounds = BOUNDS._replace(size=2 * size, records=100)
    letters = post(lane(*(record(n) for n in range(5))), bounds=bounds)
    assert [len(letter.records) for letter in letters] == [2, 2, 1]
    assert all(letter.size <= bounds.size for letter in letters)


def test_a_record_larger_than_a_letter_travels_alone() -> None:
    large = Record("h.example", 1, entry=Entry(7, "http://h.example/", 0, 0, '{"body":"' + "x" * 20_000 + '"}'))
    letters = post(lane(record(1), large, record(2)))
    assert [letter.records for letter in letters] == [[record(1)], [large], [record(2)]]


@given(st.lists(st.integers(0, 300), max_size=20), st.integers(1, 500), st.integers(1, 6))
def test_no_letter_is_larger_than_its_bounds(lengths: list[int], size: int, most: int) -> None:
    put = [Record("h.example", 1, entry=Entry(n, "x" * length, 0)) for n, length in enumerate(lengths)]
    made = lane(*put)
    made.put_sync(Sync("s.example", "b", 0, iter(put)))
    bounds = Bounds(window=100, records=most, size=size, resend=5.0)
    letters = post(made, bounds=bounds)
    assert [one for letter in letters for one in letter.records] == put + put
    for letter in letters:
        assert len(letter.records) <= most
        assert letter.size <= size or len(letter.records) == 1


# -- window and floor


def test_window_bounds_what_is_under_way() -> None:
    made = lane(*(record(n) for n in range(20)))
    assert len(post(made)) == 3
    assert post(made) == []
    made.settle(2)
    assert [letter.seq for letter in post(made)] == [4]
    assert len(made) == 20 - 4


def test_floor_is_the_lowest_number_not_acknowledged() -> None:
    made = lane(*(record(n) for n in range(20)))
    assert made.floor == 1
    post(made)
    assert made.floor == 1
    made.settle(2)
    assert made.floor == 1
    made.settle(1)
    assert made.floor == 3
    made.settle(3)
    assert made.floor == 4, "the next to be sent"


def test_an_answer_counts_once() -> None:
    made = lane(record(1))
    (letter,) = post(made)
    assert made.settle(1) is letter
    assert made.settle(1) is None
    assert made.settle(99) is None
    assert len(made) == 0


def test_numbers_are_never_used_again() -> None:
    made = lane(record(1))
    post(made)
    made.settle(1)
    made.put(record(2))
    assert [letter.seq for letter in post(made)] == [2]
    made.empty()
    made.put(record(3))
    assert [letter.seq for letter in post(made)] == [3]


# -- resend


def test_a_letter_is_sent_again_after_a_pause_that_doubles_up_to_a_bound() -> None:
    made = lane(record(1))
    (letter,) = post(made, 100.0)
    now, pauses = 100.0, []
    for _ in range(8):
        assert made.resend(letter.due - 0.001) == []
        pauses.append(letter.due - now)
        now = letter.due
        assert made.resend(now) == [letter]
        assert made.resend(now) == [], "once"
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0, 60.0]
    assert pauses[-1] == MOST_RESEND


def test_only_what_is_due_and_under_way_is_sent_again() -> None:
    made = lane(record(1))
    (first,) = post(made, 100.0)
    made.put(record(2))
    (second,) = post(made, 103.0)
    assert made.resend(105.0) == [first]
    assert made.resend(108.0) == [second]
    made.settle(first.seq)
    assert made.resend(1e6) == [second]


def test_the_time_out_of_what_left_late_begins_when_it_left_and_that_of_no_other() -> None:
    """Over a line that is always slow the time-out of what was lost would else never end."""
    made = lane(record(1))
    (letter,) = post(made, 100.0)
    made.left_later(100.0, 101.0)
    assert letter.due == 106.0
    for said in (101.0, 102.0, 103.0):
        made.put(record(2))
        post(made, said)
        made.left_later(said, said + 1)
    assert made.resend(106.0) == [letter]
    made.left_later(106.0, 120.0)
    assert letter.due == 130.0


def test_hurry_makes_everything_due() -> None:
    made = lane(*(record(n) for n in range(8)))
    letters = post(made, 100.0)
    made.hurry()
    assert made.resend(100.0) == letters
    assert made.resend(100.0) == []


def test_what_is_sent_again_is_the_same_letter() -> None:
    made = lane(record(1))
    (letter,) = post(made)
    made.put(record(2))
    before = list(letter.records)
    assert made.resend(5.0)[0].records == before
    assert letter.view == VIEW, "that of its making: what it says is judged by it"


# -- the whole state of a host


@pytest.mark.parametrize("records", [0, 1, 3, 4, 5, 7, 8, 9, 12])
def test_sync_goes_in_pieces_and_ends_with_the_last_of_them(records: int) -> None:
    """4 records a letter: with none, one letter, exact multiples, and the rest."""
    made, one = lane(), sync(records)
    made.put_sync(one)
    assert len(made) == 1, "the promise itself"
    letters = post(made, bounds=BOUNDS._replace(window=10))
    assert len(letters) == max(1, -(-records // 4)), "no empty letter behind the last full one"
    assert [r.entry.key for letter in letters for r in letter.records if r.entry] == list(range(records))
    assert not made.waiting
    assert len(made) == records
    for letter in letters:
        assert not one.is_acknowledged
        made.settle(letter.seq)
    assert one.is_acknowledged
    assert len(made) == 0
    assert made.oldest() is None


def test_answers_of_a_sync_in_any_order() -> None:
    made, one = lane(), sync(12)
    made.put_sync(one)
    letters = post(made)
    for letter in reversed(letters):
        assert not one.is_acknowledged
        made.settle(letter.seq)
    assert one.is_acknowledged


def test_sync_waits_for_the_window_without_being_taken() -> None:
    taken = []

    def records() -> Iterator[Record]:
        for n in range(100):
            taken.append(n)
            yield record(n, 0)

    made, one = lane(), Sync("s.example", "b", 0, records())
    made.put_sync(one)
    post(made)
    assert len(taken) <= 3 * 4 + 1, "three letters, and one looked at ahead: memory is bounded by the window"
    assert made.oldest() == 0
    made.settle(1)
    post(made)
    assert not one.is_acknowledged
    assert len(taken) <= 4 * 4 + 1


def test_syncs_and_records_share_letters() -> None:
    made = lane(record(100, 1), record(101, 1))
    first, second, third = sync(3), sync(0, "t.example"), sync(1, "u.example")
    for one in (first, second, third):
        made.put_sync(one)
    made.put(record(102, 2))
    letters = post(made)
    assert [[r.entry.key for r in letter.records if r.entry] for letter in letters] == [[100, 101, 0, 1], [2, 0, 102]]
    made.settle(2)
    assert (first.is_acknowledged, second.is_acknowledged, third.is_acknowledged) == (False, True, True)
    made.settle(1)
    assert first.is_acknowledged


def test_sync_without_records_is_acknowledged_like_any_other() -> None:
    """So that `settled` waits for the receiver also where there is nothing to tell."""
    made, one = lane(), sync(0)
    made.put_sync(one)
    (letter,) = post(made)
    assert letter.records == []
    assert not one.is_acknowledged
    assert made.settle(letter.seq) is letter
    assert one.is_acknowledged


# -- what is open


def test_open_counts_by_flush() -> None:
    made = lane(record(1, 3), record(2, 3), record(3, 5))
    assert made.open == {3: 2, 5: 1}
    assert made.oldest() == 3
    post(made)
    assert made.open == {3: 2, 5: 1}, "being sent closes nothing"
    made.settle(1)
    assert made.open == {}
    assert made.oldest() is None


def test_an_older_flush_that_comes_back_is_the_oldest() -> None:
    made = lane(record(1, 5), record(2, 7), record(3, 2), record(4, 6))
    assert made.oldest() == 2
    assert list(made.open) == [2, 5, 6, 7]


def test_empty_takes_all_records_out() -> None:
    put = [record(n, n) for n in range(1, 20)]
    made = lane(*put[:10])
    post(made)
    made.settle(1)
    made.put_sync(sync(30))
    for one in put[10:]:
        made.put(one)
    assert made.empty() == put[4:], "under way first, then what waited; the sync is dropped"
    assert len(made) == 0
    assert made.oldest() is None
    assert post(made) == []
    assert made.resend(1e9) == []
    made.check_invariants(3)


def test_empty_gives_back_what_of_a_sync_was_under_way() -> None:
    made = lane()
    made.put_sync(sync(30))
    post(made)
    assert len(made.empty()) == 12


# -- all of it at random


class LaneLife(RuleBasedStateMachine):
    """A lane beside a plain account of every record: put, under way, settled."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = lane()
        self.bounds = Bounds(window=2, records=3, size=10_000, resend=5.0)
        self.now = 0.0
        self.numbers = count()
        self.put_: list[int] = []
        self.sent: list[int] = []
        self.under_way: dict[int, list[int]] = {}
        self.syncs: list[tuple[Sync, set[int]]] = []

    def _records(self, flush: int, number: int) -> list[Record]:
        made = [record(next(self.numbers), flush) for _ in range(number)]
        self.put_ += [r.entry.key for r in made if r.entry]
        return made

    @rule(flush=st.integers(1, 5), number=st.integers(1, 4))
    def put(self, flush: int, number: int) -> None:
        for one in self._records(flush, number):
            self.lane.put(one)

    @rule(flush=st.integers(0, 5), number=st.integers(0, 7))
    def put_sync(self, flush: int, number: int) -> None:
        records = self._records(flush, number)
        one = Sync("h.example", "b", flush, iter(records))
        self.syncs.append((one, {r.entry.key for r in records if r.entry}))
        self.lane.put_sync(one)

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0]))
    def post(self, seconds: float) -> None:
        self.now += seconds
        for letter in self.lane.resend(self.now):
            assert letter.seq in self.under_way
        for letter in self.lane.post(self.now, VIEW, self.bounds):
            keys = [r.entry.key for r in letter.records if r.entry]
            self.under_way[letter.seq] = keys
            self.sent += keys

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(sorted(self.under_way)))
        letter = self.lane.settle(seq)
        assert letter is not None
        assert [r.entry.key for r in letter.records if r.entry] == self.under_way.pop(seq)

    @rule()
    def empty(self) -> None:
        self.lane.empty()
        self.put_ = list(self.sent)
        self.under_way.clear()
        self.syncs.clear()

    @invariant()
    def adds_up(self) -> None:
        self.lane.check_invariants(self.bounds.window)
        assert self.sent == self.put_[: len(self.sent)], "in order, none twice, none left out"
        assert self.lane.unacknowledged.keys() == self.under_way.keys()
        assert self.lane.floor == min(self.under_way, default=self.lane.next_seq)
        assert (len(self.lane) == 0) == (not self.lane.waiting and not any(self.under_way.values()))
        for one, keys in self.syncs:
            way = {key for keys in self.under_way.values() for key in keys}
            if one.is_acknowledged:
                assert keys <= set(self.sent) - way
            elif keys and one.exhausted:
                assert keys & way


TestLaneLife = LaneLife.TestCase
TestLaneLife.settings = settings(max_examples=25, stateful_step_count=25)


# -- what is left of older flushes, and bounds for a long line


def test_the_hosts_of_what_is_not_acknowledged_of_older_flushes() -> None:
    made = lane(record(1, 1, "a.example"), record(2, 5, "b.example"))
    assert made.hosts_until(4, 9) == {"a.example"}
    assert made.hosts_until(5, 9) == {"a.example", "b.example"}
    assert made.hosts_until(0, 9) == set()
    assert made.hosts_until(5, 1) is None, "more than asked for"
    waits, cancelled = sync(3, "c.example"), sync(3, "d.example")
    made.put_sync(waits)
    made.put_sync(cancelled)
    made.cancel(cancelled)
    assert made.hosts_until(0, 9) == {"c.example"}
    for letter in post(made):
        made.settle(letter.seq)
    assert made.hosts_until(9, 9) == set()


def test_it_is_not_said_where_it_would_take_long() -> None:
    made = lane()
    made.put_all([record(number) for number in range(MOST_LOOKED_AT + 1)])
    assert made.hosts_until(1, 9) is None
    assert made.hosts_until(0, 9) == set(), "nothing is that old"


@given(st.floats(0, 1000))
def test_bounds_for_a_long_line_are_wider_and_bounded(round_trip: float) -> None:
    stretched = BOUNDS.stretched(round_trip)
    assert BOUNDS.window <= stretched.window <= MOST_WINDOW
    assert BOUNDS.resend <= stretched.resend <= MOST_RESEND
    assert stretched[1:3] == BOUNDS[1:3]
    assert BOUNDS.stretched(0.0) == BOUNDS


def test_bounds_that_were_given_wider_stay() -> None:
    wide = Bounds(100, 4, 10_000, 90.0)
    assert wide.stretched(10.0) == wide
