"""A collected graph, read again for what goes through all its arcs several times.

Rules of this module:

* The files are those of `files`, of pages or of hosts. They may come from elsewhere: each line is checked, arcs are in
  order and lead to nodes that exist; what does not hold is a `UbiGraphDamaged`, with file and line.
* Arcs from a node to itself are left out, as `quality` does: no page speaks for itself.
* In memory are 12 bytes a node. What arcs lead to, and their weights, are in files in `place`, mapped.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.graph.files import ARCS, HOST_ARCS, HOSTS, URLS
from scrapy_ubi.outputs.graph.numbered import usual_host

CHUNK = 1 << 20  # bytes read at a time
MOST_LINE = 1 << 17  # bytes: a URL of any length that a crawl takes
MOST_NODES = 1 << 32

Progress = Callable[[int, int], None]
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_ARCS = re.compile(rb"(?:[0-9]{1,10}\t[0-9]{1,10}\n)*+").fullmatch
_WEIGHED = re.compile(rb"(?:[0-9]{1,10}\t[0-9]{1,10}\t[0-9]{1,18}\n)*+").fullmatch
_URL = re.compile(rb"https?://[!-~]+").fullmatch
_HOST = re.compile(rb"([0-9]{1,10})\t([!-~]+)").fullmatch


class UbiGraphDamaged(UbiError):
    """A file of a graph is missing, or does not hold."""


class CollectedGraph:
    """The arcs of the graph that is called `name`. `offsets`: by node, where its arcs begin; `targets`: what they lead
    to; `weights`: what each counts, None where each counts as one. Raises UbiGraphDamaged, OSError."""

    def __init__(
        self, name: str, place: Path, hosts: bool = False, progress: Progress = lambda done, total: None
    ) -> None:
        self._names = f"{name}{HOSTS if hosts else URLS}"
        self._arcs = f"{name}{HOST_ARCS if hosts else ARCS}"
        self._place = place
        self._hosts = hosts
        self.nodes = sum(1 for _ in self.names())
        if not self.nodes:
            raise UbiGraphDamaged(f"{self._names} has no node.")
        degrees = np.zeros(self.nodes + 1, np.int64)
        with (place / "targets").open("wb") as targets, (place / "weights").open("wb") as weights:
            for rows in self._rows(progress):
                apart = rows[rows[:, 0] != rows[:, 1]]
                nodes, counts = np.unique(apart[:, 0], return_counts=True)
                degrees[nodes + 1] += counts
                apart[:, 1].astype(np.uint32).tofile(targets)
                if hosts:
                    apart[:, 2].astype(np.float64).tofile(weights)
        self.offsets: Numbers = np.cumsum(degrees)
        self.arcs = int(self.offsets[-1])
        self.targets: NDArray[np.uint32] = self._mapped("targets", np.uint32)
        self.weights: Floats | None = self._mapped("weights", np.float64) if hosts else None

    def names(self) -> Iterator[str]:
        """The URL, or host, of each node, in the order of the numbers. Raises UbiGraphDamaged, OSError."""
        matches = _HOST if self._hosts else _URL
        with _reading(self._names) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), b""), 1):
                found = matches(line[:-1])  # a long line has no end
                if found is None or line[-1:] != b"\n" or number > MOST_NODES:
                    raise UbiGraphDamaged(f"Line {number} of {self._names} is no node.")
                if self._hosts and int(found[1]) != number - 1:
                    raise UbiGraphDamaged(f"Line {number} of {self._names} is not the node of that number.")
                yield usual_host(found[2].decode("ascii")) if self._hosts else line[:-1].decode("ascii")

    def _mapped(self, name: str, kind: type[Any]) -> NDArray[Any]:
        return np.memmap(self._place / name, kind, "r") if self.arcs else np.empty(0, kind)

    def _rows(self, progress: Progress) -> Iterator[Numbers]:
        """All arcs, some thousand at a time: from, to, and the weight of one between hosts."""
        width, matches = (3, _WEIGHED) if self._hosts else (2, _ARCS)
        last, line = -1, 1
        with _reading(self._arcs) as file:
            size = Path(self._arcs).stat().st_size
            while chunk := file.read(CHUNK):
                chunk += file.readline(MOST_LINE)
                if matches(chunk) is None:
                    raise UbiGraphDamaged(f"{self._arcs} has a line that is no arc, behind line {line - 1}.")
                rows = np.fromstring(chunk.decode("ascii"), np.int64, sep=" ").reshape(-1, width)
                both = rows[:, 0] * MOST_NODES + rows[:, 1]
                if int(rows[:, :2].max()) >= self.nodes or int(both[0]) <= last or not (np.diff(both) > 0).all():
                    raise UbiGraphDamaged(
                        f"{self._arcs} has an arc that is not in order, or leads to no node, behind line {line - 1}."
                    )
                last, line = int(both[-1]), line + len(rows)
                yield rows
                progress(min(file.read_so_far(), size - 1), size)
        progress(size, size)


class _Reading(gzip.GzipFile):
    """Errors name the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._below = Path(path).open("rb")  # noqa: SIM115 - closed with this
        super().__init__("", "rb", fileobj=self._below)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
        self._below.close()
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
            raise UbiGraphDamaged(f"{self._path} is damaged ({error}).") from error

    def read_so_far(self) -> int:
        """Bytes of the packed file."""
        return self._below.tell()


def _reading(path: str) -> _Reading:
    try:
        return _Reading(path)
    except FileNotFoundError:
        remedy = "scrapy ubi collect graph -o NAME --hosts" if "-hosts-" in path else "scrapy ubi collect graph -o NAME"
        raise UbiGraphDamaged(f"There is no file {path}: `{remedy}` writes it.") from None
