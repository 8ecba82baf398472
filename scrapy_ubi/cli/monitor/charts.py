"""Charts of the printed report: SVG as text, drawn here, for a page whose style has the colours.

Rules of this module:

* Everything is told apart by more than colour: by name beside it, by dashes, by place.
* No style and no colour stands in a chart: elements have classes (`html_report`), so that one drawing is light, dark
  and printed.
* All text is escaped here, and fit to be printed (`plain`): hosts and reasons are written by others.
* A value that is not known (None) is a gap in its line, never 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.terminal_text import cut_middle, plain, width

WIDE, NARROW = 1100, 520  # of a chart, in px of a page that is read on a screen
LEFT, RIGHT = 60, 14
LETTER = 6.3  # width of a character of 11 px, about
LABEL = 176  # of a bar
BAR, GAP = 13, 7
MOST_LABEL = 27  # characters

Values = Sequence[float | None]


class Line(NamedTuple):
    """A curve: its name, its values, its class (`a`, `b`, `c`, with dashes `d`)."""

    name: str
    values: Values
    look: str = "a"
    filled: bool = False


class EventMark(NamedTuple):
    """Something that happened at a time."""

    time: float
    text: str


class Bar(NamedTuple):
    """A bar of one or two parts, and what is said at its end."""

    label: str
    value: float
    note: str
    more: float = 0.0


class Band(NamedTuple):
    """A range of values that is to be expected."""

    low: float
    high: float


def text(x: float, y: float, words: str, look: str = "", anchor: str = "start") -> str:
    """Words at a place."""
    shown = escape(plain(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{_class(look)}>{shown}</text>'


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{look}"/>'


def _picture(wide: float, height: float, title: str, parts: Iterable[str]) -> str:
    head = f'<svg viewBox="0 0 {wide:.0f} {height:.0f}" role="img" aria-label="{escape(plain(title))}">'
    return "\n".join([head, f"<title>{escape(plain(title))}</title>", *parts, "</svg>"])


# -- over time


def over_time(
    title: str,
    times: Sequence[float],
    lines: Sequence[Line],
    marks: Sequence[EventMark] = (),
    height: int = 150,
    rule: float | None = None,
    unit: str = "",
    wide: int = NARROW,
    whole: bool = False,
) -> str:
    """Lines over time, from 0 on. `marks` are events, `rule` a value to be compared with; `unit` goes with the
    figures, which are `whole` numbers, if so."""
    begin, end = (times[0], times[-1]) if times else (0.0, 1.0)
    most = max([rule or 0.0, *(value for line in lines for value in line.values if value is not None)])
    place = _Axes((begin, end if end > begin else begin + 1), most, (wide, height), whole)
    parts = [*place.heights(unit), *place.times()]
    for mark in marks:
        if begin <= mark.time <= end:
            x = place.x(mark.time)
            parts.append(
                f"<g>{_line(x, place.top, x, place.floor, 'mark')}<title>{escape(plain(mark.text))}</title></g>"
            )
    if rule is not None:
        parts.append(_line(LEFT, place.y(rule), place.right, place.y(rule), "rule"))
    for line in lines:
        parts += place.curve(times, line)
    parts += _legend(lines)
    return _picture(wide, height, title, parts)


def _legend(lines: Sequence[Line]) -> list[str]:
    parts, x = [], float(LEFT)
    for line in lines:
        parts.append(_line(x, 10, x + 22, 10, f"line {line.look}"))
        parts.append(text(x + 28, 14, line.name, "name"))
        x += 28 + LETTER * width(line.name) + 22
    return parts


class _Axes:
    """Where a time and a value stand."""

    top = 24

    def __init__(self, times: tuple[float, float], most: float, size: tuple[int, int], whole: bool) -> None:
        self._begin, self._end = times
        self.right = size[0] - RIGHT
        self.floor = size[1] - 22
        self._step = max(tick(most, 4 if self.floor > 100 else 2), 1.0 if whole else 0.0)
        self.most = max(self._step, math.ceil(most / self._step - 1e-9) * self._step)

    def x(self, at: float) -> float:
        return LEFT + (self.right - LEFT) * (at - self._begin) / (self._end - self._begin)

    def y(self, value: float) -> float:
        return self.floor - (self.floor - self.top) * value / self.most

    def heights(self, unit: str) -> list[str]:
        parts = []
        for number in range(round(self.most / self._step) + 1):
            value = number * self._step
            parts.append(_line(LEFT, self.y(value), self.right, self.y(value), "axis" if not number else "grid"))
            parts.append(text(LEFT - 6, self.y(value) + 4, f"{short(value)}{unit if value else ''}", "tick", "end"))
        return parts

    def times(self) -> list[str]:
        parts = []
        for at, words in time_ticks(self._begin, self._end, 10 if self.right > NARROW else 5):
            x = self.x(at)
            anchor = "end" if x > self.right - 22 else "middle"
            parts += [_line(x, self.floor, x, self.floor + 4, "axis"), text(x, self.floor + 17, words, "tick", anchor)]
        return parts

    def curve(self, times: Sequence[float], line: Line) -> list[str]:
        parts = []
        for points in _runs(times, line.values):
            places = " ".join(f"{self.x(at):.1f},{self.y(value):.1f}" for at, value in points)
            if len(points) == 1:
                (at, value) = points[0]
                parts.append(f'<circle cx="{self.x(at):.1f}" cy="{self.y(value):.1f}" r="2" class="dot {line.look}"/>')
                continue
            if line.filled:
                first, last = self.x(points[0][0]), self.x(points[-1][0])
                ends = f"{first:.1f},{self.floor} {places} {last:.1f},{self.floor}"
                parts.append(f'<polygon points="{ends}" class="area {line.look}"/>')
            parts.append(f'<polyline points="{places}" class="line {line.look}"/>')
        return parts


def _runs(times: Sequence[float], values: Values) -> list[list[tuple[float, float]]]:
    """The stretches in which values are known."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(times, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at, value))
    return [run for run in runs if run]


