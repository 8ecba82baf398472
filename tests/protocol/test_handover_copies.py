"""Copies of a host whose keepers change: which may go, and which have to be told again."""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol import handover as handover_module
from tests.protocol.handovers import OTHER_VIEW, bring, full, told
from tests.support.views import ordered
from tests.support.village import Village, page

# -- copies that may go


def test_a_copy_is_dropped_only_when_the_view_is_complete() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    b, c = village.agents["b"], village.start("c")
    while c.view_history.complete is not c.view or b.view_history.complete is not b.view:
        if b.view_history.complete is not b.view:
            assert "b" in village.holders(host)
        village.turn()
    village.settle()
    assert village.holders(host) == {"a", "c"}


def test_the_last_to_leave_keeps_what_it_has_however_long_it_stays() -> None:
    village, host = Village("a"), ordered("a")
    full(village, host)
    a = village.agents["a"]
    a.leave(village.now)
    for _ in range(5):
        village.turn()
    assert a.view.members == {}
    assert village.state("a", host).waiting == 3


@pytest.mark.parametrize(("replication", "keeps"), [(0, False), (1, False), (2, True)])
def test_a_leaver_keeps_what_fewer_hold_than_copies_are_asked_for(replication: int, keeps: bool) -> None:
    village, host = Village("a", "b", "c", replication=replication), ordered("a", "b", "c")
    full(village, host)
    a = village.agents["a"]
    a.leave(village.now)
    village.until(a.self_status.may_go)
    village.turn()
    assert village.holders(host) >= {"b"}
    assert ("a" in village.holders(host)) is keeps


def test_keepers_drop_nothing() -> None:
    village = Village("a", "b", "c")
    hosts = [ordered(*"abc"), ordered(*"bca"), ordered(*"cab")]
    for host in hosts:
        full(village, host)
    for _ in range(5):
        village.turn()
    assert [village.holders(host) for host in hosts] == [{"a", "b"}, {"b", "c"}, {"c", "a"}]


def test_a_copy_with_open_work_is_not_dropped() -> None:
    village, host = Village("a", "b", replication=0), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    for _ in range(10):
        village.turn()
    assert "a" in village.holders(host)
    a.work.freed(state, village.now)
    a.work.put_back(state, entry.key)
    village.settle()
    village.turn()
    assert village.holders(host) == {"c"}


# -- copies that get dirty


def test_news_during_a_handover_reaches_everybody() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host, 95)
    village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
    for number, agent in enumerate(village.agents.values()):
        agent.discovery.discover(host, page(host, 1000 + number))
    village.settle()
    assert village.holders(host) == {"a", "c"}
    for name in "ac":
        assert len(village.state(name, host).queued) == 98


def test_a_copy_that_gets_dirty_while_it_is_brought_is_brought_once_more() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host, 95)
    village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
    assert village.agents["a"].handover.open[host]["c"] is not None
    bring(village, "a", host, 1000)
    village.settle()
    assert len(village.state("c", host).queued) == 96
    assert village.holders(host) == {"a", "c"}


@pytest.mark.parametrize("other_view", [True, False])
def test_a_dirty_copy_is_not_dropped(other_view: bool) -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    b = village.agents["b"]
    village.start("c")
    village.beat()
    while not b.handover.to_drop:  # the view is complete, and nothing was gone through since
        village.flush()
        village.take()
        village.now += 1.0
        village.beat()
    bring(village, "b", host, 1000, OTHER_VIEW if other_view else b.view.digest)
    village.settle()
    assert village.holders(host) == {"a", "c"}
    for name in "ac":
        assert len(village.state(name, host).queued) == 4


def test_a_copy_told_of_by_one_in_another_view_stays_until_that_one_is_seen_or_dead() -> None:
    """That view may be the newer one, in which this agent keeps the host."""
    village, host = Village("a", "b", failure_timeout=20.0), ordered("c", "a", "b")
    full(village, host)
    village.start("c")
    village.settle()
    assert village.holders(host) == {"a", "c"}
    told = village.now
    bring(village, "b", host, 1000)
    village.until(lambda: village.holders(host) == {"a", "c"})
    assert village.now >= told + village.config.failure_timeout
    assert len(village.state("c", host).queued) == 4


def test_copies_that_need_not_stay_any_more_are_dropped_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover_module, "SLICE", 2)
    village, hosts = Village("a", "b", failure_timeout=20.0), [ordered("c", "a", "b", nth=nth) for nth in range(5)]
    village.start("c")
    village.settle()
    for number, host in enumerate(hosts):
        bring(village, "b", host, 1000 + number)
    village.settle()
    b = village.agents["b"]
    village.now += village.config.failure_timeout
    for left in (3, 1, 0):
        b.tick(village.now)
        assert len(b.frontier) == left


@pytest.mark.parametrize("newcomers", ["c", "cd"])
def test_news_on_its_way_to_keepers_that_are_none_any_more_goes_to_the_new_ones(newcomers: str) -> None:
    """Two join at once, each before the present keepers; or one does, and nobody but the owner keeps a copy."""
    village = Village("a", "b", "x", replication=len(newcomers) - 1)
    host = ordered(*newcomers, "a", "b", "x")
    full(village, host)
    x = village.agents["x"]
    bring(village, "x", host, 1000)
    village.flush("x")
    assert x.handover.open[host], "offered, and not answered"
    for name in newcomers:
        village.start(name)
    village.beat(*newcomers)
    village.beat("x")
    assert x.view.members.keys() == village.agents.keys()
    village.settle()
    assert page(host, 1000).key in village.state(newcomers[0], host).queued
    assert village.holders(host) == set(newcomers)


def test_a_rejoined_agent_offers_all_it_holds() -> None:
    village, hosts = Village("a", "b", "c"), [ordered("a", "b", "c"), ordered("c", "b", "a")]
    for host in hosts:
        full(village, host)
    village.cut = {"a"}
    village.until(lambda: "a" not in village.agents["b"].view.members)
    for _ in range(5):
        village.turn()
    village.cut = set()
    village.log.clear()
    village.settle()
    assert ("a", "b", "offer") in told(village, hosts[0])
    assert not any(state.dirty for state in village.agents["a"].frontier.states())
