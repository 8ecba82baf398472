"""PageRank over collected graphs: by hand, beside a plain power iteration, and as the command writes it."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.cli.commands import rank
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.graph import collected_graph, pagerank
from scrapy_ubi.outputs.graph.collected_graph import CollectedGraph, UbiGraphDamaged
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.scores import LinkBatch, read_scores

Arcs = list[tuple[int, int]]
Weights = dict[tuple[int, int], int]


def url(number: int) -> str:
    return f"http://h.example/{number}"


def write(place: Path, nodes: int, arcs: Arcs) -> str:
    """The files of a graph; its name."""
    name = str(place / "web")
    Path(f"{name}.urls.gz").write_bytes(gzip.compress("".join(f"{url(n)}\n" for n in range(nodes)).encode()))
    Path(f"{name}.arcs.gz").write_bytes(gzip.compress("".join(f"{a}\t{b}\n" for a, b in sorted(set(arcs))).encode()))
    return name


def write_hosts(place: Path, hosts: list[str], weights: Weights) -> str:
    name = str(place / "web")
    lines = "".join(f"{number}\t{host}\n" for number, host in enumerate(hosts))
    Path(f"{name}-hosts-vertices.txt.gz").write_bytes(gzip.compress(lines.encode()))
    lines = "".join(f"{a}\t{b}\t{weight}\n" for (a, b), weight in sorted(weights.items()))
    Path(f"{name}-hosts-edges.txt.gz").write_bytes(gzip.compress(lines.encode()))
    return name


def plain(nodes: int, weights: Weights, damping: float, rounds: int = 400) -> list[float]:
    """The definition, a number at a time."""
    leaving = [sum(w for (a, b), w in weights.items() if a == node != b) for node in range(nodes)]
    ranks = [1 / nodes] * nodes
    for _ in range(rounds):
        lost = sum(rank for rank, out in zip(ranks, leaving, strict=True) if not out)
        following = [(1 - damping + damping * lost) / nodes] * nodes
        for (a, b), weight in weights.items():
            if a != b and weight:
                following[b] += damping * ranks[a] * weight / leaving[a]
        ranks = following
    return ranks


def command(*arguments: str) -> QueryReport:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    return rank.run(Settings(), parser.parse_args(["rank", *arguments]))


def test_by_hand(tmp_path: Path) -> None:
    """0 leads to 1 and 2, 1 to 2, 2 to 0. With damping 1/2: x0 = 1/6 + x2/2, x1 = 1/6 + x0/4, x2 = 1/6 + x0/4 + x1/2,
    so x0 = 14/39, x1 = 10/39, x2 = 15/39."""
    graph = CollectedGraph(write(tmp_path, 3, [(0, 1), (0, 2), (1, 2), (2, 0)]), tmp_path)
    found = pagerank.pagerank(graph, damping=0.5, tolerance=1e-12)
    assert found.values == pytest.approx([14 / 39, 10 / 39, 15 / 39])
    assert found.change < 1e-12 and found.iterations < 50


def test_what_leads_nowhere_begins_again_anywhere(tmp_path: Path) -> None:
    """0 leads to 1, which leads only to itself: as if nowhere. x0 = (1 - d + d x1) / 2 and x0 + x1 = 1."""
    graph = CollectedGraph(write(tmp_path, 2, [(0, 1), (1, 1)]), tmp_path)
    assert graph.arcs == 1
    assert pagerank.pagerank(graph, 0.85, 1e-12).values[0] == pytest.approx(1 / 2.85)


GRAPHS = st.integers(1, 8).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.dictionaries(
            st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), st.integers(1, 9), max_size=20
        ),
    )
)


@given(graph=GRAPHS, damping=st.floats(0, 0.95), block=st.integers(1, 8), hosts=st.booleans())
@settings(max_examples=60, deadline=None)
def test_it_is_what_a_plain_power_iteration_gives(
    tmp_path_factory: pytest.TempPathFactory, graph: tuple[int, Weights], damping: float, block: int, hosts: bool
) -> None:
    nodes, weights = graph
    place = tmp_path_factory.mktemp("graph")
    if hosts:
        name = write_hosts(place, [f"h{number}" for number in range(nodes)], weights)
    else:
        weights = dict.fromkeys(weights, 1)
        name = write(place, nodes, list(weights))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pagerank, "BLOCK", block)
        patch.setattr(collected_graph, "CHUNK", 7)
        found = pagerank.pagerank(CollectedGraph(name, place, hosts), damping, 1e-13, 2000).values
    assert found.tolist() == pytest.approx(plain(nodes, weights, damping), abs=1e-9)
    assert float(found.sum()) == pytest.approx(1)


def test_the_command_writes_what_the_setting_reads(tmp_path: Path) -> None:
    arcs = [(number, 0) for number in range(1, 20)] + [(0, 1)]
    name = write(tmp_path, 20, arcs)
    done = command("--graph", name, "-o", str(tmp_path / "scores.gz"))
    table, found = read_scores(tmp_path / "scores.gz", normal_form)
    assert found.lines == len(table) == 20 and not found.refused
    first, second, third = table(LinkBatch([url(0), url(1), url(2)], [""] * 3, 0, "", 0.0))
    assert first > second > 0 > third
    assert done.document["best"][0] == {"url": url(0), "score": first}  # type: ignore[index]
    assert done.document["converged"] and done.lines[3].split() == [f"+{first}", url(0)]


@pytest.mark.parametrize("output", ["scores.gz", "scores.tsv"])
def test_the_same_graph_gives_the_same_bytes(tmp_path: Path, output: str) -> None:
    name = write(tmp_path, 50, [(n, n * n % 50) for n in range(50)])
    written = set()
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        command("--graph", name, "-o", str(tmp_path / place / output))
        written.add((tmp_path / place / output).read_bytes())
        assert [path.name for path in (tmp_path / place).iterdir()] == [output]
    assert len(written) == 1


def test_hosts_are_named_in_their_usual_order(tmp_path: Path) -> None:
    name = write_hosts(tmp_path, ["10.0.0.1", "com.example.www", "com.example:8080"], {(0, 1): 5, (2, 1): 1, (2, 0): 9})
    command("--graph", name, "-o", str(tmp_path / "hosts"), "--hosts")
    names = [line.split("\t")[0] for line in (tmp_path / "hosts").read_text().splitlines()]
    assert names == ["10.0.0.1", "www.example.com", "example.com:8080"]


def test_that_it_has_not_converged_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = write(tmp_path, 3, [(0, 1), (1, 2), (2, 0), (0, 2)])
    done = command("--graph", name, "-o", str(tmp_path / "s"), "--iterations", "2", "--tolerance", "1e-9")
    assert done.document["converged"] is False and "Give more --iterations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("urls", "arcs", "says"),
    [
        (b"http://h/\nno\n", b"", "Line 2 of"),
        (b"http://h/", b"", "Line 1 of"),
        (b"", b"", "has no node"),
        (b"http://h/\n" * 3, b"0\t1\n1 2\n", "behind line 0"),
        (b"http://h/\n" * 3, b"0\t1\n0\t3\n", "leads to no node"),
        (b"http://h/\n" * 3, b"1\t0\n0\t1\n", "not in order"),
        (b"http://h/\n" * 3, b"0\t1\n0\t1\n", "not in order"),
    ],
)
def test_files_that_do_not_hold_are_refused_with_file_and_line(
    tmp_path: Path, urls: bytes, arcs: bytes, says: str
) -> None:
    (tmp_path / "web.urls.gz").write_bytes(gzip.compress(urls))
    (tmp_path / "web.arcs.gz").write_bytes(gzip.compress(arcs))
    with pytest.raises(UbiGraphDamaged, match=says):
        CollectedGraph(str(tmp_path / "web"), tmp_path)


def test_files_that_are_cut_or_missing_are_refused(tmp_path: Path) -> None:
    name = write(tmp_path, 100, [(n, n + 1) for n in range(99)])
    arcs = Path(f"{name}.arcs.gz")
    arcs.write_bytes(arcs.read_bytes()[:-20])
    with pytest.raises(UbiError, match=r"web\.arcs\.gz is damaged"):
        command("--graph", name, "-o", str(tmp_path / "s"))
    arcs.unlink()
    with pytest.raises(UbiError, match="scrapy ubi collect graph -o NAME`"):
        command("--graph", name, "-o", str(tmp_path / "s"))
    with pytest.raises(UbiError, match="--hosts"):
        command("--graph", name, "-o", str(tmp_path / "s"), "--hosts")
    with pytest.raises(UbiError, match="cannot be used"):
        command("--graph", name, "-o", str(tmp_path / "none" / "s"))
    assert not list(tmp_path.glob("s*"))


def test_scores_are_zero_for_the_average_and_ten_for_each_doubling() -> None:
    assert pagerank.scores(np.array([0.25, 0.5, 0.125, 0.125])).tolist() == [0, 10, -10, -10]
