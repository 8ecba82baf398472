"""Custody: a discovery letter is acknowledged when the owner's successors have what it brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from scrapy_ubi.protocol import custody
from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.custody import Custody, Held
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import STATE, Bounds, LaneIn
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.view import View
from tests.support.views import ordered, view

LANE = "store/a/discovery"


class Owner:
    """Agent a, which holds letters from z; keepers are owner and one successor in its view."""

    def __init__(self, *agents: str) -> None:
        self.box = LaneIn("z")
        self.lanes = {LANE: self.box}
        self.custody = Custody("a", self.lanes)
        self.outbox = Outbox("store", Bounds(8, 500, 10_000, 5.0))
        self.flush = 1
        self.view_no = 0
        self.busy: set[str] = set()
        self.on_asked: Callable[[str], object] = lambda host: None
        self.enter(*agents)

    def enter(self, *agents: str) -> None:
        self.view: View = view(*agents)
        self.view_no += 1

    def keepers(self, host: str) -> tuple[str, ...]:
        self.on_asked(host)
        return self.view.ring.order(host, 2)

    def tell(self, successor: str, host: str) -> None:
        entry = Entry(self.flush, f"http://{host}/", 0)
        self.outbox.put(successor, STATE, Record(host, self.flush, entry=entry), self.view)

    def told(self, successor: str) -> None:
        """The successor acknowledges what it was sent."""
        lane = self.outbox.lanes[successor, STATE]
        lane.post(0.0, self.view.digest, self.outbox.bounds)
        for seq in list(lane.unacknowledged):
            lane.settle(seq)

    def hold(self, *hosts: str, seq: int = 1, refused: dict[str, str] | None = None) -> None:
        self.box.outcomes[seq] = None
        need = {successor: self.flush for host in hosts for successor in self.keepers(host)[1:]}
        self.custody.hold(Held(LANE, seq, list(hosts), refused or {}, need, self.view_no))

    def release(self) -> set[str]:
        def busy(hosts: Iterable[str]) -> bool:
            return any(host in self.busy for host in hosts)

        return set(self.custody.release(self.outbox, self.keepers, busy, self.flush, self.view_no))


def test_alone_there_is_nobody_to_wait_for() -> None:
    owner = Owner("a")
    owner.hold("h.example")
    assert len(owner.custody) == 1
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({}, ())}
    assert len(owner.custody) == 0
    assert owner.release() == set()


def test_waits_until_the_successor_has_acknowledged() -> None:
    owner, host = Owner("a", "b"), ordered("a", "b")
    owner.tell("b", host)
    owner.hold(host)
    assert owner.release() == set()
    assert owner.box.outcomes == {1: None}
    owner.told("b")
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({}, ())}


def test_waits_for_all_successors_of_all_hosts() -> None:
    owner = Owner("a", "b", "c")
    hosts = ordered("a", "b", "c"), ordered("a", "c", "b")
    for successor, host in zip("bc", hosts, strict=True):
        owner.tell(successor, host)
    owner.hold(*hosts)
    owner.told("c")
    assert owner.release() == set()
    owner.told("b")
    assert owner.release() == {LANE}


def test_does_not_wait_for_what_is_told_later() -> None:
    """Else a busy owner would never acknowledge anything."""
    owner, host = Owner("a", "b"), ordered("a", "b")
    owner.tell("b", host)
    owner.hold(host)
    lane = owner.outbox.lanes["b", STATE]
    (letter,) = lane.post(0.0, owner.view.digest, owner.outbox.bounds)
    owner.flush += 1
    owner.tell("b", host)
    lane.settle(letter.seq)
    assert owner.release() == {LANE}


def test_waits_for_what_was_told_before_in_the_same_flush_or_an_earlier_one() -> None:
    """Nothing in the letter was news, but the successor may not have it yet."""
    owner, host = Owner("a", "b"), ordered("a", "b")
    owner.tell("b", host)
    owner.flush += 1
    owner.hold(host)
    assert owner.release() == set()
    owner.told("b")
    assert owner.release() == {LANE}


def test_letters_are_released_each_by_itself() -> None:
    owner = Owner("a", "b", "c")
    hosts = ordered("a", "b", "c"), ordered("a", "c", "b")
    for seq, (successor, host) in enumerate(zip("bc", hosts, strict=True), 1):
        owner.tell(successor, host)
        owner.hold(host, seq=seq)
    owner.told("c")
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: None, 2: Outcome({}, ())}


def test_refusals_are_kept_for_the_answer() -> None:
    owner, host = Owner("a", "b"), ordered("a", "b")
    owner.tell("b", host)
    owner.hold(host, refused={"other.example": "b"})
    owner.told("b")
    owner.release()
    assert owner.box.outcomes == {1: Outcome({"other.example": "b"}, ())}


# -- a change of view: judged anew


def test_who_is_refused_waits_for_nobody_here_any_more() -> None:
    """Neither for the successors that the host has now, nor until it is brought to them: that is its owner's matter."""
    owner, host = Owner("a", "b"), ordered("c", "b", "a")
    owner.tell("b", host)
    owner.hold(host)
    owner.busy.add(host)
    owner.enter("a", "b", "c")
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({host: "c"}, ())}


