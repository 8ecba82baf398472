"""Pages that are closing: what of it grows with what is found."""

from __future__ import annotations

from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.host_visits import HostVisits
from scrapy_ubi.protocol.lane import DISCOVERY, Bounds
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.visit_row import VisitRow
from tests.support.views import view

MANY = 1000


def test_strays_that_waited_for_one_letter_are_forgotten_when_it_is_closed() -> None:
    outbox = Outbox("store", Bounds(window=2, records=3, size=10_000, resend=5.0))
    closing = DoneMarkDelivery(outbox, replicate=lambda state, record: 0, settled=lambda state: None)
    link = Record("h.example", 2, entry=Entry(1, "http://h.example/1", 0))
    outbox.put("b", DISCOVERY, link, view("a", "b"))
    for key in range(MANY):
        closing.stray(key, 1 + key * 3 // MANY)  # seeds of three flushes
    strays = closing.strays
    closing.send(3, most=10_000, enough=True)
    assert set(strays.values()) == {2, 3}, "they wait for the letter"
    outbox.close((link,))
    closing.send(4, most=10_000, enough=True)
    assert not strays and closing.strays is strays


def test_a_visit_whose_row_had_not_left_is_told_as_the_one_before_after_a_restart() -> None:
    closing = DoneMarkDelivery(
        Outbox("store", Bounds(window=2, records=3, size=10_000, resend=5.0)),
        replicate=lambda state, record: 0,
        settled=lambda state: None,
    )
    page = Entry(7, "http://h.example/7", 0)
    before, row = (VisitRow(number, 0, 0, 1, 0, 1, 0, 0, 1, "", "", page) for number in (1, 2))
    state = SetState("h.example")
    state.visits = HostVisits()
    state.mark_done(7)
    state.merge_row(row)
    closing.resume_visit(3, state, 7, before)
    assert state.told_row(7) == before and closing.oldest() == 3
    closing.send(4, most=10_000, enough=True)
    assert state.told_row(7) == row
