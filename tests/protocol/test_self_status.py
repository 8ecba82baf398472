"""What an agent says of itself: whether it is passive, may go, has left, and what its beat is.

Hosts are named by the order of their agents: `ordered("b", "c", "a")` is b's, c keeps a copy, a is next.
"""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol.beat import FENCED, FEW, LEAVING, LEFT, LOSSY, MANY, MOST_PENDING, PASSIVE, Beat
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.protocol.view_change import point
from scrapy_ubi.protocol.visit_row import VisitRow
from tests.support.views import incarnation, ordered
from tests.support.village import Village, page


def test_a_leaver_hands_everything_over_and_goes() -> None:
    village = Village("a", "b", "c")
    hosts = [ordered("a", "b", "c"), ordered("b", "a", "c")]
    a = village.agents["a"]
    for host in hosts:
        for number in range(25):
            a.discovery.discover(host, page(host, number))
    village.settle()
    village.visit("a")
    assert not a.self_status.may_go()
    a.leave(village.now)
    assert village.visit("a") is None
    village.turn()
    village.turn()
    assert LEAVING in a.beat.flags
    assert all("a" not in agent.view.members for agent in village.agents.values())
    village.until(a.self_status.may_go)
    village.beats["a"] = a.last_beat().line(10**6)
    assert LEFT in a.last_beat().flags
    assert LOSSY not in a.last_beat().flags
    village.agents.pop("a")
    village.settle()
    assert not any(agent.group.watch.dead for agent in village.agents.values())
    urls = village.crawl()
    assert len(urls) == len(set(urls)) == 49
    for host in hosts:
        assert village.holders(host) == {"b", "c"}


def test_a_leaver_that_still_loads_is_waited_for() -> None:
    """As it would not be, if it were dead."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    for number in range(2):
        a.discovery.discover(host, page(host, number))
    village.settle()
    state, first = a.work.next(village.now) or pytest.fail("nothing to fetch")
    a.leave(village.now)
    for _ in range(10):
        village.turn()
    assert a.beat.pending
    assert not a.self_status.may_go()
    assert village.visit("b") is None
    a.work.freed(state, village.now)
    a.work.ended(state, first.key)
    village.until(a.self_status.may_go)
    village.until(lambda: village.visit("b"))
    assert village.state("b", host).done == {page(host, 0).key, page(host, 1).key}


def test_a_leaver_routes_what_it_finds_last() -> None:
    village = Village("a", "b", "c")
    a, host = village.agents["a"], ordered("a", "b", "c")
    a.leave(village.now)
    assert a.discovery.discover(host, page(host)), "its own hosts are another's now"
    village.until(a.self_status.may_go)
    village.until(lambda: village.visit("b"))


def test_the_last_one_has_nobody_to_hand_over_to() -> None:
    village = Village("a")
    a = village.agents["a"]
    a.discovery.discover("h.example", page("h.example"))
    a.leave(village.now)
    a.discovery.discover("h.example", page("h.example", 1))
    village.until(a.self_status.may_go)
    assert a.last_beat().flags == LEFT + LOSSY, "what was not fetched goes with it"
    assert village.queued("a", "h.example") == {page("h.example").key, page("h.example", 1).key}


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("due", [0, 10])
def test_what_the_last_one_has_to_visit_again_goes_with_it(due: int, ended: bool) -> None:
    village, host = Village("a"), "h.example"
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    a.work.freed(state, village.now)
    a.work.ended(state, entry.key, row=VisitRow(1, due, 0, 1, 0, 5, 5, 0, 3, "", "", entry))
    a.work.visits_ended = ended
    a.leave(village.now)
    village.until(a.self_status.may_go)
    assert a.last_beat().has_left_some == (due > 0 and not ended)


def test_the_last_two_leave_at_once() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    village.agents["a"].discovery.discover(host, page(host))
    for agent in village.agents.values():
        agent.leave(village.now)
    village.until(lambda: all(agent.self_status.may_go() for agent in village.agents.values()))
    assert page(host).key in village.queued("a", host)


def test_the_last_to_leave_does_not_end_the_crawl() -> None:
    """It owns nothing any more, and so has nothing to fetch; but the next start is to go on with what it holds."""
    village = Village("a")
    a = village.agents["a"]
    a.discovery.discover("h.example", page("h.example"))
    a.leave(village.now)
    village.until(a.self_status.may_go)
    for _ in range(5):
        village.turn()
    assert PASSIVE not in a.beat.flags and not a.end.finished


def test_the_last_to_leave_waits_for_no_redis() -> None:
    village = Village("a")
    a = village.agents["a"]
    a.discovery.discover("h.example", page("h.example"))
    village.down = True
    a.leave(village.now)
    village.until(a.self_status.may_go)


def test_nobody_may_go_who_is_not_leaving() -> None:
    assert not Village("a", "b").agents["a"].self_status.may_go()


def test_a_leaver_that_learns_more_after_all_have_settled_hands_that_on_first() -> None:
    """A late letter, from one who had not seen yet that it leaves: what that brings may be nowhere else."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a, before = village.agents["a"], village.agents["a"].view.digest
    a.leave(village.now)
    village.until(a.self_status.may_go)
    a.inbound.receive(Received("b", "bbbbbbbb:a:state", STATE, 1, 1, before, (Delta(host, (page(host),)),)))
    assert not a.self_status.may_go()
    village.until(a.self_status.may_go)
    village.kill("a")
    village.turn()
    assert village.queued("b", host) == village.queued("c", host) == {page(host).key}


