"""When the crawl is over: two reads, everybody passive in one settled view, nothing done between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_ubi.protocol.beat import FENCED, LEAVING, LEFT, LOSSY, NEW, PASSIVE, Beat
from scrapy_ubi.protocol.quiescence import Quiescence

DIGEST, OTHER = "00000000000000ff", "00000000000000ee"


def beat(agent: str, counter: int = 1, **rest: object) -> Beat:
    quiet = Beat(f"{ord(agent):08x}", 0, 20, DIGEST, DIGEST, PASSIVE, activity=5, counter=counter)
    return replace(quiet, **rest)  # type: ignore[arg-type]


def group(counter: int, **changed: Beat) -> dict[str, Beat]:
    return {agent: changed.get(agent, beat(agent, counter)) for agent in "abc"}


def over(*reads: dict[str, Beat], digest: str = DIGEST) -> list[bool]:
    """What each of these reads says."""
    quiescence = Quiescence()
    return [quiescence.read(beats, digest, frozenset(beats)) for beats in reads]


def test_over_at_the_second_quiet_read_in_which_everybody_has_beaten() -> None:
    assert over(group(1), group(2)) == [False, True]


def test_half_an_end_is_one_quiet_read() -> None:
    quiescence = Quiescence()
    seen = []
    for beats in (group(1, b=beat("b", flags="")), group(2), group(3), group(4, b=beat("b", 4, flags=""))):
        quiescence.read(beats, DIGEST, frozenset(beats))
        seen.append(quiescence.is_half_seen)
    assert seen == [False, True, True, False]


def test_one_read_is_not_enough() -> None:
    assert over(group(1)) == [False]
    assert over(group(1), group(1), group(1)) == [False, False, False], "the same beats again say nothing new"


def test_everybody_has_to_beat_in_between() -> None:
    assert over(group(1), group(2, b=beat("b", 1)), group(3, b=beat("b", 1)), group(4)) == [False, False, False, True]


def test_missed_beats_do_not_matter() -> None:
    assert over(group(1), group(2, b=beat("b", 1)), group(2, b=beat("b", 9))) == [False, False, True]


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("not passive", {"flags": ""}),
        ("fenced", {"flags": FENCED}),
        ("leaving", {"flags": LEAVING}),
        ("left", {"flags": PASSIVE + LEFT}),
        ("in another view", {"digest": OTHER}),
        ("settled for another view", {"settled": OTHER}),
        ("not settled", {"settled": ""}),
        ("a pending host", {"pending": ("00000000000000aa",)}),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
def test_not_over_while_anybody_is(what: str, change: dict[str, object]) -> None:
    for agent in "ac":
        busy = [group(n, **{agent: beat(agent, n, **change)}) for n in range(1, 5)]
        assert over(*busy) == [False] * 4, what
        assert over(*busy, group(5), group(6)) == [False] * 5 + [True], "it begins anew afterwards"
        assert over(group(1), *busy[1:]) == [False] * 4


def test_where_seeds_may_come_the_reads_are_of_after_a_look_at_them() -> None:
    quiescence = Quiescence()
    quiescence.allow_outside_entries()

    def read(number: int, sent: float) -> bool:
        return quiescence.read(group(number), DIGEST, frozenset("abc"), sent)

    assert [read(1, 1.0), read(2, 2.0)] == [False, False], "nobody has looked yet"
    quiescence.look("mark 1", 2.5)
    assert [read(3, 2.4), read(4, 3.0), read(5, 4.0)] == [False, False, True], "the first was asked for before"
    quiescence.look("mark 1", 4.5)
    assert read(6, 5.0), "nothing was written since"
    quiescence.look("mark 2", 5.5)
    assert [read(7, 6.0), read(8, 7.0)] == [False, True], "one was, and is taken by now"
    quiescence.look("", 7.5)
    assert [read(9, 8.0), read(10, 9.0)] == [False, False], "one waits"
    quiescence.look("mark 2", 9.5)
    quiescence.begin_again()
    assert [read(11, 10.0), read(12, 11.0)] == [False, True]


@pytest.mark.parametrize("flags", [PASSIVE + LOSSY, PASSIVE + NEW])
def test_over_whatever_else_is_said(flags: str) -> None:
    assert over(*(group(n, b=beat("b", n, flags=flags)) for n in (1, 2))) == [False, True]


@pytest.mark.parametrize(
    "change", [{"activity": 6}, {"incarnation": "ffffffff"}, {"epoch": 1}], ids=["activity", "incarnation", "epoch"]
)
def test_not_over_when_something_happened_in_between(change: dict[str, object]) -> None:
    """It was passive in both reads, and was not in between: mail may have gone round."""
    reads = [group(1), *(group(n, b=beat("b", n, **change)) for n in (2, 3))]
    assert over(*reads) == [False, False, True], "counted from the read in which it was seen"


def test_not_over_when_somebody_came_or_went() -> None:
    without = {agent: one for agent, one in group(2).items() if agent != "c"}
    assert over(group(1), without) == [False, False]
    assert over(without, group(3)) == [False, False]


def test_not_over_in_a_view_that_is_not_the_readers() -> None:
    assert over(group(1), group(2), digest=OTHER) == [False, False]


def test_nobody_is_not_the_end() -> None:
    assert over({}, {}) == [False, False]


def test_members_missing_from_the_read_are_waited_for() -> None:
    quiescence = Quiescence()
    members = frozenset("abcd")
    assert [quiescence.read(group(n), DIGEST, members) for n in (1, 2, 3)] == [False] * 3


def test_strangers_in_the_read_do_not_count() -> None:
    quiescence = Quiescence()
    reads = [group(n) | {"z": beat("z", 1, flags="")} for n in (1, 2)]
    assert [quiescence.read(read, DIGEST, frozenset("abc")) for read in reads] == [False, True]


def test_alone() -> None:
    assert over({"a": beat("a", 1)}, {"a": beat("a", 2)}) == [False, True]
