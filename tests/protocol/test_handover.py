"""After a change of view every host's state goes to those who keep it now, and to nobody twice."""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol import handover as handover_module
from scrapy_ubi.protocol.beat import MOST_PENDING
from scrapy_ubi.protocol.handover import MOST_PAUSES
from scrapy_ubi.protocol.host import ABROAD
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.view_change import point
from scrapy_ubi.protocol.wire import decode
from tests.protocol.handovers import full, told
from tests.support.views import ordered
from tests.support.village import Village, page

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
    assert c.view_history.complete is c.view


def test_a_host_with_nothing_known_is_handed_over_too() -> None:
    """Something was borrowed there: robots.txt, say."""
    village, host = Village("a", "b"), ordered("c", "a", "b")
    a = village.agents["a"]
    a.work.give_back(a.work.borrow(host), village.now)
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
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    a.leave(village.now)
    village.until(lambda: "a" not in d.view.members and d.view_history.released)
    assert d.view_history.complete is not d.view, "a still loads a page"
    a.work.freed(state, village.now)
    a.work.ended(state, first.key)
    for _ in range(4):
        village.now += 1.0
        village.beat("a", "b", "c")
        village.flush()
        village.take()
    assert a.self_status.may_go() and village.holders(host) >= {"b", "c", "d"}
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
    village.until(a.self_status.may_go)
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
    village.until(lambda: all(village.agents[name].self_status.may_go() for name in "ab"))
    for name in "ab":
        village.beats[name] = village.kill(name).last_beat().line(10**6)
    village.settle()
    for host in hosts:
        assert village.holders(host) == {"c", "d"} and len(village.state("d", host).queued) == 3


def test_an_offer_that_is_wanted_is_followed_by_the_state() -> None:
    village, host = Village("a", "b", "c", "d", replication=2), ordered("a", "b", "c", "d")
    full(village, host)
    village.cut = {"b"}
    village.agents["a"].discovery.discover(host, page(host, 9))
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
    village.until(village.agents["a"].self_status.may_go)
    moved = list(told(village, host))
    assert ("a", "c", "3") in moved
    assert village.holders(host) >= {"b", "c"}


# -- the old owner dies in the middle (docs/explanation/hard-cases.md)


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
    village.until(village.agents["a"].self_status.may_go)
    assert ("a", "c", "3") in told(village, host)


def test_pauses_without_a_break_end_all_the_same() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    full(village, host)
    handover, began = village.agents["a"].handover, village.now
    handover.rescan()
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
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    village.until(lambda: a.beat.pending)
    assert a.beat.pending == (point(host),)
    a.work.freed(state, village.now)
    a.work.ended(state, entry.key)
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
        a.discovery.discover(host, page(host))
    out = [a.work.next(village.now) for _ in hosts]
    village.start("b")
    for _ in range(8):
        village.turn()
    assert len(a.handover.pending) == MOST_PENDING + 1
    assert not a.self_status.settled
    assert a.beat.pending == ()
    found = out[0] or pytest.fail("nothing to fetch")
    a.work.freed(found[0], village.now)
    a.work.put_back(found[0], found[1].key)
    village.turn()
    assert a.self_status.settled
    assert len(a.beat.pending) == MOST_PENDING


def test_one_with_many_pending_hosts_may_leave_while_another_comes() -> None:
    village = Village("a", "b")
    hosts = [ordered("a", "b", nth=nth) for nth in range(2 * MOST_PENDING)]
    a = village.agents["a"]
    for host in hosts:
        a.discovery.discover(host, page(host))
    village.settle()
    out = [a.work.next(village.now) for _ in hosts]
    a.leave(village.now)
    village.turn()
    assert len(a.view.members) == 1, "the one that stays has no copy at hand"
    for one in out:
        state, entry = one or pytest.fail("nothing to fetch")
        a.work.freed(state, village.now)
        a.work.ended(state, entry.key)
    village.start("c")
    village.until(a.self_status.may_go)
    assert not a.handover.pending


def test_a_host_that_comes_back_is_not_pending_any_more() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    village.start("c")
    village.until(lambda: a.handover.pending)
    village.kill("c")
    village.settle()
    assert not a.handover.pending
    a.work.freed(state, village.now)
    a.work.ended(state, entry.key)
    assert len(village.crawl()) == 2


# -- settled


