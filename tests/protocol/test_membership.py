"""Membership: being sure, the epoch, mending, other lives, and how many were lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from scrapy_ubi.protocol.beat import LEAVING, LEFT, LOSSY, MANY, NEW, OVER, RELIEVED, Beat, words_after
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.losses import MOST_LOSSES, GroupLoss
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.view import Member, View
from tests.support.views import REPLICAS, incarnation, view

LEASE, FAILURE = 3.0, 5.0
DIGEST, OTHER = "00000000000000ff", "00000000000000ee"


def membership(replication: int = 1) -> Membership:
    config = Config(replication=replication, replicas=REPLICAS, lease_timeout=LEASE, failure_timeout=FAILURE)
    lives = count()
    return Membership("a", config, Counters(), lambda: incarnation("a", next(lives)))


def old_hand(replication: int = 1) -> Membership:
    """One that has been in a view in which all had settled."""
    group = membership(replication)
    all_settle(group, group.view())
    return group


def all_settle(group: Membership, now: View, *eras: int) -> None:
    """Everybody has settled in that view."""
    group.entered(now)
    group.released(now, [group.base, *eras])


def beat(agent: str, counter: int = 1, **rest: object) -> Beat:
    return replace(Beat(incarnation(agent), 0, REPLICAS, DIGEST, counter=counter), **rest)  # type: ignore[arg-type]


def peers(names: str) -> dict[str, str]:
    return {name: incarnation(name) for name in names}


def kill(group: Membership, agent: str) -> None:
    """Somebody names this agent as dead."""
    group.read(1.0, 1.0, {"witness": beat("witness", dead=(incarnation(agent),))})


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
    assert not group.usurped


def test_another_process_under_ones_identifier_is_one_whose_next_line_follows() -> None:
    """A single line may be of a former life, from a file that Redis came back from."""
    group = membership()
    for _ in range(2):
        group.read(0.0, 0.0, {"a": replace(beat("a", incarnation="ffffffff"), counter=7)})
        assert group.shadowed and not group.usurped
        group.read(0.1, 0.1, {"a": beat("a", incarnation=group.incarnation)})
        assert not group.shadowed and not group.usurped
    group.read(0.2, 0.2, {"a": replace(beat("a", incarnation="ffffffff"), counter=8)})
    assert group.shadowed and group.usurped
    group.read(0.3, 0.3, {"a": beat("a", incarnation=group.incarnation)})
    assert group.usurped, "for ever"


def test_single_lines_of_two_former_lives_are_no_process_that_lives() -> None:
    """Redis may come back from a file twice."""
    group = membership()
    for number, former in enumerate(("ffffffff", "eeeeeeee"), 7):
        group.read(0.0, 0.0, {"a": beat("a", number, incarnation=former)})
        assert group.shadowed and not group.usurped


# -- how many were lost


@pytest.mark.parametrize("replication", [0, 1, 2])
def test_lossy_when_more_died_than_there_are_copies(replication: int) -> None:
    group = old_hand(replication)
    before = view("a", "b", "c", "d", "witness")
    for number, agent in enumerate("bcd", 1):
        kill(group, agent)
        group.count_lost(before)
        assert group.lossy == (number > replication)


def test_who_left_or_was_counted_before_is_no_loss() -> None:
    group = old_hand()
    before = view("a", "b", "c", "witness")
    group.read(0.0, 0.0, {"b": beat("b", flags=LEFT)})
    kill(group, "c")
    for _ in range(3):
        group.count_lost(before)
    assert not group.lossy


@pytest.mark.parametrize("replication", [0, 1, 2])
def test_a_torn_disk_counts_as_one_lost(replication: int) -> None:
    group = membership(replication)
    group.resume(False, peers("abcd"), torn=True)
    before = view("a", "b", "c", "d", "witness")
    for number, agent in enumerate("bcd", 1):
        kill(group, agent)
        group.count_lost(before)
        assert group.lossy == (number + 1 > replication)


def test_a_torn_disk_is_one_too_many_where_nobody_has_a_whole_copy() -> None:
    group = membership(2)
    group.resume(False, peers("ab"), torn=True, era=2)
    group.read(0.0, 0.0, {"b": beat("b", flags=NEW)})
    group.count_lost(view("a"))
    assert group.lossy


def test_a_torn_disk_is_no_loss_any_more_when_a_view_is_complete() -> None:
    group = membership()
    group.resume(False, peers("ab"), torn=True)
    all_settle(group, view("a", "b"))
    kill(group, "b")
    group.count_lost(view("a", "b", "witness"))
    assert not group.lossy


def test_a_complete_view_has_all_copies_again() -> None:
    group = old_hand()
    kill(group, "b")
    group.count_lost(view("a", "b", "c", "d"))
    all_settle(group, group.view())
    kill(group, "c")
    group.count_lost(view("a", "c", "d"))
    assert not group.lossy


@pytest.mark.parametrize(
    ("era", "settled", "flags", "lossy"),
    [
        (0, "", NEW, False),
        (0, DIGEST, NEW, True),
        (0, "", "", True),
        (2, "", NEW, True),
        (1, "", NEW, False),
        (2, "", "", True),
    ],
)
def test_among_newcomers_a_death_is_one_too_many_where_the_dead_was_ahead(
    era: int, settled: str, flags: str, lossy: bool
) -> None:
    """All may have settled in a view of the dead alone: nobody is left who has a whole copy of what it knew."""
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b", flags=flags, era=era, settled=settled)})
    group.read(1.0, 1.0, {"witness": beat("witness", flags=NEW, digest=OTHER, dead=(incarnation("b"),))})
    group.count_lost(view("a", "b", "witness"))
    assert group.lossy == lossy


def test_a_death_is_counted_by_those_who_were_there() -> None:
    for flags, era in (("", 0), (NEW, 2), (NEW, 3)):
        group = membership()
        group.read(0.0, 0.0, {"b": beat("b", era=2, flags=NEW)})
        group.read(1.0, 1.0, {"witness": beat("witness", flags=flags, era=era, dead=(incarnation("b"),))})
        group.count_lost(view("a", "b", "witness"))
        assert not group.lossy, "the witness knows what the dead one knew"
    group = old_hand()
    group.read(0.0, 0.0, {"b": beat("b", era=1, flags=NEW)})
    group.read(1.0, 1.0, {"witness": beat("witness", flags=NEW, dead=(incarnation("b"),))})
    group.count_lost(view("a", "b", "witness"))
    assert not group.lossy, "this one does"


def test_who_was_in_a_view_with_the_dead_knows_what_it_knew() -> None:
    group = membership()
    group.entered(view("a", "b"))
    group.read(0.0, 0.0, {"b": beat("b", flags=NEW, digest=view("a", "b").digest, settled=view("a", "b").digest)})
    group.read(1.0, 1.0, {"witness": beat("witness", flags=NEW, digest=OTHER, dead=(incarnation("b"),))})
    group.count_lost(view("a", "b", "witness"))
    assert not group.lossy


def test_who_begins_anew_has_not_lost_itself() -> None:
    group = membership(replication=0)
    before = group.view()
    kill(group, "a")
    group.rejoin()
    group.count_lost(before)
    assert not group.lossy


def test_who_is_missed_since_the_last_run_is_missed_until_a_view_is_complete() -> None:
    """After that its hosts have all copies again, and when it leaves it is a leaver like any other."""
    for back, lossy in (("ab", False), ("a", True)):
        group = membership()
        group.resume(False, peers("ab"))
        all_settle(group, view(*back))
        assert group.lossy == lossy
    group = membership()
    group.resume(False, peers("ab"))
    all_settle(group, view("a", "b"))
    all_settle(group, view("a"))
    assert not group.lossy


@pytest.mark.parametrize(("flags", "lossy"), [(LEFT + OVER, False), (LEFT, True), (LEFT + OVER + LOSSY, False)])
def test_who_has_ended_the_crawl_is_not_missed(flags: str, lossy: bool) -> None:
    """An agent comes back after the end."""
    group = membership()
    group.resume(False, peers("ab"))
    group.read(0.0, 0.0, {"b": beat("b", flags=flags)})
    all_settle(group, view("a"))
    assert (group.lossy, bool(group.missed)) == (lossy or LOSSY in flags, lossy)


@pytest.mark.parametrize("complete", [False, True])
def test_who_dies_on_its_way_out_is_lost_until_a_view_without_it_is_complete(complete: bool) -> None:
    group = old_hand()
    group.read(0.0, 0.0, {agent: beat(agent, flags=LEAVING if agent == "b" else "") for agent in "bc"})
    group.count_lost(view("a", "b", "c", "witness"))
    if complete:
        all_settle(group, view("a", "c", "witness"))
    dead = (incarnation("b"),)
    group.read(1.0, 1.0, {"witness": beat("witness", dead=dead)})
    group.count_lost_leavers()
    assert not group.lossy, "there is a copy of what it knew"
    group.read(1.1, 1.1, {"witness": beat("witness", 2, dead=(*dead, incarnation("c")))})
    group.count_lost(view("a", "c", "witness"))
    assert group.lossy == (not complete)


def test_word_of_a_loss_spreads() -> None:
    for flags in (LOSSY, LEFT + LOSSY):
        group = membership()
        group.read(0.0, 0.0, {"b": beat("b", flags=flags)})
        assert group.lossy
        group.read(0.1, 0.1, {"b": beat("b", 2)})
        assert group.lossy, "for ever"


def test_losses_that_a_redis_from_its_file_tells_of_are_of_others() -> None:
    """A line of an unknown incarnation that stands there as Redis comes back may be of a former run."""
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b"), "c": beat("c")}, "now")
    old = replace(beat("d", 7, flags=LEFT + LOSSY), incarnation=incarnation("d", 9))
    own = replace(beat("a", 7, flags=LOSSY), incarnation=incarnation("a", 9))
    group.read(1.0, 1.0, {"a": own, "b": beat("b", 2), "c": beat("c", 2), "d": old}, "of then")
    group.read(2.0, 2.0, {"a": own, "b": beat("b", 3), "c": beat("c", 3), "d": old}, "of then")
    assert not group.lossy
    group.read(3.0, 3.0, {"b": beat("b", 4, flags=LEFT + LOSSY), "c": beat("c", 4)}, "another connection")
    assert group.lossy, "whoever is known is believed"


def test_losses_that_somebody_new_tells_of_count() -> None:
    group = membership()
    group.read(0.0, 0.0, {}, "now")
    group.read(1.0, 1.0, {"d": beat("d", 7, flags=LOSSY)}, "of then")
    assert not group.lossy
    group.read(2.0, 2.0, {"d": beat("d", 8, flags=LOSSY)}, "of then")
    assert group.lossy


# -- who was lost


def hear(group: Membership, *agents: str, at: float = 0.0) -> None:
    """These beat on while the agent is there."""
    for number in (1, 2):
        group.read(at + number / 10, at + number / 10, {agent: beat(agent, number) for agent in agents})


def test_who_was_lost_together_is_recorded() -> None:
    group = old_hand()
    hear(group, "b", "c", "d")
    before = view("a", "b", "c", "d")
    for agent, losses in (("b", []), ("c", ["bc"]), ("d", ["bcd"])):
        kill(group, agent)
        group.count_lost(before)
        assert group.losses == [GroupLoss(tuple((name, incarnation(name)) for name in names), 1) for names in losses]


def test_who_was_lost_in_another_time_is_another_loss() -> None:
    group = old_hand(replication=0)
    hear(group, "b", "c")
    for agent, before in (("b", "abc"), ("c", "ac")):
        kill(group, agent)
        group.count_lost(view(*before))
        all_settle(group, group.view())
    assert [[name for name, _ in loss.members] for loss in group.losses] == [["b"], ["c"]]


def test_who_was_never_heard_was_dead_before() -> None:
    """Lines that stand in Redis from an earlier crawl: the crawl is lossy by them, and this agent has lost nobody."""
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b"), "c": beat("c")})
    for agent in "bc":
        kill(group, agent)
    group.count_lost(view("a", "b", "c"))
    assert group.lossy and not group.losses


@pytest.mark.parametrize(
    ("lines", "spare"),
    [
        ({}, 0),
        ({"b": 2}, 0),
        ({"b": 2, "c": 2}, 1),
        ({"b": 2, "c": 0}, 1),
        ({"b": 2, "c": 3}, 0),
    ],
    ids=["no words", "of one only", "both are level", "one was behind", "one went on"],
)
def test_who_is_missed_since_the_last_run_is_recorded(lines: dict[str, int], spare: int) -> None:
    """So many may stay away as there are copies, where the last words of all say that they cannot know more."""
    group = membership()
    group.resume(False, peers("abc"), view=OTHER, era=2)
    group.read(0.0, 0.0, {name: beat(name, era=era, flags=NEW) for name, era in lines.items()})
    all_settle(group, view("a"))
    assert group.missed == [GroupLoss(tuple(sorted({**peers("bc")}.items())), spare)]
    assert group.counted == ([incarnation(name) for name in lines if lines[name] < 3])
    assert not group.losses


def test_who_was_in_the_view_of_a_later_era_is_not_behind() -> None:
    """It was killed before it could see that all had settled in that view."""
    for complete, spare in ((DIGEST, 1), (OTHER, 0)):
        group = membership()
        group.resume(False, peers("ab"), views=(DIGEST,))
        group.read(0.0, 0.0, {"b": beat("b", era=2, complete=complete, flags=NEW)})
        all_settle(group, view("a"))
        assert [loss.spare for loss in group.missed] == [spare]
    for complete, lost in ((DIGEST, False), (OTHER, True)):
        group = membership()
        group.resume(False, {}, views=(DIGEST, "cc" * 8))
        here: dict[str, Any] = {"era": 2, "complete": complete, "digest": "cc" * 8}
        for number in (1, 2):
            at = number / 10
            group.read(at, at, {"b": beat("b", number, **here), "witness": beat("witness", number, flags=NEW)})
        group.read(1.0, 1.0, {"witness": beat("witness", 3, flags=NEW, dead=(incarnation("b"),))})
        group.count_lost(view("a", "b", "witness"))
        assert bool(group.losses) == lost


def test_the_last_words_of_who_is_missed_are_of_the_view_that_the_disk_knows() -> None:
    for digest, spare in ((DIGEST, 1), (OTHER, 0)):
        group = membership()
        group.resume(False, peers("ab"), view=DIGEST, era=3)
        group.read(0.0, 0.0, {"b": beat("b", era=2, settled=digest, digest=digest)})
        kill(group, "b")
        all_settle(group, view("a"))
        assert [loss.spare for loss in group.missed] == [spare]


def test_who_was_seen_dead_before_the_restart_is_missed_with_the_others() -> None:
    group = membership()
    group.resume(False, peers("ab"), view=DIGEST, era=3, lost={incarnation("d"): "d"})
    group.read(0.0, 0.0, {"b": beat("b", era=2, settled=DIGEST)})
    all_settle(group, view("a"))
    assert group.missed == [GroupLoss((("b", incarnation("b")), ("d", incarnation("d"))), 1)]


def test_deaths_are_counted_for_those_who_come_back_later() -> None:
    group = old_hand()
    hear(group, "b", "c")
    kill(group, "b")
    group.count_lost(view("a", "b", "c", "witness"))
    assert group.seen_dead == {incarnation("b"): "b"}
    all_settle(group, view("a", "c", "witness"))
    assert (group.counted, group.seen_dead, group.losses) == ([incarnation("b")], {}, [])


@pytest.mark.parametrize(
    ("flags", "counted", "lossy"),
    [(LEFT, "bc", False), (LEFT + LOSSY + RELIEVED, "bc", True), (LEFT + LOSSY, "bc", True)],
    ids=["clean", "clean, of a lossy crawl", "in a hurry"],
)
def test_who_has_left_is_counted_for_those_who_come_back_later(flags: str, counted: str, lossy: bool) -> None:
    """With all handed on or, in a hurry, as one of those who were lost."""
    group = old_hand()
    hear(group, "b", "c", "d")
    before = view("a", "b", "c", "d", "witness")
    group.read(1.0, 1.0, {"b": beat("b", 3, flags=LEAVING), "c": beat("c", 3), "d": beat("d", 3)})
    group.count_lost(before)
    group.read(1.5, 1.5, {"b": beat("b", 4, flags=flags), "c": beat("c", 4), "d": beat("d", 4)})
    kill(group, "c")
    group.count_lost(before)
    assert bool(group.losses) == (flags == LEFT + LOSSY)
    all_settle(group, view("a", "d", "witness"))
    assert set(group.counted) == {incarnation(name) for name in counted}
    assert group.lossy == lossy


def test_who_leaves_in_a_hurry_is_lost_though_its_name_is_taken_at_once() -> None:
    group = old_hand(replication=0)
    hear(group, "b")
    left = beat("b", 3, flags=LEFT + LOSSY)
    group.read(1.0, 1.0, {"b": replace(beat("b"), incarnation=incarnation("b", 7), before=words_after(left))})
    assert group.losses == [GroupLoss((("b", incarnation("b")),), 0)]


def test_last_words_that_another_has_written_over_count() -> None:
    """An empty disk has taken the name before anybody has read them, and repeats them."""
    for era, spare in ((2, 1), (3, 0)):
        group = membership()
        group.resume(False, peers("ab"), view=OTHER, era=2)
        empty = replace(beat("b", flags=NEW), incarnation=incarnation("b", 7))
        group.read(0.0, 0.0, {"b": replace(empty, before=words_after(beat("b", era=era)))})
        all_settle(group, view("a"))
        assert group.missed == [GroupLoss((("b", incarnation("b")),), spare)]


def test_a_newcomer_counts_no_deaths_for_others() -> None:
    group = membership()
    hear(group, "b", "c")
    kill(group, "b")
    group.count_lost(view("a", "b", "c", "witness"))
    all_settle(group, view("a", "c", "witness"))
    assert group.counted == []


def test_eras_grow_by_one_for_all_in_a_view() -> None:
    group = membership()
    assert (group.era, group.base) == (0, 0)
    group.entered(view("a", "b"))
    for _ in range(2):
        group.released(view("a", "b"), [group.base, 4])
        assert group.era == 5, "once a view"
        assert group.complete == view("a", "b").digest
    group.entered(view("a"))
    assert group.base == 5
    group.rejoin()
    assert (group.era, group.base) == (5, 5)


def test_of_many_losses_the_last_are_kept() -> None:
    group = membership(replication=0)
    for number in range(MOST_LOSSES + 2):
        group.resume(False, {f"b{number}": ""})
        all_settle(group, view("a"))
    assert len(group.missed) == MOST_LOSSES
    assert group.missed[-1].members == ((f"b{MOST_LOSSES + 1}", ""),)