# -- bars


def bars(title: str, rows: Sequence[Bar], rule: float | None = None, band: Band | None = None) -> str:
    """A bar for each row, its label before it. `rule`: a value to be compared with, `band` a range around it."""
    most = max(
        [rule or 0.0, band.high if band is not None else 0.0, *(row.value + row.more for row in rows)], default=1
    )
    notes = max((width(plain(row.note)) for row in rows), default=0) * LETTER + 10
    wide = (NARROW - LABEL - notes) / (most or 1.0)
    height = len(rows) * (BAR + GAP) + (22 if rule is not None else 4)
    floor = len(rows) * (BAR + GAP)
    parts = []
    if band is not None:
        low = max(0.0, band.low)
        parts.append(_box(LABEL + low * wide, 0, (band.high - low) * wide, floor, "band"))
    if rule is not None:
        x = LABEL + rule * wide
        parts += [_line(x, 0, x, floor + 3, "rule"), text(x, floor + 16, short(rule), "tick", "middle")]
    for number, row in enumerate(rows):
        y = number * (BAR + GAP) + GAP / 2
        label = cut_middle(plain(row.label), MOST_LABEL)
        parts.append(f"<g><title>{escape(plain(f'{row.label}: {row.note}'))}</title>")
        parts.append(text(LABEL - 8, y + BAR - 3, label, "label", "end"))
        parts.append(_box(LABEL, y, row.value * wide, BAR, "bar a"))
        if row.more:
            parts.append(_box(LABEL + row.value * wide, y, row.more * wide, BAR, "bar b"))
        parts.append(text(LABEL + (row.value + row.more) * wide + 6, y + BAR - 3, row.note, "note") + "</g>")
    return _picture(NARROW, height, title, parts)


def _box(x: float, y: float, wide: float, high: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, wide):.1f}" height="{high:.1f}" class="{look}"/>'


# -- figures


def tick(most: float, number: int) -> float:
    """The step of so many round figures, about, from 0 to `most`."""
    if most <= 0 or not math.isfinite(most):
        return 1.0
    rough = most / number
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * (1 - 1e-9))


def short(value: float) -> str:
    """A figure in few characters."""
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= size:
            return f"{value / (1e3 if letter == ' k' else size):.4g}{letter}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def time_ticks(begin: float, end: float, number: int = 7) -> list[tuple[float, str]]:
    """Some round times (UTC) between two, and how they are written."""
    wanted = (end - begin) / number
    step = next((step for step in _TIME_STEPS if step >= wanted), math.ceil(wanted / 86_400) * 86_400)
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 43_200 else "%d %b"
    first = math.ceil(begin / step) * step
    count = int((end - first) / step) + 1
    return [(at, time.strftime(form, time.gmtime(at))) for at in (first + step * number for number in range(count))]
