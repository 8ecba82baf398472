"""Notes of a host: how they merge, how they are written, and where they go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import MOST_NOTES, Notes
from scrapy_ubi.protocol.host_policy import HostPolicy
from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Bounds, Lane, Letter
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.notes import MOST_VERSION, NOTHING, canonical, read_notes
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.protocol.records import Record, size, whole
from scrapy_ubi.protocol.snapshot import GroupState, Saved
from scrapy_ubi.protocol.wire import decode, encode
from tests.support.views import ordered
from tests.support.village import Village, page

FIRST, SECOND = '{"robots":1}', '{"robots":2}'

notes = st.builds(Notes, st.integers(0, 5), st.sampled_from(["{}", FIRST, SECOND]), st.just(()))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=4)


# -- what they are


@given(notes, notes, notes)
def test_merging_is_commutative_associative_and_idempotent(a: Notes, b: Notes, c: Notes) -> None:
    assert a.merged(b) == b.merged(a) in (a, b)
    assert a.merged(b).merged(c) == a.merged(b.merged(c))
    assert a.merged(a) == a == a.merged(NOTHING).merged(a)


@given(st.permutations([Notes(1, FIRST), Notes(2, "{}"), Notes(2, FIRST), Notes(3, SECOND)]))
def test_whatever_the_order_a_host_ends_with_the_same(told: list[Notes]) -> None:
    state = SetState("h")
    news = [state.merge_notes(one) for one in told]
    assert state.notes == Notes(3, SECOND)
    assert news[0]
    assert not state.merge_notes(told[0])


@given(objects, st.integers(1, MOST_VERSION))
def test_an_object_comes_back_as_it_was_and_has_one_text(value: dict[str, Any], version: int) -> None:
    text = canonical(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical(dict(reversed(value.items()))) == text
    assert read_notes(json.loads(Notes(version, text).shown())) == Notes(version, text)


MALFORMED = {
    "not a list": {},
    "nothing": [],
    "one member": [1],
    "three members": [1, {}, 2],
    "a version that is text": ["1", {}],
    "a version that is true": [True, {}],
    "a version of nothing": [0, {}],
    "a version below": [-1, {}],
    "a version beyond": [MOST_VERSION + 1, {}],
    "no object": [1, []],
    "text": [1, "{}"],
    "no number of JSON": [1, {"a": float("inf")}],
    "too long": [1, {"a": "x" * MOST_NOTES}],
    "too long as it is written": [1, {"a": "\u00e9" * (MOST_NOTES // 6 + 1)}],
}


@pytest.mark.parametrize("row", MALFORMED.values(), ids=MALFORMED)
def test_anything_else_is_refused(row: Any) -> None:
    with pytest.raises(ValueError, match="notes"):
        read_notes(row)


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}, {"a": b""}])
def test_what_is_not_json_is_not_noted(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(value)


# -- on the wire


def letter(*records: Record) -> dict[str, str]:
    lane, told = Lane("store", "b", STATE, "01234567"), Letter(1, "0" * 16, [])
    for record in records:
        told.add(record, Bounds(1, 10, 10_000, 1.0))
    return encode("a", lane, "store", told)


@given(objects.filter(lambda value: len(canonical(value)) <= MOST_NOTES), st.integers(1, MOST_VERSION))
def test_they_travel_as_they_are(value: dict[str, Any], version: int) -> None:
    told = Notes(version, canonical(value))
    fields = letter(Record("h.example", 0, notes=told), Record("h.example", 0, done=7))
    assert fields["n"] == "2"
    assert decode(fields, "b", 2, 100).deltas == (Delta("h.example", (), (7,), notes=told),)


def test_they_count_as_a_record() -> None:
    fields = letter(Record("h.example", 0, notes=Notes(1, "{}")))
    with pytest.raises(Malformed, match="1 records"):
        decode(fields, "b", 0, 100)


@pytest.mark.parametrize("row", MALFORMED.values(), ids=MALFORMED)
def test_a_letter_with_others_is_refused_whole(row: Any) -> None:
    fields = letter() | {"body": json.dumps([{"host": "h.example", "notes": row}])}
    with pytest.raises(Malformed, match="notes"):
        decode(fields, "b", 10, 100)


def test_a_letter_keeps_to_its_size_with_them() -> None:
    record = Record("h.example", 0, notes=Notes(1, canonical({"a": "x" * 1000})))
    assert size(record) > 1000
    assert not Letter(1, "", [record]).add(record, Bounds(1, 10, 1000, 1.0))


# -- where they go


def noted(village: Village, host: str) -> dict[str, str]:
    """Who holds which notes of a host."""
    return {name: village.state(name, host).notes.text for name in sorted(village.holders(host))}


def told(village: Village, host: str) -> Iterator[tuple[str, str, bool]]:
    """From whom, to whom, and whether with an offer: every letter with notes of a host."""
    for receiver, one in village.log:
        for delta in one.deltas:
            if delta.host == host and delta.notes is not None:
                yield one.sender, receiver, delta.offer is not None


def crawled(*names: str, host: str, **config: Any) -> Village:
    """Agents of which the first owns this host, with two pages."""
    village = Village(*names, **config)
    for number in range(2):
        village.agents[names[0]].discovery.discover(host, page(host, number))
    village.settle()
    village.log.clear()
    return village


def test_the_other_keepers_are_told_the_last_of_several() -> None:
    host = ordered("a", "b", "c")
    village = crawled("a", "b", "c", host=host)
    a, state = village.agents["a"], village.state("a", host)
    assert a.keeping.note(state, FIRST)
    assert a.keeping.note(state, SECOND)
    assert state.notes == Notes(2, SECOND)
    assert not a.keeping.note(state, SECOND), "no news"
    village.settle()
    assert list(told(village, host)) == [("a", "b", False)]
    assert noted(village, host) == {"a": SECOND, "b": SECOND}
    assert village.state("b", host).notes == state.notes


def test_who_is_told_hears_of_it_and_who_notes_does_not() -> None:
    host = ordered("a", "b")
    heard: list[tuple[str, str, str]] = []
    policies = {
        name: HostPolicy(on_notes=lambda state, name=name: heard.append((name, state.host, state.notes.text)))
        for name in "ab"
    }
    village = crawled("a", "b", host=host, policies=policies)
    village.agents["a"].keeping.note(village.state("a", host), FIRST)
    village.settle()
    assert heard == [("b", host, FIRST)]


def test_of_what_is_not_held_nothing_is_noted() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    assert not village.agents["a"].keeping.note(SetState(host), FIRST), "another state of that name"
    assert not village.agents["a"].keeping.note(SetState("elsewhere.example"), FIRST)
    assert noted(village, host) == {"a": "", "b": ""}


def test_what_is_too_long_is_a_mistake() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    with pytest.raises(ValueError, match="4097"):
        village.agents["a"].keeping.note(village.state("a", host), "x" * (MOST_NOTES + 1))


def test_versions_end_somewhere() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    state = village.state("a", host)
    state.notes = Notes(MOST_VERSION, FIRST)
    assert not village.agents["a"].keeping.note(state, SECOND)
    assert state.notes == Notes(MOST_VERSION, FIRST)


def test_they_are_part_of_the_whole_state() -> None:
    state = SetState("h")
    state.learn(page("h"))
    assert [record.notes for record in whole(state, 0)] == [None]
    state.merge_notes(Notes(4, FIRST))
    assert [record.notes for record in whole(state, 0)] == [Notes(4, FIRST), None]


def test_a_newcomer_gets_them() -> None:
    host = ordered("c", "a", "b")
    village = crawled("a", "b", host=host)
    village.agents["a"].keeping.note(village.state("a", host), FIRST)
    village.settle()
    village.start("c")
    village.settle()
    assert noted(village, host) == {"c": FIRST, "a": FIRST}


def test_they_go_with_every_offer() -> None:
    """The summaries are equal: the state itself does not travel."""
    host = ordered("a", "b", "c", "d")
    village = crawled("a", "b", "c", "d", host=host, replication=2)
    village.cut = {"b"}
    village.agents["a"].keeping.note(village.state("a", host), FIRST)
    for _ in range(3):
        village.turn("a", "c", "d", seconds=0.5)
    assert noted(village, host) == {"a": FIRST, "b": "", "c": FIRST}
    village.kill("a")
    village.inbox["b"].clear()
    village.cut = set()
    village.log.clear()
    village.settle()
    assert ("c", "b", True) in told(village, host)
    assert noted(village, host) == {"b": FIRST, "c": FIRST, "d": FIRST}


def test_who_comes_back_with_its_disk_brings_them_to_the_owner() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    village.cut = {"b"}
    a = village.agents["a"]
    a.keeping.note(village.state("a", host), FIRST)
    village.kill("a")
    village.cut = set()
    village.until(lambda: "a" not in village.agents["b"].view.members)
    saved = Saved(GroupState("0badcafe", a.journal.flush, False, {}))
    village.agents["a"] = snapshot.restore("a", saved, village.config, a.frontier, lambda: "abcdabcd", village.now)
    assert village.state("a", host).dirty
    village.settle()
    assert noted(village, host) == {"a": FIRST, "b": FIRST}


def test_what_did_not_arrive_before_its_receiver_was_gone_reaches_the_next_one() -> None:
    host = ordered("a", "b", "c")
    village = crawled("a", "b", "c", host=host)
    village.cut = {"b"}
    village.agents["a"].keeping.note(village.state("a", host), FIRST)
    village.flush("a")
    village.kill("b")
    village.settle()
    assert noted(village, host) == {"a": FIRST, "c": FIRST}


def test_two_who_note_at_once_end_with_the_same() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    for name, text in (("a", FIRST), ("b", SECOND)):
        assert village.agents[name].keeping.note(village.state(name, host), text)
    village.settle()
    assert noted(village, host) == {"a": SECOND, "b": SECOND}


def test_what_is_noted_right_before_a_copy_is_dropped_reaches_the_keepers() -> None:
    host = ordered("c", "b", "a")
    village = crawled("a", host=host)
    a = village.agents["a"]
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.start("b")
    village.start("c")
    village.until(lambda: village.state("c", host).waiting)
    a.keeping.note(state, FIRST)
    a.work.freed(state, village.now)
    a.work.ended(state, entry.key, [])
    village.settle()
    assert noted(village, host) == {"b": FIRST, "c": FIRST}


def receive(agent: Agent, sender: str, kind: str, delta: Delta, view: str = "") -> None:
    agent.inbound.receive(Received(sender, f"{sender}/x/{kind}", kind, 1, 1, view or agent.view.digest, (delta,)))


def test_an_owner_passes_on_what_a_former_owner_still_brings() -> None:
    host = ordered("b", "c", "a")
    village = Village("a", "b", "c")
    receive(village.agents["b"], "z", STATE, Delta(host, (), notes=Notes(3, FIRST)))
    village.settle()
    assert noted(village, host) == {"b": FIRST, "c": FIRST}
    assert list(told(village, host)) == [("b", "c", False)]


def test_who_keeps_nothing_of_a_host_brings_them_to_those_who_do() -> None:
    host = ordered("b", "c", "a")
    village = Village("a", "b", "c")
    receive(village.agents["a"], "z", STATE, Delta(host, (), notes=Notes(3, FIRST)), view="0" * 16)
    assert village.state("a", host).dirty
    village.settle()
    assert {name: noted(village, host).get(name) for name in "bc"} == {"b": FIRST, "c": FIRST}


def test_older_notes_are_no_news() -> None:
    host = ordered("a", "b")
    village = crawled("a", "b", host=host)
    b = village.agents["b"]
    village.agents["a"].keeping.note(village.state("a", host), FIRST)
    village.settle()
    village.log.clear()
    receive(b, "z", STATE, Delta(host, (), notes=Notes(1, '{"a":1}')), view="0" * 16)
    assert not village.state("b", host).dirty
    assert noted(village, host) == {"a": FIRST, "b": FIRST}


def test_they_are_no_matter_of_the_discovery_lane() -> None:
    host = ordered("b", "a")
    village = Village("a", "b")
    receive(village.agents["b"], "z", DISCOVERY, Delta(host, (page(host),), notes=Notes(3, FIRST)))
    village.settle()
    assert noted(village, host) == {"a": "", "b": ""}
