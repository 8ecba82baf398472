"""Beats as lines of text, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.beat import LEFT, LOSSY, MOST_CARRIED, MOST_NAMED, RELIEVED, Beat, LastWords, words_after
from scrapy_ubi.protocol.view import Member, View
from tests.support.builders import hexes

INCARNATION, DIGEST = "0123abcd", "00000000000000ff"


words = st.builds(
    LastWords,
    incarnation=hexes(8),
    era=st.integers(0, 10**9 - 1),
    complete=st.just("") | hexes(16),
    digest=hexes(16),
    settled=st.booleans(),
    flags=st.sets(st.sampled_from("lLpfxnobmhw")).map(lambda flags: "".join(sorted(flags))),
    members=st.lists(hexes(8), max_size=MOST_NAMED).map(tuple),
)
beats = st.builds(
    Beat,
    incarnation=hexes(8),
    epoch=st.integers(0, 10**9 - 1),
    replicas=st.integers(1, 10**6 - 1),
    digest=hexes(16),
    settled=st.just("") | hexes(16),
    flags=st.sets(st.sampled_from("lLpfxnobmhw")).map(lambda flags: "".join(sorted(flags))),
    activity=st.integers(0, 10**15 - 1),
    pending=st.lists(hexes(16), max_size=64).map(tuple),
    dead=st.lists(hexes(8), max_size=16).map(tuple),
    carried=st.lists(hexes(8), max_size=MOST_CARRIED).map(tuple),
    members=st.lists(hexes(8), max_size=MOST_NAMED).map(tuple),
    era=st.integers(0, 10**9 - 1),
    complete=st.just("") | hexes(16),
    before=st.lists(words, max_size=4).map(tuple),
)
counters = st.integers(0, 10**15 - 1)


@given(beats, counters)
def test_beat_is_what_its_line_says(beat: Beat, counter: int) -> None:
    assert Beat.parse(beat.line(counter)) == replace(beat, counter=counter)


@given(beats, counters)
def test_line_of_a_beat_is_short_printable_text(beat: Beat, counter: int) -> None:
    line = beat.line(counter)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 2900
    words = 12 + bool(beat.before)
    assert line.count(" ") == words - 1, "twelve words, so that a person can count them, and one of the time before"


GOOD = f"{INCARNATION}.0 7 200 {DIGEST} - - 3 - - - - 0"


def test_a_line_by_hand() -> None:
    assert Beat.parse(GOOD) == Beat(INCARNATION, 0, 200, DIGEST, activity=3, counter=7)
    full = f"{INCARNATION}.2 7 200 {DIGEST} {DIGEST} lp 3 {DIGEST},{'ab' * 8} {INCARNATION} 0000000a,0000000b "
    full += f"0000000a{INCARNATION} 5"
    assert Beat.parse(full) == Beat(
        INCARNATION,
        2,
        200,
        DIGEST,
        DIGEST,
        "lp",
        3,
        (DIGEST, "ab" * 8),
        (INCARNATION,),
        ("0000000a", "0000000b"),
        ("0000000a", INCARNATION),
        7,
        5,
    )


def test_who_takes_a_name_repeats_the_last_words_of_those_who_had_it() -> None:
    there = ("0000000b", INCARNATION)
    first = Beat(INCARNATION, 0, 200, DIGEST, DIGEST, members=there, era=3, counter=9)
    second = Beat("0000000b", 0, 200, "ee" * 8, flags=LEFT, before=words_after(first))
    assert [words.beat for words in words_after(second)] == [
        Beat(INCARNATION, 0, 1, DIGEST, DIGEST, members=there, era=3),
        Beat("0000000b", 0, 1, "ee" * 8, flags=LEFT),
    ]
    beat = first
    for number in range(9):
        beat = replace(first, incarnation=f"{number:08x}", before=words_after(beat))
    assert [words.incarnation for words in beat.before] == [f"{number:08x}" for number in (4, 5, 6, 7)]


@pytest.mark.parametrize(("flags", "all_left"), [("", False), (LEFT, True), (LEFT + LOSSY, False), (RELIEVED, False)])
def test_who_has_left_in_a_lossy_crawl_says_whether_others_have_all(flags: str, all_left: bool) -> None:
    beat = Beat(INCARNATION, 0, 200, DIGEST, flags=flags)
    assert beat.has_left_all == all_left
    assert replace(beat, flags=LEFT + LOSSY + RELIEVED).has_left_all


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
        GOOD.replace(" - - 0", f" {','.join([INCARNATION] * (MOST_CARRIED + 1))} - 0"),
        GOOD.replace(" - 0", f" {INCARNATION * (MOST_NAMED + 1)} 0"),
        GOOD.replace(" - 0", f" {INCARNATION[1:]} 0"),
        GOOD.removesuffix(" - - 0"),  # of layout 2: without an era
        GOOD.replace(" - - 0", " 0"),  # of layout 3: without the lives before
        GOOD.replace(" - 0", " 0"),  # of layout 4: without the members of the view
        GOOD.removesuffix("0") + "-1",
        GOOD.removesuffix("0") + f"{10**9}",
        GOOD + " -",
        GOOD + ".",
        GOOD + f" {INCARNATION}.0..{DIGEST}.1.",
        GOOD + f" {INCARNATION}.0..{DIGEST}.2..",
        GOOD + f" {INCARNATION}.0..{DIGEST}.1.z.",
        GOOD + " " + ",".join([f"{INCARNATION}.0..{DIGEST}.1.."] * 5),
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
