"""Charts as text: what stands where, gaps, and that nothing from outside is markup."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from scrapy_ubi.cli.monitor import charts
from scrapy_ubi.cli.monitor.charts import NARROW, Band, Bar, EventMark, Line, bars, over_time, short, tick, time_ticks

TIMES = [1_800_000_000.0 + 10 * number for number in range(5)]
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[2J\u202e</svg><script>"


def points(drawn: str, look: str = "polyline") -> list[list[tuple[float, float]]]:
    found = re.findall(rf'<{look} points="([^"]*)"', drawn)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in one.split())] for one in found]


def test_a_line_goes_from_left_to_right_and_higher_is_more() -> None:
    (line,) = points(over_time("t", TIMES, [Line("pages", [0, 5, 10, 5, 0])]))
    xs, ys = [x for x, _ in line], [y for _, y in line]
    assert xs == sorted(xs)
    assert (xs[0], xs[-1]) == (charts.LEFT, NARROW - charts.RIGHT)
    assert ys[0] == ys[4] > ys[1] > ys[2]


def test_what_is_not_known_is_a_gap() -> None:
    drawn = over_time("t", TIMES, [Line("pages", [1, 2, None, None, 3])])
    assert [len(line) for line in points(drawn)] == [2]
    assert drawn.count("<circle") == 1  # one that stands alone


def test_events_are_drawn_with_what_they_say_and_only_within() -> None:
    drawn = over_time(
        "t", TIMES, [Line("p", [1] * 5)], [EventMark(TIMES[1], "a2: dead"), EventMark(TIMES[4] + 99, "later")]
    )
    assert "a2: dead" in drawn
    assert "later" not in drawn


@pytest.mark.parametrize("values", [[0, 0, 0, 0, 0], [None] * 5, [1e15, 0, 3, 2, 1], [0.0001] * 5])
def test_any_values_are_drawn_within_the_picture(values: list[float | None]) -> None:
    drawn = over_time("t", TIMES, [Line("p", values, filled=True)], rule=1.0, whole=True)
    ElementTree.fromstring(drawn)
    for shape in [*points(drawn), *points(drawn, "polygon")]:
        assert all(0 <= x <= NARROW and 0 <= y <= 150 for x, y in shape)


def test_one_time_or_none_is_drawn_too() -> None:
    ElementTree.fromstring(over_time("t", [], [Line("p", [])]))
    ElementTree.fromstring(over_time("t", TIMES[:1], [Line("p", [3])]))


def test_bars_have_their_label_and_their_length() -> None:
    drawn = bars("hosts", [Bar("a.example", 10, "10 done", 5), Bar("b.example", 5, "5 done")])
    lengths = [float(found) for found in re.findall(r'width="([0-9.]+)" height="13.0" class="bar a"', drawn)]
    assert lengths[0] == pytest.approx(2 * lengths[1], abs=0.2)
    assert re.search(r'class="label">a\.example</text>', drawn)
    assert "5 done" in drawn


def test_a_rule_and_a_band_stand_around_it() -> None:
    drawn = bars("balance", [Bar("a", 1.2, "x"), Bar("b", 0.8, "y")], 1.0, Band(-0.5, 1.5))
    ElementTree.fromstring(drawn)
    rule = re.search(r'<line x1="([0-9.]+)"[^>]*class="rule"', drawn)
    band = re.search(r'<rect x="([0-9.]+)" y="0.0" width="([0-9.]+)"[^>]*class="band"', drawn)
    assert rule is not None
    assert band is not None
    assert float(band[1]) == charts.LABEL  # nothing is below 0
    assert float(band[1]) < float(rule[1]) < float(band[1]) + float(band[2])


def test_nothing_from_outside_is_markup() -> None:
    for drawn in (
        bars(HOSTILE, [Bar(HOSTILE * 3, 1, HOSTILE)]),
        over_time(HOSTILE, TIMES, [Line(HOSTILE, [1] * 5)], [EventMark(TIMES[0], HOSTILE)]),
    ):
        tree = ElementTree.fromstring(drawn)
        assert {element.tag for element in tree.iter()} <= {
            *("svg", "title", "g", "line", "rect", "text", "polyline", "polygon", "circle"),
        }
        assert "\x1b" not in drawn
        assert "\u202e" not in drawn


def test_steps_are_round() -> None:
    assert [tick(most, 4) for most in (0, 1, 7, 23, 100, 1e6)] == [1, 0.25, 2, 10, 25, 250_000]
    assert [short(value) for value in (0, 0.25, 5, 1500, 25_000, 2.5e6, 3e9)] == [
        *("0", "0.25", "5", "1,500", "25 k", "2.5 M", "3 G"),
    ]


@pytest.mark.parametrize("span", [5, 60, 3600, 86_400, 30 * 86_400, 400 * 86_400])
def test_times_are_round_and_few(span: int) -> None:
    found = time_ticks(1_800_000_000, 1_800_000_000 + span)
    assert 2 <= len(found) <= 9
    assert all(1_800_000_000 <= at <= 1_800_000_000 + span for at, _ in found)
