"""Letters that leave, and what follows when they are answered, refused, lost, or answered with garbage.

Hosts are named by the order of their agents: `ordered("b", "c", "a")` is b's, c keeps a copy, a is next.
"""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.ground.untrusted.checks import Malformed
from tests.support.views import ordered
from tests.support.village import Village, page


def test_a_refusal_names_the_owner_and_the_sender_finds_it_when_it_knows_it() -> None:
    """a has not seen the newcomer c; b has, and refuses what is c's. Custody stays with a."""
    village = Village("a", "b")
    host = ordered("c", "b", "a")
    a, b = village.agents["a"], village.agents["b"]
    c = village.start("c")
    village.beat("c", "b", "c")
    assert set(b.view.members) == {"a", "b", "c"}
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.take("b")
    village.flush("b")
    assert b.counters.refused == 1
    assert json.loads(village.acks["a"][f"{a.outbox.store}/b/discovery"])["refused"] == {"1": {host: "c"}}
    village.take("a")
    assert len(a.outbox) == 1
    village.now += 1.0
    village.flush("a")
    assert village.log[-1][0] == "b", "a name is a hint, followed only if it is in the view"
    village.settle()
    assert len(a.outbox) == 0
    assert page(host).key in village.queued("c", host)
    assert page(host).key in village.queued("b", host), "b is c's successor"
    assert c.counters.received == 1


def test_refused_mail_rests_for_a_moment() -> None:
    """So that two agents whose views differ do not play ball."""
    village = Village("a", "b")
    host = ordered("c", "b", "a")
    a = village.agents["a"]
    village.start("c")
    village.beat("c", "b")
    a.discovery.discover(host, page(host))
    village.log.clear()
    for _ in range(5):
        village.flush("a")
        village.take("b")
        village.flush("b")
        village.take("a")
    assert len(village.log) == 1
    assert len(a.outbox) == 1
    assert not a.self_status.passive(village.now, exhausted=True)


def test_of_a_letter_only_the_refused_hosts_come_back() -> None:
    village = Village("a", "b")
    a = village.agents["a"]
    lost, kept = ordered("c", "b", "a"), ordered("b", "c", "a")
    village.start("c")
    village.beat("c", "b")
    for number in range(2):
        a.discovery.discover(lost, page(lost, number))
        a.discovery.discover(kept, page(kept, number))
    village.flush("a")
    village.take("b")
    assert village.queued("b", kept) == {page(kept, n).key for n in range(2)}
    assert village.queued("b", lost) == set()
    for part, name in ((village.flush, "b"), (village.take, "c"), (village.flush, "c"), (village.take, "b")):
        part(name)
    village.flush("b")
    village.take("a")
    assert len(a.outbox) == 2
    village.settle()
    assert village.queued("c", lost) == {page(lost, n).key for n in range(2)}


def test_mail_to_one_that_came_back_is_sent_to_it_again() -> None:
    """What was under way may have died with the former incarnation."""
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    village.settle()
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.inbox["b"].clear()
    village.kill("b")
    village.start("b")
    village.beat("b")
    village.settle()
    assert page(host).key in village.queued("b", host)


def test_lost_mail_is_sent_again() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.forget()
    village.settle()
    assert page(host).key in village.queued("b", host)
    assert a.counters.resent >= 1


def test_when_redis_is_known_to_have_forgotten_nobody_waits_for_the_time_out() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a, b = village.agents.values()
    a.discovery.discover(host, page(host))
    village.flush("a")
    village.forget()
    a.mail_lost()
    village.flush("a")
    assert len(village.inbox["b"]) == 1
    village.take("b")
    for _ in range(2):
        village.turn("b", seconds=0.1)
        village.turn("a", seconds=0.1)
    village.turn("b", seconds=0.1)
    village.forget()
    b.mail_lost()
    village.flush("b")
    assert village.acks["a"], "the answer is said again"
    village.take("a")
    assert len(a.outbox) == 0


