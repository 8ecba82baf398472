"""Beats as lines, the failure detector, views and their digests, the lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.protocol import ring as ring_module
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.protocol.view import DEAD_REMEMBERED, LEAVING, LEFT, MOST_DEAD, Beat, Lease, Member, View, Watch

INCARNATION, DIGEST = "0123abcd", "00000000000000ff"


def hexes(digits: int) -> st.SearchStrategy[str]:
    return st.integers(0, 16**digits - 1).map(lambda number: f"{number:0{digits}x}")


beats = st.builds(
    Beat,
    incarnation=hexes(8),
    epoch=st.integers(0, 10**9 - 1),
    replicas=st.integers(1, 10**6 - 1),
    digest=hexes(16),
    settled=st.just("") | hexes(16),
    flags=st.sets(st.sampled_from("lLpfxno")).map(lambda flags: "".join(sorted(flags))),
    activity=st.integers(0, 10**15 - 1),
    pending=st.lists(hexes(16), max_size=64).map(tuple),
    dead=st.lists(hexes(8), max_size=16).map(tuple),
)
counters = st.integers(0, 10**15 - 1)


# -- beats as lines


@given(beats, counters)
def test_beat_is_what_its_line_says(beat: Beat, counter: int) -> None:
    assert Beat.parse(beat.line(counter)) == replace(beat, counter=counter)


@given(beats, counters)
def test_line_of_a_beat_is_short_printable_text(beat: Beat, counter: int) -> None:
    line = beat.line(counter)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 1500
    assert line.count(" ") == 8, "nine words, so that a person can count them"


GOOD = f"{INCARNATION}.0 7 200 {DIGEST} - - 3 - -"


def test_a_line_by_hand() -> None:
    assert Beat.parse(GOOD) == Beat(INCARNATION, 0, 200, DIGEST, activity=3, counter=7)
    full = f"{INCARNATION}.2 7 200 {DIGEST} {DIGEST} lp 3 {DIGEST},{'ab' * 8} {INCARNATION}"
    assert Beat.parse(full) == Beat(
        INCARNATION, 2, 200, DIGEST, DIGEST, "lp", 3, (DIGEST, "ab" * 8), (INCARNATION,), counter=7
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "garbage",
        GOOD + " ",
        GOOD + "\n",
        " " + GOOD,
        GOOD.replace(" ", "  ", 1),
        GOOD.replace(INCARNATION, INCARNATION.upper()),
        GOOD.replace(INCARNATION, INCARNATION[1:]),
        GOOD.replace(".0", ""),
        GOOD.replace(".0", ".-1"),
        GOOD.replace(" 7 ", " 7.0 "),
        GOOD.replace(" 7 ", f" {10**15} "),
        GOOD.replace(" 7 ", " \u0667 "),  # a digit, but no ASCII one
        GOOD.replace(" 200 ", " 0 "),  # an agent without replicas has no place on the ring
        GOOD.replace(" 200 ", " 000 "),
        GOOD.replace(" 200 ", " 1000000 "),
        GOOD.replace(DIGEST, "-"),
        GOOD.replace(f"{DIGEST} - -", f"{DIGEST} - z"),
        GOOD.replace(" 3 - -", f" 3 {','.join([DIGEST] * 65)} -"),
        GOOD.replace(" 3 - -", f" 3 - {','.join([INCARNATION] * 17)}"),
        GOOD.replace(" 3 - -", f" 3 {DIGEST}, -"),
        '{"incarnation": "0123abcd"}',
    ],
)
def test_garbage_is_no_beat(line: str) -> None:
    assert Beat.parse(line) is None


@given(st.text() | st.text(alphabet="0123456789abcdefLlpx.,- \n"))
def test_any_text_is_a_beat_or_none(text: str) -> None:
    assert Beat.parse(text) is None


@given(beats, counters, st.data())
def test_a_damaged_line_is_none_or_a_beat_that_holds(beat: Beat, counter: int, data: st.DataObject) -> None:
    line = beat.line(counter)
    at = data.draw(st.integers(0, len(line) - 1))
    damaged = line[:at] + data.draw(st.sampled_from(["", "0", "-", " ", ",", "f", "é", "\u0667"])) + line[at + 1 :]
    read = Beat.parse(damaged)
    if read is not None:
        assert Beat.parse(read.line(read.counter)) == read
        View.of({"a": Member(read.incarnation, read.epoch, min(read.replicas, 9))})  # at least one replica


# -- the failure detector

FAILURE, LEASE = 15.0, 10.0
INTERVAL = 1.0


class Observer:
    """A watch that reads once a second, so that it is never away unless a test says so."""

    def __init__(self) -> None:
        self.watch = Watch("me", FAILURE, LEASE)
        self.now = 100.0
        self.memory = "first"

    def read(self, beats: dict[str, Beat], trip: float = 0.0) -> None:
        """One read, asked for now, received `trip` seconds later."""
        self.watch.read(self.now, self.now + trip, beats, self.memory)
        self.now += trip

    def go_on(self, beats: dict[str, Beat], seconds: float) -> None:
        """Read the same beats again and again, for so long."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + INTERVAL)
            self.read(beats)

    @property
    def living(self) -> set[str]:
        return set(self.watch.members())


