"""`scrapy ubi collect graph` and `scrapy ubi quality`, in this process."""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scrapy.settings import Settings

from scrapy_ubi.cli.commands import collect
from scrapy_ubi.cli.commands import quality as quality_command
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.graph import files, quality
from scrapy_ubi.outputs.graph.graph_store import ENDING
from tests.outputs.graph.test_numbered import Linked, agent, arcs_of, graph, url

PAGES = [Linked(url(1), (url(2), url(3))), Linked(url(2), (url(3),)), Linked(url(3), (url(9),))]


def command(*arguments: str) -> QueryReport:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    opts = parser.parse_args(list(arguments))
    return (quality_command.run if opts.what == "quality" else collect.run)(Settings(), opts)


def test_collect_graph(tmp_path: Path) -> None:
    one, two = agent(tmp_path / "a", PAGES[:2]), agent(tmp_path / "b", PAGES[1:])
    name = str(tmp_path / "web")
    done = command("collect", "graph", "--dir", str(one), "--dir", str(two), "-o", name, "--hosts")
    assert {path.name for path in tmp_path.glob("web*")} == {
        "web.urls.gz", "web.arcs.gz", "web-hosts-vertices.txt.gz", "web-hosts-edges.txt.gz",
    }  # fmt: skip
    found = {ending: Path(name + ending).read_bytes() for ending in (files.URLS, files.ARCS)}
    assert arcs_of(found) == {(page.url, link) for page in PAGES for link in page.links}
    assert (done.document["nodes"], done.document["arcs"], done.document["pages"]) == (4, 4, 3)
    assert done.document["doubles"] == 1 and done.document["refused"] == 0
    assert done.lines[0].endswith("4 nodes, 4 arcs, of 3 pages that were fetched, from 2 parts of 2 agents.")


def test_collect_graph_of_what_was_crawled(tmp_path: Path) -> None:
    place, name = agent(tmp_path / "a", PAGES), str(tmp_path / "web")
    done = command("collect", "graph", "--dir", str(place), "-o", name, "--crawled-only")
    assert (done.document["nodes"], done.document["arcs"], done.document["host_arcs"]) == (3, 3, None)


@pytest.mark.parametrize("arguments", [("collect", "graph", "-o", "-"), ("collect", "graph", "-o", "none/web")])
def test_where_nothing_can_be_written_a_sentence_says_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = agent(tmp_path / "a", PAGES)
    with pytest.raises(UbiError, match=r"several files|none.*cannot be used"):
        command(*arguments, "--dir", str(place))


def test_a_damaged_record_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = agent(tmp_path / "a", PAGES)
    (data,) = (place / "out/graph").glob("*.graph")
    written = bytearray(data.read_bytes())
    written[-1] ^= 1
    data.write_bytes(written)
    done = command("collect", "graph", "--dir", str(place), "-o", str(tmp_path / "web"))
    assert done.document["refused"] == 1 and "1 records do not add up" in capsys.readouterr().err


def test_quality(tmp_path: Path) -> None:
    place, picture = agent(tmp_path / "a", PAGES), tmp_path / "q.svg"
    done = command("quality", "--dir", str(place), "-o", str(picture))
    assert done.document["fetched"] == [1, 2, 3]
    assert done.document["crawled"] == [0, 0.5, 1] and done.document["best"] == [2, 1.5, 1]
    assert done.document["areas"] == {"crawled": pytest.approx(1.5 / 4.5), "breadth_first": pytest.approx(1.5 / 4.5)}
    assert any(line.endswith("as crawled 0.333, breadth first 0.333.") for line in done.lines)
    assert max(map(len, done.lines)) <= 80
    root = ElementTree.fromstring(picture.read_text())
    curves = [one for one in root if one.tag.endswith("polyline")]
    assert len(curves) == 3 and len({one.get("stroke-dasharray") for one in curves}) == 3
    assert all(len(one.get("points", "").split()) == 3 for one in curves)


def test_orders_of_a_graph_that_is_drawn(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draws = random.Random(seed)
    numbers = draws.sample(range(60), 60)
    pages = [Linked(url(n), tuple(url(draws.randrange(60)) for _ in range(draws.randrange(5)))) for n in numbers]
    found = quality.measure(graph_of(tmp_path, pages), points=1000)
    indegree = {page.url: 0 for page in pages}
    for page in pages:
        for link in set(page.links) - {page.url}:
            indegree[link] += 1
    crawled = np.cumsum([indegree[page.url] for page in pages]) / np.arange(1, 61)
    best = np.cumsum(sorted(indegree.values(), reverse=True)) / np.arange(1, 61)
    assert np.allclose(found.crawled, crawled) and np.allclose(found.best, best)
    assert found.pages == list(range(1, 61))
    assert found.crawled[-1] == pytest.approx(found.breadth[-1]) and len(found.breadth) == 60


def graph_of(place: Path, pages: list[Linked]) -> quality.Numbered:
    opened = agent(place / "a", pages)
    graph(place / "out", opened)
    collector = Collector(find_outputs([opened]), "graph", ENDING, place / "out")
    return quality.Numbered(collector, place / "out", crawled_only=True)


@pytest.mark.parametrize("pages", [[], [1], [1, 1000]])
def test_any_curve_is_drawn(pages: list[int]) -> None:
    curves = [quality_command.Curve("a < b", [float(page) for page in pages], "#000")]
    assert ElementTree.fromstring(quality_command.drawn(pages, curves, "A & B")) is not None
