"""What is remembered of an authority, what follows from it, and what of it holds when it comes from elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.policy.robots import record as r
from scrapy_ubi.policy.robots.record import RobotsRecord, Step

NOW = 1_800_000_000.0
TTL = 3600.0
KNOWN = RobotsRecord(fetched=NOW - 10, rules="user-agent:*\ndisallow:/\n", agent="0123abcd", delay=2.5)


@pytest.mark.parametrize(
    ("record", "step"),
    [
        (None, Step.ASK),
        (KNOWN, Step.USE),
        (replace(KNOWN, fetched=NOW - TTL), Step.ASK),
        (replace(KNOWN, fetched=NOW + r.AHEAD), Step.USE),
        (replace(KNOWN, fetched=NOW + r.AHEAD + 1), Step.ASK),
        (replace(KNOWN, fetched=NOW - TTL, again=NOW + 1), Step.USE),
        (replace(KNOWN, fetched=NOW - TTL, again=NOW), Step.ASK),
        (RobotsRecord(since=NOW - 9, tries=1, again=NOW + 1), Step.WAIT),
        (RobotsRecord(since=NOW - 9, tries=1, again=NOW), Step.ASK),
        (RobotsRecord(since=NOW - 9, tries=1, again=NOW + 1, gone=True), Step.FAIL),
        (RobotsRecord(since=NOW - 9, tries=1, again=NOW, gone=True), Step.ASK),
    ],
)
def test_what_follows_from_a_record(record: RobotsRecord | None, step: Step) -> None:
    assert r.next_step(record, NOW, TTL) is step


def test_pauses_grow_until_it_is_given_up_and_then_it_is_asked_for_once_an_hour() -> None:
    record, now, asked = None, NOW, []
    while record is None or not record.gone:
        assert r.next_step(record, now, TTL) is Step.ASK
        record = r.after_failure(record, now, give_up=120)
        asked.append(now - NOW)
        now = record.again
    assert asked == [0, 2, 6, 14, 30, 62, 120]
    assert (now - NOW, record.since) == (120 + r.GIVEN_UP_FOR, NOW)
    again = r.after_failure(record, now, give_up=120)
    assert again.gone and again.again == now + r.GIVEN_UP_FOR


def test_without_patience_it_is_given_up_at_once() -> None:
    assert r.after_failure(None, NOW, give_up=0).gone
    assert r.after_failure(None, NOW, give_up=120, asked=300).again == NOW + 300
    assert r.after_failure(KNOWN, NOW, give_up=120, asked=300).again == NOW + 300
    assert r.after_failure(None, NOW, give_up=120, asked=1e9).again == NOW + r.GIVEN_UP_FOR, "else it would not travel"


def test_what_is_known_is_never_given_up() -> None:
    record = KNOWN
    for days in range(40):
        record = r.after_failure(record, NOW + days * 86_400, give_up=120)
    assert not record.gone and record.rules == KNOWN.rules and record.fetched == KNOWN.fetched
    assert record.tries == 40 and record.again == NOW + 39 * 86_400 + r.MOST_PAUSE


def test_pauses_of_any_number_of_tries_are_bounded() -> None:
    assert [r.pause_after(tries) for tries in (1, 2, 3, 9, 10**9)] == [2, 4, 8, 512, r.MOST_PAUSE]


@pytest.mark.parametrize(
    ("status", "unreachable"),
    [(status, False) for status in (200, 301, 304, 401, 403, 404)]
    + [(status, True) for status in (429, 500, 503, 599, 999, 100)],
)
def test_which_status_leaves_the_rules_unknown(status: int, unreachable: bool) -> None:
    assert r.is_unreachable(status) is unreachable


@pytest.mark.parametrize(
    "record",
    [
        KNOWN,
        RobotsRecord(fetched=NOW),
        RobotsRecord(since=NOW - 30, tries=4, again=NOW + 8),
        RobotsRecord(since=NOW - 30, tries=9, again=NOW + 3600, gone=True),
        r.after_failure(KNOWN, NOW, 120),
        r.after_failure(None, NOW, 0, error="refused"),
    ],
)
def test_a_record_travels(record: RobotsRecord) -> None:
    travelled = json.loads(json.dumps(r.to_json(record)))
    assert r.from_json(travelled, NOW) == record


def test_rules_too_long_to_travel_are_fetched_again_and_the_delay_holds_until_then() -> None:
    assert r.to_json(replace(KNOWN, rules=None)) is None
    assert r.to_section({"http://h": replace(KNOWN, rules=None, delay=0.0)}) is None
    section = r.to_section({"http://h": replace(KNOWN, rules=None, delay=2.0)})
    assert r.from_section(section, NOW) == {"http://h": RobotsRecord(delay=2.0)}
    assert r.next_step(RobotsRecord(delay=2.0), NOW, TTL) is Step.ASK


def test_of_many_authorities_the_latest_travel() -> None:
    records = {f"http://h{number}.example": replace(KNOWN, rules="x" * 300) for number in range(20)}
    section = r.to_section(records)
    assert section is not None
    assert list(section) == [f"http://h{number}.example" for number in range(19, 0, -1)][: len(section)]
    assert len(section) >= 3 and len(json.dumps(section)) <= r.MOST_TRAVEL + 100
    assert list(r.from_section(section, NOW)) == list(section)[::-1]


def test_the_longest_delay_travels_however_many_and_large_the_others_are() -> None:
    fast = replace(KNOWN, delay=0.0)
    large = replace(fast, rules="x" * 1900)
    others = {f"http://h{number}.example": fast for number in range(100)}
    for more in (others, {**others, "http://large": large}, {"http://large": large}):
        records = {"http://slow": replace(KNOWN, delay=30.0), **more}
        section = r.to_section(records)
        assert len(json.dumps(section)) <= r.MOST_TRAVEL + 100
        assert max(record.delay for record in r.from_section(section, NOW).values()) == 30.0


def test_one_too_large_does_not_push_the_others_out() -> None:
    records = {"http://a": KNOWN, "http://b": replace(KNOWN, rules="é" * 1000, delay=2.0), "http://c": KNOWN}
    assert r.from_section(r.to_section(records), NOW) == {**records, "http://b": RobotsRecord(delay=2.0)}


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        [],
        {"t": "x"},
        {"t": -1},
        {"t": True},
        {"t": 1e300},
        {"n": -1},
        {"n": 1.5},
        {"n": 10**30},
        {"r": 3},
        {"r": "x" * (r.MOST_RULES + 1)},
        {"u": ["x"]},
        {"u": "x" * 9},
        {"d": None},
    ],
    ids=repr,
)
def test_what_does_not_hold_is_no_record(value: Any) -> None:
    assert r.from_json(value, NOW) is None
    assert r.from_section({"http://h": value, "http://ok": {"t": NOW}}, NOW) == {"http://ok": RobotsRecord(fetched=NOW)}


@pytest.mark.parametrize("lead", [3600.0, 86_400.0, 1e8])
@pytest.mark.parametrize("tries", [1, 5, 12])
def test_what_a_clock_that_is_ahead_has_found_was_found_now(tries: int, lead: float) -> None:
    for known in (RobotsRecord(), replace(KNOWN, fetched=NOW + lead)):
        record = known
        for _ in range(tries):
            record = r.after_failure(record, NOW + lead, 1e9, asked=30.0)
        told = r.from_json(r.to_json(record), NOW)
        assert told is not None
        assert told.since <= NOW and told.again <= NOW + record.wait
        assert (told.rules, told.tries, told.gone) == (record.rules, tries, False)
        assert r.next_step(told, NOW + record.wait, TTL) is Step.ASK, "also what it said then is asked for again"


def test_what_a_right_clock_has_found_holds_to_its_end() -> None:
    for record in (
        replace(KNOWN, fetched=NOW),
        r.after_failure(None, NOW, 1000.0, asked=3000.0),
        r.after_failure(RobotsRecord(since=NOW - 2000, tries=20), NOW, 1000.0),
        r.after_failure(replace(KNOWN, fetched=NOW - 2 * TTL), NOW, 1000.0),
    ):
        assert r.from_json(r.to_json(record), NOW) == record


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("tdsxnrug") | st.text(), inner, max_size=5)
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(JSON)
def test_whatever_comes_is_a_record_or_none(value: Any) -> None:
    for record in r.from_section({"http://h": value}, NOW).values():
        assert r.next_step(record, NOW, TTL) in Step
        assert r.after_failure(record, NOW, 120).tries == record.tries + 1
    r.from_section(value, NOW)
