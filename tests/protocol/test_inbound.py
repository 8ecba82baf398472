"""The receiving end: what is merged, refused, held, answered, and what soils a copy."""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.agent.crawl.crawl import LETTER_BYTES_A_CHARACTER
from scrapy_ubi.protocol import inbound
from scrapy_ubi.protocol.host import Entry, Summary
from scrapy_ubi.protocol.inbound import MOST_ANSWER, MOST_OUTCOMES
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.transport.contract import TEXT
from tests.support.views import ordered
from tests.support.village import Village, page

OTHER_VIEW = "00000000000000ee"


def said(host: str, *discovered: Entry, done: tuple[int, ...] = (), offer: Summary | None = None) -> Delta:
    return Delta(host, discovered, done, offer)


class Inbox:
    """Agent b between a and c, and letters by hand from z, which is nobody's name in the view."""

    def __init__(self, replication: int = 1) -> None:
        self.village = Village("a", "b", "c", replication=replication)
        self.agent = self.village.agents["b"]
        self.own = ordered("b", "c", "a")
        self.kept = ordered("a", "b", "c")
        self.foreign = ordered("c", "a", "b")
        self.seq = 0

    def letter(
        self,
        kind: str,
        *deltas: Delta,
        seq: int | None = None,
        floor: int = 1,
        view: str | None = None,
        sender: str = "z",
    ) -> None:
        if seq is None:
            self.seq += 1
            seq = self.seq
        view = self.agent.view.digest if view is None else view
        self.agent.inbound.receive(Received(sender, f"{sender}/b/{kind}", kind, seq, floor, view, deltas))

    def answers(self, sender: str = "z", kind: str = STATE) -> dict[str, object] | None:
        """What is answered on that lane now; None for nothing."""
        self.agent.tick(self.village.now)
        effects = self.agent.drain(self.village.now)
        for receiver, fields in effects.letters:
            self.village.inbox[receiver].append(fields)
        text = effects.answers.get((sender, f"{sender}/b/{kind}"))
        return None if text is None else json.loads(text)

    def deliver(self) -> None:
        """The others take what b has sent, and b their answers."""
        self.village.take("a", "c")
        self.village.flush("a", "c")
        self.village.take("b")

    @property
    def under_way(self) -> dict[str, int]:
        """Receivers of state letters that are not acknowledged -> how many records."""
        return {lane.receiver: len(lane) for lane in self.agent.outbox.lanes.values() if len(lane)}


@pytest.fixture
def box() -> Inbox:
    return Inbox()


# -- discovery


def test_own_hosts_are_merged_told_on_and_held(box: Inbox) -> None:
    box.letter(DISCOVERY, said(box.own, page(box.own, 1), page(box.own, 2)))
    assert len(box.village.state("b", box.own).queued) == 2
    assert box.agent.counters.received == 2
    assert box.under_way == {"c": 2}
    assert not box.agent.inbound.idle
    assert box.answers(kind=DISCOVERY) is None
    box.deliver()
    assert box.answers(kind=DISCOVERY) == {"acked": [1]}
    assert box.agent.inbound.idle
    assert box.answers(kind=DISCOVERY) is None, "said once"


def test_foreign_hosts_are_refused_with_the_name_of_their_owner(box: Inbox) -> None:
    box.letter(DISCOVERY, said(box.foreign, page(box.foreign)), said(box.kept, page(box.kept), page(box.kept, 1)))
    assert box.village.holders(box.foreign) == set()
    assert box.village.holders(box.kept) == set(), "to keep a copy is not to own"
    assert (box.agent.counters.refused, box.agent.counters.received) == (3, 0)
    assert box.answers(kind=DISCOVERY) == {"acked": [1], "refused": {"1": {box.foreign: "c", box.kept: "a"}}}


def test_a_mixed_letter_is_refused_in_part(box: Inbox) -> None:
    box.letter(DISCOVERY, said(box.own, page(box.own)), said(box.foreign, page(box.foreign)))
    assert box.answers(kind=DISCOVERY) is None, "one answer for the whole letter"
    box.deliver()
    assert box.answers(kind=DISCOVERY) == {"acked": [1], "refused": {"1": {box.foreign: "c"}}}


def test_nobody_is_named_when_nobody_is_left(box: Inbox) -> None:
    village = Village("a")
    agent = village.agents["a"]
    agent.leave(village.now)
    agent.inbound.receive(
        Received("z", "z/a/discovery", DISCOVERY, 1, 1, OTHER_VIEW, (said("h.example", page("h.example")),))
    )
    agent.tick(village.now)
    assert json.loads(agent.drain(village.now).answers["z", "z/a/discovery"]) == {
        "acked": [1],
        "refused": {"1": {"h.example": ""}},
    }


