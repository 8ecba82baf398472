"""`scrapy ubi collect graph` and `scrapy ubi quality`: the link graph of all agents' records, and how good the
pages were in the order of the crawl."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_choice import Chosen, bar, choose, remarks
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor import quality_svg
from scrapy_ubi.cli.monitor.quality_svg import Curve
from scrapy_ubi.cli.monitor.text_table import Column, count, table
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.outputs.collector import Collector, CollectTally
from scrapy_ubi.outputs.graph import files, quality
from scrapy_ubi.outputs.graph.graph_store import ENDING, GraphStore
from scrapy_ubi.outputs.graph.numbered import FoundNode, Numbered
from scrapy_ubi.outputs.whole_file import whole_file

TITLE = "Quality of the pages fetched so far"
CURVES = (("as crawled", "#0b5fa5", ""), ("breadth first", "#c2410c", "7 4"), ("best order", "#3f7d20", "2 3"))


class UbiNoOutput(UbiError):
    """The name of the result is none for a graph."""


class _Opened(NamedTuple):
    graph: Numbered
    tally: CollectTally
    chosen: Chosen


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect the graph. Raises UbiError."""
    if opts.output == "-":
        raise UbiNoOutput("A graph is several files: give -o a name that theirs begin with, such as -o web.")
    with _opened(settings, opts, Path(opts.output).absolute().parent, opts.crawled_only) as opened:
        written = files.write(opened.graph, opts.output, opts.hosts)
        found, tally, name = opened.graph.found, opened.tally, opts.output
    line = (
        f"{name}{files.URLS}, {name}{files.ARCS}: {count(found.nodes)} nodes, {count(written.arcs)} arcs, "
        f"of {count(found.pages)} pages that were fetched, from {tally.parts} parts of {_agents(opened.chosen)}."
    )
    lines = [line]
    if opts.hosts:
        lines.append(
            f"{name}{files.HOSTS}, {name}{files.HOST_ARCS}: {count(written.hosts)} hosts, "
            f"{count(written.host_arcs)} arcs between them."
        )
    document = _document(opened) | {
        "nodes": found.nodes, "arcs": written.arcs, "hosts": written.hosts, "redirects": found.redirects,
        "host_arcs": written.host_arcs if opts.hosts else None, "crawled_only": opts.crawled_only,
    }  # fmt: skip
    return QueryReport(lines, document)


def run_quality(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Figure 2 of UbiCrawler for this crawl. Raises UbiError."""
    place = Path(opts.output).absolute().parent if opts.output else None
    with _opened(settings, opts, place, crawled_only=True) as opened:
        found = quality.measure(opened.graph)
        if opts.output:
            _draw(found, opts.output)
    columns = [Column("pages fetched", figures=True), *(Column(name, figures=True) for name, _, _ in CURVES)]
    rows = [[count(pages), *(f"{value:.2f}" for value in values)] for pages, *values in quality.rows(found)]
    lines = ["Average indegree of the pages fetched so far", "", *table(columns, rows)]
    crawled, breadth = quality.areas(found)
    lines += ["", f"Area, of that of the best order: as crawled {crawled:.3f}, breadth first {breadth:.3f}."]
    if opts.output:
        lines += ["", f"Drawn in {opts.output}."]
    document = _document(opened) | {
        "arcs": found.arcs, "fetched": found.pages, "crawled": found.crawled, "breadth_first": found.breadth,
        "best": found.best, "areas": {"crawled": crawled, "breadth_first": breadth},
    }  # fmt: skip
    return QueryReport(lines, document)


@contextmanager
def _opened(
    settings: BaseSettings, opts: argparse.Namespace, place: Path | None, crawled_only: bool
) -> Iterator[_Opened]:
    """The graph of the chosen outputs. At the end it is said what is left out of it."""
    chosen = choose(settings, opts)
    try:
        with tempfile.TemporaryDirectory(prefix="ubi-graph-", dir=place) as inner:
            collector = Collector(chosen.outs, GraphStore.name, ENDING, Path(inner), bar(), latest=True)
            graph = Numbered(collector, Path(inner), crawled_only)
            yield _Opened(graph, collector.tally, chosen)
    except OSError as error:
        raise UbiDirectoryError(f"{error.filename or place} cannot be used ({error.strerror or error}).") from error
    for sentence in (*remarks("links", collector.tally, chosen), *_left_out(graph.found)):
        print(f"scrapy ubi: {sentence}", file=sys.stderr)


def _left_out(found: FoundNode) -> list[str]:
    said = []
    if found.refused:
        said.append(f"{count(found.refused)} records do not add up, and are left out: their file is damaged.")
    if found.unnamed:
        said.append(f"{count(found.unnamed)} arcs lead from or to a page whose URL is lost, and are left out.")
    if found.collisions:
        said.append(f"{count(found.collisions)} URLs have the key of another one, and are left out.")
    return said


def _agents(chosen: Chosen) -> str:
    return f"{chosen.agents} {'agent' if chosen.agents == 1 else 'agents'}"


def _document(opened: _Opened) -> dict[str, object]:
    found, tally, chosen = opened.graph.found, opened.tally, opened.chosen
    return {
        "run": chosen.run, "pages": found.pages, "doubles": tally.doubles, "parts": tally.parts,
        "agents": chosen.agents, "open_parts": tally.open_parts, "damaged": tally.damaged, "refused": found.refused,
        "unnamed": found.unnamed, "collisions": found.collisions, "other_runs": chosen.other_runs,
    }  # fmt: skip


def _draw(found: quality.Quality, output: str) -> None:
    values = (found.crawled, found.breadth, found.best)
    curves = [Curve(name, each, colour, dashes) for (name, colour, dashes), each in zip(CURVES, values, strict=True)]
    with whole_file(output) as beside:
        beside.write_text(quality_svg.drawn(found.pages, curves, TITLE), encoding="utf-8")
