"""PageRank of the nodes of a collected graph (Brin and Page, 1998), by power iteration; and the file of scores that
`file(...)` of UBI_SCORE reads: `URL<TAB>score`, a line for each node of a graph, in order.

Rules of this module:

* The rank of a node is the share of time that a surfer spends there who follows an arc with probability `damping`, any
  of a node's with equal chances, or by their weights, and else begins again at any node.
* From a *dangling* node, which no arc leaves, the surfer begins again at any node (Langville and Meyer, Deeper Inside
  PageRank, Internet Mathematics 1(3), 2004, section 3). In the graph of a crawl these are all pages that were linked to
  and not fetched.
* Ranks add up to 1. It ends when they change by less than `tolerance` in all; the ranks sought are then no further
  than damping / (1 - damping) times that (ibid., section 5).
* Memory: some 70 bytes a node, and 20 bytes an arc of a block. The same graph gives the same ranks.
* The same ranks give the same bytes: a name that ends in .gz is packed, without time and name in it. The file is
  written beside and renamed. Only the best nodes are in memory with their names, to be shown.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import numpy as np

from scrapy_ubi.outputs.graph.collected_graph import CollectedGraph, Floats, Numbers
from scrapy_ubi.outputs.graph.files import packed_file
from scrapy_ubi.outputs.whole_file import whole_file

BLOCK = 1 << 20  # arcs that are counted together, at least
POINTS = 10  # of a score, for each doubling of the rank

SHOWN = 10
LINES = 8_192  # at a time

Best = list[tuple[int, str]]  # scores and names


class Ranks(NamedTuple):
    """The ranks of all nodes, how many iterations it took, and by how much the last one has changed them."""

    values: Floats
    iterations: int
    change: float


def pagerank(
    graph: CollectedGraph,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    most: int = 200,
    told: Callable[[int, float], None] = lambda iteration, change: None,
) -> Ranks:
    """The ranks of a graph's nodes, after `most` iterations at most. `told` hears of each."""
    count = graph.nodes
    blocks = list(_blocks(graph.offsets, max(BLOCK, count)))
    leaving = _leaving(graph, blocks)
    dangling = leaving == 0
    leaving[dangling] = 1.0
    ranks, change, iteration = np.full(count, 1 / count), math.inf, 0
    while iteration < most and change >= tolerance:
        iteration += 1
        following = _followed(graph, blocks, ranks / leaving)
        again = (1 - damping) / count + damping * float(ranks[dangling].sum()) / count
        following *= damping
        following += again
        ranks -= following
        change = float(np.abs(ranks, out=ranks).sum())
        ranks = following
        told(iteration, change)
    return Ranks(ranks, iteration, change)


def _leaving(graph: CollectedGraph, blocks: list[tuple[int, int]]) -> Floats:
    """The weights of all arcs that leave each node."""
    if graph.weights is None:
        return np.diff(graph.offsets).astype(np.float64)
    found = np.zeros(graph.nodes)
    for first, end in blocks:
        at, to = int(graph.offsets[first]), int(graph.offsets[end])
        froms = np.repeat(np.arange(end - first), np.diff(graph.offsets[first : end + 1]))
        found[first:end] = np.bincount(froms, graph.weights[at:to], end - first)
    return found


def _blocks(offsets: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Nodes, from one to another, that have some `most` arcs together; a single one may have more."""
    first, count = 0, len(offsets) - 1
    while first < count:
        end = int(np.searchsorted(offsets, offsets[first] + most, "right")) - 1
        yield first, max(end, first + 1)
        first = max(end, first + 1)


def _followed(graph: CollectedGraph, blocks: list[tuple[int, int]], shares: Floats) -> Floats:
    """What comes to each node by arcs. `shares`: what goes along each arc of a node, or for each unit of weight."""
    found = np.zeros(graph.nodes)
    for first, end in blocks:
        at, to = int(graph.offsets[first]), int(graph.offsets[end])
        if at == to:
            continue
        along = np.repeat(shares[first:end], np.diff(graph.offsets[first : end + 1]))
        if graph.weights is not None:
            along *= graph.weights[at:to]
        found += np.bincount(graph.targets[at:to].astype(np.intp), along, graph.nodes)
    return found


def scores(ranks: Floats) -> Numbers:
    """Ranks as scores: 0 for the average, `POINTS` more for each doubling, rounded."""
    found: Numbers = np.rint(POINTS * np.log2(ranks * len(ranks))).astype(np.int64)
    return found


def write_scores(graph: CollectedGraph, scores: Numbers, output: str) -> Best:
    """Write the scores of a graph's nodes; the best ones. Raises UbiGraphDamaged, OSError; then nothing is there that
    was not there before."""
    best: list[tuple[int, int, str]] = []
    with whole_file(output) as beside, packed_file(beside) if output.endswith(".gz") else beside.open("wb") as file:
        for number, (name, score) in enumerate(_written(graph, scores, file)):
            if len(best) < SHOWN or score > best[0][0]:
                (heapq.heappush if len(best) < SHOWN else heapq.heapreplace)(best, (score, -number, name))
    return [(score, name) for score, _, name in sorted(best, reverse=True)]


def _written(graph: CollectedGraph, scores: Numbers, file: IO[bytes]) -> Iterator[tuple[str, int]]:
    lines: list[str] = []
    for name, score in zip(graph.names(), map(int, scores), strict=True):
        lines.append(f"{name}\t{score}\n")
        if len(lines) == LINES:
            file.write("".join(lines).encode("ascii"))
            lines = []
        yield name, score
    file.write("".join(lines).encode("ascii"))
