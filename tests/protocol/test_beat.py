"""Beats as lines of text, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.view import Member, View
from tests.support.builders import hexes

INCARNATION, DIGEST = "0123abcd", "00000000000000ff"


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
    era=st.integers(0, 10**9 - 1),
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
    assert len(line) < 1500
    assert line.count(" ") == 9, "ten words, so that a person can count them"


GOOD = f"{INCARNATION}.0 7 200 {DIGEST} - - 3 - - 0"


def test_a_line_by_hand() -> None:
    assert Beat.parse(GOOD) == Beat(INCARNATION, 0, 200, DIGEST, activity=3, counter=7)
    full = f"{INCARNATION}.2 7 200 {DIGEST} {DIGEST} lp 3 {DIGEST},{'ab' * 8} {INCARNATION} 5"
    assert Beat.parse(full) == Beat(
        INCARNATION, 2, 200, DIGEST, DIGEST, "lp", 3, (DIGEST, "ab" * 8), (INCARNATION,), counter=7, era=5
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
        GOOD.removesuffix(" 0"),  # of layout 2: without an era
        GOOD.removesuffix("0") + "-1",
        GOOD.removesuffix("0") + f"{10**9}",
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
