"""The ring as a page shows it: what a `Ring` says, for little work."""

from __future__ import annotations

import json
import random
import sys
from array import array
from typing import Any

import pytest

from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.protocol.ring import Ring, replica_points
from scrapy_ubi.protocol.ring_index import SIZE, Circle
from scrapy_ubi.web import crawl_ring as module
from scrapy_ubi.web.crawl_ring import SECTORS, drawn_ring, ring_of, shares
from scrapy_ubi.web.crawl_view import view
from tests.cli.monitor.by_hand import profile

MOST_CALLS = 800  # for each agent of a first view: 401 to draw its 200 points, and its row; a `Ring` alone takes 1,204


@pytest.mark.parametrize("number", [1, 2, 3, 17])
def test_shares_and_places_are_those_of_a_ring(number: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(30):
        of = {f"agent-{draw.randrange(1 << 20)}-{at}": draw.choice((1, 2, 40)) for at in range(number)}
        drawn = drawn_ring((*of.items(),))
        assert dict(zip(of, drawn.shares or (), strict=True)) == pytest.approx(Ring.of(of).shares(), abs=1e-12)
        held = {at: name for name, replicas in of.items() for at in replica_points(name, replicas)}
        points = array("Q", sorted(held))
        circle = Circle.from_points(points, [held[at] for at in points])
        owners = [circle.nearest(place * SIZE // SECTORS) for place in range(SECTORS)]
        assert [[*of][at] for at in drawn.sectors] == owners


@pytest.mark.parametrize(
    "points",
    [{"a": [0], "b": [SIZE - 1]}, {"a": [SIZE - 2, SIZE // 2], "b": [SIZE - 1]}, {"a": [5, 9], "b": [7]}, {"a": [3]}],
    ids=["ends", "above", "below", "one"],
)
def test_bounds_around_zero(monkeypatch: pytest.MonkeyPatch, points: dict[str, list[int]]) -> None:
    monkeypatch.setattr(module, "replica_points", lambda name, number: points[name])
    held = {at: name for name, own in points.items() for at in own}
    circle = Circle.from_points(array("Q", sorted(held)), [held[at] for at in sorted(held)])
    sizes, before = dict.fromkeys(points, 0), -1
    for last, name in circle.arcs():
        sizes[str(name)] += last - before
        before = last
    of = tuple((name, len(own)) for name, own in points.items())
    drawn = drawn_ring.__wrapped__(of)
    assert drawn.shares == pytest.approx([size / SIZE for size in sizes.values()])
    names = [circle.nearest(place * SIZE // SECTORS) for place in range(SECTORS)]
    assert [of[at][0] for at in drawn.sectors] == names


def test_agents_that_cannot_be_on_one_ring_have_no_shares() -> None:
    assert shares({"a": 10, "\0a": 10}) == {}
    assert shares({}) == {}


def _agent(name: str) -> AgentStatus:
    read = read_profile(name, json.dumps(profile(name)).encode())
    assert isinstance(read, Profile)
    return AgentStatus(name, "crawling", read)


def test_the_first_view_of_a_thousand_agents_is_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    status = CrawlStatus("c", tuple(_agent(f"agent-{number:04}") for number in range(1000)))
    drawn, calls = [], 0

    def draw(name: str, number: int) -> list[int]:
        drawn.append(name)
        return replica_points(name, number)

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    monkeypatch.setattr(module, "replica_points", draw)
    drawn_ring.cache_clear()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        made = view(status, True, [])
        ring = ring_of(status)
    finally:
        sys.setprofile(before)
    assert len(drawn) == 1000  # once for both
    assert calls < 1000 * MOST_CALLS, calls
    assert sum(row["share"] for row in made["agents"]) == pytest.approx(1)
    assert len(ring["sectors"]) == SECTORS
    print(f"{calls / 1000:.0f} calls for each agent")
