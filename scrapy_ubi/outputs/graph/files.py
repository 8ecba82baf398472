"""The files of a collected graph.

Rules of this module:

* `NAME.urls.gz`: the URL of each node, a line each; the first line is node 0. `NAME.arcs.gz`: `from<TAB>to` a line, in
  order, each once.
* The graph of hosts as Common Crawl has it: `NAME-hosts-vertices.txt.gz` (`number<TAB>reversed host`),
  `NAME-hosts-edges.txt.gz` (`from<TAB>to`), here with a third column: how many arcs of pages it stands for. Links
  within a host are left out, as there.
* The same graph gives the same bytes: gzip's time is 0, and no name is in it. Files are written beside and renamed.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from scrapy_ubi.outputs.graph.numbered import Numbered, ends_of
from scrapy_ubi.outputs.graph.page_record import Keys

URLS, ARCS = ".urls.gz", ".arcs.gz"
HOSTS, HOST_ARCS = "-hosts-vertices.txt.gz", "-hosts-edges.txt.gz"
LEVEL = 4  # of gzip: two thirds of the time of 6, a twentieth larger

_SHIFT = np.uint64(32)


@dataclass(slots=True)
class GraphFiles:
    """What was written: numbers of arcs, hosts, and arcs of hosts."""

    arcs: int = 0
    hosts: int = 0
    host_arcs: int = 0


def write(graph: Numbered, name: str, with_hosts: bool) -> GraphFiles:
    """Write a graph's files, whose names begin with `name`. Raises UbiError, OSError; then none is there that was not
    there before."""
    endings = (URLS, ARCS, HOSTS, HOST_ARCS) if with_hosts else (URLS, ARCS)
    beside = {ending: Path(f"{name}{ending}.part") for ending in endings}
    written = GraphFiles()
    try:
        with ExitStack() as stack:
            files = {ending: stack.enter_context(packed_file(path)) for ending, path in beside.items()}
            begins = _write_nodes(graph, files, written)
            _write_arcs(graph, files, begins, written)
        for ending, path in beside.items():
            os.replace(path, f"{name}{ending}")
    except BaseException:
        for path in beside.values():
            path.unlink(missing_ok=True)
        raise
    return written


class _Packed(gzip.GzipFile):
    """Without a name and a time in it. It closes the file below, too."""

    def __init__(self, path: Path) -> None:
        self._below = path.open("wb")
        super().__init__("", "wb", LEVEL, self._below, mtime=0)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._below.close()


def packed_file(path: Path) -> IO[bytes]:
    """A file to write, packed so that the same bytes give the same file."""
    return _Packed(path)  # type: ignore[return-value]


def _write_nodes(graph: Numbered, files: dict[str, IO[bytes]], written: GraphFiles) -> Keys:
    """URLs, and hosts where they are wanted; the number of each host's first node."""
    begins: list[int] = []
    last, urls, hosts = None, files[URLS], files.get(HOSTS)
    lines: list[bytes] = []
    for number, node in enumerate(graph.nodes()):
        if node.host != last:
            last = node.host
            begins.append(number)
            if hosts is not None:
                hosts.write(f"{len(begins) - 1}\t{last}\n".encode("ascii"))
        lines.append(node.url)
        if len(lines) == 8192:
            urls.write(b"\n".join(lines) + b"\n")
            lines = []
    if lines:
        urls.write(b"\n".join(lines) + b"\n")
    written.hosts = len(begins)
    return np.array(begins, np.uint64)


def _write_arcs(graph: Numbered, files: dict[str, IO[bytes]], begins: Keys, written: GraphFiles) -> None:
    edges = _HostArcs(begins)
    host_arcs = files.get(HOST_ARCS)
    for arcs in graph.arcs():
        written.arcs += len(arcs)
        files[ARCS].write(_lines(*ends_of(arcs)))
        if host_arcs is not None:
            for pairs, weights in edges.add(arcs):
                written.host_arcs += len(pairs)
                host_arcs.write(_lines(*ends_of(pairs), weights))
    if host_arcs is not None:
        for pairs, weights in edges.rest():
            written.host_arcs += len(pairs)
            host_arcs.write(_lines(*ends_of(pairs), weights))


def _lines(*columns: Keys) -> bytes:
    """Numbers, parted by tabs."""
    if len(columns) == 2:
        return "".join([f"{a}\t{b}\n" for a, b in zip(*(one.tolist() for one in columns), strict=True)]).encode()
    return "".join([f"{a}\t{b}\t{c}\n" for a, b, c in zip(*(one.tolist() for one in columns), strict=True)]).encode()


class _HostArcs:
    """Arcs of hosts, out of arcs of pages in order. `begins`: the first node of each host."""

    def __init__(self, begins: Keys) -> None:
        self._begins = begins
        self._pairs = np.empty(0, np.uint64)
        self._weights = np.empty(0, np.uint64)

    def add(self, arcs: Keys) -> Iterator[tuple[Keys, Keys]]:
        """More arcs; what of the arcs of hosts is complete: those of all hosts but the last one."""
        froms, tos = map(self._host_of, ends_of(arcs))
        found, counts = np.unique(froms << _SHIFT | tos, return_counts=True)
        apart = np.not_equal(*ends_of(found))
        pairs = np.concatenate((self._pairs, found[apart]))
        weights = np.concatenate((self._weights, counts[apart].astype(np.uint64)))
        self._pairs, inverse = np.unique(pairs, return_inverse=True)
        self._weights = np.zeros(len(self._pairs), np.uint64)
        np.add.at(self._weights, inverse, weights)
        cut = int(np.searchsorted(self._pairs, froms[-1] << _SHIFT)) if len(froms) else 0
        if cut:
            yield self._pairs[:cut], self._weights[:cut]
            self._pairs, self._weights = self._pairs[cut:], self._weights[cut:]

    def _host_of(self, nodes: Keys) -> Keys:
        return np.searchsorted(self._begins, nodes, "right").astype(np.uint64) - np.uint64(1)

    def rest(self) -> Iterator[tuple[Keys, Keys]]:
        """Those of the last host."""
        if len(self._pairs):
            yield self._pairs, self._weights
