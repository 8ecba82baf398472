"""Tables fit, and their columns stand below one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.monitor.text_table import USUAL, WIDEST, Column, count, folded, pairs, rate, room, size, span, table
from scrapy_ubi.ground.untrusted.terminal_text import width

COLUMNS = (Column("agent"), Column("machine"), Column("pages", True), Column("seen", True))
CELL = st.text(alphabet="abc\x1b\n日é", max_size=120)
FIGURE = st.integers(0, 2**63).map(count)


def test_table_aligns_text_left_and_figures_right() -> None:
    lines = table(COLUMNS, [["a1", "box", "7", "1 s"], ["agent-2", "b", "1,234", "12 s"]])
    assert lines == [
        "agent    machine  pages  seen",
        "a1       box          7   1 s",
        "agent-2  b        1,234  12 s",
    ]


@given(st.lists(st.tuples(CELL, CELL, FIGURE, FIGURE), max_size=6))
def test_table_fits_and_is_printable(rows: list[tuple[str, str, str, str]]) -> None:
    lines = table(COLUMNS, rows)
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= WIDEST and line.isprintable() for line in lines)


def test_table_cuts_the_longest_text_first() -> None:
    lines = table(COLUMNS, [["a" * 20, "m" * 200, "1", "2"]])
    assert "a" * 20 in lines[1]
    assert width(lines[1]) == room()


@pytest.mark.parametrize(("columns", "taken"), [("40", USUAL), ("80", 80), ("93", 93), ("300", WIDEST)])
def test_lines_are_as_wide_as_the_terminal_within_bounds(
    monkeypatch: pytest.MonkeyPatch, columns: str, taken: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width(table(COLUMNS, [["a" * 200, "m" * 200, "1", "2"]])[1]) == taken
    assert width(pairs([("n", "1" * 200)])[0]) == width(folded("x" * 200)[0]) == taken


def test_a_column_that_can_be_spared_goes_before_texts_are_cut_short() -> None:
    columns = (Column("agent"), Column("view", spare=2), Column("capacity", True, spare=1), Column("url"))
    row = ["a" * 14, "v" * 8, "1", "u" * 300]
    assert table(columns, [row], 44)[0].split() == ["agent", "capacity", "url"]
    assert table(columns, [row], 36)[0].split() == ["agent", "url"]
    assert table(columns, [row], 60)[0].split() == ["agent", "view", "capacity", "url"]
    assert "a" * 14 in table(columns, [row], 36)[1]


def test_a_column_that_is_cut_first_leaves_its_room_to_the_others() -> None:
    columns = (Column("host"), Column("agent", cut_first=True))
    (_, line) = table(columns, [["h" * 20, "a" * 20]], 32)
    assert line == "h" * 20 + "  " + "aaaaa…aaaa"


def test_pairs_stand_below_one_another() -> None:
    assert pairs([("n", "1"), ("overlap", "0")]) == ["n        1", "overlap  0"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (9_999_999, "9,999,999"), (12_345_678, "12.3 M"), (10**11, "100.0 G"), (2**63, "9.2e+18")],
)
def test_count(number: int, shown: str) -> None:
    assert count(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59, "59 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (10**9, "11,574 d 1 h"),
    ],
)
def test_span(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_size_and_rate() -> None:
    assert (size(999), size(40_000), size(3_100_000)) == ("999 B", "40.0 kB", "3.1 MB")
    assert (rate(9.54), rate(1e9)) == ("9.5", "1.0e+09")