def test_a_leaver_waits_until_what_it_found_last_is_acknowledged() -> None:
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    a = village.agents["a"]
    a.leave(village.now)
    village.until(a.self_status.may_go)
    a.discovery.discover(host, page(host))
    village.flush()
    assert not a.self_status.may_go()
    village.until(a.self_status.may_go)
    assert village.queued("b", host) == village.queued("c", host) == {page(host).key}


def test_a_leaver_that_gives_up_says_that_something_may_be_lost() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    a.discovery.discover(ordered("a", "b"), page(ordered("a", "b")))
    a.leave(village.now)
    assert a.last_beat().flags == LEFT + LOSSY
    assert (a.last_beat().settled, a.last_beat().pending) == ("", ())


def test_not_over_while_a_start_goes_on() -> None:
    village = Village("a", "b")
    village.agents["a"].end.start_exhausted = True
    for _ in range(10):
        village.turn()
    assert not any(agent.end.finished for agent in village.agents.values())
    village.agents["b"].end.start_exhausted = True
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))


def test_not_over_while_a_page_waits() -> None:
    """At its owner: who keeps a copy has nothing to do."""
    village, host = Village("a", "b"), ordered("a", "b")
    village.agents["a"].discovery.discover(host, page(host))
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    for _ in range(10):
        village.turn()
    assert PASSIVE not in village.agents["a"].beat.flags and PASSIVE in village.agents["b"].beat.flags
    assert not any(agent.end.finished for agent in village.agents.values())
    village.until(lambda: village.visit("a"))
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))


def test_who_is_fenced_says_so_and_is_not_passive() -> None:
    village = Village("a")
    a = village.agents["a"]
    a.end.start_exhausted = True
    a.tick(village.now)
    assert PASSIVE in a.beat.flags and FENCED not in a.beat.flags
    a.tick(village.now + village.config.lease_timeout)
    assert FENCED in a.beat.flags and PASSIVE not in a.beat.flags


def test_not_passive_before_all_have_settled_and_what_is_known_of_losses_is_published() -> None:
    """Who finds the end asks what all have published: each has counted by then who was lost."""
    village = Village("a", "b")
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    village.settle()
    a, b = village.agents.values()
    assert PASSIVE in a.self_status.beat(village.now, True).flags
    a.view_history.released = False
    assert PASSIVE not in a.self_status.beat(village.now, True).flags
    a.view_history.released = True
    book = a.group.losses.book
    book.await_publishing()
    book.count(["0123abcd"])
    for _ in range(10):
        village.turn()
    assert PASSIVE in b.beat.flags and not b.end.finished
    book.publish(book.changes)
    village.until(lambda: a.end.finished and b.end.finished)


def test_not_over_while_a_request_is_out() -> None:
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    state, entry = a.work.next(village.now) or pytest.fail("nothing to fetch")
    a.work.freed(state, village.now)
    for _ in range(10):
        village.turn()
    assert PASSIVE not in a.beat.flags
    assert not a.end.finished
    a.work.ended(state, entry.key)
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))


def test_not_over_while_a_letter_lies_in_redis() -> None:
    """Everybody else is passive; its sender is not, for its outbox is not empty."""
    village, host = Village("a", "b"), ordered("b", "a")
    for agent in village.agents.values():
        agent.end.start_exhausted = True
    village.agents["a"].discovery.discover(host, page(host))
    for _ in range(10):
        village.now += 1.0
        village.beat()
        village.flush()
    assert not any(agent.end.finished for agent in village.agents.values())
    village.until(lambda: village.visit("b"))
    village.until(lambda: all(agent.end.finished for agent in village.agents.values()))


