"""Losses: how many were lost, who, and who counts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.protocol.beat import (
    BLANK,
    FENCED,
    LEAVING,
    LEFT,
    LOSSY,
    MOST_CARRIED,
    MOST_DEAD,
    NEW,
    OVER,
    PASSIVE,
    RELIEVED,
    Beat,
    words_after,
)
from scrapy_ubi.protocol.loss_counter import BEGUN
from scrapy_ubi.protocol.losses import MOST_LOSSES, GroupLoss, LossBook, missing
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.view import Member, View
from tests.protocol.members import DIGEST, OTHER, all_settle, beat, kill, membership, old_hand, peers
from tests.support.views import REPLICAS, incarnation, view

LATER = "cc" * 8

# -- how many were lost


@pytest.mark.parametrize("replication", [0, 1, 2])
def test_lossy_when_more_died_than_there_are_copies(replication: int) -> None:
    group = old_hand(replication)
    before = view("a", "b", "c", "d", "witness")
    for number, agent in enumerate("bcd", 1):
        kill(group, agent)
        group.losses.view_ended(before)
        assert group.losses.lossy == (number > replication)


def test_who_left_or_was_counted_before_is_no_loss() -> None:
    group = old_hand()
    before = view("a", "b", "c", "witness")
    group.read(0.0, 0.0, {"b": beat("b", flags=LEFT)})
    kill(group, "c")
    for _ in range(3):
        group.losses.view_ended(before)
    assert not group.losses.lossy


@pytest.mark.parametrize("replication", [0, 1, 2])
def test_a_torn_disk_counts_as_one_lost(replication: int) -> None:
    group = membership(replication)
    group.losses.resume(False, peers("abcd"), torn=True)
    before = view("a", "b", "c", "d", "witness")
    for number, agent in enumerate("bcd", 1):
        kill(group, agent)
        group.losses.view_ended(before)
        assert group.losses.lossy == (number + 1 > replication)


def test_a_torn_disk_is_one_too_many_where_nobody_has_a_whole_copy() -> None:
    group = membership(2)
    group.losses.resume(False, peers("ab"), torn=True, era=2)
    group.read(0.0, 0.0, {"b": beat("b", flags=NEW)})
    group.losses.view_ended(view("a"))
    assert group.losses.lossy


def test_a_torn_disk_is_no_loss_any_more_when_a_view_is_complete() -> None:
    group = membership()
    group.losses.resume(False, peers("ab"), torn=True)
    all_settle(group, view("a", "b"))
    kill(group, "b")
    group.losses.view_ended(view("a", "b", "witness"))
    assert not group.losses.lossy


def test_a_complete_view_has_all_copies_again() -> None:
    group = old_hand()
    kill(group, "b")
    group.losses.view_ended(view("a", "b", "c", "d"))
    all_settle(group, group.view())
    kill(group, "c")
    group.losses.view_ended(view("a", "c", "d"))
    assert not group.losses.lossy


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
    group.losses.view_ended(view("a", "b", "witness"))
    assert group.losses.lossy == lossy


def test_a_death_is_counted_by_those_who_were_there() -> None:
    for flags, era in (("", 0), (NEW, 2), (NEW, 3)):
        group = membership()
        group.read(0.0, 0.0, {"b": beat("b", era=2, flags=NEW)})
        group.read(1.0, 1.0, {"witness": beat("witness", flags=flags, era=era, dead=(incarnation("b"),))})
        group.losses.view_ended(view("a", "b", "witness"))
        assert not group.losses.lossy, "the witness knows what the dead one knew"
    group = old_hand()
    group.read(0.0, 0.0, {"b": beat("b", era=1, flags=NEW)})
    group.read(1.0, 1.0, {"witness": beat("witness", flags=NEW, dead=(incarnation("b"),))})
    group.losses.view_ended(view("a", "b", "witness"))
    assert not group.losses.lossy, "this one does"


def test_who_was_in_a_view_with_the_dead_knows_what_it_knew() -> None:
    group = membership()
    group.losses.entered(view("a", "b"))
    group.read(0.0, 0.0, {"b": beat("b", flags=NEW, digest=view("a", "b").digest, settled=view("a", "b").digest)})
    group.read(1.0, 1.0, {"witness": beat("witness", flags=NEW, digest=OTHER, dead=(incarnation("b"),))})
    group.losses.view_ended(view("a", "b", "witness"))
    assert not group.losses.lossy


def test_who_begins_anew_has_not_lost_itself() -> None:
    group = membership(replication=0)
    before = group.view()
    kill(group, "a")
    group.rejoin()
    group.losses.view_ended(before)
    assert not group.losses.lossy


def test_who_is_missed_since_the_last_run_is_missed_until_a_view_is_complete() -> None:
    """After that its hosts have all copies again, and when it leaves it is a leaver like any other."""
    for back, lossy in (("ab", False), ("a", True)):
        group = membership()
        group.losses.resume(False, peers("ab"))
        all_settle(group, view(*back))
        assert group.losses.lossy == lossy
    group = membership()
    group.losses.resume(False, peers("ab"))
    all_settle(group, view("a", "b"))
    all_settle(group, view("a"))
    assert not group.losses.lossy


@pytest.mark.parametrize(("flags", "lossy"), [(LEFT + OVER, False), (LEFT, True), (LEFT + OVER + LOSSY, False)])
def test_who_has_ended_the_crawl_is_not_missed(flags: str, lossy: bool) -> None:
    """An agent comes back after the end."""
    group = membership()
    group.losses.resume(False, peers("ab"))
    group.read(0.0, 0.0, {"b": beat("b", flags=flags)})
    all_settle(group, view("a"))
    assert (group.losses.lossy, bool(group.losses.book.missed)) == (lossy or LOSSY in flags, lossy)


@pytest.mark.parametrize("complete", [False, True])
def test_who_dies_on_its_way_out_is_lost_until_a_view_without_it_is_complete(complete: bool) -> None:
    group = old_hand()
    group.read(0.0, 0.0, {agent: beat(agent, flags=LEAVING if agent == "b" else "") for agent in "bc"})
    group.losses.view_ended(view("a", "b", "c", "witness"))
    if complete:
        all_settle(group, view("a", "c", "witness"))
    dead = (incarnation("b"),)
    group.read(1.0, 1.0, {"witness": beat("witness", dead=dead)})
    group.losses.count_leavers()
    assert not group.losses.lossy, "there is a copy of what it knew"
    group.read(1.1, 1.1, {"witness": beat("witness", 2, dead=(*dead, incarnation("c")))})
    group.losses.view_ended(view("a", "c", "witness"))
    assert group.losses.lossy == (not complete)


def test_word_of_a_loss_spreads() -> None:
    for flags in (LOSSY, LEFT + LOSSY):
        group = membership()
        group.read(0.0, 0.0, {"b": beat("b", flags=flags)})
        assert group.losses.lossy
        group.read(0.1, 0.1, {"b": beat("b", 2)})
        assert group.losses.lossy, "for ever"


def test_losses_that_a_redis_from_its_file_tells_of_are_of_others() -> None:
    """A line of an unknown incarnation that stands there as Redis comes back may be of a former run."""
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b"), "c": beat("c")}, "now")
    old = replace(beat("d", 7, flags=LEFT + LOSSY), incarnation=incarnation("d", 9))
    own = replace(beat("a", 7, flags=LOSSY), incarnation=incarnation("a", 9))
    group.read(1.0, 1.0, {"a": own, "b": beat("b", 2), "c": beat("c", 2), "d": old}, "of then")
    group.read(2.0, 2.0, {"a": own, "b": beat("b", 3), "c": beat("c", 3), "d": old}, "of then")
    assert not group.losses.lossy
    group.read(3.0, 3.0, {"b": beat("b", 4, flags=LEFT + LOSSY), "c": beat("c", 4)}, "another connection")
    assert group.losses.lossy, "whoever is known is believed"


def test_losses_that_somebody_new_tells_of_count() -> None:
    group = membership()
    group.read(0.0, 0.0, {}, "now")
    group.read(1.0, 1.0, {"d": beat("d", 7, flags=LOSSY)}, "of then")
    assert not group.losses.lossy
    group.read(2.0, 2.0, {"d": beat("d", 8, flags=LOSSY)}, "of then")
    assert group.losses.lossy


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
        group.losses.view_ended(before)
        assert group.losses.book.losses == [
            GroupLoss(tuple((name, incarnation(name)) for name in names), 1) for names in losses
        ]


def test_who_was_lost_in_another_time_is_another_loss() -> None:
    group = old_hand(replication=0)
    hear(group, "b", "c")
    for agent, before in (("b", "abc"), ("c", "ac")):
        kill(group, agent)
        group.losses.view_ended(view(*before))
        all_settle(group, group.view())
    assert [[name for name, _ in loss.members] for loss in group.losses.book.losses] == [["b"], ["c"]]


def test_who_was_never_heard_was_dead_before() -> None:
    """Lines that stand in Redis from an earlier crawl: the crawl is lossy by them, and this agent has lost nobody."""
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b"), "c": beat("c")})
    for agent in "bc":
        kill(group, agent)
    group.losses.view_ended(view("a", "b", "c"))
    assert group.losses.lossy and not group.losses.book.losses


# -- who was dead before anybody came, and who left alone


@pytest.mark.parametrize(
    ("lines", "missed"),
    [
        ({"b": beat("b", era=2)}, [GroupLoss((("b", incarnation("b")),), 0)]),
        ({"b": beat("b", era=2, flags=LEFT + LOSSY)}, [GroupLoss((("b", incarnation("b")),), 0)]),
        ({"b": beat("b", era=2, flags=LEFT + RELIEVED)}, []),
        ({"b": beat("b", era=2, flags=OVER + LOSSY)}, []),
        ({"b": beat("b", flags=NEW)}, []),
        ({"b": beat("b", flags=LEFT + LOSSY + NEW)}, []),
        (
            {"b": beat("b", era=3, members=(incarnation("b"), incarnation("c"))), "c": beat("c", era=2)},
            [GroupLoss((("b", incarnation("b")), ("c", incarnation("c"))), 1)],
        ),
        ({"b": beat("b", era=3), "c": beat("c", era=2)}, [GroupLoss((("b", incarnation("b")),), 0)]),
    ],
    ids=["dead", "left with work", "left", "ended", "new", "left as new", "settled together", "was dead already"],
)
def test_who_was_dead_before_anybody_came_is_missed(lines: dict[str, Any], missed: list[GroupLoss]) -> None:
    """Where nobody lives who came as far."""
    group = membership()
    group.read(0.0, 0.0, lines)
    group.read(1.0, 1.0, {**lines, "witness": beat("witness", dead=[incarnation(name) for name in lines], flags=NEW)})
    all_settle(group, view("a", "witness"), beat("witness", flags=NEW))
    assert group.losses.book.missed == missed
    assert group.losses.lossy or not missed


def test_a_crawl_whose_agents_are_all_gone_misses_them() -> None:
    test_who_was_dead_before_anybody_came_is_missed({"b": beat("b", era=2)}, [GroupLoss((("b", incarnation("b")),), 0)])


def test_an_empty_directory_has_the_disk_of_nobody_who_had_its_name() -> None:
    group = membership()
    group.losses.follow(beat("a", era=2))
    assert group.losses.before and not group.losses.carried


def test_who_lives_and_was_there_judges_of_those_who_were_dead_before() -> None:
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b", era=2), "c": beat("c", era=2, dead=(incarnation("b"),))})
    all_settle(group, view("a", "c"), beat("c", era=2))
    assert not group.losses.book.missed


@pytest.mark.parametrize(
    ("era", "flags", "missed"),
    [(0, NEW, True), (2, NEW, False), (0, "", False)],
    ids=["nobody knows more", "one has settled", "one has seen all settle, and was in no other view since"],
)
def test_whom_it_heard_before_all_had_settled_is_left_to_those_who_know_more(
    era: int, flags: str, missed: bool
) -> None:
    group = membership()
    group.losses.resume(False, peers("b"))
    group.read(0.0, 0.0, {"c": beat("c", era=era, flags=flags)})
    all_settle(group, view("a", "c"), beat("c", era=max(era, 0 if flags else 2)))
    assert bool(group.losses.book.missed) == missed


def test_who_is_back_with_its_disk_is_not_missed_by_a_newcomer() -> None:
    group = membership()
    back = replace(beat("c", carried=(incarnation("b"),)), incarnation=incarnation("c"))
    group.read(0.0, 0.0, {"b": beat("b", era=2), "c": back})
    group.read(1.0, 1.0, {"b": beat("b", era=2), "c": replace(back, counter=2, dead=(incarnation("b"),))})
    all_settle(group, view("a", "c"), back)
    assert not group.losses.book.missed


@pytest.mark.parametrize(
    ("later", "missed"),
    [
        ([beat("c", 3, dead=(incarnation("b"),), flags=NEW)], False),
        ([beat("c", 3, dead=(incarnation("b"),)), "dead"], False),
        ([beat("c", 3, dead=(incarnation("b"),), flags=NEW, era=2), "dead"], False),
        (["dead"], True),
        (["back"], True),
    ],
    ids=["lives", "has judged", "has judged, and is in another view", "dead before that", "dead, and back"],
)
def test_a_newcomer_judges_in_place_of_an_elder_that_died_before_it_could(
    later: list[Beat | str], missed: bool
) -> None:
    """It had left the judgement to who had looked first: that one must have seen all settle."""
    group, dead = membership(), (incarnation("b"),)
    lines = {"b": beat("b", era=2), "c": beat("c", flags=NEW)}
    group.read(0.0, 0.0, lines)
    group.read(1.0, 1.0, {**lines, "c": beat("c", 2, flags=NEW, dead=dead)})
    all_settle(group, view("a", "c"), beat("c", 2, flags=NEW))
    assert not group.losses.book.missed
    for time, word in enumerate(later, 2):
        if isinstance(word, Beat):
            lines["c"] = word
        elif word == "dead":
            lines["d"] = beat("d", flags=NEW, dead=(*dead, incarnation("c")))
        else:
            lines["c"] = replace(lines["c"], incarnation=incarnation("c", 1), carried=(incarnation("c"),))
            lines["d"] = beat("d", flags=NEW, dead=(*dead, incarnation("c")))
        group.read(float(time), float(time), lines)
    assert bool(group.losses.book.missed) == missed


@pytest.mark.parametrize(
    ("seen", "era", "carried", "missed"),
    [("c", 0, (), True), ("cd", 0, (), False), ("c", 2, (), True), ("c", 2, ("22222222",), False)],
    ids=["one", "both", "one that came further without a disk", "one with a disk"],
)
def test_an_elder_that_has_seen_all_settle_may_have_left_the_judgement_to_another(
    seen: str, era: int, carried: tuple[str, ...], missed: bool
) -> None:
    """Of newcomers the first judges. Then both are killed."""
    group, dead = membership(), (incarnation("b"),)
    lines = {"b": beat("b", era=3), "c": beat("c", flags=NEW, era=era, carried=carried), "d": beat("d", flags=NEW)}
    group.read(0.0, 0.0, lines)
    lines |= {one: replace(lines[one], counter=2, dead=dead) for one in "cd"}
    group.read(1.0, 1.0, lines)
    all_settle(group, view("a", "c", "d"), lines["c"], lines["d"])
    group.read(2.0, 2.0, lines | {one: replace(lines[one], counter=3, flags="") for one in seen})
    lines |= {one: replace(lines[one], counter=3, flags="") for one in seen}
    lines["e"] = beat("e", flags=NEW, dead=(*dead, incarnation("c"), incarnation("d")))
    group.read(3.0, 3.0, lines)
    assert bool(group.losses.book.missed) == missed


def test_what_others_have_seen_with_the_judge_tells_nothing_of_the_dead() -> None:
    """One saw all settle and left the judgement; another came before the judge had seen that."""
    group, dead = membership(), beat("b", digest=OTHER, settled=OTHER)
    group.read(0.0, 0.0, {"b": dead, "c": beat("c", flags=NEW + FENCED)})
    later = beat("c", 2, era=2, complete=DIGEST, dead=(dead.incarnation,))
    for line in (beat("c", 1, flags=NEW, dead=later.dead), later):
        group.read(float(line.counter), float(line.counter), {"b": dead, "c": line})
    all_settle(group, view("a", "c", "d"), later, beat("d", flags=NEW))
    assert missing_without(group, "b") == ("b",)


@pytest.mark.parametrize(
    ("dead", "members", "missed"),
    [
        (("11111111",), peers("b"), True),
        ((), peers("b"), True),
        (("11111111",), {}, True),
        ((), {}, False),
        ((), {**peers("b"), "a": "11111111"}, False),
    ],
    ids=["it held that life dead", "that had left", "too many to name were there", "not that one dead", "with it"],
)
def test_the_era_of_a_disk_tells_nothing_of_one_that_went_on_without_it(
    dead: tuple[str, ...], members: dict[str, str], missed: bool
) -> None:
    """It came when this agent had been killed, took a seed from outside, say, and was lost before this one was back."""
    group = membership()
    group.losses.resume(False, peers("ac"), view=DIGEST, era=7)
    group.losses.former = ["11111111"]
    line = beat("b", digest=OTHER, settled=OTHER, members=tuple(members.values()), dead=dead)
    for at in (0.0, 2.0, 4.0, 6.0):
        group.read(at, at, {"b": line, "c": beat("c", int(at), era=7, carried=("11111111",))})
    all_settle(group, view("a", "c"), beat("c", 6, era=7, carried=("11111111",)))
    assert missing_without(group, "b") == (("b",) if missed else ())


@pytest.mark.parametrize("seen", [False, True], ids=["it dies before", "it has seen that"])
def test_who_is_behind_judges_in_place_of_those_who_came_further(seen: bool) -> None:
    """Its disk is of before all had settled, and it alone has heard who is lost. It sees all settle; then the other,
    whom it has left that to, is killed for good."""
    group = membership()
    group.losses.resume(False, peers("b"), era=BEGUN)
    group.losses.former = ["11111111"]
    lost = beat("b", digest=LATER, settled=LATER, era=4, complete=OTHER, members=(incarnation("b"),))
    e = replace(beat("e", era=3, flags=NEW), carried=("eeeeeeee",))
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0), 1):
        group.read(at, at, {"b": lost, "e": replace(e, counter=number)})
    all_settle(group, before := view("a", "e"), e)
    assert not missing_without(group, "b")
    if seen:
        group.read(7.0, 7.0, {"b": lost, "e": replace(e, counter=8, flags="")})
    group.read(8.0, 8.0, {"b": lost, "e": e, "witness": beat("witness", flags=NEW, dead=(e.incarnation,))})
    group.losses.view_ended(before)
    assert missing_without(group, "b") == (() if seen else ("b",))


@pytest.mark.parametrize(("era", "missed"), [(BEGUN, True), (5, False)])
def test_a_disk_of_before_all_had_settled_judges_nobody_where_others_came_further(era: int, missed: bool) -> None:
    """A newcomer leaves it to two. That one sees all settle; then both are lost, and the other has not seen it."""
    group, lost = membership(), beat("b", digest=LATER, settled=LATER, era=7, complete=OTHER)
    d = beat("d", era=era, flags=NEW, carried=("dddddddd",))
    e = beat("e", era=6, flags=NEW, carried=("eeeeeeee",))
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0), 1):
        now = {one: replace(line, counter=number) for one, line in (("d", d), ("e", e))}
        group.read(at, at, {"b": lost, **now})
    all_settle(group, before := view("a", "d", "e"), d, e)
    group.read(7.0, 7.0, {"b": lost, "d": replace(d, counter=8, flags=""), "e": e})
    dead = (d.incarnation, e.incarnation)
    group.read(8.0, 8.0, {"b": lost, "d": d, "e": e, "witness": beat("witness", flags=NEW, dead=dead)})
    group.losses.view_ended(before)
    assert bool(missing_without(group, "b")) == missed


def test_nor_where_an_empty_disk_has_its_name_now() -> None:
    """Its last words are repeated."""
    group = membership()
    group.losses.resume(False, peers("ac"), view=DIGEST, era=7)
    group.losses.former = ["11111111"]
    last = beat("b", digest=OTHER, settled=OTHER, members=(incarnation("b"),), dead=("11111111",))
    empty = replace(beat("b", flags=NEW, before=words_after(last)), incarnation=incarnation("b", 1))
    c = beat("c", era=7, carried=("11111111",))
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0), 1):
        group.read(at, at, {"b": replace(empty, counter=number), "c": replace(c, counter=number)})
    all_settle(group, view("a", "c", b=1), c, empty)
    assert missing([group.losses.book], lambda name, life: life != incarnation("b")) == ("b",)


@pytest.mark.parametrize("lost", [True, False])
def test_who_takes_over_a_book_with_losses_says_that_the_crawl_is_lossy(lost: bool) -> None:
    book, losses = LossBook(), membership().losses
    book.count([incarnation("c")])
    if lost:
        book.record((("b", incarnation("b")),), 0)
    losses.take_over(book)
    assert losses.lossy == lost
    assert losses.book.told() == book.told()


def test_nor_where_that_had_its_own_name() -> None:
    """An empty directory, as the volume was not mounted; now it is."""
    group = membership()
    group.losses.resume(False, {"a": "11111111"}, view=DIGEST, era=7)
    group.losses.former = ["11111111"]
    last = beat("a", digest=OTHER, settled=OTHER, members=("22222222",), dead=("11111111",))
    group.losses.follow(replace(last, incarnation="22222222"))
    stand_still(group)
    assert missing([group.losses.book], lambda name, life: life == "11111111") == ("a",)


@pytest.mark.parametrize("others", [15, 30])
def test_nor_where_more_had_been_killed_than_a_line_names_dead(others: int) -> None:
    group, names = membership(), [f"m{number}" for number in range(others)]
    group.losses.resume(False, {name: incarnation(name) for name in ("a", *names)}, view=DIGEST, era=7)
    group.losses.former = ["11111111"]
    dead = ("11111111", *map(incarnation, names))[-MOST_DEAD:]
    line = beat("b", digest=OTHER, settled=OTHER, members=(incarnation("b"),), dead=dead)
    back = {name: comes_back(name, beat(name, era=7)) for name in names}
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0), 1):
        lines = {name: replace(one, counter=number) for name, one in back.items()}
        group.read(at, at, {"b": line, **lines})
    all_settle(group, view("a", **dict.fromkeys(names, 1)), *back.values())
    assert missing_without(group, "b") == ("b",)


@pytest.mark.parametrize(
    ("line", "missed"),
    [
        (beat("b", flags=NEW), True),
        (beat("b", flags=NEW + BLANK), False),
        (beat("b", flags=LEFT + RELIEVED + NEW), False),
        (beat("b", flags=LEFT + LOSSY + NEW), True),
    ],
    ids=["may have known some", "knew none", "left", "left with work"],
)
def test_where_nobody_knows_a_url_who_was_lost_before_all_had_settled_is_missed(line: Beat, missed: bool) -> None:
    """That all know where the crawl begins does not hold there, so one loss is one too many."""
    assert all(life != incarnation("d") for life in ends_without_urls(beat("d", era=2), line)), "judged by its era"
    group = membership()
    group.read(0.0, 0.0, {"b": line})
    group.read(1.0, 1.0, {"b": line, "c": beat("c", flags=NEW, dead=(line.incarnation,))})
    all_settle(group, view("a", "c"), beat("c", flags=NEW))
    assert not group.losses.book.losses
    for _ in range(2):
        group.losses.end_without_urls()
    assert group.losses.book.losses == ([GroupLoss((("b", incarnation("b")),), 0)] if missed else [])


def ends_without_urls(*lines: Beat) -> list[str]:
    """Whom an agent misses by these lines more, as nobody knows a URL."""
    group = membership()
    names = {incarnation(name): name for name in "bd"}
    group.read(0.0, 0.0, {names[line.incarnation]: line for line in lines})
    group.read(1.0, 1.0, {"c": beat("c", flags=NEW, dead=tuple(names))})
    all_settle(group, view("a", "c"), beat("c", flags=NEW))
    group.losses.end_without_urls()
    return [life for loss in group.losses.book.losses for _, life in loss.members]


@pytest.mark.parametrize(
    ("flags", "back", "lost"),
    [("", "", "b"), (PASSIVE + BLANK, "", ""), ("", "b", "")],
    ids=["may have known some", "knew none", "is back"],
)
def test_so_is_who_was_lost_before_it_had_told_others_though_all_had_settled(flags: str, back: str, lost: str) -> None:
    """Its `start()` was slow. Its death is counted, and one may stay away; but nobody has fetched anything."""
    group = old_hand()
    before = view("a", "b", "c")
    all_settle(group, before, beat("b"), beat("c"))
    for number in (1, 2):
        group.read(number / 10, number / 10, {"b": beat("b", number, flags=flags), "c": beat("c", number)})
    group.read(1.0, 1.0, {"c": beat("c", 3, dead=(incarnation("b"),))})
    group.losses.view_ended(before)
    all_settle(group, view("a", "c"), beat("c", 3))
    if back:
        group.read(1.1, 1.1, {"c": beat("c", 4), "b": comes_back("b", beat("b"))})
    group.losses.end_without_urls()
    assert "".join(missing([group.losses.book], lambda name, life: False)) == lost


def test_who_leaves_alone_with_work_says_who_is_away() -> None:
    group = old_hand()
    group.losses.leave_alone()
    assert group.losses.lossy
    assert missing([group.losses.book], lambda name, life: False) == ("a",)
    assert missing([group.losses.book], lambda name, life: True) == ()


@pytest.mark.parametrize(
    ("back", "names"),
    [("", ("a", "b", "c")), ("a", ("b", "c")), ("ab", ()), ("ac", ()), ("bc", ()), ("abc", ())],
)
def test_of_those_who_leave_alone_together_as_many_may_stay_away_as_there_are_copies(
    back: str, names: tuple[str, ...]
) -> None:
    group = membership()
    all_settle(group, view("a", "b", "c"), beat("b"), beat("c"))
    group.read(0.0, 0.0, {"b": beat("b", 2, flags=LEAVING), "c": beat("c", 2, flags=LEAVING)})
    group.losses.leave_alone()
    assert missing([group.losses.book], lambda name, life: name in back) == names


def test_who_has_handed_on_all_has_no_copy_any_more() -> None:
    group = membership()
    all_settle(group, view("a", "b"), beat("b"))
    group.read(0.0, 0.0, {"b": beat("b", 2, flags=LEFT + RELIEVED)})
    group.losses.leave_alone()
    assert missing([group.losses.book], lambda name, life: name == "b") == ("a",)


def test_a_crawl_that_somebody_has_left_alone_is_lossy_until_that_disk_is_back() -> None:
    """Whoever has that name by now."""
    said = beat("b", flags=LEFT + LOSSY + NEW)
    empty = replace(beat("b", before=words_after(said)), incarnation=incarnation("b", 7))
    for lines, lossy in (
        ({"b": empty}, True),
        ({"b": replace(empty, before=words_after(replace(said, members=(incarnation("c"),))))}, False),
        ({"b": replace(empty, before=words_after(replace(said, flags=LEFT + LOSSY + OVER)))}, False),
        ({"b": replace(empty, carried=(incarnation("b"),))}, False),
        ({"b": empty, "c": beat("c", carried=(incarnation("b"),))}, False),
    ):
        group = membership()
        group.read(0.0, 0.0, lines)
        assert group.losses.lossy == lossy


@pytest.mark.parametrize(
    ("lines", "strict"),
    [({}, "bc"), ({"b": 2}, "c"), ({"b": 2, "c": 2}, ""), ({"b": 2, "c": 0}, ""), ({"b": 2, "c": 3}, "c")],
    ids=["no words", "of one only", "both are level", "one was behind", "one went on"],
)
def test_who_is_missed_since_the_last_run_is_recorded(lines: dict[str, int], strict: str) -> None:
    """Of those whose last words say that they cannot know more as many may stay away as there are copies; of the
    others none."""
    group = membership()
    group.losses.resume(False, peers("abc"), view=OTHER, era=2)
    group.read(0.0, 0.0, {name: beat(name, era=era, flags=NEW) for name, era in lines.items()})
    all_settle(group, view("a"))
    level = [incarnation(name) for name in lines if lines[name] < 3]
    assert group.losses.book.counted == (level if len(level) == 1 else []), "else these are a loss that counting hides"
    assert not group.losses.book.losses
    assert missing([group.losses.book] * 2, lambda name, life: False)
    for away in ("", "b", "c", "bc"):
        named = missing([group.losses.book], lambda name, life, away=away: name not in away)
        assert bool(named) == (away == "bc" or not {*away}.isdisjoint(strict))


AHEAD_IN = "cc" * 8


def missing_without(group: Membership, *away: str) -> tuple[str, ...]:
    """Who is missing at the end, when these (names) have not come back."""
    return missing([group.losses.book], lambda name, life: name not in away)


def test_when_who_was_ahead_is_back_as_many_others_may_be_away_as_there_are_copies() -> None:
    group = membership()
    group.losses.resume(False, peers("abc"), view=OTHER, era=2, lost={incarnation("d"): "d"})
    group.read(0.0, 0.0, {"b": beat("b", era=3), "c": beat("c", era=2)})
    all_settle(group, view("a"))
    assert not missing_without(group) and not missing_without(group, "d") and not missing_without(group, "c")
    assert missing_without(group, "b") and missing_without(group, "c", "d"), "no silence"


@pytest.mark.parametrize("by_era", [False, True], ids=["settled", "left after that"])
def test_of_those_who_were_ahead_by_one_view_one_has_to_be_back(by_era: bool) -> None:
    """It knows what the others knew, and counts whom it misses itself. Who was no member is no such one."""
    both = (incarnation("b"), incarnation("c"))
    group = membership(replication=2)
    group.losses.resume(False, peers("abcd"), view=OTHER, era=2)
    here: dict[str, Any] = {"era": 2, "digest": AHEAD_IN, "settled": AHEAD_IN, "members": both}
    left = beat("d", era=3, complete=AHEAD_IN, flags=LEFT + LOSSY)
    lines = {"b": beat("b", **here), "c": beat("c", **here), "d": left if by_era else beat("d", **here)}
    for at in (0.0, 2.0, 4.0, 6.0):
        group.read(at, at, lines)
    all_settle(group, view("a"))
    assert not missing_without(group) and not missing_without(group, "b", "d") and not missing_without(group, "c", "d")
    assert missing_without(group, "b", "c") == ("b", "c") and missing_without(group, "b", "c", "d"), "no silence"


@pytest.mark.parametrize(
    ("digest", "flags"), [(DIGEST, NEW), (AHEAD_IN, LEFT + RELIEVED)], ids=["nobody tells of it", "it has handed on"]
)
def test_who_was_ahead_by_a_view_of_unknown_members_has_to_be_back(digest: str, flags: str) -> None:
    group = membership(replication=2)
    group.losses.resume(False, peers("ab"), view=OTHER, era=2)
    other = beat("c", digest=digest, members=(incarnation("c"),), flags=flags)
    group.read(0.0, 0.0, {"b": beat("b", era=3, complete=AHEAD_IN), "c": other})
    all_settle(group, view("a"))
    assert not missing_without(group, "c") and missing_without(group, "b") == ("b",)


def test_the_dead_are_missed_as_far_as_their_next_lives_have_come() -> None:
    """One that was seen dead came back with its disk, and went on alone: its last life is gone with all it did."""
    group = membership()
    group.losses.resume(False, peers("ab"), view=OTHER, era=2, lost={incarnation("b"): "b"})
    went_on = replace(beat("b", era=3, complete=AHEAD_IN), incarnation=incarnation("b", 7))
    group.read(0.0, 0.0, {"b": replace(went_on, before=words_after(beat("b", era=2, complete=OTHER)))})
    all_settle(group, view("a"))
    assert missing_without(group, "b") == ("b",)
    came_back = missing([group.losses.book], lambda name, life: life == incarnation("b", 7))
    assert not came_back, "the life that was seen dead knew no more than this disk"


def test_of_those_ahead_who_were_lost_one_at_least_has_to_be_back() -> None:
    """One of them was heard, the other never: with both away nobody has what they knew, however many copies there
    are."""
    both = (incarnation("b"), incarnation("c"))
    group = membership(replication=2)
    ahead: dict[str, Any] = {"digest": AHEAD_IN, "settled": AHEAD_IN, "members": both}
    group.read(0.0, 0.0, {"b": beat("b", **ahead), "c": beat("c", **ahead)})
    left = beat("c", 3, era=2, complete=AHEAD_IN, flags=LEFT + LOSSY)
    group.read(1.0, 1.0, {"b": beat("b", **ahead), "c": left})
    group.read(2.0, 2.0, {"c": left, "witness": beat("witness", flags=NEW, dead=both)})
    group.losses.view_ended(view("a", "b", "witness"))
    assert missing_without(group, "b", "c") == ("b", "c")
    assert not missing_without(group, "b") and not missing_without(group, "c")


def test_of_two_that_came_as_far_apart_each_has_to_be_back() -> None:
    """So many views had settled for each of them, and they were others: what one knows the other does not."""
    left: dict[str, Any] = {"era": 2, "flags": LEFT + LOSSY}
    lines = {"b": beat("b", complete=AHEAD_IN, **left), "c": beat("c", complete=OTHER, **left)}
    lines["d"] = beat("d", era=2, complete=OTHER, flags=LEAVING)
    dead = tuple(line.incarnation for line in lines.values())
    group = membership(replication=2)
    group.read(0.0, 0.0, lines)
    group.read(1.0, 1.0, {**lines, "witness": beat("witness", dead=dead, flags=NEW)})
    all_settle(group, view("a", "witness"), beat("witness", flags=NEW))
    assert missing_without(group, "b") == ("b",) and missing_without(group, "c", "d") == ("c", "d")
    assert not missing_without(group, "c") and not missing_without(group, "d")

    group = membership(replication=1)  # and where one of them was heard
    group.read(0.0, 0.0, {"b": lines["b"], "d": lines["d"]})
    group.read(0.1, 0.1, {"b": lines["b"], "c": lines["c"], "d": replace(lines["d"], counter=2)})
    group.read(1.0, 1.0, {**lines, "witness": beat("witness", dead=dead, flags=NEW)})
    group.losses.view_ended(view("a", "d", "witness"))
    assert not missing_without(group, "b", "c"), "who came as far by another view is no part of that loss"
    assert missing_without(group, "c", "d") == ("c", "d")


def test_who_came_less_far_brings_not_what_those_ahead_knew() -> None:
    group = membership(replication=2)
    for at in (0.0, 0.1):
        lines = {"b": beat("b", 1 + int(10 * at), era=3), "c": beat("c", 1 + int(10 * at), era=2)}
        group.read(at, at, {**lines, "d": beat("d", 1, era=1, flags=NEW)})
    dead = (incarnation("b"), incarnation("c"), incarnation("d"))
    group.read(2.0, 2.0, {"witness": beat("witness", flags=NEW, dead=dead)})
    group.losses.view_ended(view("a", "b", "c", "witness"))
    assert missing_without(group, "b") == ("b",) and not missing_without(group, "c")


@pytest.mark.parametrize("left", [False, True], ids=["killed", "left"])
def test_who_has_left_is_judged_by_its_last_words(left: bool) -> None:
    """It had settled in a view of its own, and leaves before it has seen that all have."""
    group = membership()
    alone = beat("b", 2, flags=NEW, settled=AHEAD_IN, digest=AHEAD_IN, members=(incarnation("b"),))
    group.read(0.0, 0.0, {"b": beat("b", flags=NEW)})
    group.read(0.1, 0.1, {"b": alone, "witness": beat("witness", 2, flags=NEW)})
    last = beat("b", 3, flags=LEFT + LOSSY + NEW, digest=OTHER) if left else alone
    group.read(0.2, 0.2, {"b": last, "witness": beat("witness", 3, flags=NEW, dead=(incarnation("b"),))})
    group.losses.view_ended(view("a", "b", "witness"))
    assert bool(group.losses.book.losses) == (not left)


def test_who_was_heard_is_judged_by_words_that_its_name_repeats() -> None:
    """It was killed, and its name taken, before this agent could read how far it had come."""
    for era, lost in ((0, False), (2, True)):
        group = membership()
        hear(group, "b")
        empty = replace(beat("b", flags=NEW), incarnation=incarnation("b", 7))
        empty = replace(empty, before=words_after(beat("b", 3, era=era, flags="" if era else NEW, complete=AHEAD_IN)))
        group.read(1.0, 1.0, {"b": empty, "witness": beat("witness", 3, flags=NEW)})
        group.losses.view_ended(view("a", "b", "witness"))
        assert bool(group.losses.book.losses) == lost


def test_a_newcomer_whose_disk_comes_back_misses_whom_it_had_heard_before_all_had_settled() -> None:
    """Else two who are lost together, and whom one newcomer alone has known, are named by nobody."""
    group = membership()
    group.read(0.0, 0.0, {"old": beat("old")})  # a line that does not change
    hear(group, "b", "c")
    assert group.losses.peers == peers("bc")
    again = membership()
    again.losses.resume(False, group.losses.peers, views=group.losses.own_views, era=group.losses.era)
    hear(again, "d")  # it is killed once more
    assert again.losses.peers == peers("bcd")
    last = membership()
    last.losses.resume(False, again.losses.peers, views=again.losses.own_views, era=again.losses.era)
    all_settle(last, view("a"))
    assert last.losses.lossy
    assert missing([last.losses.book], lambda name, life: name == "d") == ("b", "c")
    assert last.losses.peers == peers("a"), "from now on others have copies of all that it knows"


def test_who_is_back_misses_those_who_had_come_since_all_had_settled_for_it() -> None:
    """It had settled with one that had just come, and was killed before it could see that all had: the others went on.
    That it was in that view is known; so nobody is ahead by that, and it has to miss all who were."""
    group, first, later = membership(), view("a", "b"), view("a", "b", "c")
    hear(group, "b")
    all_settle(group, first, beat("b"))
    for number in (1, 2):
        at = 1 + number / 10
        group.read(at, at, {"b": beat("b", 2 + number), "c": beat("c", number, flags=NEW)})
    group.losses.entered(later)
    again = membership()
    book = group.losses
    again.losses.resume(False, book.peers, view=book.complete, era=book.era, views=book.own_views)
    here: dict[str, Any] = {"digest": later.digest, "settled": later.digest, "members": tuple(later.lives)}
    again.read(0.0, 0.0, {"b": beat("b", era=2, complete=first.digest, **here), "c": beat("c", **here)})
    all_settle(again, view("a"))
    assert missing_without(again, "b", "c") == ("b", "c")
    assert not missing_without(again, "b") and not missing_without(again, "c")


@pytest.mark.parametrize(
    ("line", "missed"),
    [
        (beat("c", digest=OTHER, settled=OTHER), True),
        (beat("c", digest=LATER, era=2, complete=OTHER), True),
        (beat("c", digest=DIGEST), False),
        (None, False),
    ],
    ids=["it had settled", "it has seen all settle", "it was dead by then", "it has no line"],
)
@pytest.mark.parametrize("known", [True, False], ids=["its disk knows the view", "its last words do"])
def test_who_is_back_misses_those_with_whom_all_may_have_settled_without_its_seeing_it(
    known: bool, line: Beat | None, missed: bool
) -> None:
    group, lives = membership(), tuple(map(incarnation, "abc"))
    last = beat("a", digest=OTHER, settled=OTHER, members=lives, flags=NEW)
    group.rejoin()
    group.losses.resume(False, peers("ab"), view=DIGEST, era=2, views=(DIGEST, OTHER) if known else (DIGEST,))
    if not known:
        group.losses.follow(last)
    lines = {"b": beat("b", digest=OTHER, settled=OTHER, era=2, complete=DIGEST, members=lives)}
    lines |= {"c": replace(line, members=lives)} if line is not None else {}
    for at in (0.0, 2.0, 4.0, 6.0):
        group.read(at, at, lines)
    all_settle(group, group.view())
    assert missing_without(group, "b", "c") == (("b", "c") if missed else ())
    assert not missing_without(group, "b") and not missing_without(group, "c")


def stand_still(group: Membership, **lines: Beat) -> None:
    """These lines never change, until all are held dead, and this agent has settled alone. Its own goes on."""
    me = replace(beat("a", carried=group.losses.carried, before=group.losses.before), incarnation=group.incarnation)
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0, 8.0), 1):
        group.read(at, at, {"a": replace(me, counter=number), **lines})
    all_settle(group, group.view())


ALL_SETTLED, AFTER = view("a", "b", "c"), view("a", "b", "c", "e")


@pytest.mark.parametrize("copies", [1, 2])
def test_a_life_before_does_not_answer_for_a_view_that_the_disk_does_not_know(copies: int) -> None:
    """It held nothing, so it had settled while its disk stood still. It was fenced, and killed in the next view."""
    group = membership(copies)
    fenced = View.of({**ALL_SETTLED.members, "a": Member(incarnation("a"), 1, REPLICAS)})
    group.rejoin()
    group.losses.resume(False, peers("a"), view=DIGEST, era=2, views=(DIGEST,))
    here: dict[str, Any] = {"digest": fenced.digest, "members": tuple(fenced.lives)}
    group.losses.follow(beat("a", flags=NEW, era=2, complete=DIGEST, **here))
    there: dict[str, Any] = {"era": 3, "complete": ALL_SETTLED.digest, **here}
    stand_still(group, b=beat("b", **there), c=beat("c", **there))
    assert missing_without(group, "b", "c") == ("b", "c")


@pytest.mark.parametrize("back", [False, True])
def test_so_it_is_where_a_newcomer_judges_in_place_of_that_one(back: bool) -> None:
    """`d` leaves that to `a`, whose disk is older, and which is lost before it has seen all settle."""
    group = membership(me="d")
    there: dict[str, Any] = {"era": 3, "complete": ALL_SETTLED.digest, "digest": AFTER.digest}
    c = beat("c", members=tuple(AFTER.lives), **there)
    words = beat("a", flags=NEW, era=2, complete=DIGEST, digest=AFTER.digest, members=tuple(AFTER.lives))
    lines = {"b": beat("b", flags=LEFT + RELIEVED), "c": c}
    a = comes_back("a", words)
    for number, at in enumerate((0.0, 2.0, 4.0, 6.0, 8.0), 1):
        group.read(at, at, {**lines, "a": replace(a, counter=number)})
    all_settle(group, before := view("d", a=1), a)
    assert not missing_without(group, "c")
    for number in (1, 2):
        witness = beat("witness", number, flags=NEW, dead=(a.incarnation,))
        group.read(8.0 + number, 8.0 + number, {**lines, "a": a, "witness": witness})
    group.losses.view_ended(before)
    away = {"c": incarnation("c"), "a": "" if back else a.incarnation}
    assert missing([group.losses.book], lambda name, life: away.get(name) != life) == (() if back else ("a", "c"))


@pytest.mark.parametrize("words", [True, False], ids=["in a later view", "Redis has forgotten them"])
def test_nor_where_its_last_words_do_not_tell_of_that_view(words: bool) -> None:
    group, lives = membership(), tuple(ALL_SETTLED.lives)
    group.rejoin()
    group.losses.resume(False, peers("a"), view=DIGEST, era=2)
    there: dict[str, Any] = {"era": 3, "complete": ALL_SETTLED.digest, "digest": AFTER.digest}
    there["members"] = tuple(AFTER.lives)
    if words:
        group.losses.follow(beat("a", flags=NEW, era=2, complete=DIGEST, digest=AFTER.digest, members=there["members"]))
    else:
        there = {"era": 2, "digest": ALL_SETTLED.digest, "settled": ALL_SETTLED.digest, "members": lives}
    stand_still(group, b=beat("b", **there), c=beat("c", **there))
    assert missing_without(group, "b", "c") == ("b", "c")
    assert not missing_without(group, "b") or words, "there is a copy"


@pytest.mark.parametrize("crashes", [1, 2])
def test_who_is_killed_once_more_before_all_have_settled_misses_the_same(crashes: int) -> None:
    """As when it was killed once. The view was of too many to be named, with newcomers."""
    group = membership()
    there: dict[str, Any] = {"digest": ALL_SETTLED.digest, "settled": ALL_SETTLED.digest, "flags": NEW}
    last = beat("a", era=2, complete=DIGEST, **there)
    group.rejoin()
    if crashes == 2:
        again = beat("a", digest=LATER, flags=NEW, carried=(incarnation("a"),), before=words_after(last))
        last = replace(again, incarnation=group.incarnation, members=(group.incarnation,))
        group.rejoin()
    group.losses.resume(False, peers("a"), view=DIGEST, era=2, views=(DIGEST,))
    group.losses.follow(last)
    stand_still(group, b=beat("b", **there), c=beat("c", **there))
    assert missing_without(group, "b", "c") == ("b", "c")


@pytest.mark.parametrize("gone", [0, 12])
def test_who_tells_that_all_have_settled_is_missed_though_too_many_lines_stand_there(gone: int) -> None:
    """Nobody is found who gives the digest: too many sets would have to be tried."""
    group = membership()
    group.rejoin()
    group.losses.resume(False, peers("a"), view=DIGEST, era=2, views=(DIGEST, ALL_SETTLED.digest))
    there: dict[str, Any] = {"era": 3, "complete": ALL_SETTLED.digest, "digest": AFTER.digest}
    there["members"] = tuple(AFTER.lives)
    left = {f"g{number}": beat(f"g{number}", flags=LEFT + RELIEVED) for number in range(gone)}
    stand_still(group, b=beat("b", **there), c=beat("c", **there), **left)
    assert missing_without(group, "b", "c") == ("b", "c")


def test_who_was_in_a_view_before_the_last_complete_one_is_none_of_these() -> None:
    group = membership()
    group.losses.resume(False, peers("ab"), view=DIGEST, era=2, views=(OTHER, DIGEST))
    lines = {one: beat(one, digest=OTHER, settled=OTHER, members=tuple(map(incarnation, "abc"))) for one in "bc"}
    group.read(0.0, 0.0, lines)
    all_settle(group, group.view())
    assert {name for loss in group.losses.book.missed for name, _ in loss.members} == {"b"}


def test_what_others_have_seen_with_one_that_is_back_tells_nothing_of_whom_it_misses() -> None:
    """A newcomer saw all settle, and this agent did not, as another one came."""
    group = membership()
    group.losses.resume(False, peers("abc"), era=1)
    for number, era in ((1, 0), (2, 2)):
        line = beat("d", number, era=era, complete=OTHER if era else "", flags="" if era else NEW)
        group.read(float(number), float(number), {"d": line})
    all_settle(group, view("a", "d", "e"), beat("d", 2, era=2, complete=OTHER), beat("e"))
    assert missing_without(group, "b", "c") == ("b", "c")


def test_who_was_in_the_view_of_a_later_era_is_not_behind() -> None:
    """It was killed before it could see that all had settled in that view."""
    for complete, spare in ((DIGEST, 1), (OTHER, 0)):
        group = membership()
        group.losses.resume(False, peers("ab"), views=(DIGEST,))
        group.read(0.0, 0.0, {"b": beat("b", era=2, complete=complete, flags=NEW)})
        all_settle(group, view("a"))
        assert [loss.spare for loss in group.losses.book.missed] == [spare]
    for complete, lost in ((DIGEST, False), (OTHER, True)):
        group = membership()
        group.losses.resume(False, {}, views=(DIGEST, "cc" * 8))
        here: dict[str, Any] = {"era": 2, "complete": complete, "digest": "cc" * 8}
        for number in (1, 2):
            at = number / 10
            group.read(at, at, {"b": beat("b", number, **here), "witness": beat("witness", number, flags=NEW)})
        group.read(1.0, 1.0, {"witness": beat("witness", 3, flags=NEW, dead=(incarnation("b"),))})
        group.losses.view_ended(view("a", "b", "witness"))
        assert bool(group.losses.book.losses) == lost


@pytest.mark.parametrize(("member", "missed"), [("c", False), ("d", True)], ids=["is here", "is not"])
def test_nobody_is_ahead_by_an_era_whose_view_had_one_whose_disk_is_here(member: str, missed: bool) -> None:
    """As another line names them: it had settled in that view with all, before it was away."""
    group = membership()
    group.losses.resume(False, {})
    settled = beat("b", digest=OTHER, settled=OTHER, members=(incarnation("b"), incarnation(member)))
    again = replace(beat("b", 9, era=2, complete=OTHER, flags=NEW), incarnation=incarnation("b", 1))
    again = replace(again, carried=(incarnation("b"),), before=words_after(settled))
    back = replace(beat("c", era=1, flags=NEW, carried=(incarnation("c"),)), incarnation=incarnation("c", 1))
    group.read(0.0, 0.0, {"b": again, "c": back})
    group.read(1.0, 1.0, {"b": again, "c": replace(back, counter=2, dead=(again.incarnation,))})
    all_settle(group, view("a", c=1), back)
    lost = {life for loss in group.losses.book.missed for _, life in loss.members}
    assert (again.incarnation in lost) == missed


@pytest.mark.parametrize(
    ("disk", "back", "ended", "lost"),
    [
        (True, "c", "", ""),
        (True, "e", "", "bcd"),
        (True, "e", "c", ""),
        (False, "c", "", ""),
        (False, "e", "", "b"),
    ],
    ids=["a member", "another", "another, and a member has ended the crawl", "to a newcomer", "another, to a newcomer"],
)
def test_so_it_is_where_the_digest_alone_tells_who_was_in_that_view(
    disk: bool, back: str, ended: str, lost: str
) -> None:
    """All who were had gone on to a later view, of which their last lines are."""
    group, all_settled = membership(replication=2), view("b", "c", "d")
    if disk:
        group.losses.resume(False, peers("bcd"), era=1)
    lines = {"b": beat("b", era=2, complete=all_settled.digest, digest=OTHER)}
    lines |= {one: beat(one, flags=LEFT + LOSSY + OVER if one in ended else NEW, digest=LATER) for one in "cde"}
    lines[back] = comes_back(back, lines[back], flags=NEW + FENCED)
    group.read(0.0, 0.0, lines)
    dead = tuple(map(incarnation, "bcde"))
    group.read(1.0, 1.0, {**lines, back: replace(lines[back], counter=2, flags=NEW, dead=dead)})
    all_settle(group, view("a", **{back: 1}), lines[back])
    names = missing([group.losses.book], lambda name, life: name in {*back, *ended})
    assert "".join(names) == lost


@pytest.mark.parametrize(
    ("replication", "members", "settled", "ahead"),
    [
        (1, "bc", LATER, False),
        (1, "bc", "", True),
        (1, "bcd", LATER, True),
        (2, "bcd", LATER, True),
        (0, "bc", LATER, True),
        (1, "b", LATER, True),
        (1, "", LATER, True),
    ],
    ids=[
        "all but it",
        "before it had settled",
        "two away",
        "as many as copies, of whom one had not settled",
        "no copies",
        "alone",
        "too many to name",
    ],
)
@pytest.mark.parametrize("seen", [True, False], ids=["its death is seen", "it is missed"])
def test_nobody_is_ahead_by_an_earlier_view_who_has_handed_on_all_to_those_who_are_here(
    replication: int, members: str, settled: str, ahead: bool, seen: bool
) -> None:
    """They were killed before they could see that all had settled."""
    group = membership(replication)
    group.losses.resume(False, {} if seen else peers("b"), era=1)
    lives = tuple(map(incarnation, members))
    away = beat("b", era=2, complete=OTHER, digest=LATER, settled=settled, members=lives)
    back = replace(beat("c", era=1, flags=NEW, carried=(incarnation("c"),)), incarnation=incarnation("c", 1))
    for number in (1, 2):
        at = number / 10
        group.read(at, at, {"b": replace(away, counter=number if seen else 0), "c": replace(back, counter=number)})
    group.read(1.0, 1.0, {"b": away, "c": replace(back, counter=3, dead=(incarnation("b"),))})
    if seen:
        group.losses.view_ended(view("a", "b", c=1))
    all_settle(group, view("a", c=1), back)
    strict = [loss for loss in (*group.losses.book.losses, *group.losses.book.missed) if loss.spare == 0]
    assert bool(strict) == ahead


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("seen", [True, False], ids=["its death is seen", "it is missed"])
def test_who_has_settled_has_left_hosts_to_their_owners_who_have_to_have_settled_too(settled: bool, seen: bool) -> None:
    """Whom it relied on may have been killed before it had told anybody."""
    group = membership(replication=2)
    group.losses.resume(False, {} if seen else peers("b"), era=1)
    here: dict[str, Any] = {"digest": LATER, "members": tuple(map(incarnation, "bcd"))}
    away = beat("b", era=2, complete=OTHER, settled=LATER, **here)
    owner = beat("d", era=1, settled=LATER if settled else "", **here)
    back = replace(beat("c", era=1, flags=NEW, carried=(incarnation("c"),)), incarnation=incarnation("c", 1))
    for number in (1, 2):
        at = number / 10
        lines = {"b": replace(away, counter=number if seen else 0), "d": replace(owner, counter=number)}
        group.read(at, at, {**lines, "c": replace(back, counter=number)})
    dead = (incarnation("b"), incarnation("d"))
    group.read(1.0, 1.0, {"b": away, "d": owner, "c": replace(back, counter=3, dead=dead)})
    if seen:
        group.losses.view_ended(view("a", "b", "d", c=1))
    all_settle(group, view("a", c=1), back)
    books = (*group.losses.book.losses, *group.losses.book.missed)
    assert any(name == "b" and len(loss.members) > loss.spare for loss in books for name, _ in loss.members) != settled


@pytest.mark.parametrize(
    ("replication", "others", "settled", "complete", "ahead"),
    [
        (1, "d", LATER, OTHER, False),
        (1, "de", LATER, OTHER, True),
        (2, "de", LATER, OTHER, False),
        (1, "d", "", OTHER, True),
        (0, "d", LATER, OTHER, True),
        (1, "d", LATER, DIGEST, True),
    ],
    ids=["one", "two", "two of three", "before it had settled", "no copies", "it may have been before"],
)
def test_nor_are_those_who_were_in_the_earlier_view_with_it(
    replication: int, others: str, settled: str, complete: str, ahead: bool
) -> None:
    """One was dead when the other handed on what both knew."""
    group = membership(replication)
    group.losses.resume(False, peers("b"), era=1)
    away = beat("b", era=2, complete=complete, digest=LATER, settled=settled, members=tuple(map(incarnation, "bc")))
    before = {
        one: beat(one, digest=OTHER, settled=OTHER, members=tuple(map(incarnation, "b" + others))) for one in others
    }
    back = replace(beat("c", era=1, flags=NEW, carried=(incarnation("c"),)), incarnation=incarnation("c", 1))
    group.read(0.0, 0.0, {"b": away, **before, "c": back})
    dead = tuple(map(incarnation, "b" + others))
    group.read(1.0, 1.0, {"b": away, **before, "c": replace(back, counter=2, dead=dead)})
    all_settle(group, view("a", c=1), back)
    missed = {name for loss in group.losses.book.missed for name, _ in loss.members}
    assert (missed >= set(others)) == ahead


@pytest.mark.parametrize(
    ("views", "torn", "era", "missed"),
    [
        ((OTHER,), False, 0, False),
        ((OTHER, DIGEST), False, 0, True),
        ((), False, 0, True),
        ((OTHER,), True, 0, True),
        ((OTHER,), False, 3, True),
    ],
    ids=["settled", "it was in another view since", "no view is known", "its disk is torn", "who died was ahead"],
)
def test_whom_it_had_seen_dead_before_all_settled_it_does_not_miss(
    views: tuple[str, ...], torn: bool, era: int, missed: bool
) -> None:
    """Its disk was written before it saw that; the last line of one that is gone by now tells."""
    group = membership()
    dead = {incarnation("d"): "d", incarnation("e"): "e"}
    group.losses.resume(True, peers("b"), torn=torn, lost=dead, views=views)
    lines = {"b": beat("b", era=2, complete=OTHER), "d": beat("d", era=era, complete=LATER if era else "")}
    group.read(0.0, 0.0, lines)
    all_settle(group, view("a"))
    names = {name for loss in group.losses.book.missed for name, _ in loss.members}
    assert ("d" in names) == missed


def test_the_last_words_of_who_is_missed_are_of_the_view_that_the_disk_knows() -> None:
    for digest, spare in ((DIGEST, 1), (OTHER, 0)):
        group = membership()
        group.losses.resume(False, peers("ab"), view=DIGEST, era=3)
        group.read(0.0, 0.0, {"b": beat("b", era=2, settled=digest, digest=digest)})
        kill(group, "b")
        all_settle(group, view("a"))
        assert [loss.spare for loss in group.losses.book.missed] == [spare]


@pytest.mark.parametrize(
    ("settled", "members", "missed"),
    [("bc", "bc", False), ("b", "bc", True), ("bc", "", True), ("bc", "bcf", True)],
    ids=["all", "one had not", "members are not known", "one has no line"],
)
def test_that_all_have_settled_since_is_told_by_the_lines_of_all_together(
    settled: str, members: str, missed: bool
) -> None:
    """Each was killed before it could tell that it had seen that of the others."""
    group = membership()
    group.losses.resume(True, peers("b"), lost={incarnation("d"): "d", incarnation("e"): "e"}, views=(OTHER,))
    lives = tuple(map(incarnation, members))
    lines = {one: beat(one, digest=OTHER, settled=OTHER if one in settled else "", members=lives) for one in "bc"}
    group.read(0.0, 0.0, {**lines, "d": beat("d")})
    all_settle(group, view("a"))
    names = {name for loss in group.losses.book.missed for name, _ in loss.members}
    assert ("d" in names) == missed


def comes_back(agent: str, said: Beat, **now: Any) -> Beat:
    """The first line of one that has begun again with its disk, after its last life said that."""
    flags, carried = now.pop("flags", NEW), (incarnation(agent),)
    line = beat(agent, era=said.era, flags=flags, carried=carried, before=words_after(said), **now)
    return replace(line, incarnation=incarnation(agent, 1))


@pytest.mark.parametrize("flags", [LEAVING, LEFT + LOSSY], ids=["on its way out", "left with work"])
@pytest.mark.parametrize("digest", [OTHER, LATER], ids=["it saw that view", "it saw one before"])
def test_members_have_not_settled_for_one_on_its_way_out(flags: str, digest: str) -> None:
    """It is no member, and alone had what the dead one knew, beside that: with both away more are lost than copies."""
    group = membership()
    group.losses.resume(False, peers("abdl"), view=DIGEST, era=3, lost={incarnation("d"): "d"}, views=(DIGEST, OTHER))
    two, all_four = tuple(map(incarnation, "ab")), tuple(map(incarnation, "abdl"))
    mine, b = (beat(one, era=3, complete=DIGEST, digest=OTHER, settled=OTHER, members=two) for one in "ab")
    group.losses.incarnation, group.losses.former = incarnation("a", 1), [incarnation("a")]
    group.losses.follow(mine)
    leaver = beat("l", era=3, complete=DIGEST, digest=digest, flags=flags, members=two if digest == OTHER else ())
    dead = beat("d", era=2, complete=LATER, digest=DIGEST, settled=DIGEST, members=all_four)
    back = comes_back("b", b)
    group.read(0.0, 0.0, {"a": comes_back("a", mine), "b": back, "d": dead, "l": leaver})
    all_settle(group, view("a", "b"), back)
    assert missing([group.losses.book], lambda name, life: name not in "dl") == ("d", "l")
    assert missing([group.losses.book], lambda name, life: name != "d") == ()


@pytest.mark.parametrize(("known", "era"), [(DIGEST, 3), (OTHER, 2)], ids=["all had settled", "it had not seen that"])
def test_whom_one_on_its_way_out_saw_dead_died_after_its_last_view(known: str, era: int) -> None:
    group = membership()
    gone = membership()
    gone.losses.entered(view("a", "b", "c", "d"))
    gone.losses.entered(view("b", "c", "d"))
    views = (OTHER, DIGEST, *gone.losses.own_views[1:])
    group.losses.resume(False, peers("abcd"), view=known, era=era, lost={incarnation("d"): "d"}, views=views)
    group.losses.incarnation, group.losses.former = incarnation("a", 1), [incarnation("a")]
    others = tuple(map(incarnation, "bc"))
    b, c = (beat(one, era=3, complete=DIGEST, digest=LATER, members=others) for one in "bc")
    dead = beat("d", era=2, complete=OTHER, digest=DIGEST, settled=DIGEST, members=tuple(map(incarnation, "abcd")))
    back = comes_back("b", b, complete=DIGEST)
    group.read(0.0, 0.0, {"b": back, "c": c, "d": dead})
    all_settle(group, view("a", "b"), back)
    assert missing([group.losses.book], lambda name, life: name not in "cd") == ("c", "d")


def test_who_was_seen_dead_before_the_restart_is_missed_with_the_others() -> None:
    group = membership()
    group.losses.resume(False, peers("ab"), view=DIGEST, era=3, lost={incarnation("d"): "d"})
    group.read(0.0, 0.0, {"b": beat("b", era=2, settled=DIGEST)})
    all_settle(group, view("a"))
    assert group.losses.book.missed == [GroupLoss((("b", incarnation("b")), ("d", incarnation("d"))), 1)]


def test_deaths_are_counted_for_those_who_come_back_later() -> None:
    group = old_hand()
    hear(group, "b", "c")
    kill(group, "b")
    group.losses.view_ended(view("a", "b", "c", "witness"))
    assert group.losses.seen_dead == {incarnation("b"): "b"}
    all_settle(group, view("a", "c", "witness"))
    assert (group.losses.book.counted, group.losses.seen_dead, group.losses.book.losses) == ([incarnation("b")], {}, [])


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
    group.losses.view_ended(before)
    group.read(1.5, 1.5, {"b": beat("b", 4, flags=flags), "c": beat("c", 4), "d": beat("d", 4)})
    kill(group, "c")
    group.losses.view_ended(before)
    assert bool(group.losses.book.losses) == (flags == LEFT + LOSSY)
    all_settle(group, view("a", "d", "witness"))
    assert set(group.losses.book.counted) == {incarnation(name) for name in counted}
    assert group.losses.lossy == lossy


def test_who_leaves_in_a_hurry_is_lost_though_its_name_is_taken_at_once() -> None:
    group = old_hand(replication=0)
    hear(group, "b")
    left = beat("b", 3, flags=LEFT + LOSSY)
    group.read(1.0, 1.0, {"b": replace(beat("b"), incarnation=incarnation("b", 7), before=words_after(left))})
    assert group.losses.book.losses == [GroupLoss((("b", incarnation("b")),), 0)]


def test_last_words_that_another_has_written_over_count() -> None:
    """An empty disk has taken the name before anybody has read them, and repeats them."""
    for era, spare in ((2, 1), (3, 0)):
        group = membership()
        group.losses.resume(False, peers("ab"), view=OTHER, era=2)
        empty = replace(beat("b", flags=NEW), incarnation=incarnation("b", 7))
        group.read(0.0, 0.0, {"b": replace(empty, before=words_after(beat("b", era=era)))})
        all_settle(group, view("a"))
        assert group.losses.book.missed == [GroupLoss((("b", incarnation("b")),), spare)]


def test_a_newcomer_counts_no_deaths_for_others() -> None:
    group = membership()
    hear(group, "b", "c")
    kill(group, "b")
    group.losses.view_ended(view("a", "b", "c", "witness"))
    all_settle(group, view("a", "c", "witness"))
    assert group.losses.book.counted == []


def test_eras_grow_by_one_for_all_in_a_view() -> None:
    group = membership()
    assert (group.losses.era, group.losses.base) == (0, 0)
    group.losses.entered(view("a", "b"))
    for _ in range(2):
        group.losses.released(view("a", "b"), [beat("a", era=group.losses.base), beat("b", era=4)])
        assert group.losses.era == 5, "once a view"
        assert group.losses.complete == view("a", "b").digest
    group.losses.entered(view("a"))
    assert group.losses.base == 5
    group.rejoin()
    assert (group.losses.era, group.losses.base) == (5, 5)


def test_of_many_losses_the_last_are_kept() -> None:
    group = membership(replication=0)
    for number in range(MOST_LOSSES + 2):
        group.losses.resume(False, {f"b{number}": ""})
        all_settle(group, view("a"))
    assert len(group.losses.book.missed) == MOST_LOSSES
    assert group.losses.book.missed[-1].members == ((f"b{MOST_LOSSES + 1}", ""),)


# -- who is back for good, and who is not ahead


def test_whose_disk_was_there_when_all_had_settled_is_safe() -> None:
    group = old_hand()
    hear(group, "b", "c", "d")
    for agent in "bc":
        kill(group, agent)
    group.losses.view_ended(view("a", "b", "c", "d"))
    book = group.losses.book
    assert missing([book], lambda name, life: False) == ("b", "c")
    all_settle(group, view("a", "b", "d"), replace(beat("b"), incarnation="0000000f", carried=(incarnation("b"),)))
    assert book.safe == [incarnation("b")]
    assert missing([book], lambda name, life: False) == (), "whatever becomes of that disk now"


def test_an_empty_disk_under_the_name_of_the_lost_makes_none_safe() -> None:
    group = membership()
    group.losses.follow(beat("a", 7))
    assert group.losses.before and not group.losses.carried


def test_who_joins_again_carries_its_own_lives() -> None:
    group = membership()
    lives = []
    for _ in range(MOST_CARRIED + 1):
        lives.append(group.incarnation)
        group.rejoin()
    assert group.losses.carried == tuple(lives[1:])


def test_where_all_are_on_their_way_out_nothing_begins_anew() -> None:
    group = old_hand(replication=2)
    hear(group, "b", "c")
    for number, agent in enumerate("bc"):
        kill(group, agent)
        group.losses.view_ended(view("a", "b", "c"))
        group.losses.released(view(), [beat("a", flags=LEAVING)])
        assert len(group.losses.seen_dead) == number + 1
    assert group.losses.era == 2


@pytest.mark.parametrize("flags", [NEW, NEW + LEAVING])
def test_a_leaver_is_not_ahead_by_a_view_that_it_is_not_in(flags: str) -> None:
    group = membership()
    group.read(0.0, 0.0, {"b": beat("b", flags=flags, settled=DIGEST)})
    kill_among_newcomers(group, "b")
    assert group.losses.lossy == (LEAVING not in flags)


def test_who_has_seen_a_complete_view_is_not_ahead_where_others_were_in_that() -> None:
    for complete, lossy in ((OTHER, False), ("cc" * 8, True)):
        group = membership()
        group.losses.resume(False, {}, view=OTHER, era=2, views=(OTHER,))
        group.read(0.0, 0.0, {"b": beat("b", era=2, complete=complete)})
        kill_among_newcomers(group, "b")
        assert group.losses.lossy == lossy


@pytest.mark.parametrize("counter", [1, 9])
@pytest.mark.parametrize(("flags", "lossy"), [(NEW + FENCED, True), (NEW, False)], ids=["heard nothing", "had looked"])
def test_a_newcomer_leaves_the_judgement_to_who_had_looked_before(flags: str, lossy: bool, counter: int) -> None:
    group = membership()
    here = {
        "b": beat("b", 7, flags=NEW, settled=DIGEST),
        "witness": beat("witness", counter, flags=flags, digest=OTHER),
    }
    group.read(0.0, 0.0, {"a": beat("a", 4, flags=NEW + FENCED), **here})
    kill_among_newcomers(group, "b", counter + 1)
    assert group.losses.lossy == lossy


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12))
@example([("b", False), ("b", False), ("a", True), ("a", True), ("a", True), ("a", True)])
def test_of_two_newcomers_never_each_leaves_the_judgement_to_the_other(steps: list[tuple[str, bool]]) -> None:
    """However often one has beaten that hears nothing. A step is a beat of one of them, and whether it hears what is
    there."""
    groups = {name: membership(me=name) for name in "ab"}
    fenced, counters = dict.fromkeys(groups, FENCED), dict.fromkeys(groups, 0)
    lines = {"c": beat("c", 7, flags=NEW, settled=DIGEST)}
    for time, (name, hears) in enumerate([*steps, ("a", True), ("b", True)]):
        counters[name] += 1
        lines[name] = beat(name, counters[name], flags=NEW + fenced[name], digest=OTHER)
        if hears:
            groups[name].read(float(time), float(time), lines)
            fenced[name] = ""
    for group in groups.values():
        group.watch.hold_dead(incarnation("c"))
        group.read(20.0, 20.0, lines)
        group.losses.view_ended(view("a", "b", "c"))
    assert any(group.losses.lossy for group in groups.values())


def kill_among_newcomers(group: Membership, agent: str, counter: int = 1) -> None:
    """One that has just come names this agent as dead."""
    dead = (incarnation(agent),)
    group.read(1.0, 1.0, {"witness": beat("witness", counter, flags=NEW, digest=OTHER, dead=dead)})
    group.losses.view_ended(view("a", agent, "witness"))


def test_who_is_back_is_not_ahead_by_what_its_name_has_said() -> None:
    """An empty disk had the name of one that is missed, has settled with others, and is here now."""
    for carried, strict in (((incarnation("b", 7),), False), ((), True)):
        group = membership()
        group.losses.resume(False, peers("ab"), view=DIGEST, era=2)
        said = [
            beat("b", digest=DIGEST, settled=DIGEST),
            replace(beat("b", settled=OTHER, digest=OTHER), incarnation=incarnation("b", 7)),
        ]
        here = replace(
            beat("b", flags=NEW, carried=carried), incarnation=incarnation("b", 8), before=words_after(said[0])
        )
        here = replace(here, before=words_after(replace(said[1], before=here.before)))
        group.read(0.0, 0.0, {"b": here})
        all_settle(group, view("a"), here)
        went_on = GroupLoss((("b", incarnation("b", 7)),), 0)
        assert group.losses.book.missed == [went_on if strict else GroupLoss((("b", incarnation("b")),), 1)]


@pytest.mark.parametrize(
    ("first", "then", "ahead"),
    [
        ({}, {}, False),
        ({}, {"era": 2, "complete": LATER}, True),
        ({}, {"members": (incarnation("b"),)}, True),
        ({"dead": (incarnation("a"),)}, {}, True),
        ({"members": (incarnation("b"), incarnation("a")), "digest": DIGEST, "settled": DIGEST}, {}, False),
        ({"members": ()}, {}, True),
    ],
    ids=["met since", "had seen all settle", "never met", "held dead before", "met before", "too many to name"],
)
def test_words_that_a_name_repeats_are_later_than_a_line_that_knows_less_of_this_agent(
    first: dict[str, Any], then: dict[str, Any], ahead: bool
) -> None:
    """One had settled alone, and had not seen that yet when it met another; its name is back with an empty disk."""
    group = membership()
    me, b = incarnation("a"), incarnation("b")
    alone = replace(beat("b", digest=LATER, settled=LATER, flags=NEW, members=(b,)), **first)
    last = replace(beat("b", digest=DIGEST, flags=NEW, members=(b, me)), **then)
    group.read(0.0, 0.0, {"b": alone})
    back = replace(beat("b", flags=NEW, before=words_after(last)), incarnation=incarnation("b", 1))
    group.read(1.0, 1.0, {"b": back})
    group.losses.view_ended(view("a", "b"))
    assert group.losses.lossy == ahead


GONE = incarnation("a", 9)  # a life before


@pytest.mark.parametrize(
    ("there", "carried", "ahead"),
    [
        ((), (), True),
        (("b",), (), True),
        (("b", "a"), (), False),
        (("b", "witness"), (), False),
        (("b", GONE), (), True),
        (("b", GONE), (GONE,), False),
    ],
    ids=["nobody is named", "alone", "this one", "another who lives", "who is away", "one whose disk another has"],
)
def test_nobody_is_ahead_by_a_view_with_one_whose_disk_is_here(
    there: tuple[str, ...], carried: tuple[str, ...], ahead: bool
) -> None:
    """That one may have been dead when the others settled, and not known to be: it has never been in that view."""
    members = tuple(life if life == GONE else incarnation(life) for life in there)
    said = beat("b", flags=NEW, digest=DIGEST, settled=DIGEST, members=members)
    group = membership()
    group.read(0.0, 0.0, {"b": said})
    dead = beat("witness", 2, flags=NEW, digest=OTHER, carried=carried, dead=(incarnation("b"),))
    group.read(1.0, 1.0, {"witness": dead})
    group.losses.view_ended(view("a", "b", "witness"))
    assert group.losses.lossy == ahead
    group = membership()  # and where it is missed, and others have taken its name
    group.losses.resume(False, peers("ab"), view=OTHER, era=1)
    empty = beat("b", flags=NEW, digest=OTHER, carried=carried, before=words_after(said))
    empty = replace(empty, incarnation=incarnation("b", 7))
    witness = beat("witness", flags=NEW, digest=OTHER)
    group.read(0.0, 0.0, {"b": empty, "witness": witness})
    all_settle(group, view("a", "witness"), empty, witness)
    assert [loss.spare for loss in group.losses.book.missed] == [0 if ahead else 1]


def test_who_was_in_the_view_of_one_ahead_and_is_lost_too_is_of_the_same_loss() -> None:
    """If it is back it has copies of what the other knew, or the other was not ahead."""
    members = (incarnation("b"), incarnation("c"))
    said = beat("b", flags=NEW, digest=DIGEST, settled=DIGEST, members=members)
    group = membership()
    group.read(0.0, 0.0, {"b": said, "c": beat("c", flags=NEW, digest=DIGEST, members=members)})
    group.read(1.0, 1.0, {"b": replace(said, counter=said.counter + 1)})  # it is heard, the other never
    group.read(2.0, 2.0, {"witness": beat("witness", 2, flags=NEW, digest=OTHER, dead=members)})
    group.losses.view_ended(view("a", "b", "c", "witness"))
    assert group.losses.lossy
    both = (("b", incarnation("b")), ("c", incarnation("c")))
    assert {frozenset(loss.members) for loss in group.losses.book.losses} == {frozenset(both)}
    assert missing([group.losses.book], lambda name, life: name == "c") == ()
    assert missing([group.losses.book], lambda name, life: False) == ("b", "c")


def test_an_own_life_before_is_one_whose_disk_is_here() -> None:
    for former, ahead in (([], True), ([GONE], False)):
        group = membership()
        group.losses.former = former
        said = beat("b", flags=NEW, settled=DIGEST, members=(incarnation("b"), GONE))
        group.read(0.0, 0.0, {"b": said})
        kill_among_newcomers(group, "b")
        assert group.losses.lossy == ahead
