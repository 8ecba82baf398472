"""Membership: being sure, the epoch, mending, other lives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_ubi.protocol.beat import FENCED, LEAVING, LEFT, LOSSY, MANY, NEW, OVER, RELIEVED, Beat
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.view import Member
from tests.protocol.members import DIGEST, FAILURE, LEASE, OTHER, beat, kill, membership
from tests.support.views import REPLICAS, incarnation

# -- views


def test_a_view_is_oneself_and_whoever_is_seen() -> None:
    group = membership()
    assert group.view().members.keys() == {"a"}
    group.read(0.0, 0.0, {"b": beat("b"), "c": beat("c", flags=LEAVING), "d": beat("d", flags=LEFT)})
    assert group.view().members == {
        "a": Member(incarnation("a"), 0, REPLICAS),
        "b": Member(incarnation("b"), 0, REPLICAS),
    }


def test_the_own_beat_is_the_latest_that_was_read() -> None:
    """A read may overtake another."""
    group = membership()
    assert group.read(0.0, 0.0, {"a": beat("a", 4, settled=DIGEST)})["a"].settled == DIGEST
    assert group.read(1.0, 1.0, {"a": beat("a", 6)})["a"].counter == 6
    assert group.read(1.0, 1.1, {"a": beat("a", 4, settled=DIGEST)})["a"].counter == 6
    assert group.read(1.2, 1.2, {"a": beat("a", 6, settled=DIGEST)})["a"].settled == DIGEST
    group.rejoin()
    own = replace(beat("a", 5), incarnation=group.incarnation)
    assert group.read(2.0, 2.0, {"a": own})["a"] == own


def test_a_leaver_is_not_in_its_own_view() -> None:
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b")})
    group.leaving = True
    assert group.view().members.keys() == {"b"}


def test_alive_are_the_seen_the_leaving_and_the_own_beat_as_it_was_read() -> None:
    group = membership()
    own, leaver = beat("a", digest=OTHER), beat("c", flags=LEAVING)
    assert group.read(0.0, 0.0, {"a": own, "b": beat("b"), "c": leaver, "d": beat("d", flags=LEFT)}) == {
        "a": own,
        "b": beat("b"),
        "c": leaver,
    }
    assert "a" not in group.read(0.1, 0.1, {"b": beat("b")}), "Redis may have lost it"
    assert group.alive("c", incarnation("c"))
    assert group.alive("a", incarnation("a"))
    assert not group.alive("a", incarnation("a", 1))
    assert not group.alive("d", incarnation("d"))


# -- sure

WAIT = LEASE + membership().config.grace


def test_sure_a_lease_and_its_grace_after_the_first_beat() -> None:
    """By then whoever lives and was forgotten has no loads under way."""
    group = membership()
    grace = group.config.grace
    group.lease.acknowledged(100.0)
    for sent in (100.0, 100.0 + LEASE, 100.0 + LEASE + grace):
        group.read(sent, sent, {})
        group.lease.acknowledged(sent)
        assert not group.sure
        assert not group.may_act(sent)
    group.read(100.1 + LEASE + grace, 100.1 + LEASE + grace, {})
    assert group.sure
    assert group.may_act(100.1 + LEASE + grace)


def test_sure_later_when_redis_has_forgotten() -> None:
    group, wait = membership(), LEASE + membership().config.grace
    group.read(0.0, 0.0, {}, "first")
    group.read(wait, wait, {}, "second")
    group.read(2 * wait, 2 * wait, {}, "second")
    assert not group.sure
    group.read(2 * wait + 0.5, 2 * wait + 0.5, {}, "second")
    assert group.sure


def test_sure_at_the_first_read_where_nothing_is_waited_for() -> None:
    group = membership()
    group.config = group.config._replace(start_wait=0.0)
    assert not group.sure
    group.read(100.0, 100.0, {})
    assert group.sure


def test_sure_at_once_where_redis_is_known_to_have_forgotten_nothing_for_that_long() -> None:
    for watched, sure in ((0.0, False), (WAIT, False), (WAIT + 0.1, True)):
        group = membership("a")
        group.read(100.0, 100.0, {}, "m", watched)
        assert group.sure is sure
    group.read(100.0 + WAIT, 100.0 + WAIT, {}, "m")
    assert group.sure


def test_sure_for_the_rest_of_the_wait_later_and_from_the_beginning_when_redis_forgets() -> None:
    group = membership("a")
    group.read(100.0, 100.0, {}, "m", WAIT - 2.0)
    group.read(101.9, 101.9, {}, "m")
    assert not group.sure
    group.read(101.95, 101.95, {}, "another", 0.5)
    group.read(102.2, 102.2, {}, "another")
    assert not group.sure
    group.read(101.45 + WAIT, 101.45 + WAIT, {}, "another")
    assert not group.sure
    group.read(101.55 + WAIT, 101.55 + WAIT, {}, "another")
    assert group.sure


def test_sure_after_the_whole_wait_only_while_agents_are_expected_that_left_with_work() -> None:
    """All were stopped together: what they did last is on their own disks (decision 0136)."""
    own, gone = beat("a", flags=LEFT + LOSSY), {"b": beat("b", flags=LEFT + LOSSY), "c": beat("c", flags=LEFT + OVER)}
    group, back = membership("a"), {"b": replace(beat("b"), incarnation=incarnation("b", 1))}
    group.read(100.0, 100.0, {"a": own, **gone}, "m", 1000.0)
    assert not group.sure and group.expected == ("b",) and group.start_wait_ends == 100.0 + WAIT
    group.read(100.0 + WAIT, 100.0 + WAIT, gone, "m")
    assert not group.sure
    group.read(100.1 + WAIT, 100.1 + WAIT, gone, "m")
    assert group.sure, "who does not come back is waited for no longer"

    group = membership("a")
    group.read(100.0, 100.0, gone, "m", 1000.0)
    group.read(101.0, 101.0, {**gone, **back}, "m")
    assert group.sure and not group.expected


@pytest.mark.parametrize(("last", "settled", "sure"), [("Lx", False, False), ("Lxh", False, True), ("Lx", True, True)])
def test_who_leaves_with_work_after_this_agent_came_is_expected_as_long_as_all_have_not_settled(
    last: str, settled: bool, sure: bool
) -> None:
    """It was there at the first read, so nobody was waited for; and it had not seen this agent when it went."""
    group = membership()
    group.read(100.0, 100.0, {"b": beat("b")}, "m", WAIT + 1)
    assert group.sure
    if settled:
        group.make_sure()
    for at in (100.5, 100.0 + WAIT):
        group.read(at, at, {"b": beat("b", 2, flags=last)}, "m", WAIT + 1)
        assert group.sure is sure
    group.read(100.1 + WAIT, 100.1 + WAIT, {"b": beat("b", 2, flags=last)}, "m", WAIT + 1)
    assert group.sure


def test_nobody_is_waited_for_twice_should_redis_forget_before_all_have_settled() -> None:
    group = membership()
    group.losses.resume(lossy=False, peers={"c": incarnation("c")}, view=DIGEST, era=2)
    for at in (100.0, 100.0 + WAIT / 2, 100.1 + WAIT):
        group.lease.acknowledged(at)
        group.read(at, at, {"b": beat("b")}, "m", WAIT + 1)
        assert group.sure is (at > 100.0 + WAIT)
    assert group.expected == ("c",)
    group.read(101.0 + WAIT, 101.0 + WAIT, {"b": beat("b", 2)}, "n")
    assert group.sure


@pytest.mark.parametrize("start_wait", [None, 0.0])
def test_who_was_in_the_last_view_that_the_disk_knows_is_expected(start_wait: float | None) -> None:
    """Also at an empty Redis, where those who start it know that nobody runs."""
    group = membership("a")
    group.config = group.config._replace(start_wait=start_wait)
    group.losses.resume(False, {name: incarnation(name) for name in "abcd"})
    left = {"b": beat("b", flags=LEFT), "c": beat("c", flags=LEFT + OVER)}
    group.read(100.0, 100.0, left, "m", 1000.0)
    assert not group.sure and group.expected == ("d",)
    group.read(101.0, 101.0, {**left, "d": replace(beat("d"), incarnation=incarnation("d", 1))}, "m")
    assert group.sure


def test_nobody_is_expected_that_has_handed_on_all() -> None:
    group = membership("a")
    group.read(100.0, 100.0, {"b": beat("b", flags=LEFT + LOSSY + RELIEVED), "c": beat("c", flags=LEFT)}, "m", 1000.0)
    assert group.sure


def test_a_read_that_was_overtaken_says_nothing_of_how_long_redis_is_known() -> None:
    group = membership("a")
    group.read(100.0, 100.0, {}, "of now", 0.0)
    group.read(99.0, 101.0, {}, "of before", 1000.0)
    assert not group.sure


def test_sure_after_the_wait_that_was_chosen() -> None:
    group = membership()
    group.config = group.config._replace(start_wait=2.0)
    for sent, sure in ((100.0, False), (102.0, False), (102.1, True)):
        group.read(sent, sent, {})
        assert group.sure is sure


def test_sure_with_one_who_has_settled() -> None:
    group = membership()
    group.read(100.0, 100.0, {"b": beat("b")})
    assert not group.sure
    group.read(100.1, 100.1, {"b": beat("b", 2, settled=DIGEST)})
    assert group.sure


def test_the_word_of_another_ends_with_its_life() -> None:
    """Its line may have been of one that was killed: who is back under that name knows no more than this agent."""
    group = membership()
    group.read(100.0, 100.0, {"b": beat("b", settled=DIGEST)})
    assert group.sure
    group.read(100.1, 100.1, {"b": beat("b", 2, digest=OTHER)})
    assert group.sure, "it has not settled in another view, and lives"
    back = replace(beat("b", settled=OTHER, flags=NEW), incarnation=incarnation("b", 1))
    group.read(100.2, 100.2, {"b": back})
    assert not group.sure
    group.read(100.3, 100.3, {"b": replace(back, counter=2, flags="")})
    assert group.sure, "it has seen all settle"


def test_sure_for_good_when_all_have_settled() -> None:
    group = membership()
    group.read(100.0, 100.0, {"b": beat("b", settled=DIGEST)})
    group.make_sure()
    group.read(100.1, 100.1, {"b": beat("b", 2, settled=DIGEST, flags=LEFT)})
    assert group.sure


@pytest.mark.parametrize(("flags", "looked"), [(NEW, True), (NEW + FENCED, False), ("", True), (FENCED, True)])
def test_of_two_who_are_not_sure_never_each_is_so_by_the_other(flags: str, looked: bool) -> None:
    """One that has seen no view complete knows who lives where it had looked first."""
    group = membership()
    group.read(100.0, 100.0, {"b": beat("b", flags=flags, settled=DIGEST)})
    assert group.sure == looked
    group.read(100.1, 100.1, {"b": beat("b", 2, flags=flags.replace(FENCED, ""), settled=DIGEST)})
    assert group.sure == looked


@pytest.mark.parametrize(
    "stranger",
    [
        {"a": beat("a", settled=DIGEST)},
        {"b": beat("b", settled=DIGEST, flags=LEFT)},
        {"b": beat("b", settled=DIGEST, dead=(incarnation("b"),))},
    ],
    ids=["oneself", "left", "dead"],
)
def test_not_sure_for_who_does_not_count(stranger: dict[str, Beat]) -> None:
    group = membership()
    group.read(100.0, 100.0, stranger)
    assert not group.sure


# -- the lease and the epoch


def test_a_gap_raises_the_epoch_once() -> None:
    group = membership()
    group.lease.acknowledged(100.0)
    assert not group.notice_gaps()
    group.lease.acknowledged(100.0 + 2 * LEASE)
    group.sure = True
    group.lease.mend(group.lease.gaps)
    assert not group.may_act(100.0 + 2 * LEASE), "not even mended, before it is noticed: the view lacks the epoch"
    assert group.notice_gaps()
    assert not group.notice_gaps()
    assert (group.epoch, group.counters.fences) == (1, 1)
    assert group.view().members["a"].epoch == 1


def test_a_gap_is_mended_when_everybody_alive_has_published_the_view() -> None:
    group = membership()
    assert not group.mend({"a": beat("a")}, DIGEST), "nothing to mend"
    group.lease.acknowledged(100.0)
    group.lease.acknowledged(200.0)
    group.notice_gaps()
    assert not group.mend({"a": beat("a"), "b": beat("b", digest=OTHER)}, DIGEST)
    assert group.lease.torn
    assert group.mend({"a": beat("a"), "b": beat("b")}, DIGEST)
    assert not group.lease.torn
    assert group.lease.holds(200.0)


def test_a_gap_is_not_mended_while_one_that_is_held_dead_beats_on() -> None:
    """It has not heard of that, maybe, and fetches what was its own."""
    group = membership()
    for sent in (100.0, 200.0):
        group.lease.acknowledged(sent)
    group.notice_gaps()
    dead = beat("c", dead=(incarnation("b"),))
    group.read(200.0, 200.0, {"c": dead, "b": beat("b", counter=7)})
    alive = {"a": beat("a"), "c": dead}
    assert not group.mend(alive, DIGEST) and group.lease.torn
    group.read(200.0 + FAILURE, 200.0 + FAILURE, {"c": dead, "b": beat("b", counter=7)})
    assert group.mend(alive, DIGEST), "no line of its for so long: it has stopped"


def test_who_is_held_dead_beats_on_when_its_own_lines_go_on() -> None:
    """Whatever the others count: the line that was known of it is no sign of life, the next one is."""
    group = membership()
    dead = (incarnation("b"),)
    group.read(1.0, 1.0, {"c": beat("c", 100), "b": beat("b", 7)})
    group.read(1.1, 1.1, {"c": beat("c", 101, dead=dead), "b": beat("b", 7)})
    assert not group.watch.restless
    group.read(1.2, 1.2, {"c": beat("c", 102, dead=dead), "b": beat("b", 8)})
    assert group.watch.restless


@pytest.mark.parametrize(
    ("digest", "settled", "flags", "brought"),
    [
        (DIGEST, DIGEST, "", True),
        (OTHER, DIGEST, "", True),
        (DIGEST, "", MANY, True),
        (OTHER, "", MANY, False),
        (DIGEST, "", "", False),
        (DIGEST, OTHER, "", False),
    ],
)
def test_who_has_brought_all_has_settled_or_says_that_many_are_pending(
    digest: str, settled: str, flags: str, brought: bool
) -> None:
    assert beat("b", digest=digest, settled=settled, flags=flags).has_brought(DIGEST) is brought


def test_a_gap_that_was_not_noticed_is_not_mended() -> None:
    """It came while the answer was on its way: nobody has seen that epoch."""
    group = membership()
    for sent in (100.0, 200.0):
        group.lease.acknowledged(sent)
    group.notice_gaps()
    group.lease.acknowledged(300.0)
    group.mend({"a": beat("a")}, DIGEST)
    assert group.lease.torn
    assert not group.lease.holds(300.0)


# -- a fence in which Redis has forgotten


def back(others: dict[str, Beat], seconds: float = 100.0) -> Membership:
    """One that was sure, and comes back so much later (s), at 200, to a Redis that has forgotten everything."""
    group = membership()
    begun = 200.0 - seconds
    group.lease.acknowledged(begun)
    group.read(begun, begun, others, "m", 1000.0)
    group.make_sure()
    group.lease.acknowledged(200.0)
    group.read(200.0, 200.0, others, "another", 1000.0)
    group.notice_gaps()
    return group


def test_who_comes_back_from_a_fence_in_which_redis_has_forgotten_is_not_sure() -> None:
    """One may have come, found nobody, and fetch: of that there is an old line, or none. So all is as at a start, at
    any Redis; neither the own line alone nor what others had said before mends the lease."""
    for start_wait in (None, 0.0):
        for others in ({}, {"b": beat("b", settled=DIGEST)}):
            group = back(others)
            group.config = group.config._replace(start_wait=start_wait)
            for sent in (200.5, 200.0 + WAIT):
                group.lease.acknowledged(sent)
                group.read(sent, sent, {}, "another", 1000.0)
                assert not group.sure and group.start_wait_ends == 200.0 + WAIT
                assert not group.mend({"a": beat("a")}, DIGEST) and not group.lease.holds(sent)
            sent = 200.1 + WAIT
            group.lease.acknowledged(sent)
            group.read(sent, sent, {}, "another")
            assert group.sure and group.mend({"a": beat("a")}, DIGEST) and group.may_act(sent)


def test_who_was_away_for_less_than_a_lease_stays_sure_though_redis_has_forgotten() -> None:
    """Nobody can have waited long enough meanwhile to be sure without it."""
    assert back({}, LEASE - 0.1).sure


def test_so_it_is_where_it_was_seen_before_a_beat_was_acknowledged_that_redis_has_forgotten() -> None:
    """After a silence the own line is looked at first. Redis has come back from an old file, with one of a former life:
    what is found there is read while the gap is not known yet."""
    group = membership()
    others = {"b": beat("b", settled=DIGEST)}
    group.lease.acknowledged(100.0)
    group.read(100.0, 100.0, others, "m", 1000.0)
    group.make_sure()
    settled = group.view().digest
    group.read(200.0, 200.0, {"a": replace(beat("a"), incarnation="0000000f"), **others}, "another")
    group.read(201.0, 201.0, {"b": beat("b", 2, settled=settled)}, "another")
    assert not group.sure, "that was said before the gap"
    group.lease.acknowledged(203.0)
    group.read(203.0, 203.0, {"b": beat("b", 3, settled=settled)}, "another")
    group.notice_gaps()
    assert not group.sure and not group.mend({"a": beat("a")}, DIGEST)
    group.read(203.5, 203.5, {"b": beat("b", 4, settled=group.view().digest)}, "another")
    assert group.sure


def test_one_that_has_not_beaten_yet_comes_back_from_no_fence() -> None:
    group = membership()
    group.read(100.0, 100.0, {}, "m")
    group.read(200.0, 200.0, {}, "another", WAIT + 0.1)
    assert group.sure


def test_what_it_has_said_itself_before_it_knew_is_of_another_view() -> None:
    """It may have seen the gap before the read, and have settled as one that is sure."""
    group = membership()
    group.lease.acknowledged(100.0)
    group.read(100.0, 100.0, {}, "m", 1000.0)
    group.make_sure()
    group.lease.acknowledged(200.0)
    group.notice_gaps()
    said = group.view().digest
    group.read(200.0, 200.0, {}, "another")
    assert not group.sure and group.view().digest != said


def test_the_wait_begins_when_it_was_read_that_redis_has_forgotten() -> None:
    """What stood there by then counts for nothing, and it may have been written after the read was sent."""
    group = back({})
    group.lease.acknowledged(205.0)
    group.read(205.0, 207.0, {"b": beat("b")}, "a third one")
    group.read(205.1 + WAIT, 205.1 + WAIT, {"b": beat("b")}, "a third one")
    assert not group.sure and not group.watch.seen
    group.read(207.1 + WAIT, 207.1 + WAIT, {"b": beat("b")}, "a third one")
    assert group.sure


@pytest.mark.parametrize(
    ("of_this_view", "flags", "counts"),
    [(True, "", True), (False, "", False), (True, NEW, False), (True, FENCED, False)],
)
def test_a_word_counts_after_such_a_fence_only_where_it_was_said_after_it(
    of_this_view: bool, flags: str, counts: bool
) -> None:
    """Who has settled in the view with the new epoch has read that. Who is fenced, or has seen no view complete, may be
    as unsure as this agent."""
    group = back({"b": beat("b", settled=DIGEST)})
    assert not group.sure
    settled = group.view().digest if of_this_view else DIGEST
    group.read(200.5, 200.5, {"b": beat("b", 2, settled=settled, flags=flags)}, "another")
    assert group.sure is counts
    group.read(201.0, 201.0, {"b": beat("b", 3, flags=LEFT)}, "another")
    assert not group.sure, "it ends with the life of who gave it"


# -- other lives


def test_one_that_is_held_dead_begins_anew() -> None:
    group = membership()
    former = group.incarnation
    assert not group.dead
    group.lease.acknowledged(100.0)
    group.lease.acknowledged(200.0)
    group.notice_gaps()
    kill(group, "a")
    assert group.dead
    group.rejoin()
    assert not group.dead
    assert group.incarnation != former
    assert (group.epoch, group.counters.rejoins) == (0, 1)
    assert not group.alive("a", former)


def test_own_former_lives_are_no_other_process() -> None:
    group = membership()
    former = beat("a", incarnation=group.incarnation)
    group.rejoin()
    assert "a" not in group.read(0.0, 0.0, {"a": former}), "but it speaks for nobody now"
    assert not group.claim.usurped


def test_another_process_under_ones_identifier_is_one_whose_next_line_follows() -> None:
    """A single line may be of a former life, from a file that Redis came back from."""
    group = membership()
    for _ in range(2):
        group.read(0.0, 0.0, {"a": replace(beat("a", incarnation="ffffffff"), counter=7)})
        assert group.claim.shadowed and not group.claim.usurped
        group.read(0.1, 0.1, {"a": beat("a", incarnation=group.incarnation)})
        assert not group.claim.shadowed and not group.claim.usurped
    group.read(0.2, 0.2, {"a": replace(beat("a", incarnation="ffffffff"), counter=8)})
    assert group.claim.shadowed and group.claim.usurped
    group.read(0.3, 0.3, {"a": beat("a", incarnation=group.incarnation)})
    assert group.claim.usurped, "for ever"


def test_single_lines_of_two_former_lives_are_no_process_that_lives() -> None:
    """Redis may come back from a file twice."""
    group = membership()
    for number, former in enumerate(("ffffffff", "eeeeeeee"), 7):
        group.read(0.0, 0.0, {"a": beat("a", number, incarnation=former)})
        assert group.claim.shadowed and not group.claim.usurped