def test_settled_waits_for_no_mail_to_owners_and_for_no_news_since_the_change() -> None:
    """The first may wait for others to settle; the second never ends while an agent crawls."""
    village = Village("a", "b", "c")
    a, own, foreign = village.agents["a"], ordered("a", "b", "c"), ordered("c", "b", "a")
    a.discovery.discover(foreign, page(foreign))
    village.flush("a")
    village.start("d")
    village.until(lambda: "d" in a.view.members, "a", "b", "d")
    village.turn("a", "b", "d")
    village.turn("a", "b", "d")
    a.discovery.discover(own, page(own))
    village.flush("a")
    assert {kind for (_, kind), lane in a.outbox.lanes.items() if lane.unacknowledged} == {DISCOVERY, STATE}
    assert a.self_status.settled


def test_many_pending_hosts_are_told_of_when_all_is_brought() -> None:
    """Done marks wait for that: whoever says so before has others count on copies that nobody has."""
    village = Village("a", "c", leave_pause=4.0)
    a = village.agents["a"]
    for nth in range(MOST_PENDING + 1):
        a.discovery.discover(ordered("b", "a", "c", nth=nth), page(ordered("b", "a", "c", nth=nth)))
        assert a.work.next(village.now)
    village.start("b")
    village.until(lambda: len(a.handover.pending) > MOST_PENDING)
    assert a.handover.open and MANY not in a.beat.flags
    village.until(lambda: MANY in a.beat.flags)
    assert not a.handover.open
    village.agents["c"].leave(village.now)
    village.until(lambda: "c" not in a.view.members)
    assert a.handover.todo and MANY not in a.beat.flags
    village.until(lambda: MANY in a.beat.flags)
    assert not a.handover.todo


def test_a_beat_does_not_name_the_own_incarnation_as_dead() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    named = Beat(incarnation("b"), 0, 20, a.view.digest, dead=("eeeeeeee", a.incarnation), counter=10**6)
    former = a.incarnation
    village.now += 1
    a.read(village.now, village.now, {"b": named})
    a.tick(village.now)
    assert a.incarnation != former
    assert former in a.beat.dead
    assert "eeeeeeee" in a.beat.dead
    assert a.incarnation not in a.beat.dead


def test_beats_are_lines_that_others_can_read() -> None:
    village = Village("a", "b", "c")
    for _ in range(3):
        village.turn()
        for agent in village.agents.values():
            assert Beat.parse(agent.beat.line(7)) is not None


def test_activity_moves_with_whatever_an_agent_does() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a, b = village.agents.values()
    own = ordered("a", "b")
    before = a.quiescence.activity
    for act in (
        lambda: a.discovery.discover(host, page(host)),
        lambda: a.discovery.discover(own, page(own)),
        lambda: a.work.next(village.now),
        lambda: a.work.put_back(village.state("a", own), page(own).key),
        lambda: a.work.borrow(own),
    ):
        act()
        assert a.quiescence.activity > before
        before = a.quiescence.activity
    received = b.quiescence.activity
    village.flush("a")
    village.take("b")
    assert b.quiescence.activity > received
    before = a.quiescence.activity
    village.turn()
    village.turn()
    assert a.quiescence.activity > before, "an answer was read"


# -- few hosts left


def test_who_has_few_hosts_left_to_hand_on_names_them_and_has_not_settled() -> None:
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    a = village.agents["a"]
    for number in range(3):
        a.discovery.discover(host, page(host, number))
    village.settle()
    a.handover.open[host] = {"c": None}  # as while an offer is not answered
    beat = a.self_status.beat(village.now, exhausted=False)
    assert FEW in beat.flags and not beat.settled and beat.pending == (point(host),)
    assert not beat.has_brought(beat.digest), "nothing else is said by it"
    village.now += 10.0
    a.handover.open |= {f"x{number}.example": {"c": None} for number in range(MOST_PENDING)}
    beat = a.self_status.beat(village.now, exhausted=False)
    assert FEW not in beat.flags and not beat.pending, "too many"
    a.handover.open.clear()
    a.handover.todo.append(host)
    assert FEW not in a.self_status.beat(village.now, exhausted=False).flags, "not all hosts were gone through"
    a.handover.todo.clear()
    beat = a.self_status.beat(village.now, exhausted=False)
    assert FEW not in beat.flags and beat.settled == a.view.digest


def test_a_list_stands_for_a_moment_unless_a_host_is_missing() -> None:
    village = Village("a", "b", "c")
    first, second = ordered("a", "b", "c"), ordered("b", "a", "c")
    village.settle()
    a = village.agents["a"]
    a.handover.open |= {first: {"c": None}, second: {"c": None}}
    both = a.self_status.beat(village.now, exhausted=False).pending
    assert set(both) == {point(first), point(second)}
    del a.handover.open[second]
    assert a.self_status.beat(village.now, exhausted=False).pending == both, "each change is a line for all to read"
    a.handover.open["h.example"] = {"c": None}
    assert set(a.self_status.beat(village.now, exhausted=False).pending) == {point(first), point("h.example")}
