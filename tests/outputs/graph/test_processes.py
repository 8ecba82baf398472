"""An agent that is killed, and never started again: the graph collected is that of the web, arc for arc (P9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.graph import Graph
from scrapy_ubi.outputs.graph import files
from scrapy_ubi.urls.canonical import canonical_form
from tests.outputs.graph.test_numbered import arcs_of, collected, lines
from tests.support.group import Group
from tests.support.server import Server
from tests.support.web import DemoWeb

SETTINGS = {
    "UBI_STORES": "graph(size=20000)",
    "UBI_START_WAIT": 0,  # this Redis forgets nothing
    "CONCURRENT_REQUESTS": 4,
}


def referee(graph: Graph, reached: set[str]) -> set[tuple[str, str]]:
    """The arcs of what was reached, as the web itself says."""
    arcs = set()
    for document in graph.documents():
        url = graph.url(document)
        if url in reached:
            ends = [graph.target(document)] if document.kind == "redirect" else graph.links(document)
            arcs |= {(str(canonical_form(url)), str(canonical_form(graph.url(end)))) for end in ends}
    return arcs


@pytest.mark.processes
def test_the_graph_after_a_kill_is_the_webs(tmp_path: Path, one_server: Server) -> None:
    web_graph = Graph(seed=5, hosts=8, pages=80)
    with DemoWeb(web_graph, 0.02) as web:
        group = Group(tmp_path, web, one_server, **SETTINGS)
        try:
            group.start_together("a0", "a1", "a2")
            group.until_served(0.2)
            group.kill("a1")
            verdict = group.end()
        finally:
            group.close()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    found = collected(tmp_path / "out", *sorted(tmp_path.glob("a?")))
    arcs = referee(web_graph, group.truth)
    assert arcs_of(found) == arcs
    assert set(lines(found[files.URLS])) == {end for arc in arcs for end in arc} | set(
        map(str, map(canonical_form, group.truth))
    )