def test_a_letter_that_arrives_twice_changes_nothing() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    village.agents["a"].discovery.discover(host, page(host))
    village.flush("a")
    village.inbox["b"] *= 3
    village.take("b")
    assert village.agents["b"].counters.received == 1
    village.settle()
    assert village.visit("b") == page(host).url
    assert village.visit("b") is None


def test_garbage_for_an_answer_is_malformed_and_changes_nothing() -> None:
    village, host = Village("a", "b"), ordered("b", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.flush("a")
    lane = f"{a.outbox.store}/b/discovery"
    with pytest.raises(Malformed):
        a.outbound.answered(lane, '{"acked": "all"}', village.now)
    a.outbound.answered("another/lane/state", '{"acked": "all"}', village.now)
    assert len(a.outbox) == 1
    a.outbound.answered(lane, '{"acked": [77]}', village.now)
    assert len(a.outbox) == 1
    village.settle()


def test_a_state_letter_cannot_be_refused() -> None:
    """Whatever somebody writes into the acks: done marks and copies have no other way to go
    (docs/explanation/protocol.md#mail)."""
    village, host = Village("a", "b"), ordered("a", "b")
    a = village.agents["a"]
    a.discovery.discover(host, page(host))
    village.settle()
    village.visit("a")
    village.flush("a")
    answer = {"acked": [2], "refused": {"2": {host: "b"}}}
    a.outbound.answered(f"{a.outbox.store}/b/state", json.dumps(answer), village.now)
    assert len(a.outbox) == 0
    assert village.state("a", host).open_work == 0
    village.check()


def test_a_done_mark_lost_with_its_receiver_is_open_work_no_more() -> None:
    """Else the host would be pending for ever once another owns it, and its agent never leave."""
    village, host = Village("a", "b", "c"), ordered("a", "b", "c")
    village.agents["a"].discovery.discover(host, page(host))
    village.settle()
    assert village.visit("a")
    village.flush("a")
    state = village.state("a", host)
    assert state.open_work == 1, "its done mark is on its way"
    village.kill("b")
    village.settle()
    assert state.open_work == 0 and village.state("c", host).done == {page(host).key}


def told_to_one_alone() -> tuple[Village, str]:
    """b owns a host, and is alone in its view with a, which is leaving; it has acknowledged a page of it that a has
    found, and a has not settled yet."""
    village, host, own = Village("a", "b"), ordered("b", "a"), ordered("a", "b")
    a, b = village.agents["a"], village.agents["b"]
    a.discovery.discover(own, page(own))
    a.leave(village.now)
    for _ in range(3):
        village.flush("a", "b")
        village.beat("a", "b")
    assert a.view_history.agreed and b.view_history.agreed and not a.view_history.released
    a.discovery.discover(host, page(host), [])
    for part, name in ((village.flush, "a"), (village.take, "b"), (village.flush, "b"), (village.take, "a")):
        part(name)
    assert not len(a.outbox) and not a.view_history.enough
    return village, host


def test_what_one_alone_has_acknowledged_is_told_anew_when_that_one_is_gone() -> None:
    village, host = told_to_one_alone()
    a = village.agents["a"]
    village.kill("b")
    village.start("b")
    village.until(lambda: village.queued("b", host) == {page(host).key})
    village.until(lambda: not len(a.outbox))
    assert a.outbox.done_may_leave(a.journal.flush)


def test_a_leaver_keeps_what_it_has_told_as_long_as_it_is_there() -> None:
    village, host = told_to_one_alone()
    a = village.agents["a"]
    village.until(a.self_status.may_go)
    assert a.view_history.enough
    village.kill("b")
    village.start("b")
    village.until(lambda: village.queued("b", host) == {page(host).key})


def test_what_as_many_as_there_are_to_be_have_acknowledged_is_not_told_again() -> None:
    village, host = Village("a", "b", "c"), ordered("b", "c", "a")
    a = village.agents["a"]
    a.discovery.discover(host, page(host), [])
    village.settle()
    assert a.outbox.thin == []