def test_what_is_known_is_not_told_on_again(box: Inbox) -> None:
    box.letter(DISCOVERY, said(box.own, page(box.own)))
    box.answers(kind=DISCOVERY)
    box.deliver()
    box.letter(DISCOVERY, said(box.own, page(box.own)))
    assert box.under_way == {}
    assert box.answers(kind=DISCOVERY) == {"acked": [1, 2]}


def test_an_empty_letter_is_answered(box: Inbox) -> None:
    for kind in (DISCOVERY, STATE):
        box.letter(kind, seq=1)
        assert box.answers(kind=kind) == {"acked": [1]}


# -- letters that come again


@pytest.mark.parametrize("kind", [DISCOVERY, STATE])
def test_a_letter_that_comes_again_is_answered_again_and_not_merged_again(box: Inbox, kind: str) -> None:
    box.letter(kind, said(box.own, page(box.own)), seq=5)
    activity = box.agent.quiescence.activity
    box.letter(kind, said(box.own, page(box.own)), seq=5)
    assert box.agent.quiescence.activity == activity
    box.answers(kind=kind)
    box.deliver()
    box.answers(kind=kind)
    activity = box.agent.quiescence.activity
    box.letter(kind, said(box.own, page(box.own)), seq=5)
    assert box.answers(kind=kind) == {"acked": [5]}
    assert box.agent.quiescence.activity == activity


def test_letters_may_come_in_any_order(box: Inbox) -> None:
    for seq in (3, 1, 2):
        box.letter(STATE, said(box.kept, page(box.kept, seq)), seq=seq)
    assert box.answers() == {"acked": [1, 2, 3]}
    assert len(box.village.state("b", box.kept).queued) == 3


def test_what_is_below_the_floor_needs_no_answer(box: Inbox) -> None:
    for seq in (1, 2, 3):
        box.letter(STATE, said(box.kept, page(box.kept, seq)), seq=seq)
    box.letter(STATE, said(box.kept, page(box.kept, 4)), seq=4, floor=3)
    assert box.answers() == {"acked": [3, 4]}
    box.letter(STATE, said(box.kept, page(box.kept, 9)), seq=1)
    assert box.answers() is None
    assert len(box.village.state("b", box.kept).queued) == 4, "a late repeat is not even merged"


def test_lanes_do_not_mix(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)), seq=1, sender="y")
    box.letter(STATE, said(box.kept, page(box.kept, 1)), seq=1, sender="z")
    assert len(box.village.state("b", box.kept).queued) == 2
    assert box.answers("y") == {"acked": [1]}


def test_every_answer_is_said_again_when_redis_has_forgotten(box: Inbox) -> None:
    box.letter(STATE, seq=1, sender="y")
    box.letter(STATE, seq=2, sender="z")
    box.agent.tick(box.village.now)
    first = box.agent.drain(box.village.now).answers
    assert len(first) == 2
    assert box.agent.drain(box.village.now).answers == {}
    box.agent.inbound.repeat()
    assert box.agent.drain(box.village.now).answers == first


# -- state: never refused


def test_state_is_never_refused(box: Inbox) -> None:
    box.letter(STATE, said(box.foreign, page(box.foreign), done=(7,)))
    assert box.answers() == {"acked": [1]}
    state = box.village.state("b", box.foreign)
    assert set(state.queued) == {page(box.foreign).key}
    assert state.done == {7}


def test_state_waits_for_nobody(box: Inbox) -> None:
    box.letter(STATE, said(box.own, page(box.own)))
    assert box.answers() == {"acked": [1]}


def test_what_a_keeper_is_told_under_the_same_view_is_covered(box: Inbox) -> None:
    """Its sender tells every keeper itself."""
    box.letter(STATE, said(box.kept, page(box.kept)), sender="c")
    box.letter(STATE, said(box.own, page(box.own)), sender="c")
    assert not box.village.state("b", box.kept).dirty
    assert not box.village.state("b", box.own).dirty


def test_what_the_owner_tells_is_covered_whatever_its_view(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)), sender="a", view=OTHER_VIEW)
    assert not box.village.state("b", box.kept).dirty


def test_what_a_former_life_of_the_owner_told_is_brought_to_the_present_one(box: Inbox) -> None:
    village, before = box.village, box.agent.view.digest
    village.kill("a")
    village.start("a")
    village.beat("a")
    village.turn("b")
    assert box.agent.view.digest != before
    box.letter(STATE, said(box.kept, page(box.kept)), sender="a", view=before)
    assert village.state("b", box.kept).dirty
    village.settle()
    assert village.queued("a", box.kept) == {page(box.kept).key}


