"""After a change of view every host's state goes to those who keep it now, and to nobody twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_ubi.protocol import handover as handover_module
from scrapy_ubi.protocol.beat import MOST_PENDING
from scrapy_ubi.protocol.handover import MOST_PAUSES
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.ownership import point
from scrapy_ubi.protocol.received import Delta, Received
from tests.support.views import ordered
from tests.support.village import Village, page


def full(village: Village, host: str, pages: int = 3) -> None:
    """The host's owner finds these pages, and its successors have them."""
    owner = village.agents[next(iter(village.agents.values())).ring.order(host, 1)[0]]
    for number in range(pages):
        owner.discover(host, page(host, number))
    village.settle()
    village.log.clear()


def told(village: Village, host: str) -> Iterator[tuple[str, str, str]]:
    """(from, to, what) of every state letter about this host: `offer`, or how many facts."""
    for receiver, letter in village.log:
        for delta in letter.deltas:
            if delta.host == host and letter.kind == STATE:
                facts = len(delta.discovered) + len(delta.done)
                yield letter.sender, receiver, "offer" if delta.offer is not None else str(facts)


# -- who brings what to whom


def test_a_newcomer_gets_the_whole_state_from_the_owner_alone() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    village.start("c")
    village.settle()
    assert list(told(village, host)) == [("a", "c", "3")], "no offer first, nothing from b, nothing to b"
    assert len(village.state("c", host).queued) == 3


def test_a_new_successor_gets_it_too() -> None:
    village, host = Village("a", "b"), ordered("a", "c", "b")
    full(village, host)
    village.start("c")
    village.settle()
    assert list(told(village, host)) == [("a", "c", "3")]
    assert village.holders(host) == {"a", "c"}


def test_nothing_moves_that_need_not() -> None:
    village, host = Village("a", "b"), ordered("a", "b", "c")
    full(village, host)
    village.start("c")
    village.settle()
    assert list(told(village, host)) == []


def test_done_marks_travel_with_the_rest() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    village.visit("a")
    village.settle()
    village.start("c")
    village.settle()
    state = village.state("c", host)
    assert (len(state.queued), len(state.done)) == (2, 1)
    assert state.summary() == village.state("a", host).summary()


def test_a_large_state_goes_in_pieces_within_the_window() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host, 95)
    c = village.start("c")
    most = 0
    for _ in range(20):
        village.turn()
        most = max(most, len(village.inbox["c"]))
        lane = village.agents["a"].outbox.lanes.get(("c", STATE))
        assert lane is None or len(lane.unacknowledged) <= village.config.bounds.window
    village.settle()
    assert [what for _, _, what in told(village, host)] == ["10"] * 9 + ["5"]
    assert len(village.state("c", host).queued) == 95
    assert c.tenure.complete is c.view


def test_a_host_with_nothing_known_is_handed_over_too() -> None:
    """Something was borrowed there: robots.txt, say."""
    village, host = Village("a", "b"), ordered("c", "a", "b")
    a = village.agents["a"]
    a.give_back(a.borrow(host), village.now)
    village.start("c")
    village.settle()
    assert village.holders(host) <= {"a", "c"}


def test_when_the_owner_is_dead_every_holder_offers_and_only_differences_travel() -> None:
    village, host = Village("a", "b", "c", "d", replication=2), ordered("a", "b", "c", "d")
    full(village, host)
    village.kill("a")
    village.settle()
    moved = sorted(told(village, host))
    assert ("b", "c", "offer") in moved
    assert ("c", "b", "offer") in moved
    assert [(sender, to) for sender, to, what in moved if what == "3"] == [("b", "d"), ("c", "d")]
    assert village.holders(host) == {"b", "c", "d"}
    summaries = {village.state(name, host).summary() for name in "bcd"}
    assert len(summaries) == 1


def left_behind() -> tuple[Village, str]:
    """d alone has a copy, and believes that a leaver has one, too, who was the owner when d last saw a view complete.

    While d was away, that one has gone, after b and c had their copies; these have crashed, and begin anew.
    """
    village, host = Village("a", "b", "c", "d", replication=2), ordered("a", "b", "c", "d")
    full(village, host)
    a, d = village.agents["a"], village.agents["d"]
    state, first = a.next(village.now) or pytest.fail("nothing to fetch")
    a.leave(village.now)
    village.until(lambda: "a" not in d.view.members and d.tenure.released)
    assert d.tenure.complete is not d.view, "a still loads a page"
    a.freed(state, village.now)
    a.ended(state, first.key)
    for _ in range(4):
        village.now += 1.0
        village.beat("a", "b", "c")
        village.flush()
        village.take()
    assert a.may_go() and village.holders(host) >= {"b", "c", "d"}
    village.beats["a"] = village.kill("a").last_beat().line(10**6)
    for name in "bc":
        village.kill(name)
    village.forget()
    for name in "bc":
        village.start(name)
    return village, host