def beat(incarnation: str = INCARNATION, counter: int = 1, **rest: object) -> Beat:
    return replace(Beat(incarnation, 0, 200, DIGEST, counter=counter), **rest)  # type: ignore[arg-type]


def test_unchanged_for_the_failure_timeout_is_dead() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE)
    assert observer.living == {"b"}
    assert observer.watch.alive("b", INCARNATION)
    assert not observer.watch.alive("b", "ffffffff"), "another incarnation does not live"
    observer.go_on({"b": beat()}, 0.5)
    assert observer.living == set()
    assert observer.watch.is_dead(INCARNATION)
    assert not observer.watch.alive("b", INCARNATION)
    assert observer.watch.dead == (INCARNATION,)


def test_who_is_held_dead_and_beats_on_is_restless_until_it_has_stopped_for_a_failure_timeout() -> None:
    """Redis may have forgotten who holds it dead: it does not know, and may be fetching."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE + INTERVAL)
    assert observer.watch.is_dead(INCARNATION) and not observer.watch.restless, "its last line lies there"
    observer.go_on({"b": beat(counter=2)}, INTERVAL)
    assert observer.watch.restless and observer.living == set()
    observer.go_on({"b": beat(counter=2)}, FAILURE - INTERVAL)
    assert observer.watch.restless
    observer.go_on({"b": beat(counter=2)}, INTERVAL)
    assert not observer.watch.restless


def test_who_is_dead_by_hearsay_is_restless_as_long_as_its_line_may_be_new() -> None:
    observer = Observer()
    gossip = {"c": beat("cccccccc", dead=(INCARNATION,))}
    observer.read({**gossip, "b": beat(counter=7)})
    assert observer.watch.restless
    observer.read({**gossip, "b": beat(counter=8, flags=LEFT)})
    observer.go_on({"c": beat("cccccccc", counter=2), "b": beat(counter=8, flags=LEFT)}, FAILURE)
    assert not observer.watch.restless, "who has left fetches nothing"


def test_whoever_is_held_dead_and_beats_on_is_named_again() -> None:
    """More than a beat can name may have died since it was."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE + INTERVAL)
    names = tuple(f"{number:08x}" for number in range(MOST_DEAD))
    observer.read({"b": beat(), "c": beat("cccccccc", dead=names)})
    assert observer.watch.dead == names
    observer.go_on({"b": beat(counter=2)}, INTERVAL)
    assert observer.watch.dead == (*names[1:], INCARNATION)
    observer.go_on({"b": beat(counter=3)}, INTERVAL)
    assert observer.watch.dead == (*names[1:], INCARNATION), "once"
    observer.read({"b": beat(counter=3), "c": beat("cccccccc", counter=2, dead=names)})
    assert observer.watch.dead == (*names[1:], INCARNATION), "what was named by others before says nothing new"


