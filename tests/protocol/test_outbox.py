"""The outbox: outlinks that are open, mail taken back when its receiver is gone, refused mail that waits."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from scrapy_ubi.protocol import lane as lane_module
from scrapy_ubi.protocol import outbox as outbox_module
from scrapy_ubi.protocol.host import Entry, Summary
from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Bounds
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import Record, Sync
from tests.support.views import incarnation, view

BOUNDS = Bounds(window=2, records=3, size=10_000, resend=5.0)
ABC = view("a", "b", "c")


def link(number: int, flush: int = 1) -> Record:
    return Record("h.example", flush, entry=Entry(number, f"http://h.example/{number}", 0))


def mark(number: int, flush: int = 1) -> Record:
    return Record("h.example", flush, done=number)


def offer(flush: int = 0) -> Record:
    return Record("h.example", flush, offer=Summary(1, 2, 3, 4))


@pytest.fixture
def outbox() -> Outbox:
    return Outbox("store", BOUNDS)


def post(outbox: Outbox, now: float = 0.0) -> list[tuple[str, int, bool]]:
    """(lane, number, sent again) of every letter sent now."""
    sent = [(lane.name, letter.seq, again) for lane, letter, again in outbox.post(now, ABC.digest)]
    outbox.check_invariants()
    return sent


# -- lanes


def test_a_lane_for_each_receiver_and_kind(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    outbox.put("b", STATE, mark(1), ABC)
    outbox.put("c", STATE, mark(1), ABC)
    outbox.put("b", DISCOVERY, link(2), ABC)
    assert post(outbox) == [("store/b/discovery", 1, False), ("store/b/state", 1, False), ("store/c/state", 1, False)]
    assert outbox.by_name.keys() == {"store/b/discovery", "store/b/state", "store/c/state"}
    assert len(outbox) == 4


def test_lanes_have_windows_of_their_own(outbox: Outbox) -> None:
    """Else an acknowledgement that waits for the state lane would wait for itself."""
    for number in range(20):
        outbox.put("b", DISCOVERY, link(number), ABC)
    assert len(post(outbox)) == 2
    outbox.put("b", STATE, mark(1), ABC)
    assert post(outbox) == [("store/b/state", 1, False)]


def test_what_is_due_is_sent_again_before_what_is_new(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    post(outbox)
    outbox.put("b", DISCOVERY, link(2), ABC)
    assert post(outbox, 5.0) == [("store/b/discovery", 1, True), ("store/b/discovery", 2, False)]


def test_hurry_sends_everything_again(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    outbox.put("c", STATE, mark(1), ABC)
    first = post(outbox)
    assert post(outbox, 1.0) == []
    outbox.hurry()
    assert post(outbox, 1.0) == [(name, seq, True) for name, seq, _ in first]


def test_oldest_flush_on_the_way_to_a_copy(outbox: Outbox) -> None:
    assert outbox.state_oldest("b") is None
    outbox.put("b", DISCOVERY, link(1, 1), ABC)
    assert outbox.state_oldest("b") is None, "links are not what a copy waits for"
    outbox.put("b", STATE, mark(1, 3), ABC)
    outbox.put("b", STATE, link(1, 2), ABC)
    assert outbox.state_oldest("b") == 2


# -- outlinks


def test_a_done_mark_leaves_when_no_outlink_of_its_flush_or_before_is_open(outbox: Outbox) -> None:
    links = [link(1, 3), link(2, 3), link(3, 5)]
    for one in links:
        outbox.put("b", DISCOVERY, one, ABC)
    assert [outbox.done_may_leave(flush) for flush in (2, 3, 4, 5, 6)] == [True, False, False, False, False]
    outbox.close([links[0]])
    assert not outbox.done_may_leave(3)
    outbox.close([links[1]])
    assert [outbox.done_may_leave(flush) for flush in (3, 4, 5)] == [True, True, False]
    outbox.close([links[2]])
    assert outbox.done_may_leave(99)
    assert outbox.outlinks == {}


def test_outlinks_are_links_told_to_owners_and_to_successors(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1, 3), ABC)
    outbox.put("c", STATE, link(1, 3), ABC)
    assert outbox.outlinks == {3: 2}


def test_marks_offers_and_known_state_that_is_brought_are_nobodys_outlinks(outbox: Outbox) -> None:
    for one in (mark(1, 3), offer(), link(1, 0)):
        outbox.put("b", STATE, one, ABC)
    outbox.lane("b", STATE, ABC).put_sync(Sync("h.example", "b", 0, iter([link(5, 0)])))
    assert outbox.outlinks == {}
    assert outbox.done_may_leave(1)
    for one in (mark(1, 3), offer(), link(1, 0)):
        outbox.close([one])
    post(outbox)


def test_an_old_outlink_that_is_routed_anew_keeps_its_flush(outbox: Outbox) -> None:
    old, new = link(1, 3), link(2, 7)
    outbox.put("b", DISCOVERY, old, ABC)
    outbox.put("b", DISCOVERY, new, ABC)
    outbox.close([old])
    assert outbox.done_may_leave(6)
    outbox.put("c", DISCOVERY, old, ABC)
    assert outbox.oldest() == 3
    assert list(outbox.outlinks) == [3, 7]
    assert not outbox.done_may_leave(3)


# -- the receiver is gone


def test_mail_of_many_flushes_is_routed_anew_without_sorting_them_for_each(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour in which a receiver took nothing (its disk was full) there are 20,000 flushes: 25 s of the loop."""
    sorts = 0

    def counted(flushes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        nonlocal sorts
        sorts += 1
        return sorted(flushes)

    for module in (lane_module, outbox_module):
        monkeypatch.setattr(module, "sorted", counted, raising=False)
    for flush in range(1, 101):
        outbox.put("b" if flush % 2 else "c", DISCOVERY, link(flush, flush), ABC)
    _, links, _ = outbox.take_back(view("a", "c"))
    for one in links:
        outbox.close([one])
        outbox.put("c", DISCOVERY, one, ABC)
    lane = outbox.lane("c", DISCOVERY, ABC)
    assert (outbox.oldest(), lane.oldest(), sorts) == (1, 1, 2)
    assert [*outbox.outlinks] == [*lane.open] == [*range(1, 101)]
    outbox.check_invariants()


def test_mail_for_who_is_gone_is_taken_back(outbox: Outbox) -> None:
    for number in range(10):
        outbox.put("b", DISCOVERY, link(number), ABC)
    outbox.put("b", STATE, mark(1), ABC)
    outbox.put("c", DISCOVERY, link(99), ABC)
    post(outbox)
    assert outbox.take_back(ABC) == (set(), [], [])
    gone, links, state = outbox.take_back(view("a", "c"))
    assert gone == {"b"}
    assert links == [link(number) for number in range(10)], "under way and waiting"
    assert state == [mark(1)]
    assert outbox.outlinks == {1: 11}, "still open until they are routed anew"
    assert outbox.lanes.keys() == {("c", DISCOVERY)}
    assert outbox.by_name.keys() == {"store/c/discovery"}
    for one in links:
        outbox.close([one])
    outbox.check_invariants()


def test_answers_of_a_lane_that_is_gone_are_forgotten(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    outbox.put("b", STATE, mark(1), ABC)
    outbox.take_back(view("a", "c"))
    assert sorted(outbox.forgotten) == ["store/b/discovery", "store/b/state"]


def test_answers_that_nobody_waits_for_are_forgotten(outbox: Outbox) -> None:
    """All answers are read in every exchange; in a large group most lanes have nothing under way."""
    outbox.put("b", STATE, mark(1), ABC)
    outbox.put("b", STATE, mark(2), ABC)
    post(outbox)
    lane = outbox.lanes["b", STATE]
    lane.answered = '{"acked":[1]}'
    post(outbox)
    assert outbox.forgotten == [], "a letter is under way"
    for seq in list(lane.unacknowledged):
        lane.settle(seq)
    post(outbox)
    post(outbox)
    assert outbox.forgotten == ["store/b/state"], "once"
    assert lane.answered == "", "the same answer, should it come again, is read again"


def test_numbers_go_on_when_a_receiver_comes_back(outbox: Outbox) -> None:
    """Its disk may remember the lane: a number is never used twice."""
    outbox.put("b", STATE, mark(1), ABC)
    post(outbox)
    outbox.take_back(view("a", "c"))
    outbox.put("b", STATE, mark(2), ABC)
    assert post(outbox) == [("store/b/state", 2, False)]


def test_numbers_are_told_when_they_have_changed(outbox: Outbox) -> None:
    outbox.put("b", STATE, mark(1), ABC)
    outbox.put("c", STATE, mark(1), ABC)
    post(outbox)
    assert outbox.new_numbers() == {"store/b/state": 2, "store/c/state": 2}
    assert outbox.new_numbers() == {}
    outbox.put("b", STATE, mark(2), ABC)
    outbox.put("c", STATE, mark(2), ABC)
    for lane in outbox.lanes.values():
        lane.settle(1)
    post(outbox)
    outbox.take_back(view("a", "c"))
    assert outbox.new_numbers() == {"store/b/state": 3, "store/c/state": 3}, "that of a lane that is gone, too"
    outbox.put("b", STATE, mark(3), ABC)
    assert outbox.new_numbers() == {}
    outbox.take_back(view("a", "c"))
    assert outbox.new_numbers() == {}


def test_another_incarnation_is_as_good_as_gone_but_its_lane_stays(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    outbox.put("b", STATE, mark(1), ABC)
    post(outbox)
    reborn = view("a", "b", "c", b=1)
    gone, links, state = outbox.take_back(reborn)
    assert (gone, links, state) == ({"b"}, [link(1)], [mark(1)])
    assert outbox.forgotten == []
    assert outbox.take_back(reborn) == (set(), [], [])
    outbox.put("b", DISCOVERY, link(1), reborn)
    outbox.close([link(1)])
    assert post(outbox) == [("store/b/discovery", 2, False)]
    assert outbox.lane("b", DISCOVERY, reborn).incarnation == incarnation("b", 1)


def test_a_late_answer_of_the_dead_settles_nothing_new(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    post(outbox)
    reborn = view("a", "b", "c", b=1)
    outbox.take_back(reborn)
    outbox.close([link(1)])
    outbox.put("b", DISCOVERY, link(1), reborn)
    assert post(outbox) == [("store/b/discovery", 2, False)]
    assert outbox.lanes["b", DISCOVERY].settle(1) is None


def test_the_sender_leaving_is_no_reason_to_take_anything_back(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    assert outbox.take_back(view("b", "c")) == (set(), [], [])


# -- refused


def test_what_was_refused_waits_a_moment_and_stays_open(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1, 3), ABC)
    post(outbox)
    letter = outbox.lanes["b", DISCOVERY].settle(1)
    assert letter is not None
    outbox.hold_back(letter.records, 10.25, "c")
    assert len(outbox) == 1
    assert not outbox.done_may_leave(3)
    outbox.check_invariants()
    assert outbox.due_again(10.2) == []
    assert outbox.due_again(10.25) == [(link(1, 3), "c")]
    assert outbox.due_again(99.0) == []
    assert len(outbox) == 0


def test_refused_in_the_order_they_came(outbox: Outbox) -> None:
    outbox.hold_back([link(1)], 1.0, "b")
    outbox.hold_back([link(2), link(3)], 2.0, "")
    assert outbox.due_again(1.5) == [(link(1), "b")]
    assert outbox.due_again(2.5) == [(link(2), ""), (link(3), "")]


# -- syncs that are not needed any more


def test_a_sync_that_has_not_left_need_not(outbox: Outbox) -> None:
    lane = outbox.lane("b", STATE, ABC)
    one = Sync("h.example", "b", 0, iter([link(n, 0) for n in range(5)]))
    lane.put_sync(one)
    outbox.cancel(one)
    assert len(outbox) == 0
    assert post(outbox) == []
    outbox.cancel(one)
    outbox.cancel(Sync("h.example", "z", 0, iter([])))
    assert len(outbox) == 0


def test_of_a_sync_that_is_under_way_the_rest_need_not_leave(outbox: Outbox) -> None:
    lane = outbox.lane("b", STATE, ABC)
    one = Sync("h.example", "b", 0, iter([link(n, 0) for n in range(50)]))
    lane.put_sync(one)
    assert len(post(outbox)) == 2
    outbox.cancel(one)
    assert len(outbox) == 6, "what is under way"
    outbox.check_invariants()
    lane.settle(1)
    lane.settle(2)
    assert len(outbox) == 0
    assert post(outbox) == []


def test_syncs_of_two_hosts_are_told_apart(outbox: Outbox) -> None:
    lane = outbox.lane("b", STATE, ABC)
    one, two = (Sync("h.example", "b", 0, iter([link(n, 0)])) for n in range(2))
    lane.put_sync(one)
    lane.put_sync(two)
    outbox.cancel(two)
    assert [item is one for item in lane.waiting if isinstance(item, Sync) and item.waits] == [True]
    outbox.check_invariants()


def test_a_sync_is_not_sought_among_all_others_to_be_cancelled(outbox: Outbox) -> None:
    """When a third agent joins thousands are cancelled at once: each of 50,000 took 25 ms of the loop."""
    lane, compared = outbox.lane("b", STATE, ABC), 0

    class Compared(Sync):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

    syncs = [Compared(f"h{n}.example", "b", 0, iter([link(n, 0)])) for n in range(100)]
    for sync in syncs:
        lane.put_sync(sync)
    for sync in syncs[50:]:
        outbox.cancel(sync)
    assert (len(outbox), compared) == (50, 0)
    outbox.check_invariants()


def test_what_was_cancelled_leaves_no_empty_letter(outbox: Outbox) -> None:
    lane = outbox.lane("b", STATE, ABC)
    syncs = [Sync(f"h{n}.example", "b", 0, iter([link(n, 0)])) for n in range(4)]
    for sync in syncs:
        lane.put_sync(sync)
    for cancelled in (0, 2, 3):
        outbox.cancel(syncs[cancelled])
    assert post(outbox) == [("store/b/state", 1, False)]
    assert lane.unacknowledged[1].records == [link(1, 0)]
    lane.settle(1)
    assert len(outbox) == 0
    assert post(outbox) == []
    outbox.put("b", STATE, mark(1), ABC)
    assert post(outbox) == [("store/b/state", 2, False)]


def test_everybody_gone(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(1), ABC)
    outbox.put("c", DISCOVERY, link(2), ABC)
    gone, links, _ = outbox.take_back(view())
    assert gone == {"b", "c"}
    assert links == [link(1), link(2)]
    assert outbox.lanes == {}


# -- thin outlinks


def test_thin_outlinks_are_open_again_when_they_are_taken_to_be_told_anew(outbox: Outbox) -> None:
    outbox.put("b", DISCOVERY, link(3), ABC)
    outbox.close(outbox.lane("b", DISCOVERY, ABC).empty())
    outbox.thin.append(link(3))
    assert outbox.done_may_leave(3) and not len(outbox), "acknowledged is acknowledged"
    assert outbox.take_thin() == [link(3)]
    assert not outbox.done_may_leave(3)
    assert outbox.take_thin() == []


# -- orphans


def test_an_orphan_is_open_until_its_host_is_with_its_new_keepers(outbox: Outbox) -> None:
    """The done marks of its flush wait for that."""
    outbox.put("b", STATE, link(1), ABC)
    _, _, states = outbox.take_back(view("a", "c"))
    for record in states:
        outbox.orphan(record)
    outbox.close_orphans(lambda hosts: list(hosts) == ["h.example"])
    assert outbox.orphans and not outbox.done_may_leave(1)
    outbox.close_orphans(lambda hosts: False)
    assert not outbox.orphans and outbox.done_may_leave(1)


def test_no_orphan_is_looked_at_while_all_hosts_are_to_be_gone_through() -> None:
    """A hundred thousand took a tenth of a second a tick, until all hosts were gone through."""
    outbox, asked = Outbox("store", Bounds(2, 10, 10_000, 5.0)), list[list[str]]()

    def busy(hosts: Iterable[str]) -> bool:
        asked.append(list(hosts))
        return True

    outbox.resume({}, (), [(1, f"h{number}.example") for number in range(9)])
    outbox.close_orphans(busy)
    assert len(asked) == 1
    assert len(outbox.orphans) == 9
