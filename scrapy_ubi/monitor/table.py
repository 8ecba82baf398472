"""Plain text tables for people: aligned columns, never wider than 100."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.monitor.plain import cut, cut_middle, plain, width

WIDEST = 100  # columns of a line
GAP = "  "
NARROWEST = 8  # columns to which a text column is cut when the table is too wide


class Column(NamedTuple):
    """A column: its heading, and whether it holds figures (set to the right, never cut)."""

    name: str
    figures: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], widest: int = WIDEST) -> list[str]:
    """The lines of a table, the headings first. Cells are made plain; text columns are cut in the middle until it
    fits.
    """
    cells = [[column.name for column in columns]] + [[plain(cell) for cell in row] for row in rows]
    widths = [max(width(row[i]) for row in cells) for i in range(len(columns))]
    spare = sum(widths) + len(GAP) * (len(columns) - 1) - widest
    while spare > 0:
        texts = [i for i, column in enumerate(columns) if not column.figures and widths[i] > NARROWEST]
        if not texts:
            break
        broadest = max(texts, key=lambda i: widths[i])
        step = min(spare, widths[broadest] - NARROWEST)
        # Cut down to the next broadest first, so that two long columns share the loss.
        others = [widths[i] for i in texts if widths[i] < widths[broadest]]
        if others:
            step = min(step, max(1, widths[broadest] - max(others)))
        elif len(texts) > 1:
            step = min(step, max(1, spare // len(texts)))
        widths[broadest] -= step
        spare -= step
    return [_line(columns, row, widths)[:widest] for row in cells]


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    parts = []
    for column, cell, room in zip(columns, row, widths, strict=True):
        shown = cut_middle(cell, room)
        padding = " " * (room - width(shown))
        parts.append(padding + shown if column.figures else shown + padding)
    return GAP.join(parts).rstrip()


def pairs(rows: Sequence[tuple[str, str]], widest: int = WIDEST) -> list[str]:
    """Lines of a name and a value each, the values below one another."""
    room = max((width(name) for name, _ in rows), default=0)
    return [cut(f"{name}{' ' * (room - width(name))}{GAP}{plain(value)}", widest).rstrip() for name, value in rows]


def folded(text: str, widest: int = WIDEST) -> list[str]:
    """A text in as many lines as it needs, broken between words where that can be: nothing of it is left off."""
    return [cut(line, widest) for line in textwrap.wrap(plain(text), widest, break_on_hyphens=False)]


def count(number: int) -> str:
    """A count: all digits below ten million, rounded above."""
    if number < 10_000_000:
        return f"{number:,}"
    for size, letter in ((1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P")):
        if number < 1000 * size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.1e}"


def rate(number: float) -> str:
    """A number a second, one decimal."""
    return f"{number:.1f}" if number < 1e7 else f"{number:.1e}"


def size(number: int) -> str:
    """Bytes, in decimal units."""
    return f"{number} B" if number < 1000 else f"{number / 1e3:.1f} kB" if number < 1e6 else f"{number / 1e6:,.1f} MB"


def span(seconds: float) -> str:
    """A length of time in at most two units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, letter, next_unit, next_letter in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            return f"{whole // unit:,} {letter} {whole % unit // next_unit} {next_letter}"
    return f"{whole} s"
