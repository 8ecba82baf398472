"""Profiles are believed whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.profile.origin import Origin
from scrapy_ubi.agent.profile.profile import COUNTERS, MAX_PROFILE, Profile, read_profile
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent, Config
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_rules import name_of, read_rules
from tests.cli.monitor.by_hand import profile


def read(**changes: Any) -> Profile | str:
    return read_profile("a1", json.dumps(profile("a1", **changes)).encode())


def test_profile_of_the_brief_is_read() -> None:
    got = read(counters={"pages": 7, "failed": {"http 500": 2}})
    assert isinstance(got, Profile)
    assert (got.count("pages"), got.failed, got.pages_per_second) == (7, {"http 500": 2}, 9.5)
    assert set(got.counts) == set(COUNTERS)


def test_profile_missing_counters_are_zero_and_unknown_ones_ignored() -> None:
    data = profile("a1") | {"counters": {"novel": "x"}}
    got = read_profile("a1", json.dumps(data).encode())
    assert isinstance(got, Profile)
    assert got.count("pages") == 0


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"\x80\x04\x95pickle", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "names another agent"),
        (b'{"agent": "a1"}', "unknown state"),
        (b'{"agent":"a1"' + b" " * MAX_PROFILE + b"}", f"{MAX_PROFILE + 14} bytes, more than {MAX_PROFILE}"),
    ],
)
def test_profile_garbage_is_a_reason(raw: bytes, reason: str) -> None:
    assert read_profile("a1", raw) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"agent": "a2"}, "names another agent"),
        ({"state": "dancing"}, "unknown state"),
        ({"state": 3}, "state is not a text"),
        ({"partition": "planet"}, "unknown partition"),
        ({"normaliser": "safe +later"}, "unknown normaliser"),
        ({"capacity": 0}, "capacity is not positive"),
        ({"capacity": float("nan")}, "capacity is out of bounds"),
        ({"started": float("inf")}, "started is out of bounds"),
        ({"updated": 10**400}, "updated is out of bounds"),
        ({"pid": True}, "pid is not a count"),
        ({"counters": {"pages": -1}}, "pages is not a count"),
        ({"counters": {"pages": 2**63}}, "pages is not a count"),
        ({"counters": {"pages": 1.5}}, "pages is not a count"),
        ({"counters": {"seconds": "1"}}, "seconds is not a number"),
        ({"counters": {"failed": ["x"]}}, "failed is not an object of reasons"),
        ({"counters": {"failed": {"x": "y"}}}, "x is not a count"),
        ({"counters": {"failed_at": ["x"]}}, "failed_at is not an object of reasons"),
        ({"counters": {"noted_at": {"x": "y"}}}, "noted_at is not an object of reasons"),
        ({"counters": {"failed_at": {"x": {"h": -1}}}}, "h is not a count"),
        ({"counters": {"joined": []}}, "joined is not an object of reasons"),
        ({"counters": {"examples": []}}, "examples are not an object of steps"),
        ({"counters": {"examples": {"x": [["a"]]}}}, "examples are not pairs of URLs"),
        ({"counters": {"examples": {"x": [["a", 1]]}}}, "examples are not pairs of URLs"),
        ({"counters": {"examples": {"x": [["a", "b"]] * 11}}}, "examples are not pairs of URLs"),
        ({"spider_class": 1}, "spider_class is not a text"),
        ({"arguments": ["x"]}, "arguments are not an object of texts"),
        ({"arguments": {"x": 1}}, "arguments are not an object of texts"),
        ({"arguments": {"x": "y" * 1001}}, "arguments are not an object of texts"),
        ({"arguments": {str(number): "" for number in range(101)}}, "arguments are not an object of texts"),
    ],
)
def test_profile_that_does_not_hold_is_a_reason(changes: dict[str, Any], reason: str) -> None:
    assert read(**changes) == reason


@given(
    st.dictionaries(
        st.sampled_from([*profile("a1")]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        ),
    )
)
def test_profile_never_raises(changes: dict[str, Any]) -> None:
    got = read_profile("a1", json.dumps(profile("a1") | changes).encode())
    assert isinstance(got, Profile | str)


def test_profile_that_a_node_publishes_is_read_whole() -> None:
    """What agents count and what people see are the same names: neither side may gain or lose one alone."""
    agent = Agent("a1", "store", Config(), MemoryFrontier(), lambda: "0badcafe", 0.0)
    tally = figures.Tally(0.0)
    tally.fail("robots", "h1")
    tally.note("truncated", "h2")
    tally.joins.join("http://h/A", "http://h/a", ("path-case",))
    published = figures.counters(agent, tally, 1.0)
    rules = read_rules(["synonym(a) = b"])
    settings = UbiSettings(partition="domain", capacity=2.0, normalise="larm -index", host_rules=rules)
    origin = Origin("p.Web", "01", {"site": "a"})
    raw = figures.profile_text(figures.fixed(settings, "a1", "web", origin), agent, "waiting", published)
    got = read_profile("a1", raw.encode())
    assert isinstance(got, Profile), got
    assert (got.state, got.partition, got.capacity, got.incarnation) == ("waiting", "domain", 2.0, "0badcafe")
    assert (got.normaliser, got.host_rules) == ("larm -index", name_of(rules))
    assert (got.spider_class, got.arguments) == ("p.Web", {"site": "a"})
    assert got.failed == {"robots": 1}
    assert got.noted == {"truncated": 1}
    assert (got.joined, got.examples) == ({"path-case": 1}, {"path-case": (("http://h/A", "http://h/a"),)})
    assert (got.failed_at, got.noted_at) == ({"robots": {"h1": 1}}, {"truncated": {"h2": 1}})
    told = {"responses", "failed", "requeued", "noted", "joined", "failed_at", "noted_at", "examples"}
    told |= {"seconds", "pages_per_second"}
    assert set(published) == {*COUNTERS, *told}