def test_whoever_beats_lives() -> None:
    observer = Observer()
    for counter in range(50):
        observer.read({"b": beat(counter=counter)})
        observer.now += INTERVAL
    assert observer.living == {"b"}


def test_ages_start_anew_when_redis_has_forgotten() -> None:
    """A beat may have been written, and forgotten before anybody read it: its writer may still fetch."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({}, FAILURE - 1)
    observer.memory = "second"
    observer.go_on({}, FAILURE + INTERVAL)
    assert observer.living == {"b"}
    observer.go_on({}, 0.5)
    assert observer.living == set()


def test_lines_of_long_ago_that_redis_comes_back_with_are_nobodys_death() -> None:
    """It was restored from its file, maybe, with the beats of former lives of those who are here."""
    observer = Observer()
    observer.read({"b": beat(counter=7)})
    observer.memory = "of long ago"
    old = {"b": beat("0000000b", counter=3), "c": beat("0000000c", counter=3)}
    observer.go_on(old, 2 * INTERVAL)
    assert observer.living == {"b"}
    assert observer.watch.alive("b", INCARNATION)
    observer.go_on({**old, "b": beat(counter=9)}, FAILURE + INTERVAL)
    assert observer.watch.dead == ()
    observer.read({"b": beat("0000000b", counter=4), "c": beat("0000000c", counter=4)})
    assert observer.living == {"b", "c"}, "it goes on: it is there"
    assert observer.watch.alive("b", "0000000b")
    assert observer.watch.dead == (INCARNATION,)


def test_age_is_measured_to_the_sending_of_the_read() -> None:
    """A slow answer counts for the observed: what it says may have been true for long when it arrives."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE - 1)
    observer.read({"b": beat()}, trip=5.0)
    assert observer.living == {"b"}


def test_age_is_measured_from_the_receipt_of_the_change() -> None:
    observer = Observer()
    observer.read({"b": beat()}, trip=5.0)
    observer.go_on({"b": beat()}, FAILURE)
    assert observer.living == {"b"}
    observer.go_on({"b": beat()}, 0.5)
    assert observer.living == set()


def test_clocks_need_not_agree() -> None:
    """What counts is when the observer saw a change, not by how much."""
    observer = Observer()
    for counter in (1, 2, 900, 901, 10**9, 10**12):
        observer.read({"b": beat(counter=counter)})
        observer.go_on({"b": beat(counter=counter)}, FAILURE - 1)
        assert observer.living == {"b"}


def test_a_line_that_comes_late_says_nothing() -> None:
    """A read has overtaken another: what the other shows has been otherwise since."""
    observer = Observer()
    observer.read({"b": beat(counter=7, flags=LEAVING)})
    observer.read({"b": beat(counter=5)})
    assert observer.watch.seen["b"].beat.counter == 7 and not observer.watch.members()
    observer.go_on({"b": beat(counter=6)}, FAILURE + 1)
    assert observer.living == set(), "and it is no sign of life"


def test_who_has_left_does_not_come_back_with_a_line_that_comes_late() -> None:
    observer = Observer()
    observer.read({"b": beat(counter=7)})
    observer.read({"b": beat(counter=0, flags=LEFT)})
    assert observer.living == set(), "whatever the number of its last beat"
    observer.read({"b": beat(counter=7)})
    assert observer.living == set() and not observer.watch.dead
    for number in range(DEAD_REMEMBERED):
        observer.read({"b": beat(f"{number:08x}", flags=LEFT)})
    observer.read({"b": beat(counter=7)})
    assert observer.living == {"b"}, "as many are remembered"


def test_the_dead_stay_dead() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE + 1)
    observer.read({"b": beat(counter=2)})
    assert observer.living == set()
    observer.read({"b": beat("ffffffff", counter=3)})
    assert observer.living == {"b"}, "as another incarnation it is a newcomer"
    observer.read({"b": beat(counter=4)})
    assert observer.watch.alive("b", "ffffffff"), "an old line that came late says nothing of a newer incarnation"
    observer.read({"b": beat("eeeeeeee", counter=5)})
    assert not observer.watch.alive("b", "ffffffff"), "one identifier, one agent"


