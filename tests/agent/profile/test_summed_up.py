"""Profiles of agents that are long gone are added up into one that can be read as any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.agent.group.lost_agents import lost
from scrapy_ubi.agent.profile.figures import MOST_REASONS
from scrapy_ubi.agent.profile.profile import COUNTERS, MAX_PROFILE, STANDING, Profile, read_profile
from scrapy_ubi.agent.profile.summed_up import SummedUp, read_sum, sum_of
from scrapy_ubi.cli.monitor.measures import measure
from scrapy_ubi.protocol.losses import LossBook
from scrapy_ubi.transport.contract import SUMMED_UP


def profile(name: str, /, counters: dict[str, Any] | None = None, **rest: Any) -> str:
    return json.dumps({"agent": name, "state": "left", "counters": counters or {}, **rest})


def added(gone: dict[str, str], before: str | None = None) -> SummedUp:
    found = read_sum(sum_of(before, gone, gone).encode())
    assert isinstance(found, SummedUp)
    return found


def read(text: str, name: str) -> Profile:
    found = read_profile(name, text.encode())
    assert isinstance(found, Profile)
    return found


def test_what_the_crawl_has_done_stays_the_same() -> None:
    counters: dict[str, dict[str, Any]] = {
        name: dict.fromkeys(COUNTERS, at + 1)
        | {
            "failed": {"http 404": at, name: 1},
            "noted": {"truncated": 1},
            "joined": {"www": 2},
            "failed_at": {"http 404": {"oak.example": at + 1}},
            "examples": {"www": [["http://a/", "http://b/"]]},
            "seconds": 10.0 * at,
            "responses": {"2xx": 3},
        }
        for at, name in enumerate("abcd")
    }
    texts = {name: profile(name, counters[name], updated=float(at)) for at, name in enumerate("abcd")}
    whole = measure([], [read(text, name) for name, text in texts.items()])
    first = sum_of(None, {"a": texts["a"], "b": texts["b"]}, texts)
    found = added({"c": texts["c"]}, first)
    assert (found.agents, found.unreadable, found.profile.updated) == (3, 0, 2.0)
    halves = measure([], [found.profile, read(texts["d"], "d")])
    assert dict(halves.totals, lost_agents=0) == dict(whole.totals, lost_agents=0)
    for name in ("failed", "noted", "joined", "failed_at", "examples", "seconds", "overhead"):
        assert getattr(halves, name) == getattr(whole, name), name
    assert found.profile.responses == {"2xx": 9}
    assert all(found.profile.count(name) == 0 for name in STANDING)
    assert found.profile.count("lost_agents") == 3, "what each of them has seen, which is the same"


def test_who_said_nothing_that_can_be_read_is_counted() -> None:
    found = added({"a": "garbage", "b": profile("b", {"pages": 7}), "c": profile("another")})
    assert (found.agents, found.unreadable, found.profile.count("pages")) == (3, 2, 7)
    assert added({"d": "{"}, sum_of(None, {"a": "{"}, {}))[:2] == (2, 2)


@pytest.mark.parametrize("before", ["garbage", profile("x"), profile(SUMMED_UP, agents=-1), "\ud800"])
def test_a_sum_that_cannot_be_read_counts_as_none(before: str) -> None:
    assert isinstance(read_sum(before.encode(errors="replace")), str)
    assert added({"b": profile("b", {"pages": 7})}, before).agents == 1


def test_it_is_bounded_however_many_reasons_there_are() -> None:
    before: str | None = None
    for agent in range(30):
        reasons = {f"reason {agent} {number} {'x' * 100}": 1 for number in range(MOST_REASONS)}
        places = {reason: {f"{number}.example": 5 for number in range(5)} for reason in list(reasons)[:30]}
        examples = {reason: [["http://a/" + "x" * 900, "http://b/"]] for reason in list(reasons)[:10]}
        counters = {"failed": reasons, "noted": {"other": 5}, "failed_at": places, "examples": examples}
        before = sum_of(before, {"a": profile("a", counters)}, {})
        assert len(before) <= MAX_PROFILE
    found = read(before or "", SUMMED_UP)
    assert len(found.failed) == MOST_REASONS and sum(found.failed.values()) == 30 * MOST_REASONS
    assert found.noted == {"other": 150} and found.failed_at and found.examples


@pytest.mark.parametrize(("longest", "failed", "places"), [(550, MOST_REASONS, 0), (4000, MOST_REASONS // 10, 0)])
def test_what_is_too_long_names_fewer_and_counts_all(longest: int, failed: int, places: int) -> None:
    before: str | None = None
    for agent in range(10):
        reasons = {f"{agent} {number} {'x' * longest}": 1 for number in range(MOST_REASONS // 10)}
        places_of = {reason: {"oak.example": 1} for reason in reasons} if longest < 1000 else {}
        before = sum_of(before, {"a": profile("a", {"failed": reasons, "failed_at": places_of})}, {})
        assert len(before) <= MAX_PROFILE
    found = read(before or "", SUMMED_UP)
    assert (len(found.failed), len(found.failed_at)) == (failed, places)
    assert sum(found.failed.values()) == 10 * (MOST_REASONS // 10)


B, C = "0000000b", "0000000c"
BOTH = [[1, ["b", B], ["c", C]]]
MISSED = [[0, ["b", ""]]]


@pytest.mark.parametrize(
    ("gone", "living", "names"),
    [
        ({"x": profile("x", losses=BOTH)}, {}, ("b", "c")),
        ({"x": profile("x", losses=BOTH), "b": profile("b", former=[B], handed_over=True)}, {}, ()),
        ({"x": profile("x", losses=BOTH), "b": profile("b", former=[B])}, {}, ("b", "c")),
        ({"x": profile("x", losses=BOTH)}, {"b": profile("b", former=[B])}, ()),
        ({"b": profile("b", former=[B], handed_over=True)}, {"x": profile("x", losses=BOTH)}, ()),
        ({"b": profile("b", handed_over=True)}, {"x": profile("x", losses=MISSED)}, ()),
        ({"b": profile("b")}, {"x": profile("x", losses=MISSED)}, ("b",)),
        ({"x": profile("x", losses=BOTH), "y": profile("y", safe=[B])}, {}, ()),
        ({"b": profile("b", former=["garbage", 1], losses="garbage", handed_over=True)}, {}, ()),
    ],
    ids=["the loss is not forgotten", "one was back, and left", "one was back, and died", "one is back",
         "another has seen the loss", "missed, and had left", "missed, and had died", "one was back, and all settled",
         "garbage"],
)  # fmt: skip
def test_who_is_lost_at_the_end_is_not_changed(
    gone: dict[str, str], living: dict[str, str], names: tuple[str, ...]
) -> None:
    members, known = {"a", *living}, LossBook()
    assert lost("a", known, members, gone | living, {}) == names
    text: str | None = None
    for name in gone:  # one by one
        text = sum_of(text, {name: gone[name]}, gone | living)
        assert lost("a", known, members, {SUMMED_UP: text, **living, **gone}, {}) == names
    assert lost("a", known, members, {SUMMED_UP: text or "", **living}, {}) == names
