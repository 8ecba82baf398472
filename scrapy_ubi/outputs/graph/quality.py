"""How good the pages are that were fetched so far: UbiCrawler's Figure 2 for a crawl of one's own.

Rules of this module:

* The quality of a page is its indegree: how many other pages that were fetched link to it, or redirect to it.
  Everything that was fetched counts as a page, whatever its status.
* Three orders of the same pages are compared: `crawled`, by the time at which their load ended, at whichever agent;
  `breadth`, breadth first over the graph from the pages of depth 0, without regard to hosts; `best`, by indegree.
* Breadth first is level by level; in a level, pages are in the order of the page that leads to each first, those of one
  page by number. What no arc leads to comes last, as it was crawled.
* The arcs are in memory: 16 bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.outputs.graph.numbered import NONE, Numbered, ends_of
from scrapy_ubi.outputs.graph.page_record import Keys

POINTS = 200  # of a curve

Ints = NDArray[np.int64]


class Quality(NamedTuple):
    """Average indegrees of the first so many `pages`, in three orders; the last is that of all."""

    pages: list[int]
    crawled: list[float]
    breadth: list[float]
    best: list[float]
    arcs: int


def measure(graph: Numbered, points: int = POINTS) -> Quality:
    """What the pages of a graph of those that were fetched (`crawled_only`) were worth, in order. Raises as `nodes`."""
    count = sum(1 for _ in graph.nodes())
    blocks = list(graph.arcs())
    arcs = np.concatenate(blocks) if blocks else np.empty(0, np.uint64)
    froms, tos = ends_of(arcs)
    apart = froms != tos
    froms, tos = froms[apart], tos[apart]
    indegree = np.bincount(tos.astype(np.int64), minlength=count)
    crawled, depths = _by_time(graph, count)
    orders = crawled, _breadth_first(froms, tos, crawled, depths), np.argsort(-indegree, kind="stable")
    at = np.unique(np.linspace(1, count, min(points, count)).astype(np.int64)) if count else np.empty(0, np.int64)
    crawled_so, breadth, best = [(np.cumsum(indegree[order])[at - 1] / at).tolist() for order in orders]
    return Quality(at.tolist(), crawled_so, breadth, best, len(froms))


def _by_time(graph: Numbered, count: int) -> tuple[Ints, Ints]:
    """The pages in the order in which they were fetched, and the depth of each, by number. One that was fetched several
    times, as it was asked for anyway, counts where it was fetched first."""
    pages = graph.pages()
    numbers = graph.number_of(pages["key"])
    pages, numbers = pages[numbers != NONE], numbers[numbers != NONE].astype(np.int64)
    order = np.lexsort((numbers, pages["ended"]))
    ordered = numbers[order]
    _, first = np.unique(ordered, return_index=True)
    depths = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(depths, numbers, pages["depth"].astype(np.int64))
    return ordered[np.sort(first)], depths


def _breadth_first(froms: Keys, tos: Keys, crawled: Ints, depths: Ints) -> Ints:
    """All pages, breadth first. `froms` are in order."""
    begins = np.searchsorted(froms, np.arange(len(crawled) + 1, dtype=np.uint64))
    targets = tos.astype(np.int64)
    level = np.flatnonzero(depths == 0)
    seen = np.zeros(len(crawled), bool)
    seen[level] = True
    order = [level]
    while len(level):
        found = targets[_ranges(begins[level], begins[level + 1])]
        found = found[~seen[found]]
        _, first = np.unique(found, return_index=True)
        level = found[np.sort(first)]
        seen[level] = True
        order.append(level)
    return np.concatenate([*order, crawled[~seen[crawled]]])


def _ranges(begins: Ints, ends: Ints) -> Ints:
    """All numbers from each begin to its end, one range after the other."""
    lengths = ends - begins
    total = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    found: Ints = np.arange(total) - np.repeat(starts - begins, lengths)
    return found


def areas(quality: Quality) -> tuple[float, float]:
    """The areas under the curves as crawled and breadth first, as shares of that of the best order; 1 where that has
    none."""
    widths = np.diff(np.array([0, *quality.pages]))
    crawled, breadth, best = (float(np.dot(widths, one)) for one in (quality.crawled, quality.breadth, quality.best))
    return (crawled / best, breadth / best) if best else (1.0, 1.0)


def rows(quality: Quality, parts: int = 10) -> Sequence[tuple[int, float, float, float]]:
    """So many rows of the curves."""
    last = len(quality.pages) - 1
    chosen = sorted({round(last * part / parts) for part in range(1, parts + 1)}) if last >= 0 else []
    return [(quality.pages[i], quality.crawled[i], quality.breadth[i], quality.best[i]) for i in chosen]