def test_refused_after_all_when_the_host_has_gone_to_another() -> None:
    owner, host = Owner("a", "b"), ordered("c", "a", "b")
    kept = ordered("a", "b", "c")
    owner.tell("b", host)
    owner.hold(host, kept)
    owner.enter("a", "b", "c")
    assert owner.release() == set(), "b still has to have the other"
    owner.told("b")
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({host: "c"}, ())}


def test_a_letter_of_lost_hosts_only_is_answered_at_once() -> None:
    owner, host = Owner("a", "b"), ordered("c", "a", "b")
    owner.tell("b", host)
    owner.hold(host)
    owner.enter("a", "b", "c")
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({host: "c"}, ())}


def test_waits_for_the_successors_of_the_new_view() -> None:
    owner, host = Owner("a", "b", "c"), ordered("a", "b", "c")
    owner.tell("b", host)
    owner.hold(host)
    owner.enter("a", "c")
    owner.outbox.take_back(owner.view)
    owner.tell("c", host)
    assert owner.release() == set()
    owner.told("c")
    assert owner.release() == {LANE}


def test_waits_while_a_host_is_brought_to_its_keepers() -> None:
    owner, host = Owner("a", "b", "c"), ordered("a", "b", "c")
    owner.hold(host)
    owner.enter("a", "c")
    owner.busy = {host}
    assert owner.release() == set()
    owner.busy = {"other.example"}
    assert owner.release() == {LANE}


def test_out_of_every_view_all_is_refused_without_a_name() -> None:
    """The last one leaves: nobody owns anything."""
    owner, host = Owner("a", "b"), ordered("a", "b")
    owner.hold(host)
    owner.enter()
    assert owner.release() == {LANE}
    assert owner.box.outcomes == {1: Outcome({host: ""}, ())}


def test_letters_are_judged_anew_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds of thousands of hosts in them a change of view would hold the agent up for seconds."""
    monkeypatch.setattr(custody, "JUDGED", 4, raising=False)
    owner, hosts = Owner("a", "b"), [ordered("a", "b", nth=number) for number in range(9)]
    for seq in range(3):
        owner.hold(*hosts[3 * seq : 3 * seq + 3], seq=seq + 1)
    owner.enter("a")
    asked: list[str] = []
    owner.on_asked = asked.append
    assert owner.release() == {LANE}
    assert asked == hosts[:6]
    assert owner.box.outcomes == {1: Outcome({}, ()), 2: Outcome({}, ()), 3: None}
    assert owner.release() == {LANE}
    assert asked == hosts
    assert owner.box.outcomes[3] == Outcome({}, ())


# -- what is not asked any more


def test_a_number_below_the_floor_needs_no_answer() -> None:
    owner = Owner("a")
    owner.hold("h.example", seq=4)
    owner.box.raise_floor(5)
    assert owner.release() == set()
    assert owner.box.outcomes == {}
    assert len(owner.custody) == 0


def test_a_forgotten_lane_needs_no_answer() -> None:
    owner = Owner("a")
    owner.hold("h.example")
    owner.lanes.clear()
    assert owner.release() == set()
    assert len(owner.custody) == 0