def test_a_host_comes_to_those_who_begin_anew_though_the_leaver_that_was_relied_on_is_gone() -> None:
    village, host = left_behind()
    d = village.agents["d"]
    village.until(lambda: d.handover.relied_on)
    assert list(d.handover.relied_on) == ["a"]
    village.until(lambda: set(d.view.members) == {"b", "c", "d"} and not d.handover.todo)
    assert not d.beat.settled
    village.settle()
    assert village.holders(host) == {"b", "c", "d"}
    for name in "bcd":
        state = village.state(name, host)
        assert (len(state.queued), len(state.done)) == (2, 1)


def test_who_relies_on_a_leaver_has_settled_when_that_one_has() -> None:
    village, host = Village("a", "b", "c", "d", "e", replication=2), ordered("a", "b", "c", "d", "e")
    full(village, host)
    a, c = village.agents["a"], village.agents["c"]
    a.leave(village.now)
    a.tick(village.now)
    village.beat()
    village.turn("b", "c", "d", "e")
    assert list(c.handover.relied_on) == ["a"] and not c.beat.settled
    village.until(a.may_go)
    assert not c.handover.relied_on and c.beat.settled
    assert "c" not in {sender for sender, _, _ in told(village, host)}


def test_who_relies_on_a_leaver_that_dies_goes_through_all_hosts_again() -> None:
    """The leaver is in no view, so none changes when it is gone; what it had learned last may be nowhere else."""
    village, host = Village("a", "b", "c", "d", replication=2), ordered("a", "b", "c", "d")
    full(village, host)
    a, c = village.agents["a"], village.agents["c"]
    a.leave(village.now)
    a.tick(village.now)
    village.beat()
    for _ in range(3):
        village.turn("b", "c", "d")
        assert list(c.handover.relied_on) == ["a"] and not c.beat.settled, "a has said nothing yet"
    view = c.view
    village.kill("a")
    village.settle()
    assert c.view is view
    assert {"b", "c"} <= {sender for sender, _, _ in told(village, host)}


def test_two_leavers_do_not_wait_for_each_other() -> None:
    village = Village("a", "b", "c", "d")
    hosts = [ordered("a", "b", "c", "d"), ordered("b", "a", "c", "d")]
    for host in hosts:
        full(village, host)
    for name in "ab":
        village.agents[name].leave(village.now)
    village.until(lambda: all(village.agents[name].may_go() for name in "ab"))
    for name in "ab":
        village.beats[name] = village.kill(name).last_beat().line(10**6)
    village.settle()
    for host in hosts:
        assert village.holders(host) == {"c", "d"} and len(village.state("d", host).queued) == 3


def test_an_offer_that_is_wanted_is_followed_by_the_state() -> None:
    village, host = Village("a", "b", "c", "d", replication=2), ordered("a", "b", "c", "d")
    full(village, host)
    village.cut = {"b"}
    village.agents["a"].discover(host, page(host, 9))
    for _ in range(3):
        village.turn("a", "c", "d", seconds=0.5)
    village.kill("a")
    village.inbox["b"].clear()
    village.cut = set()
    village.log.clear()
    village.settle()
    assert ("c", "b", "offer") in told(village, host)
    assert ("c", "b", "4") in told(village, host)
    assert len(village.state("b", host).queued) == 4


def test_a_leaver_hands_over_and_the_others_leave_it_to_it() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    full(village, host)
    village.agents["a"].leave(village.now)
    village.until(village.agents["a"].may_go)
    moved = list(told(village, host))
    assert ("a", "c", "3") in moved
    assert village.holders(host) >= {"b", "c"}


# -- the old owner dies in the middle (a hard case of DESIGN 2.5)


# -- leavers, and the pause after a leave


def test_agents_that_leave_together_hand_nothing_over() -> None:
    village = Village("a", "b", "c", leave_pause=1.5)
    hosts = [ordered("a", "b", "c"), ordered("b", "c", "a")]
    for host in hosts:
        full(village, host)
    for agent in village.agents.values():
        agent.leave(village.now)
        village.now += 0.1
    for _ in range(8):
        village.turn(seconds=0.5)
    assert [letter for _, letter in village.log if letter.kind == STATE] == []
    assert [village.holders(host) for host in hosts] == [{"a", "b"}, {"b", "c"}]
    assert not any(agent.view.members for agent in village.agents.values())


@pytest.mark.parametrize("first", ["the leaver", "the others"])
def test_after_the_pause_a_leaver_hands_over(first: str) -> None:
    village, host = Village("a", "b", "c", leave_pause=1.5), ordered("a", "b", "c")
    full(village, host)
    village.agents["a"].leave(village.now)
    village.turn(*(["a"] if first == "the leaver" else ["b", "c"]))
    village.turn(seconds=0.4)
    assert list(told(village, host)) == []
    village.until(village.agents["a"].may_go)
    assert ("a", "c", "3") in told(village, host)