def test_death_is_contagious() -> None:
    observer = Observer()
    observer.read({"b": beat(), "c": beat("cccccccc")})
    observer.read({"b": beat(counter=2), "c": beat("cccccccc", counter=2, dead=(INCARNATION,))})
    assert observer.living == {"c"}
    assert observer.watch.is_dead(INCARNATION)
    observer.read({"b": beat(counter=3), "c": beat("cccccccc", counter=3)})
    assert observer.living == {"c"}, "also when nobody names it any more"


def test_contagion_does_not_hang_on_the_order_of_beats_in_a_read() -> None:
    for names in (("b", "c"), ("c", "b")):
        observer = Observer()
        read = {"b": beat(), "c": beat("cccccccc", dead=(INCARNATION,))}
        observer.read({name: read[name] for name in names})
        assert observer.living == {"c"}


def test_own_death_is_heard_of() -> None:
    observer = Observer()
    observer.read({"me": beat("eeeeeeee"), "c": beat("cccccccc", dead=("eeeeeeee",))})
    assert observer.watch.is_dead("eeeeeeee")
    assert observer.living == {"c"}


def test_the_dead_may_name_the_dead() -> None:
    """Who wrote it saw no beat for the failure timeout, whatever became of the writer since."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({"b": beat()}, FAILURE + 1)
    observer.read({"b": beat(counter=2, dead=("dddddddd",)), "d": beat("dddddddd")})
    assert observer.living == set()


def test_own_pause_starts_all_ages_anew() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.now += 1000.0
    observer.read({"b": beat()})
    assert observer.living == {"b"}, "suspect nobody on old news"
    observer.go_on({"b": beat()}, FAILURE)
    assert observer.living == {"b"}
    observer.go_on({"b": beat()}, 0.5)
    assert observer.living == set()


def test_a_pause_up_to_the_lease_is_no_pause() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    for _ in range(2):
        observer.now += LEASE
        observer.read({"b": beat()})
    assert observer.living == set()


def test_a_pause_is_measured_from_the_last_answer() -> None:
    """A read that took long was no absence: the observer knew at its end what was true at some moment of it."""
    observer = Observer()
    observer.read({"b": beat()})
    observer.now += LEASE - 1
    observer.read({"b": beat()}, trip=3.0)
    observer.now += LEASE - 1
    observer.read({"b": beat()})
    assert observer.living == set()


def test_absent_is_aged_like_unchanged() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({}, FAILURE)
    assert observer.living == {"b"}, "Redis may have lost it"
    observer.go_on({}, 0.5)
    assert observer.living == set()
    assert observer.watch.is_dead(INCARNATION)


def test_one_that_was_absent_for_a_while_lives_on() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.go_on({}, FAILURE - 1)
    observer.read({"b": beat(counter=2)})
    observer.go_on({"b": beat(counter=2)}, FAILURE - 1)
    assert observer.living == {"b"}


def test_left_is_gone_at_once_but_not_dead() -> None:
    observer = Observer()
    observer.read({"b": beat()})
    observer.read({"b": beat(counter=2, flags=LEFT)})
    assert observer.living == set()
    assert not observer.watch.alive("b", INCARNATION)
    assert not observer.watch.is_dead(INCARNATION)
    observer.go_on({"b": beat(counter=2, flags=LEFT)}, 2 * FAILURE)
    assert not observer.watch.is_dead(INCARNATION), "what it has left behind is no corpse"
    observer.read({"b": beat("ffffffff", counter=1)})
    assert observer.living == {"b"}


def test_leaving_is_no_member_but_alive() -> None:
    observer = Observer()
    observer.read({"b": beat(), "c": beat("cccccccc")})
    observer.read({"b": beat(counter=2, flags=LEAVING), "c": beat("cccccccc", 2)})
    assert observer.living == {"c"}
    assert observer.watch.alive("b", INCARNATION)
    observer.go_on({"b": beat(counter=2, flags=LEAVING)}, FAILURE + 1)
    assert not observer.watch.alive("b", INCARNATION), "and dies like any other"


def test_observer_does_not_watch_itself() -> None:
    observer = Observer()
    observer.go_on({"me": beat()}, 2 * FAILURE)
    assert observer.living == set()
    assert not observer.watch.is_dead(INCARNATION)


def test_members_are_as_their_beats_say() -> None:
    observer = Observer()
    observer.read({"b": beat(epoch=3, replicas=17)})
    assert observer.watch.members() == {"b": Member(INCARNATION, 3, 17)}
    observer.read({"b": beat(epoch=4, replicas=17, counter=2)})
    assert observer.watch.members() == {"b": Member(INCARNATION, 4, 17)}


def test_a_beat_names_the_last_deaths_and_a_watch_remembers_more() -> None:
    observer = Observer()
    names = [f"{number:08x}" for number in range(DEAD_REMEMBERED + 10)]
    for at in range(0, len(names), 16):
        observer.read({"c": beat("cccccccc", counter=at, dead=tuple(names[at : at + 16]))})
    assert observer.watch.dead == tuple(names[-MOST_DEAD:])
    assert not observer.watch.is_dead(names[0]), "bounded"
    assert all(observer.watch.is_dead(name) for name in names[-DEAD_REMEMBERED:])
    assert Beat.parse(replace(beat(), dead=observer.watch.dead).line(1)) is not None


# -- views

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


# -- the lease


def test_lease_tells_whether_a_beat_sent_later_was_acknowledged() -> None:
    lease = Lease(LEASE)
    assert not lease.heard_since(99.0), "nobody was told of this agent yet"
    lease.acknowledged(100.0)
    assert lease.heard_since(99.0) and not lease.heard_since(100.0)


def test_lease_holds_for_its_time_from_the_sending_of_the_beat() -> None:
    lease = Lease(LEASE)
    assert not lease.holds(100.0), "nobody was told of this agent yet"
    lease.acknowledged(100.0)
    assert lease.holds(100.0)
    assert lease.holds(100.0 + LEASE - 0.001)
    assert not lease.holds(100.0 + LEASE)
    assert not lease.torn


def test_loads_under_way_outlast_the_lease_by_its_grace() -> None:
    lease = Lease(LEASE, grace=0.5)
    assert lease.lost(100.0)
    lease.acknowledged(100.0)
    assert not lease.lost(100.0 + LEASE) and not lease.holds(100.0 + LEASE)
    assert lease.lost(100.5 + LEASE)
    lease.acknowledged(100.4 + LEASE)
    assert (lease.gaps, lease.losses) == (1, 0)
    lease.acknowledged(101.0 + 2 * LEASE)
    assert (lease.gaps, lease.losses) == (2, 1)


def test_a_beat_in_time_prolongs_the_lease() -> None:
    lease = Lease(LEASE)
    for number in range(5):
        lease.acknowledged(100.0 + number * LEASE)
        assert lease.holds(100.0 + number * LEASE + 1)
    assert not lease.torn
    assert lease.gaps == 0


def test_a_gap_outlasts_the_next_beat_until_it_is_mended() -> None:
    lease = Lease(LEASE)
    lease.acknowledged(100.0)
    lease.acknowledged(100.5 + LEASE)
    assert lease.torn
    assert not lease.holds(101.0 + LEASE)
    lease.acknowledged(101.5 + LEASE)
    assert not lease.holds(101.5 + LEASE)
    lease.mend(lease.gaps)
    assert not lease.torn
    assert lease.holds(101.6 + LEASE)
    assert not lease.holds(101.5 + 2 * LEASE), "mending does not prolong it"


def test_mending_one_gap_does_not_mend_the_next() -> None:
    lease = Lease(LEASE)
    for sent in (100.0, 200.0, 300.0):
        lease.acknowledged(sent)
    assert lease.gaps == 2
    lease.mend(1)
    assert lease.torn
    assert not lease.holds(300.0)
    lease.mend(2)
    assert lease.holds(300.0)
