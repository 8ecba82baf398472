"""One graph of all agents' records: its nodes numbered by reversed host and URL, its arcs by these numbers.

Rules of this module:

* Of a page the record counts that its last complete fetch has left (`collect`); its texts count whichever record they
  are in. So the result does not depend on who fetched what.
* A node is a page that was fetched, or is linked to; with `crawled_only` a page that was fetched. Its number is its
  rank by (reversed host, URL). A host is reversed label by label (`com.example.www`), an address is not.
* Everything is sorted on disk in `place`: of the nodes 12 bytes each are mapped into memory, the rest is bounded.
* A record that does not add up is left out and counted; so is an arc to a key of which no text is left. Where two URLs
  have one key, which is one chance in 10^19 for each pair, the second one is left out, and counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.collector import Collector
from scrapy_ubi.outputs.graph.page_record import REDIRECT, BadRecord, Keys, keys_of, stripped, unpacked, without_texts
from scrapy_ubi.outputs.graph.runs import LineSorter, NumberSorter

NONE = 0xFFFF_FFFF  # no node
CHUNK = 1 << 18  # arcs, or lines, at a time
PAGE = np.dtype([("key", "<u8"), ("ended", "<f8"), ("depth", "<u2"), ("status", "<u2")])
_PAGE = struct.Struct("<dHH")  # behind the key
_LOW = np.uint64(0xFFFF_FFFF)
_SHIFT = np.uint64(32)

Numbers = NDArray[np.uint32]


class UbiGraphTooLarge(UbiError):
    """There are more nodes than have a number."""


class GraphNode(NamedTuple):
    """A node, in the order of the numbers."""

    host: str  # reversed
    url: bytes


@dataclass(slots=True)
class FoundNode:
    """What the graph has come to. `refused`: records that do not add up; `unnamed`: arcs to a key without a text;
    `collisions`: URLs with the key of another one."""

    nodes: int = 0
    pages: int = 0
    redirects: int = 0
    refused: int = 0
    unnamed: int = 0
    collisions: int = 0


def reversed_host(url: str) -> str:
    """The host of a URL in normal form, the last label first, with its port; an address as it is."""
    return _turned(url.split("/", 3)[2].rpartition("@")[2], top=-1)


def usual_host(host: str) -> str:
    """A reversed host, in its usual order."""
    return _turned(host, top=0)


def _turned(host: str, top: int) -> str:
    """The labels the other way round. `top`: where the top label stands; it is a number in addresses only, any other
    label may be one."""
    name, colon, port = host.partition(":")
    labels = name.split(".")
    return host if host.startswith("[") or labels[top].isdigit() else f"{'.'.join(reversed(labels))}{colon}{port}"


class Numbered:
    """The graph of what a collector finds. `nodes` is iterated first, once, then `arcs`, once; `pages` stay."""

    def __init__(self, collector: Collector, place: Path, crawled_only: bool = False) -> None:
        self.found = FoundNode()
        self._collector = collector
        self._place = place
        self._crawled_only = crawled_only
        self._lines = LineSorter(place, "lines")
        self._hosts: dict[str, str] = {}
        self._keys: Keys = np.empty(0, np.uint64)
        self._numbers: Numbers = np.empty(0, np.uint32)

    def nodes(self) -> Iterator[GraphNode]:
        """Read all records; every node, in the order of the numbers. Raises UbiNothingCollected, OSError."""
        self._read()
        lines = self._lines.lines()
        while chunk := list(islice(lines, CHUNK)):
            yield from self._named(chunk)
        self._numbers_flush()

    def arcs(self) -> Iterator[Keys]:
        """Every arc, in order, once: from, in the upper half of a number, to, in the lower. Some thousand at a time."""
        sorter = NumberSorter(self._place, "arcs")
        with (self._place / "from").open("rb") as sources, (self._place / "to").open("rb") as targets:
            while len(froms := np.fromfile(sources, "<u8", CHUNK)):
                begins, ends = self.number_of(froms), self.number_of(np.fromfile(targets, "<u8", CHUNK))
                named = (begins != NONE) & (ends != NONE)
                if not self._crawled_only:
                    self.found.unnamed += int(len(named) - named.sum())
                sorter.add(begins[named].astype(np.uint64) << _SHIFT | ends[named])
        yield from sorter.blocks()

    def pages(self) -> NDArray[np.void]:
        """The records of pages that count: `PAGE`."""
        return np.fromfile(self._place / "pages", PAGE)

    def number_of(self, keys: Keys) -> Numbers:
        """The numbers of nodes; `NONE` for what is none."""
        if not len(self._keys):
            return np.full(len(keys), NONE, np.uint32)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._numbers[at], np.uint32(NONE))

    # -- reading

    def _read(self) -> None:
        """Put aside texts, pages and arcs; find out which keys are nodes."""
        nodes = NumberSorter(self._place, "keys")
        with ExitStack() as stack:
            pages, froms, to = (
                stack.enter_context((self._place / name).open("wb")) for name in ("pages", "from", "to")
            )
            for records in self._collector.pages(self._met):
                page = stripped(records[-1])
                own = np.frombuffer(page.key, "<u8")
                pages.write(page.key + _PAGE.pack(page.ended, page.depth, page.status))
                froms.write(page.key * len(page.types))
                to.write(page.targets)
                nodes.add(own)
                if not self._crawled_only:
                    nodes.add(np.frombuffer(page.targets, "<u8"))
                self.found.pages += 1
                self.found.redirects += page.types.count(REDIRECT)
        self._keep(nodes)

    def _met(self, data: bytes) -> bytes:
        """A record, whether it counts or not; what is kept of it."""
        try:
            record = unpacked(data)
        except BadRecord:
            self.found.refused += 1
            return b""
        for text in record.texts:
            url = text.decode("ascii")
            netloc = url[: url.index("/", 8)] if url.count("/") > 2 else url
            if (host := self._hosts.get(netloc)) is None:
                if len(self._hosts) > CHUNK:
                    self._hosts.clear()
                host = self._hosts[netloc] = reversed_host(url)
            self._lines.add(f"{host}\t{url}\n".encode("ascii"))
        return without_texts(record)

    def _keep(self, nodes: NumberSorter) -> None:
        """The keys of all nodes, in order, and their numbers, none yet: on disk, mapped."""
        path, count = self._place / "nodes", 0
        with path.open("wb") as file:
            for block in nodes.blocks():
                block.tofile(file)
                count += len(block)
        if count >= NONE:
            raise UbiGraphTooLarge(f"The graph has {count} nodes, of {NONE - 1} at most: try --crawled-only.")
        if count:
            self._keys = np.memmap(path, np.uint64, "r")
            self._numbers = np.memmap(self._place / "numbers", np.uint32, "w+", shape=(count,))
            self._numbers[:] = NONE

    # -- numbering

    def _named(self, lines: list[bytes]) -> Iterator[GraphNode]:
        """Number what of these lines are nodes."""
        if not len(self._keys):
            return
        texts = [line[line.index(b"\t") + 1 : -1] for line in lines]
        keys = keys_of(texts)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        chosen = np.flatnonzero(self._keys[at] == keys)
        _, first = np.unique(at[chosen], return_index=True)
        first.sort()
        fresh = chosen[first]
        fresh = fresh[self._numbers[at[fresh]] == NONE]
        self.found.collisions += len(chosen) - len(fresh)
        begin = self.found.nodes
        self.found.nodes += len(fresh)
        self._numbers[at[fresh]] = np.arange(begin, self.found.nodes, dtype=np.uint32)
        for number in fresh.tolist():
            yield GraphNode(lines[number][: lines[number].index(b"\t")].decode("ascii"), texts[number])

    def _numbers_flush(self) -> None:
        if isinstance(self._numbers, np.memmap):
            self._numbers.flush()


def ends_of(arcs: Keys) -> tuple[Keys, Keys]:
    """From and to of arcs."""
    return arcs >> _SHIFT, arcs & _LOW