def test_pauses_without_a_break_end_all_the_same() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    full(village, host)
    handover, began = village.agents["a"].handover, village.now
    handover.enter()
    while handover.todo:
        handover.pause(village.now, 1.5)
        handover.work(lambda agent, incarnation: True, village.now)
        village.now += 0.5
        assert village.now < began + 100
    assert village.now - began == pytest.approx(MOST_PAUSES * 1.5, abs=0.6)


def test_who_joins_waits_for_no_pause() -> None:
    village, host = Village("a", "b", leave_pause=100.0), ordered("c", "a", "b")
    full(village, host)
    village.start("c")
    village.settle()
    assert list(told(village, host)) == [("a", "c", "3")]


def test_old_owner_dies_in_the_middle_of_a_handoff() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host, 95)
    c = village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
        assert village.visit("c") is None
    assert 0 < len(village.state("c", host).queued) < 95
    village.kill("a")
    while c.view.members.keys() != {"b", "c"}:
        village.turn()
        assert village.visit("c") is None
    assert village.visit("c") is None, "it waits for settled of the new digest"
    village.settle()
    assert len(village.state("c", host).queued) == 95, "b had it all"
    assert len(village.crawl()) == 95


def test_newcomer_dies_in_the_middle_of_a_handoff() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host, 95)
    village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
    village.kill("c")
    village.settle()
    assert not village.agents["a"].handover.open
    assert len(village.crawl()) == 95


def test_two_join_one_after_the_other_during_a_handoff() -> None:
    """State goes to the owner of the newest view; what was on its way to another is dropped there in the end."""
    village, host = Village("a", "b"), ordered("d", "c", "a", "b")
    full(village, host, 95)
    village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
    village.start("d")
    village.settle()
    assert village.holders(host) == {"c", "d"}
    assert len(village.state("d", host).queued) == 95
    assert village.state("c", host).summary() == village.state("d", host).summary()
    assert len(village.crawl()) == 95


def test_a_sync_to_one_that_keeps_the_host_no_longer_is_cancelled() -> None:
    village, host = Village("a", "b"), ordered("d", "a", "c", "b")
    full(village, host, 95)
    village.start("c")
    while not len(village.state("c", host).queued):
        village.turn()
    a = village.agents["a"]
    assert "c" in a.handover.open[host]
    village.start("d")
    village.until(lambda: "d" in a.view.members)
    village.flush("a")
    assert "c" not in a.handover.open.get(host, {})
    village.settle()
    assert village.holders(host) == {"a", "d"}
    assert len([what for _, to, what in told(village, host) if to == "c"]) < 10


# -- pending hosts


def test_a_lost_host_with_open_work_is_pending_until_its_marks_are_acknowledged() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    state, entry = a.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    village.until(lambda: a.beat.pending)
    assert a.beat.pending == (point(host),)
    a.freed(state, village.now)
    a.ended(state, entry.key)
    assert list(a.handover.pending) == [host], "the mark has not left"
    village.flush("a")
    assert list(a.handover.pending) == [host], "nor was it acknowledged"
    village.take("c")
    village.flush("c")
    village.take("a")
    assert not a.handover.pending
    assert village.state("c", host).done == {entry.key}


def test_more_pending_hosts_than_a_beat_names_is_not_settled() -> None:
    village = Village("a")
    hosts = [ordered("b", "a", nth=nth) for nth in range(MOST_PENDING + 1)]
    a = village.agents["a"]
    for host in hosts:
        a.discover(host, page(host))
    out = [a.next(village.now) for _ in hosts]
    village.start("b")
    for _ in range(8):
        village.turn()
    assert len(a.handover.pending) == MOST_PENDING + 1
    assert not a.standing.settled
    assert a.beat.pending == ()
    found = out[0] or pytest.fail("nothing to fetch")
    a.freed(found[0], village.now)
    a.put_back(found[0], found[1].key)
    village.turn()
    assert a.standing.settled
    assert len(a.beat.pending) == MOST_PENDING


def test_one_with_many_pending_hosts_may_leave_while_another_comes() -> None:
    village = Village("a", "b")
    hosts = [ordered("a", "b", nth=nth) for nth in range(2 * MOST_PENDING)]
    a = village.agents["a"]
    for host in hosts:
        a.discover(host, page(host))
    village.settle()
    out = [a.next(village.now) for _ in hosts]
    a.leave(village.now)
    village.turn()
    assert len(a.view.members) == 1, "the one that stays has no copy at hand"
    for one in out:
        state, entry = one or pytest.fail("nothing to fetch")
        a.freed(state, village.now)
        a.ended(state, entry.key)
    village.start("c")
    village.until(a.may_go)
    assert not a.handover.pending


