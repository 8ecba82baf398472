"""`scrapy ubi rank`: PageRank over a collected graph, written as scores for the next crawl (UBI_SCORE)."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_choice import bar
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.text_table import Column, count, table
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.outputs.graph import pagerank
from scrapy_ubi.outputs.graph.collected_graph import CollectedGraph
from scrapy_ubi.outputs.graph.pagerank import Ranks

STEPS = 1_000  # of the progress bar


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Rank. Raises UbiError."""
    place = Path(opts.output).absolute().parent
    try:
        with tempfile.TemporaryDirectory(prefix="ubi-rank-", dir=place) as inner:
            graph = CollectedGraph(opts.graph, Path(inner), opts.hosts, bar())
            told = _told(bar(), opts.tolerance, opts.iterations)
            ranks = pagerank.pagerank(graph, opts.damping, opts.tolerance, opts.iterations, told)
            best = pagerank.write_scores(graph, pagerank.scores(ranks.values), opts.output)
    except OSError as error:
        raise UbiDirectoryError(f"{error.filename or place} cannot be used ({error.strerror or error}).") from error
    if ranks.change >= opts.tolerance:
        print(f"scrapy ubi: {_unfinished(ranks, opts.tolerance)}", file=sys.stderr)
    kind = "host" if opts.hosts else "URL"
    rows = [[f"{score:+}", name] for score, name in best]
    lines = [
        f"{opts.output}: scores of {count(graph.nodes)} {kind}s, by {count(graph.arcs)} arcs; {ranks.iterations} "
        f"iterations, the last of which has changed {ranks.change:.1e} of 1.",
        "",
        *table([Column("score", figures=True), Column(kind)], rows),
    ]
    document = {
        "nodes": graph.nodes, "arcs": graph.arcs, "iterations": ranks.iterations, "change": ranks.change,
        "converged": ranks.change < opts.tolerance, "best": [{kind.lower(): name, "score": s} for s, name in best],
    }  # fmt: skip
    return QueryReport(lines, document)


def _unfinished(ranks: Ranks, tolerance: float) -> str:
    return (
        f"After {ranks.iterations} iterations ranks still change by {ranks.change:.1e}, more than {tolerance:g}: the "
        "scores are near those sought. Give more --iterations."
    )


def _told(draw: Callable[[int, int], None], tolerance: float, most: int) -> Callable[[int, float], None]:
    """Draws how far it is: ranks change by about the same factor less each time."""
    first = 0.0

    def told(iteration: int, change: float) -> None:
        nonlocal first
        first = first or max(change, tolerance)
        if change < tolerance or iteration == most:
            draw(STEPS, STEPS)
            return
        span = math.log(first / tolerance) or 1.0
        draw(min(STEPS - 1, int(STEPS * max(iteration / most, math.log(first / change) / span))), STEPS)

    return told
