"""`scrapy ubi quality`: how good the pages were in the order of the crawl, as a table, and as a picture: SVG, written
by hand, that stands alone.

Curves are told apart by dashes as well as by colours. The file has a ground of its own, so that it is read the same on
light pages and dark ones.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_graph import document_of, opened_graph
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.text_table import Column, count, table
from scrapy_ubi.outputs.graph.quality import Quality, areas, measure, rows
from scrapy_ubi.outputs.whole_file import whole_file

TITLE = "Quality of the pages fetched so far"
CURVES = (("as crawled", "#0b5fa5", ""), ("breadth first", "#c2410c", "7 4"), ("best order", "#3f7d20", "2 3"))
WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 60, 56
FLOOR = HEIGHT - BOTTOM
FONT = "font-family='Helvetica, Arial, DejaVu Sans, sans-serif'"


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Figure 2 of UbiCrawler for this crawl. Raises UbiError."""
    place = Path(opts.output).absolute().parent if opts.output else None
    with opened_graph(settings, opts, place, crawled_only=True) as opened:
        found = measure(opened.graph)
        if opts.output:
            _draw(found, opts.output)
    columns = [Column("pages fetched", figures=True), *(Column(name, figures=True) for name, _, _ in CURVES)]
    cells = [[count(pages), *(f"{value:.2f}" for value in values)] for pages, *values in rows(found)]
    lines = ["Average indegree of the pages fetched so far", "", *table(columns, cells)]
    crawled, breadth = areas(found)
    lines += ["", f"Area, of that of the best order: as crawled {crawled:.3f}, breadth first {breadth:.3f}."]
    if opts.output:
        lines += ["", f"Drawn in {opts.output}."]
    document = document_of(opened) | {
        "arcs": found.arcs, "fetched": found.pages, "crawled": found.crawled, "breadth_first": found.breadth,
        "best": found.best, "areas": {"crawled": crawled, "breadth_first": breadth},
    }  # fmt: skip
    return QueryReport(lines, document)


def _draw(found: Quality, output: str) -> None:
    values = (found.crawled, found.breadth, found.best)
    curves = [Curve(name, each, colour, dashes) for (name, colour, dashes), each in zip(CURVES, values, strict=True)]
    with whole_file(output) as beside:
        beside.write_text(drawn(found.pages, curves, TITLE), encoding="utf-8")


# -- the picture


class Curve(NamedTuple):
    """A curve and its name."""

    name: str
    values: Sequence[float]
    colour: str
    dashes: str = ""


def drawn(pages: Sequence[int], curves: Sequence[Curve], title: str) -> str:
    """The picture. Values are of the first so many pages."""
    values = [value for curve in curves for value in curve.values if value > 0] or [1.0]
    scale, wide = _Scale(min(values), max(values)), max(pages, default=1)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>",
        _text(LEFT, 22, title, size=15),
        *_legend(curves),
        *_axes(wide, scale),
    ]
    for curve in curves:
        points = " ".join(
            f"{_x(page, wide):.1f},{scale.place(value):.1f}" for page, value in zip(pages, curve.values, strict=True)
        )
        dashes = f" stroke-dasharray='{curve.dashes}'" if curve.dashes else ""
        parts.append(f"<polyline points='{points}' fill='none' stroke='{curve.colour}' stroke-width='2'{dashes}/>")
    return "\n".join([*parts, "</svg>", ""])


def _legend(curves: Sequence[Curve]) -> list[str]:
    parts, x = [], float(LEFT)
    for curve in curves:
        dashes = f" stroke-dasharray='{curve.dashes}'" if curve.dashes else ""
        parts.append(f"<line x1='{x}' y1='40' x2='{x + 28}' y2='40' stroke='{curve.colour}' stroke-width='2'{dashes}/>")
        parts.append(_text(x + 34, 44, curve.name))
        x += 34 + 6.6 * len(curve.name) + 24
    return parts


def _axes(wide: int, scale: _Scale) -> list[str]:
    parts = []
    for value in scale.ticks():
        y = scale.place(value)
        parts.append(f"<line x1='{LEFT}' y1='{y:.1f}' x2='{WIDTH - RIGHT}' y2='{y:.1f}' stroke='#dddddd'/>")
        parts.append(_text(LEFT - 8, y + 4, f"{value:,g}", anchor="end"))
    for value in (_round_up(wide) * part / 5 for part in range(6)):
        if value > wide:
            break
        x = _x(value, wide)
        parts.append(f"<line x1='{x:.1f}' y1='{FLOOR}' x2='{x:.1f}' y2='{FLOOR + 5}' stroke='#444444'/>")
        anchor = "end" if x > WIDTH - RIGHT - 20 else "middle"
        parts.append(_text(x, FLOOR + 20, f"{value:,.0f}", anchor=anchor))
    parts.append(f"<line x1='{LEFT}' y1='{FLOOR}' x2='{WIDTH - RIGHT}' y2='{FLOOR}' stroke='#444444'/>")
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "pages fetched", anchor="middle"))
    middle = (TOP + FLOOR) / 2
    turned = f" transform='rotate(-90 16 {middle})'"
    parts.append(_text(16, middle, "average indegree of these pages", anchor="middle", more=turned))
    return parts


def _text(x: float, y: float, text: str, size: int = 12, anchor: str = "start", more: str = "") -> str:
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'{more}"
    return f"<text {place} {FONT} font-size='{size}' fill='#222222'>{escape(text)}</text>"


def _x(page: float, wide: int) -> float:
    return LEFT + (WIDTH - RIGHT - LEFT) * page / wide


class _Scale:
    """Heights, by the logarithm: the first pages of a crawl, its start pages, have many times the links of the rest.
    What is below the least value, as 0 is, stands on the floor."""

    def __init__(self, least: float, most: float) -> None:
        self._low = self._step(least, up=False)
        self._high = self._step(most, up=True)
        if self._high <= self._low:
            self._high = self._low * 10

    @staticmethod
    def _step(value: float, up: bool) -> float:
        """The next of 1, 2, 5 times a power of 10."""
        power = 10.0 ** math.floor(math.log10(value))
        steps = [step * power for step in (1, 2, 5, 10)]
        return min(s for s in steps if s >= value * 0.999) if up else max(s for s in steps if s <= value * 1.001)

    def place(self, value: float) -> float:
        """Where a value stands."""
        share = math.log(max(value, self._low) / self._low) / math.log(self._high / self._low)
        return FLOOR - (FLOOR - TOP) * share

    def ticks(self) -> list[float]:
        """From the lowest to the highest."""
        powers = range(math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        found = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in found if self._low * 0.999 <= tick <= self._high * 1.001]


def _round_up(value: float) -> float:
    """The least of some round numbers, times a power of 10, that is not below."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-12))