def test_a_host_that_comes_back_is_not_pending_any_more() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    state, entry = a.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    village.until(lambda: a.handover.pending)
    village.kill("c")
    village.settle()
    assert not a.handover.pending
    a.freed(state, village.now)
    a.ended(state, entry.key)
    assert len(village.crawl()) == 2


# -- settled


def test_settled_only_when_all_is_handed_on_and_acknowledged() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    village.start("c")
    village.beat("c")
    village.beat("a")
    assert not a.standing.settled, "nothing was gone through yet"
    village.flush("a")
    assert not a.standing.settled, "it is on its way"
    assert a.beat.settled == ""
    village.take("c")
    assert not a.standing.settled
    village.flush("c")
    village.take("a")
    assert a.standing.settled
    village.flush("a")
    assert a.beat.settled == a.view.digest


def test_settled_waits_for_news_told_before_the_change() -> None:
    """It was told to the keepers of the former view; the new ones must have it, too, before anybody relies on it."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c", "d")
    a = village.agents["a"]
    a.discover(host, page(host))
    village.start("d")
    village.beat("d")
    village.beat("a")
    village.flush("a")
    assert not a.handover.open
    assert not a.standing.settled
    village.take("b")
    village.flush("b")
    village.take("a")
    assert a.standing.settled


def test_hosts_are_gone_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover_module, "SLICE", 2)
    village = Village("a")
    hosts = [ordered("b", "a", nth=nth) for nth in range(7)]
    for host in hosts:
        village.agents["a"].discover(host, page(host))
    village.start("b")
    village.beat("b")
    village.beat("a")
    a = village.agents["a"]
    for left in (5, 3, 1, 0):
        assert not a.handover.settled
        a.tick(village.now)
        assert len(a.handover.todo) == left
    village.settle()
    assert all(village.holders(host) == {"a", "b"} for host in hosts)


def test_busy_says_what_still_has_to_be_brought() -> None:
    village, host, other = Village("a", "b"), ordered("c", "a", "b"), ordered("a", "b", "c")
    full(village, host)
    full(village, other)
    a = village.agents["a"]
    assert not a.handover.busy([host, other])
    village.start("c")
    village.beat("c")
    village.beat("a")
    assert a.handover.busy([other]), "nobody knows before all is gone through"
    village.flush("a")
    assert a.handover.busy([other, host])
    assert not a.handover.busy([other])
    village.settle()
    assert not a.handover.busy([host, other])


# -- copies that may go


def test_a_copy_is_dropped_only_when_the_view_is_complete() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    b, c = village.agents["b"], village.start("c")
    while c.tenure.complete is not c.view or b.tenure.complete is not b.view:
        if b.tenure.complete is not b.view:
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
    village.until(a.may_go)
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
    state, entry = a.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    for _ in range(10):
        village.turn()
    assert "a" in village.holders(host)
    a.freed(state, village.now)
    a.put_back(state, entry.key)
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
        agent.discover(host, page(host, 1000 + number))
    village.settle()
    assert village.holders(host) == {"a", "c"}
    for name in "ac":
        assert len(village.state(name, host).queued) == 98


OTHER_VIEW = "00000000000000ee"


def bring(village: Village, name: str, host: str, number: int, view: str = OTHER_VIEW) -> None:
    """A state letter reaches this agent from somebody who has another view: what it says is not covered."""
    delta = Delta(host, (page(host, number),), (), None)
    village.agents[name].receive(Received("z", f"z/{name}/state", STATE, number, number, view, (delta,)))


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


# -- politeness


def test_an_heir_waits_for_the_delay_before_its_first_fetch() -> None:
    """The dead one may have fetched a moment before its lease ended."""
    village, host = Village("a", "b"), ordered("a", "b")
    full(village, host)
    b = village.agents["b"]
    b.frontier.delay = 30.0  # type: ignore[attr-defined]
    village.kill("a")
    village.until(lambda: "a" not in b.view.members)
    begun = village.now
    village.until(lambda: village.visit("b"))
    assert 30.0 <= village.now - begun <= 31.0


def test_a_newcomer_waits_for_the_delay_before_its_first_fetch() -> None:
    """The former owner may have fetched right before it let the host go."""
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    village.start("c").frontier.delay = 30.0  # type: ignore[attr-defined]
    village.settle()
    settled = village.now
    assert village.visit("c") is None
    village.until(lambda: village.visit("c"))
    assert village.now - settled > 20.0


def test_an_owner_that_stays_owner_does_not_wait() -> None:
    village, host = Village("a", "b"), ordered("a", "b", "c")
    full(village, host)
    a = village.agents["a"]
    a.frontier.delay = 30.0  # type: ignore[attr-defined]
    village.start("c")
    village.settle()
    assert village.visit("a") == page(host).url