def test_what_another_tells_under_another_view_is_brought_to_the_keepers(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)), sender="c", view=OTHER_VIEW)
    assert box.village.state("b", box.kept).dirty
    box.village.settle()
    assert page(box.kept).key in box.village.state("a", box.kept).queued
    assert not box.village.state("b", box.kept).dirty


def test_what_one_does_not_keep_is_brought_to_its_keepers(box: Inbox) -> None:
    """A receiver that neither owns nor keeps the host stores it and offers it to them."""
    box.letter(STATE, said(box.foreign, page(box.foreign)))
    assert box.village.state("b", box.foreign).dirty
    box.village.settle()
    assert box.village.holders(box.foreign) == {"c", "a"}, "and then its copy may go"


def test_what_a_leaver_told_that_has_gone_is_brought_to_the_other_keepers(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)), sender="z")
    assert box.village.state("b", box.kept).dirty


def test_no_news_soils_nothing(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept), done=(7,)), sender="c")
    for sender, view in (("z", OTHER_VIEW), ("c", OTHER_VIEW)):
        box.letter(STATE, said(box.kept, page(box.kept), done=(7,)), sender=sender, view=view)
        assert not box.village.state("b", box.kept).dirty


def test_an_owner_passes_on_what_a_former_owner_still_brings(box: Inbox) -> None:
    box.letter(STATE, said(box.own, page(box.own), done=(7,)), sender="a")
    assert box.under_way == {"c": 2}
    assert box.village.state("b", box.own).open_work == 1, "the mark is work until it is acknowledged"
    box.village.settle()
    assert box.village.state("c", box.own).done == {7}
    assert box.village.state("b", box.own).open_work == 0


def test_an_owner_does_not_pass_it_back_to_the_sender(box: Inbox) -> None:
    box.letter(STATE, said(box.own, page(box.own), done=(7,)), sender="c")
    assert box.under_way == {}
    assert box.village.state("b", box.own).open_work == 0


def test_a_done_mark_alone_is_news(box: Inbox) -> None:
    """Brought to the keepers as what is found is, or its page would be fetched again."""
    for host in (box.kept, box.own):
        box.letter(STATE, said(host, page(host)))
    box.letter(STATE, said(box.kept, done=(page(box.kept).key,)), sender="c", view=OTHER_VIEW)
    assert box.village.state("b", box.kept).dirty
    before = box.under_way["c"]
    box.letter(STATE, said(box.own, done=(page(box.own).key,)), sender="a")
    assert box.under_way["c"] == before + 1


def test_an_owner_passes_nothing_on_before_all_have_settled(box: Inbox) -> None:
    """Until then a former owner tells every keeper itself."""
    box.agent.view_history.enter(box.agent.view, box.village.now)
    box.letter(STATE, said(box.own, page(box.own), done=(7,)), sender="a")
    assert box.under_way == {} and not box.village.state("b", box.own).dirty


def test_a_successor_passes_nothing_on(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)), sender="a")
    assert box.under_way == {}


# -- offers


def summary(*known: int, done: tuple[int, ...] = ()) -> Summary:
    def xor(keys: tuple[int, ...]) -> int:
        total = 0
        for key in keys:
            total ^= key
        return total

    return Summary(len(known), xor(known), len(done), xor(done))


def test_an_offer_is_wanted_when_it_differs(box: Inbox) -> None:
    box.letter(STATE, said(box.kept, page(box.kept)))
    have = page(box.kept).key
    box.letter(STATE, said(box.kept, offer=summary(have)))
    box.letter(STATE, said(box.kept, offer=summary(have, 8)))
    box.letter(STATE, said(box.kept, offer=summary(9)))
    box.letter(STATE, said(box.kept, offer=summary(have, done=(have,))))
    assert box.answers() == {
        "acked": [1, 2, 3, 4, 5],
        "want": {"3": [box.kept], "4": [box.kept], "5": [box.kept]},
    }


def test_an_offer_of_an_unknown_host_is_wanted_and_nothing_is_held_for_it(box: Inbox) -> None:
    box.letter(STATE, said("new.example", offer=summary(1)), said(box.foreign, offer=summary()))
    assert box.answers() == {"acked": [1], "want": {"1": ["new.example", box.foreign]}}
    assert "b" not in box.village.holders("new.example")


