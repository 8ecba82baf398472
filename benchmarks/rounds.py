"""Timing for the benchmarks: the ways compared take turns, so that a slow spell of the machine hits all of them.

Seconds are CPU seconds of this process: other processes do not count, though they slow it down by what they do to the
caches. What can be trusted on a shared machine are the ratios within one run, less the absolute figures.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Way = Callable[[int], object]  # called with the number of the round, so that it can work on what it has not seen yet


def options(description: str | None, rounds: int) -> argparse.Namespace:
    """The command line that the benchmarks have in common."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


def take_turns(ways: Mapping[str, Way], operations: int, rounds: int) -> dict[str, float]:
    """Median CPU seconds an operation takes each way, where a call does so many. A first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start = time.process_time()
            way(turn)
            seconds[name].append((time.process_time() - start) / operations)
    return {name: statistics.median(each[1:]) for name, each in seconds.items()}


def table(title: str, columns: list[str], rows: Mapping[str, list[str]]) -> None:
    """Print a table for people (it is Markdown, too)."""
    width = max(len(name) for name in (title, *rows))
    print(f"\n| {title:{width}} | " + " | ".join(columns) + " |")
    print("|" + "-" * (width + 2) + "|" + "|".join("-" * (len(c) + 1) + ":" for c in columns) + "|")
    for name, cells in rows.items():
        line = " | ".join(f"{cell:>{len(column)}}" for cell, column in zip(cells, columns, strict=True))
        print(f"| {name:{width}} | {line} |")
    sys.stdout.flush()


def save(path: str | None, figures: Mapping[str, object]) -> None:
    """Write the figures as JSON, with what they were taken on."""
    if path:
        where = {"python": platform.python_version(), "machine": platform.machine(), "taken": time.strftime("%Y-%m-%d")}
        Path(path).write_text(json.dumps({**where, **figures}, indent=1) + "\n", encoding="utf-8")
