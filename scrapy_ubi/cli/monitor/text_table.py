"""Plain text tables for people: aligned columns, never wider than the terminal.

Rules of this module:

* A line takes as many columns as the terminal has, `USUAL` at least and `WIDEST` at most; `USUAL` where the output
  goes to no terminal.
* Where a table is too wide, first the columns that can be spared are left out, then texts are cut in the middle.
  Figures are never cut.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain, width

USUAL, WIDEST = 80, 100  # columns of a line
GAP = "  "
READABLE = 14  # columns of a text that is told from others like it: a column that can be spared goes before that
NARROWEST = 8  # columns to which a text column is cut when the table is too wide; half of it where that is not enough


class Column(NamedTuple):
    """A column: its heading, whether it holds figures (set to the right, never cut), whether it may be left out where
    the table is too wide (the highest `spare` first), and whether it is cut before the other texts are."""

    name: str
    figures: bool = False
    spare: int = 0
    cut_first: bool = False


def room() -> int:
    """Columns that a line may take."""
    return min(WIDEST, max(USUAL, shutil.get_terminal_size((USUAL, 24)).columns))


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], widest: int | None = None) -> list[str]:
    """The lines of a table, the headings first. Cells are made plain."""
    most = room() if widest is None else widest
    cells = [[column.name for column in columns]] + [[plain(cell) for cell in row] for row in rows]
    shown = _kept(columns, cells, most)
    columns, cells = [columns[i] for i in shown], [[row[i] for i in shown] for row in cells]
    widths = _fitted(columns, _widths(cells), most)
    return [_line(columns, row, widths)[:most] for row in cells]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*cells, strict=True)]


def _kept(columns: Sequence[Column], cells: Sequence[Sequence[str]], most: int) -> list[int]:
    """Which columns are shown: all, or those without which texts would be cut too short."""
    wanted = [
        wide if column.figures else min(wide, NARROWEST if column.cut_first else READABLE)
        for column, wide in zip(columns, _widths(cells), strict=True)
    ]
    shown = list(range(len(columns)))
    for i in sorted((i for i in shown if columns[i].spare), key=lambda i: -columns[i].spare):
        if sum(wanted[i] for i in shown) + len(GAP) * (len(shown) - 1) <= most:
            break
        shown.remove(i)
    return shown


def _fitted(columns: Sequence[Column], widths: list[int], most: int) -> list[int]:
    """The widths of the columns when texts are cut until the table fits, if it can."""
    texts = [i for i, column in enumerate(columns) if not column.figures]
    first = [i for i in texts if columns[i].cut_first]
    for some, least in ((first, NARROWEST), (texts, NARROWEST), (texts, NARROWEST // 2)):
        spare = sum(widths) + len(GAP) * (len(columns) - 1) - most
        while spare > 0 and (broad := [i for i in some if widths[i] > least]):
            step = _step(broad, widths, least, spare)
            widths[max(broad, key=lambda i: widths[i])] -= step
            spare -= step
    return widths


def _step(broad: Sequence[int], widths: Sequence[int], least: int, spare: int) -> int:
    """By how much the broadest of these columns is made narrower: down to the next broadest first, so that two long
    ones share the loss."""
    broadest = max(widths[i] for i in broad)
    step = min(spare, broadest - least)
    others = [widths[i] for i in broad if widths[i] < broadest]
    if others:
        return min(step, max(1, broadest - max(others)))
    return min(step, max(1, spare // len(broad))) if len(broad) > 1 else step


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    parts = []
    for column, cell, room in zip(columns, row, widths, strict=True):
        shown = cut_middle(cell, room)
        padding = " " * (room - width(shown))
        parts.append(padding + shown if column.figures else shown + padding)
    return GAP.join(parts).rstrip()


def pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a name and a value each, the values below one another."""
    names = max((width(name) for name, _ in rows), default=0)
    most = room()
    return [cut(f"{name}{' ' * (names - width(name))}{GAP}{plain(value)}", most).rstrip() for name, value in rows]


def folded(text: str, widest: int | None = None) -> list[str]:
    """A text in as many lines as it needs, broken between words where that can be: nothing of it is left off."""
    most = room() if widest is None else widest
    return [cut(line, most) for line in textwrap.wrap(plain(text), most, break_on_hyphens=False)]


def count(number: int) -> str:
    """A count: all digits below ten million, rounded above."""
    if number < 10_000_000:
        return f"{number:,}"
    for size, letter in ((1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P")):
        if number < 1000 * size:
            return f"{number / size:.1f} {letter}"
    return f"{number:.1e}"


def counted(number: int, what: str) -> str:
    """So many of something: `1 page`, `12 pages`."""
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


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