def test_an_offer_is_compared_after_what_came_with_it(box: Inbox) -> None:
    entry = page(box.kept)
    box.letter(STATE, said(box.kept, entry, offer=summary(entry.key)))
    assert box.answers() == {"acked": [1]}


# -- unreadable letters


def test_an_unreadable_letter_is_answered_all_the_same(box: Inbox) -> None:
    box.agent.inbound.refuse_whole("z", "z/b/discovery", 4)
    assert box.answers(kind=DISCOVERY) == {"acked": [4]}
    box.agent.inbound.refuse_whole("z", "z/b/discovery", 4)
    assert box.answers(kind=DISCOVERY) == {"acked": [4]}, "again when it comes again"


def test_an_unreadable_letter_below_the_floor_needs_no_answer(box: Inbox) -> None:
    box.letter(STATE, seq=9, floor=9)
    box.answers()
    box.agent.inbound.refuse_whole("z", "z/b/state", 4)
    assert box.answers() is None


# -- bounds


def test_outcomes_remembered_are_bounded(box: Inbox) -> None:
    """A sender keeps to a window; one that does not, or never raises its floor, gets no more answers."""
    for seq in range(1, MOST_OUTCOMES + 50):
        box.letter(STATE, seq=seq)
    box.agent.inbound.refuse_whole("z", "z/b/state", MOST_OUTCOMES + 99)
    answer = box.answers()
    assert answer is not None
    assert len(answer["acked"]) == MOST_OUTCOMES  # type: ignore[arg-type]
    box.letter(STATE, seq=5000, floor=5000)
    assert box.answers() == {"acked": [5000]}


def test_what_an_answer_has_no_room_for_is_said_when_the_letters_before_are_answered(
    monkeypatch: pytest.MonkeyPatch, box: Inbox
) -> None:
    """A wide window of small letters: a transport drops an answer that names the hosts of all of them."""
    assert 2 * MOST_ANSWER < TEXT * LETTER_BYTES_A_CHARACTER
    monkeypatch.setattr(inbound, "MOST_ANSWER", 0)
    for seq in (1, 2):
        box.letter(STATE, said(f"h{seq}.example", offer=Summary(9, 9, 9, 9)), seq=seq)
    assert box.answers() == {"acked": [1], "want": {"1": ["h1.example"]}}
    box.letter(STATE, said("h2.example", offer=Summary(9, 9, 9, 9)), seq=2, floor=2)
    assert box.answers() == {"acked": [2], "want": {"2": ["h2.example"]}}


def test_lanes_remembered_are_bounded_and_the_one_used_last_stays(monkeypatch: pytest.MonkeyPatch, box: Inbox) -> None:
    monkeypatch.setattr(inbound, "MOST_LANES_IN", 3)
    for sender in "pqr":
        box.letter(STATE, seq=1, sender=sender)
    box.letter(STATE, seq=2, sender="p")
    box.letter(STATE, seq=1, sender="s")
    assert set(box.agent.inbound.lanes) == {"r/b/state", "p/b/state", "s/b/state"}
    box.letter(STATE, said(box.kept, page(box.kept)), seq=1, sender="q")
    assert box.answers("q") == {"acked": [1]}, "a forgotten one begins anew"


def test_a_lane_forgotten_while_its_letter_is_held(monkeypatch: pytest.MonkeyPatch, box: Inbox) -> None:
    monkeypatch.setattr(inbound, "MOST_LANES_IN", 1)
    box.letter(DISCOVERY, said(box.own, page(box.own)), sender="p")
    box.letter(STATE, sender="q")
    box.answers("q")
    box.deliver()
    assert box.answers("p", DISCOVERY) is None
    assert box.agent.inbound.idle
    box.letter(DISCOVERY, said(box.own, page(box.own)), sender="p", seq=1)
    assert box.answers("p", DISCOVERY) == {"acked": [1]}, "its resend is merged again"


def test_a_letter_held_while_its_host_goes_to_another_is_refused_after_all() -> None:
    """Acknowledged, it would be in the hands of one that is nobody's owner; its sender tells the new one itself."""
    village, host = Village("a", "b", "c"), ordered("d", "b", "c", "a")
    b = village.agents["b"]
    village.agents["a"].discovery.discover(host, page(host))
    village.flush("a")
    village.take("b")
    village.flush("b")
    assert len(b.inbound.custody) == 1
    village.start("d")
    village.until(lambda: "d" in b.view.members, "a", "b", "d")
    (outcome,) = [one for lane in b.inbound.lanes.values() for one in lane.outcomes.values() if one is not None]
    assert outcome.refused == {host: "d"}
    village.settle()
    assert village.queued("d", host) == village.queued("b", host) == {page(host).key}
