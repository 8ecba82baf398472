"""Views: their digests and their rings."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.protocol import ring as ring_module
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.protocol.view import Member, View
from tests.support.builders import hexes

members = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Member, hexes(8), st.integers(0, 3), st.integers(1, 5)), max_size=5
)


@given(members, members)
@example({"a": Member("00000000", 0, 1)}, {"a": Member("00000000", 1, 1)})
@example({"a": Member("00000000", 0, 1)}, {"b": Member("00000000", 0, 1)})
def test_digest_names_the_members(one: dict[str, Member], other: dict[str, Member]) -> None:
    assert (View.of(one).digest == View.of(other).digest) == (one == other)


@given(members)
def test_digest_does_not_hang_on_the_order(group: dict[str, Member]) -> None:
    assert View.of(dict(reversed(group.items()))).digest == View.of(group).digest
    assert len(View.of(group).digest) == 16


def test_digest_is_golden() -> None:
    """Agents of different versions crawl together only if they agree on it."""
    group = {"a": Member("0123abcd", 0, 200), "b": Member("ffffffff", 3, 100)}
    assert View.of(group).digest == "363defe9d41d1af7"


@given(st.lists(members, max_size=6))
def test_ring_of_a_view_is_that_of_its_members_however_it_was_come_by(groups: list[dict[str, Member]]) -> None:
    view: View | None = None
    for group in groups:
        view = View.of(group, view)
        assert view.ring == Ring.of({agent: member.replicas for agent, member in group.items()})
        view.ring.check_invariants()


def test_the_points_of_a_large_agent_are_not_drawn_again_as_a_small_one_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A capacity of 1,000 are 200,000 points: each change of view held the others up for seconds."""
    drawn: list[str] = []

    def draw(agent: str, replicas: int) -> list[int]:
        drawn.append(agent)
        return real(agent, replicas)

    real = ring_module.replica_points
    members = {"a": Member("0" * 8, 0, 5000), "b": Member("1" * 8, 0, 50)}
    before = View.of(members)
    monkeypatch.setattr(ring_module, "replica_points", draw)
    joined = View.of({**members, "c": Member("2" * 8, 0, 50)}, before)
    assert View.of(members, joined).ring == before.ring
    assert drawn == ["c", "c"]
    assert View.of({"b": members["b"]}, before).ring.agents == {"b": 50}
    assert drawn == ["c", "c", "b"], "where most goes, the rest is drawn"


def test_a_view_in_which_nothing_has_changed_is_the_one_there_was() -> None:
    """Every tick asks for it: with a thousand agents that is worth not sorting them."""
    group = {name: Member(f"{number:08x}", 0, 5) for number, name in enumerate("abc")}
    view = View.of(group)
    assert View.of(dict(group), view) is view
    assert View.of({**group, "a": Member("00000000", 1, 5)}, view) is not view


def test_incarnation_of_a_member() -> None:
    view = View.of({"a": Member("0123abcd", 0, 3)})
    assert view.incarnation("a") == "0123abcd"
    assert view.incarnation("b") == ""


def test_of_two_agents_whose_points_collide_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused when one joins; if both join at once the crawl goes on without the later name, for everybody alike."""
    real, real_of = Ring.add, Ring.of

    def of(replicas: Mapping[str, int]) -> Ring:
        if {"b", "c"} <= replicas.keys():
            raise RingCollision("b", "c", 1)
        return real_of(replicas)

    def add(ring: Ring, agent: str, replicas: int) -> Ring:
        if agent in ("b", "c") and {"b", "c"} & set(ring.agents):
            raise RingCollision("b", "c", 1)
        return real(ring, agent, replicas)

    monkeypatch.setattr(Ring, "add", add)
    monkeypatch.setattr(Ring, "of", of)
    group = {name: Member(f"{number:08x}", 0, 5) for number, name in enumerate("abc")}
    view = View.of(group)
    assert set(view.members) == {"a", "b", "c"}
    assert set(view.ring.agents) == {"a", "b"}
    del group["b"]
    assert set(View.of(group, view).ring.agents) == {"a", "c"}
