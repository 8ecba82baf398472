"""The file of scores that `file(...)` of UBI_SCORE reads: `URL<TAB>score`, a line for each node of a graph, in order.

* The same ranks give the same bytes: a name that ends in .gz is packed, without time and name in it. The file is
  written beside and renamed.
* Only the best nodes are in memory with their names, to be shown.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from scrapy_ubi.outputs.graph.collected_graph import CollectedGraph, Numbers
from scrapy_ubi.outputs.graph.files import packed_file

SHOWN = 10
LINES = 8_192  # at a time

Best = list[tuple[int, str]]  # scores and names


def write(graph: CollectedGraph, scores: Numbers, output: str) -> Best:
    """Write the scores of a graph's nodes; the best ones. Raises UbiGraphDamaged, OSError; then nothing is there that
    was not there before."""
    beside = Path(f"{output}.part")
    best: list[tuple[int, int, str]] = []
    try:
        with packed_file(beside) if output.endswith(".gz") else beside.open("wb") as file:
            for number, (name, score) in enumerate(_written(graph, scores, file)):
                if len(best) < SHOWN or score > best[0][0]:
                    (heapq.heappush if len(best) < SHOWN else heapq.heapreplace)(best, (score, -number, name))
        os.replace(beside, output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
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
