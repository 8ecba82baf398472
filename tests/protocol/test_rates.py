"""The rate of a group is kept in every window, whoever joins, leaves, dies, is paused or cut off; and it is used."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from scrapy_ubi.protocol import rates
from scrapy_ubi.protocol.rates import Asked, Desk, Share, divide
from tests.protocol.rate_world import EXPIRY, NAME, World, disturbed

MUTANTS = 150  # runs in which a fault of the protocol has to be seen


@given(st.integers(0, 2**32))
@example(183497)
@settings(max_examples=100, deadline=None)
def test_no_window_has_more_loads_than_the_rate(seed: int) -> None:
    """Joins, kills, pauses, lost and late mail, changes of the lender, clocks of their own."""
    world = disturbed(seed)
    note(f"{len(world.arrivals)} requests, {world.loads} in {world.seconds} s")
    assert world.worst() <= world.loads


def test_who_says_late_what_it_held_has_none_of_what_others_have_since() -> None:
    desk = Desk(2, 5.0, EXPIRY, 0.0, count(1))
    desk.hear(("a", "1"), Asked(1, 2, 0, 0), 100.0)
    assert desk.lend(100.0)["a", "1"].most == 2
    desk.hear(("b", "2"), Asked(1, 2, 1, 0), 101.0)  # sent long ago
    desk.hear(("b", "2"), Asked(9, 2, 0, 0), 101.1)
    assert desk.lend(101.1)["b", "2"].most == 0
    desk.hear(("a", "1"), Asked(2, 2, 1, desk.lend(101.1)["a", "1"].number), 101.2)
    desk.hear(("b", "2"), Asked(10, 2, 0, 0), 106.5)
    assert desk.lend(106.5)["b", "2"].most == 1, "a window after one was given back"


def _move(seed: int) -> World:
    """Two agents and a lender; the demand is at the first one, then at the second one."""
    world = World(seed, 10, 2.0, rough=False)
    world.join("lender", fresh=True)
    world.appoint("lender")
    first, second = world.join("first"), world.join("second")
    first.demand = 50
    world.run(40)
    first.demand, second.demand = 0, 50
    world.run(80)
    return world


@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_shares_move_with_the_demand(seed: int) -> None:
    world = _move(seed)
    before = sum(1 for time, name in world.arrivals if 20 < time < 40 and name == "first")
    after = world.served(60)
    assert world.worst() <= world.loads
    full = 20 * world.loads / world.seconds
    assert before > full / 5 and after["second"] > full / 5 and after["first"] == 0  # a load takes 1.5 s here
    assert world.agents["second"].rates.shares[NAME].most == world.loads


@given(st.integers(0, 2**32))
@settings(max_examples=3, deadline=None)
def test_more_agents_than_loads_take_turns(seed: int) -> None:
    world = World(seed, 2, 1.0, rough=False)
    world.join("lender", fresh=True)
    world.appoint("lender")
    for number in range(4):
        world.join(f"a{number}").demand = 3
    world.run(8 * rates.SLICES * (EXPIRY + 1))
    assert world.worst() <= 2
    assert all(world.served(0)[f"a{number}"] > 10 for number in range(4))


def test_the_first_agent_of_a_run_begins_at_once_and_another_lender_after_a_window() -> None:
    world = World(1, 5, 30.0)
    first = world.join("first", fresh=True)
    first.demand = 9
    world.appoint("first")
    world.run(5)
    assert world.served(0)["first"] == 5
    second = world.join("second")
    second.demand = 9
    world.appoint("second")
    world.run(5 + EXPIRY + 29)
    assert world.served(0) == {"first": 5}
    world.run(5 + EXPIRY + 45)
    assert world.served(0).total() > 5 and world.worst() <= 5


def _late(patch: pytest.MonkeyPatch) -> None:
    """A share is spent after its time."""
    patch.setattr(rates.GroupRates, "holds", lambda self, names, now: True)
    patch.setattr(Share, "may_start", lambda self, now: self.used(now) < self.most)


def _twice(patch: pytest.MonkeyPatch) -> None:
    """What was lent before is lent again at once."""
    patch.setattr(rates.Borrower, "counts", lambda self: self._level)


def _unseen(patch: pytest.MonkeyPatch) -> None:
    """A smaller share counts before its borrower has seen it."""
    patch.setattr(rates.Borrower, "counts", lambda self: self.last.most if self.last else 0)


def _heir(patch: pytest.MonkeyPatch) -> None:
    """A lender begins at once."""
    begin = Desk.__init__

    def opened(self: Desk, loads: int, seconds: float, expiry: float, opens: float, numbers: object) -> None:
        begin(self, loads, seconds, expiry, -1.0, numbers)  # type: ignore[arg-type]

    patch.setattr(Desk, "__init__", opened)


def _starts(patch: pytest.MonkeyPatch) -> None:
    """A load counts from its start alone."""

    def start(self: Share, who: str) -> None:
        self._waiting.pop(who, None)
        self._ended.append(self._clock)  # type: ignore[attr-defined]

    used = Share.used

    def clocked(self: Share, now: float) -> int:
        self._clock = now  # type: ignore[attr-defined]
        return used(self, now)

    patch.setattr(Share, "used", clocked)
    patch.setattr(Share, "start_load", start)
    patch.setattr(Share, "end_load", lambda self, now: None)


@pytest.mark.parametrize("fault", [_late, _twice, _unseen, _heir, _starts])
def test_a_fault_of_the_protocol_is_seen(fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)  # type: ignore[operator]
    worlds = (disturbed(seed) for seed in range(MUTANTS))
    assert any(world.worst() > world.loads for world in worlds)


def test_a_share_that_is_not_given_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "held", lambda self, now: max(self.under_way, self.most))
    monkeypatch.setattr(Share, "take", _never_less)
    world = _move(7)
    assert world.served(60)["second"] == 0


_take = Share.take


def _never_less(self: Share, lender: str, lent: rates.Lent) -> None:
    _take(self, lender, lent._replace(most=max(lent.most, self.most)))


@given(st.integers(1, 50), st.dictionaries(st.tuples(st.text(max_size=2), st.just("")), st.integers(1, 60)))
def test_what_is_divided_is_all_there_is_and_nobody_is_left_out(loads: int, wants: dict[tuple[str, str], int]) -> None:
    shares = divide(loads, wants)
    assert sum(shares.values()) == (loads if wants else 0)
    if len(wants) <= loads:
        least = loads // max(1, len(wants))
        assert all(shares[name] >= min(wants[name], least) for name in wants)
    got = Random(1).sample(range(len(wants) * 2), len(wants)) if wants else []
    turned = [divide(loads, wants, turn) for turn in got or [0]]
    assert all(sum(each.values()) == (loads if wants else 0) for each in turned)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"to":"x"}', "[" * 5000, '{"to":"L","from":"x","ask":{"a":[1,2]}}'])
def test_what_is_no_message_says_nothing(text: str) -> None:
    world = World(1, 5, 1.0)
    peer = world.join("a", fresh=True)
    peer.life = "L"
    world.appoint("a")
    world.run(1)
    assert peer.rates.hear("rates b", text, peer.clock())
    assert not peer.rates.hear("a/b/state", text, peer.clock())
    assert not peer.rates.desks[NAME].borrowers
