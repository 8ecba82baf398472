"""`scrapy ubi collect graph`: the link graph of all agents' records."""

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
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.outputs.collector import Collector, CollectTally
from scrapy_ubi.outputs.graph import files
from scrapy_ubi.outputs.graph.graph_store import ENDING, GraphStore
from scrapy_ubi.outputs.graph.numbered import FoundNode, Numbered


class UbiNoOutput(UbiError):
    """The name of the result is none for a graph."""


class OpenedGraph(NamedTuple):
    """The graph of some outputs, and what was read for it."""

    graph: Numbered
    tally: CollectTally
    chosen: Chosen


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Collect the graph. Raises UbiError."""
    if opts.output == "-":
        raise UbiNoOutput("A graph is several files: give -o a name that theirs begin with, such as -o web.")
    with opened_graph(settings, opts, Path(opts.output).absolute().parent, opts.crawled_only) as opened:
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
    document = document_of(opened) | {
        "nodes": found.nodes, "arcs": written.arcs, "hosts": written.hosts, "redirects": found.redirects,
        "host_arcs": written.host_arcs if opts.hosts else None, "crawled_only": opts.crawled_only,
    }  # fmt: skip
    return QueryReport(lines, document)


@contextmanager
def opened_graph(
    settings: BaseSettings, opts: argparse.Namespace, place: Path | None, crawled_only: bool
) -> Iterator[OpenedGraph]:
    """The graph of the chosen outputs. At the end it is said what is left out of it."""
    chosen = choose(settings, opts)
    try:
        with tempfile.TemporaryDirectory(prefix="ubi-graph-", dir=place) as inner:
            collector = Collector(chosen.outs, GraphStore.name, ENDING, Path(inner), bar(), latest=True)
            graph = Numbered(collector, Path(inner), crawled_only)
            yield OpenedGraph(graph, collector.tally, chosen)
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


def document_of(opened: OpenedGraph) -> dict[str, object]:
    """What was read, for programs."""
    found, tally, chosen = opened.graph.found, opened.tally, opened.chosen
    return {
        "run": chosen.run, "pages": found.pages, "doubles": tally.doubles, "parts": tally.parts,
        "agents": chosen.agents, "open_parts": tally.open_parts, "damaged": tally.damaged, "refused": found.refused,
        "unnamed": found.unnamed, "collisions": found.collisions, "other_runs": chosen.other_runs,
    }  # fmt: skip
