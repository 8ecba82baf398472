"""The states of a request at the gate: each transition of the table is allowed, and no other."""

from __future__ import annotations

from itertools import product

import pytest
from scrapy import Request

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.transfer_states import ALLOWED, BUSY, HOLDING, Transfer, WrongTransition

# As docs and code have it, drawn a second time: from > to.
DRAWN = """
UNASKED > WAITING WITHDRAWN
WAITING > GRANTED UNASKED ENDED WITHDRAWN
GRANTED > TRANSFERRING WAITING ENDED
TRANSFERRING > ENDED WAITING ABORTING
ABORTING > WITHDRAWN WAITING ENDED
ENDED > WAITING WITHDRAWN
WITHDRAWN > ENDED
"""
ids = "{0.name}".format
PAIRS = [
    (Transfer[source], Transfer[target])
    for source, targets in (line.split(" > ") for line in DRAWN.strip().splitlines())
    for target in targets.split()
]
OTHERS = [pair for pair in product(Transfer, Transfer) if pair not in PAIRS]


def flight(state: Transfer) -> Flight:
    return Flight(Request("http://h1.example/"), "h1.example", transfer=state)


def test_a_flight_begins_outside() -> None:
    assert Flight(Request("http://h1.example/"), "h1.example").transfer is Transfer.UNASKED


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=ids)
def test_a_transition_of_the_table(source: Transfer, target: Transfer) -> None:
    one = flight(source)
    one.move(target)
    assert one.transfer is target


@pytest.mark.parametrize(
    ("source", "target"),
    OTHERS,
    ids=ids,
)
def test_any_other_transition_is_refused(source: Transfer, target: Transfer) -> None:
    one = flight(source)
    with pytest.raises(WrongTransition, match=f"{source.name} does not lead to {target.name}"):
        one.move(target)
    assert one.transfer is source


def test_the_table_has_every_state_and_each_can_be_reached_and_left() -> None:
    assert set(ALLOWED) == set(Transfer)
    reached = {Transfer.UNASKED}
    while new := {target for source in reached for target in ALLOWED[source]} - reached:
        reached |= new
    assert reached == set(Transfer)
    assert all(ALLOWED.values())


def test_a_permit_is_got_in_one_way_only() -> None:
    """From WAITING to GRANTED: so a permit is held once, and asked for each time."""
    into = {(source, target) for source, target in PAIRS if source not in HOLDING and target in HOLDING}
    assert into == {(Transfer.WAITING, Transfer.GRANTED)}
    assert {*HOLDING, Transfer.WAITING} == BUSY


@pytest.mark.parametrize("state", Transfer, ids=ids)
def test_what_others_ask_of_a_state(state: Transfer) -> None:
    one = flight(state)
    assert one.held is (state.name in ("GRANTED", "TRANSFERRING", "ABORTING"))
    assert one.withdrawn is (state.name in ("ABORTING", "WITHDRAWN"))