def test_settled_only_when_all_is_handed_on_and_acknowledged() -> None:
    village, host = Village("a", "b"), ordered("c", "a", "b")
    full(village, host)
    a = village.agents["a"]
    village.start("c")
    village.beat("c")
    village.beat("a")
    assert not a.self_status.settled, "nothing was gone through yet"
    village.flush("a")
    assert not a.self_status.settled, "it is on its way"
    assert a.beat.settled == ""
    village.take("c")
    assert not a.self_status.settled
    village.flush("c")
    village.take("a")
    assert a.self_status.settled
    village.flush("a")
    assert a.beat.settled == a.view.digest


def test_settled_waits_for_news_told_before_the_change() -> None:
    """It was told to the keepers of the former view; the new ones must have it, too, before anybody relies on it."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c", "d")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.start("d")
    village.beat("d")
    village.beat("a")
    village.flush("a")
    assert not a.handover.open
    assert not a.self_status.settled
    village.take("b")
    village.flush("b")
    village.take("a")
    assert a.self_status.settled


def test_hosts_are_gone_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover_module, "SLICE", 2)
    village = Village("a")
    hosts = [ordered("b", "a", nth=nth) for nth in range(7)]
    for host in hosts:
        village.agents["a"].discovery.discover(host, page(host))
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


# -- politeness


def test_an_heir_waits_for_the_delay_before_its_first_fetch() -> None:
    """The dead one may have fetched a moment before its lease ended, and its load has lasted for the grace at most: the
    delay has passed in part when it is found to be dead."""
    village, host = Village("a", "b"), ordered("a", "b")
    full(village, host)
    b = village.agents["b"]
    b.frontier.delay = 30.0  # type: ignore[attr-defined]
    village.kill("a")
    killed, last = village.now, b.config.lease_timeout + b.config.grace
    village.until(lambda: "a" not in b.view.members)
    assert village.now - killed > last, "nobody fetches until then"
    village.until(lambda: village.visit("b"))
    assert last + 30.0 - 1.0 <= village.now - killed <= last + 30.0 + 1.0


def test_an_heir_waits_anew_where_a_former_owner_lives_or_is_not_known() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    full(village, host)
    b = village.agents["b"]
    assert village.agents["a"].handover.loaded_until(host) == ABROAD, "there was none before it"
    assert b.handover.loaded_until(host) == ABROAD, "the owner lives"
    village.kill("a")
    village.until(lambda: "a" not in b.view.members)
    b.view_history.forget()
    assert b.handover.loaded_until(host) == ABROAD, "it has seen no view complete"


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


def test_what_was_spent_is_told_before_the_done_mark_also_to_those_who_keep_the_host_since() -> None:
    """Its notes were told when it had no other keeper; its done mark leaves before it is handed over."""
    village, host = Village("a", "b", replication=0, leave_pause=100.0), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    found = a.work.next(village.now)
    assert found is not None
    a.keeping.spend(found[0], 7)
    village.flush("a")
    a.work.freed(found[0], village.now)
    a.work.ended(found[0], found[1].key, [])
    a.leave(village.now)
    village.until(lambda: page(host).key in village.state("b", host).done)
    assert village.state("b", host).notes.total_spent == 7


@pytest.mark.parametrize("late", [False, True], ids=["it goes then", "it is gone when that is read"])
def test_who_was_told_by_a_leaver_that_went_before_it_had_told_all_tells_the_others(late: bool) -> None:
    """A leaver is in no view, so none changes when it goes; newcomers had nothing of that host to bring."""
    village, host = Village("a"), ordered("b", "c", "a")
    village.agents["a"].discovery.discover(host, page(host))
    village.start("b")
    village.start("c")
    village.turn()
    village.agents["a"].leave(village.now)
    letters: list[dict[str, str]] = []
    while not any(delta.discovered for fields in letters for delta in decode(fields, "b", 1000, 4096).deltas):
        village.now += 1.0
        village.beat()
        village.flush()
        village.inbox["c"].clear()  # what it sends there never arrives
        if not late and "a" in village.agents["b"].keeping.view.members:
            village.inbox["b"].clear()  # nor does this before b has seen it leave
        letters, village.inbox["b"] = village.inbox["b"] if late else [], [] if late else village.inbox["b"]
        village.take()
        if village.queued("b", host):
            break
    village.kill("a")
    if late:
        village.until(lambda: "a" not in village.agents["b"].group.watch.seen)
        assert not village.queued("b", host)
        village.inbox["b"] = letters + village.inbox["b"]
        village.take("b")
    assert village.queued("b", host) and not village.queued("c", host)
    village.settle()
    assert village.queued("c", host)
