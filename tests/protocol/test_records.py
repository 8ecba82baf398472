"""Records: the whole state of a host, told piece by piece."""

from __future__ import annotations

from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.records import whole


def test_whole_state_as_records() -> None:
    state = SetState("h.example")
    for n in range(4):
        state.learn(Entry(n, f"http://h.example/{n}", n))
    state.hand_out(1)
    state.mark_done(2)
    state.mark_done(9)
    told = list(whole(state, 5))
    assert {(r.host, r.flush) for r in told} == {("h.example", 5)}
    assert sorted(r.entry.key for r in told if r.entry is not None) == [0, 1, 3], "what is out is told, too"
    assert sorted(r.done for r in told if r.done is not None) == [2, 9]
    assert len(told) == 5


def test_whole_state_may_change_while_it_is_told() -> None:
    state = SetState("h.example")
    for n in range(3):
        state.learn(Entry(n, f"http://h.example/{n}", n))
    told = whole(state, 0)
    first = next(told)
    state.mark_done(1)
    state.learn(Entry(8, "http://h.example/8", 0))
    rest = list(told)
    assert {r.entry.key for r in [first, *rest] if r.entry is not None} == {0, 1, 2}
