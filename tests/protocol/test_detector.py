"""The failure detector: who lives, by what one observer has read."""

from __future__ import annotations

from dataclasses import replace

from scrapy_ubi.protocol.beat import LEAVING, LEFT, MOST_DEAD, Beat
from scrapy_ubi.protocol.detector import DEAD_REMEMBERED, Detector
from scrapy_ubi.protocol.view import Member

INCARNATION, DIGEST = "0123abcd", "00000000000000ff"
FAILURE, LEASE = 15.0, 10.0
INTERVAL = 1.0


class Observer:
    """A watch that reads once a second, so that it is never away unless a test says so."""

    def __init__(self) -> None:
        self.watch = Detector("me", FAILURE, LEASE)
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


def test_what_the_dead_name_is_not_believed_and_what_they_named_before_is() -> None:
    """Who comes back after the others have gone on without it may have held somebody dead before, and told nobody."""
    observer = Observer()
    observer.read({"b": beat(dead=("cccccccc",)), "c": beat("cccccccc"), "d": beat("dddddddd")})
    assert observer.living == {"b", "d"}
    for counter in range(2, 20):
        observer.go_on({"b": beat(dead=("cccccccc",)), "d": beat("dddddddd", counter)}, INTERVAL)
    observer.read({"b": beat(counter=2, dead=("cccccccc", "dddddddd")), "d": beat("dddddddd", counter=20)})
    assert observer.living == {"d"}
    assert observer.watch.is_dead("cccccccc")


def test_who_begins_anew_lets_go_of_those_it_alone_holds_dead_and_who_beat_on() -> None:
    observer = Observer()
    alone, shared, silent = "aaaaaaaa", "bbbbbbbb", "cccccccc"
    observer.read({"a": beat(alone), "b": beat(shared), "c": beat(silent), "d": beat("dddddddd")})
    observer.watch.hold_dead(alone)
    observer.watch.hold_dead(shared)
    observer.watch.hold_dead(silent)
    on = {"a": beat(alone, 2), "b": beat(shared, 2), "c": beat(silent), "d": beat("dddddddd", 2, dead=(shared,))}
    observer.go_on(on, INTERVAL)
    assert observer.living == {"d"}
    observer.watch.reconsider()
    observer.go_on(on, INTERVAL)
    assert observer.living == {"a", "d"}
    assert observer.watch.dead == (silent, shared)
    assert observer.watch.restless, "for a failure timeout from the last beat of one held dead"


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


def test_who_was_leaving_and_is_replaced_has_left_unless_the_new_one_says_that_it_had_not() -> None:
    """It is back before its last line was read."""
    for flags, named, dead in ((LEAVING, (), False), (LEAVING, (INCARNATION,), True), ("", (), True)):
        observer = Observer()
        observer.read({"b": beat(flags=flags)})
        observer.go_on({"b": beat("ffffffff", dead=named)}, 3.0)
        assert observer.living == {"b"} and observer.watch.alive("b", "ffffffff")
        assert observer.watch.is_dead(INCARNATION) == dead
        assert observer.watch.dead == ((INCARNATION,) if dead else ())


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
