"""The plots of docs/explanation/at-scale.md, from the figures of scale.py. Needs matplotlib (pip install '.[bench]').

Small SVGs for a light page: text stays text, dates and random identifiers stay out, so the same figures give the same
file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

Rows = list[dict[str, Any]]

BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#c8641e", "#2f7d4f", "#777777"
SIZE = (6.4, 3.6)  # inches


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Write all plots into this folder."""
    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "scrapy-ubi",
            "font.family": "sans-serif",
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#dddddd",
            "figure.facecolor": "white",
        }
    )
    balance([row for row in figures["ring"] if row["capacities"] == "1"], folder)
    moved([row for row in figures["ring"] if row["capacities"] == "1"], folder)
    agreement(figures["group"], folder)
    beats(figures["group"], folder)
    letters([row for row in figures["crawl"] if row["what"] == "group"], folder)
    sent([row for row in figures["crawl"] if row["what"] == "long"], folder)


def balance(rows: Rows, folder: Path) -> None:
    axes = _by_agents(rows, "hosts of an agent, % of its fair share")
    x = [row["agents"] for row in rows]
    low, high = ([100 * row["balance"][f"{end}_over_fair"] for row in rows] for end in ("min", "max"))
    axes.vlines(x, low, high, color=BLUE, linewidth=5, label="from the least to the most loaded agent")
    around = [row["balance"]["deviation_per_cent"] for row in rows]
    axes.errorbar(x, [100] * len(x), around, fmt="none", ecolor=ORANGE, capsize=9, label="mean absolute deviation")
    axes.axhline(100, color=GREY, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="lower left")
    _save(axes, folder / "at-scale-balance.svg")


def moved(rows: Rows, folder: Path) -> None:
    axes = _by_agents(rows, "share of all hosts, %")
    axes.set_yscale("log")
    _plain(axes.yaxis)
    x = [row["agents"] for row in rows]
    for replication, color in ((0, BLUE), (1, ORANGE), (2, GREEN)):
        t = str(replication)
        axes.plot(x, [100 * r["crash_or_leave"]["copies_least"][t] for r in rows], color=color, linewidth=1)
        label = "change owner (least: 1/N)" if not replication else f"are copied, t = {t} (least: {replication + 1}/N)"
        axes.plot(x, [100 * r["crash_or_leave"]["copies_made"][t] for r in rows], "o", color=color, label=label)
    axes.legend(frameon=False)
    _save(axes, folder / "at-scale-moved.svg")


def agreement(rows: Rows, folder: Path) -> None:
    axes = _by_agents(rows, "s after the crash")
    for pace, color, shift in (("every beat", GREY, 0.9), ("default", BLUE, 1.0), ("longer time-outs", ORANGE, 1.1)):
        some = _at_pace(rows, pace)
        x = [row["agents"] * shift for row in some]
        first, last = ([row["crash"][f"{w}_entered"]["max"] for row in some] for w in ("first", "last"))
        whole = [row["crash"]["last_complete"]["max"] for row in some]
        axes.vlines(x, first, last, color=color, linewidth=5, label=_told(pace))
        axes.plot(x, whole, "_", color=color, markersize=11, markeredgewidth=2)
    axes.plot([], [], "_", color="black", markersize=11, markeredgewidth=2, label="all have seen that all agree")
    axes.set_ylim(0, 1.1 * max(row["crash"]["last_complete"]["max"] for row in rows))
    axes.legend(frameon=False, fontsize=9, loc="upper left", title="bar: first to last agent without it")
    _save(axes, folder / "at-scale-agreement.svg")


def beats(rows: Rows, folder: Path) -> None:
    axes = _by_agents(rows, "beats read from Redis, MB/s")
    axes.set_yscale("log")
    _plain(axes.yaxis)
    for pace, color, mark in (("every beat", GREY, "o--"), ("default", BLUE, "o-"), ("longer time-outs", ORANGE, "s-")):
        some = _at_pace(rows, pace)
        axes.plot([r["agents"] for r in some], [r["read_bytes_a_second"] / 1e6 for r in some], mark, color=color,
                  label=_told(pace), markersize=5)  # fmt: skip
    axes.legend(frameon=False)
    _save(axes, folder / "at-scale-beats.svg")


def letters(rows: Rows, folder: Path) -> None:
    axes = _by_agents(rows, "a page, or a letter")
    axes.set_yscale("log")
    _plain(axes.yaxis)
    x = [row["agents"] for row in rows]
    for key, color, mark, label in (
        ("letters_a_page", BLUE, "o-", "letters a page"),
        ("records_a_discovery_letter", ORANGE, "o-", "URLs a discovery letter"),
        ("records_a_state_letter", GREEN, "o-", "records a state letter"),
    ):
        axes.plot(x, [row[key] for row in rows], mark, color=color, label=label)
    axes.legend(frameon=False)
    _save(axes, folder / "at-scale-letters.svg")


def sent(rows: Rows, folder: Path) -> None:
    _, axes = plt.subplots(figsize=SIZE, layout="constrained")
    shades = (BLUE, GREEN, ORANGE)
    sizes = sorted({row["agents"] for row in rows})
    for agents, color in zip(sizes, shades, strict=False):
        for local, style in ((0.9, "o-"), (0.75, "o:")):
            some = [r for r in rows if r["agents"] == agents and r["local_links"] == local]
            axes.plot([r["until_page"] for r in some], [r["urls_sent_a_page"] for r in some], style, color=color,
                      markersize=4, label=f"{agents:,} agents, {local:.0%} of links local")  # fmt: skip
    axes.axhline(1, color=GREY, linewidth=1)
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("pages an agent has fetched")
    axes.set_ylabel("URLs sent to others a page")
    axes.legend(frameon=False, fontsize=9)
    _save(axes, folder / "at-scale-sent.svg")


def _at_pace(rows: Rows, pace: str) -> Rows:
    """The rows of that pace; in groups of up to a hundred the default is to read with every beat."""
    sizes = [row["agents"] for row in rows if row["pace"] == "default"]
    return [r for r in rows if r["pace"] == pace or (pace == "default" and r["agents"] not in sizes)]


def _told(pace: str) -> str:
    return {
        "every beat": "reading with every beat",
        "default": "default settings",
        "longer time-outs": "lease 30 s, failure 45 s",
    }[pace]


def _plain(axis: Any) -> None:
    """Plain numbers at 1, 2 and 5 of a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1000 else f"{value:,.0f}"))
    axis.set_minor_locator(NullLocator())


def _by_agents(rows: Iterable[dict[str, Any]], what: str) -> Any:
    """Axes with the agents from left to right."""
    _, axes = plt.subplots(figsize=SIZE, layout="constrained")
    sizes = sorted({row["agents"] for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6)
    axes.set_xlabel("agents")
    axes.set_ylabel(what)
    return axes


def _save(axes: Any, path: Path) -> None:
    axes.figure.savefig(path, metadata={"Date": None})
    plt.close(axes.figure)
    print(f"{path}: {path.stat().st_size // 1024} kB")
