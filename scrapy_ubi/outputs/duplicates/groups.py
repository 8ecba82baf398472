"""Groups of duplicates among all pages of a crawl, whichever agent has fetched them, and whatever their hosts.

Rules of this module:

* Of a page the record counts that `collect` takes. Pages are numbered in the order of their names, so the groups do not
  depend on who fetched what.
* What a page is compared by is a row in a file in `place`, mapped: 276 bytes a page on disk. Who is compared with whom
  is found by sorting on disk: pages with equal digests, and pages with a band in common. In memory are some 20 bytes
  a page.
* A group is what hangs together: every member is equal to another one, or near it. So no page is without its copies
  because one of them is nearer to a third page, and the groups are the same whatever page is looked at first.
* Of many pages with one band in common each is compared with the first `MOST` of different bytes, and with `FIRST` more
  that are near none before them.
* A *shell* (`host_pages`) makes no group: where more than half of what is compared of a page's host, of `FEW` at least,
  is near it, these pages are told as far as their digests are equal. What hangs together by such a page only does not:
  then a group is what one page, its first, has as copies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.outputs.collector import Collector
from scrapy_ubi.outputs.duplicates.duplicate_record import BadLine, read_line
from scrapy_ubi.outputs.duplicates.host_pages import FEW
from scrapy_ubi.outputs.duplicates.sketch import BINS, DIGEST, bands_of, resemblance, resemblance_of
from scrapy_ubi.outputs.graph.runs import NumberSorter

ROW = np.dtype([("digest", f"V{DIGEST}"), ("words", "<u4"), ("near", "?"), ("bins", "u1", (BINS,)), ("at", "<u8")])
CHUNK = 4096  # rows at a time
FIRST, MOST = 64, 192
_LOW, _SHIFT = np.uint64(0xFFFF_FFFF), np.uint64(32)


class Copy(NamedTuple):
    """A page of a group."""

    url: str
    digest: str
    exact: bool  # whether an earlier page of the group has the same bytes


class Groups:
    """The groups of what a collector finds. `near`: words of a hundred that may differ; 0: exact ones only.
    `pages`, `refused` (lines that do not add up), `exact`, `near_ones` (copies) are counts, once `all` is through."""

    def __init__(self, collector: Collector, place: Path, near: int) -> None:
        self.pages = self.refused = self.exact = self.near_ones = self.shells = 0
        self._collector = collector
        self._place = place
        self._near = near
        self._hosts: Counter[str] = Counter()
        self._rows: Any = np.zeros(0, ROW)
        self._parent: NDArray[np.uint32] = np.zeros(0, np.uint32)

    def all(self) -> Iterator[list[Copy]]:
        """Every group, the one whose first page has the least name first. Raises UbiNothingCollected, OSError."""
        exact, near = NumberSorter(self._place, "digests"), NumberSorter(self._place, "bands")
        self._read()
        if not self.pages:
            return
        self._rows = np.memmap(self._place / "rows", ROW, "r")
        self._parent = np.arange(self.pages, dtype=np.uint32)
        self._sort(exact, near)
        for members in _equal(exact):
            self._join_exact(members)
        if self._near:
            for members in _equal(near):
                self._join_near(members)
        with (self._place / "urls").open("rb") as urls:
            for component in self._components():
                yield from self._groups(component, urls)

    def _read(self) -> None:
        """Put all pages aside: a row each, and the URL."""
        end = 0
        with (self._place / "rows").open("wb") as rows, (self._place / "urls").open("wb") as urls:
            row = np.zeros(1, ROW)
            for records in self._collector.pages():
                try:
                    page = read_line(records[-1])
                except BadLine:
                    self.refused += 1
                    continue
                judged = page.judged
                row["digest"] = np.frombuffer(judged.digest, ROW["digest"])
                row["words"], row["near"], row["at"] = min(judged.words, 1 << 31), bool(judged.sketch), end
                row["bins"] = np.frombuffer(judged.sketch or bytes(BINS), np.uint8)
                row.tofile(rows)
                line = f"{page.host}\t{page.url}\n".encode()
                urls.write(line)
                end += len(line)
                self.pages += 1
                if judged.sketch:
                    self._hosts[page.host] += 1

    def _sort(self, exact: NumberSorter, near: NumberSorter) -> None:
        for start in range(0, self.pages, CHUNK):
            rows = np.array(self._rows[start : start + CHUNK])
            numbers = np.arange(start, start + len(rows), dtype=np.uint64)
            digests = np.ascontiguousarray(rows["digest"]).view(np.uint8).reshape(-1, DIGEST)[:, :4]
            exact.add(np.ascontiguousarray(digests).view("<u4")[:, 0].astype(np.uint64) << _SHIFT | numbers)
            if self._near and rows["near"].any():
                bands = bands_of(rows["bins"][rows["near"]]).astype(np.uint64)
                near.add((bands << _SHIFT | numbers[rows["near"]][:, None]).ravel())

    def _join_exact(self, members: NDArray[np.int64]) -> None:
        first: dict[bytes, int] = {}
        for number in members.tolist():
            self._join(number, first.setdefault(self._rows[number]["digest"].tobytes(), number))

    def _join_near(self, members: NDArray[np.int64]) -> None:
        others: list[int] = []
        digests: set[bytes] = set()  # of equal pages one is enough: they are joined already
        for number in members.tolist():
            digest = self._rows[number]["digest"].tobytes()
            if digest in digests:
                continue
            near = self._all_near(number, others) if others else []
            for other in near:
                self._join(number, other)
            if len(others) < (MOST if near else MOST + FIRST):
                others.append(number)
                digests.add(digest)

    def _all_near(self, number: int, others: Sequence[int]) -> list[int]:
        """Which of these pages are near, the nearest first."""
        row, rows = self._rows[number], self._rows[list(others)]
        found = resemblance(row["bins"], np.ascontiguousarray(rows["bins"]))
        words = np.minimum(rows["words"], row["words"])  # the same whichever of two pages is looked at first
        least = resemblance_of(self._near, max(1, int(words.min())))
        near = [
            (-found[at], other)
            for at, other in enumerate(others)
            if found[at] >= least and found[at] >= resemblance_of(self._near, max(1, int(words[at])))
        ]
        return [other for _, other in sorted(near)]

    def _join(self, one: int, other: int) -> None:
        roots = sorted((self._root(one), self._root(other)))
        self._parent[roots[1]] = roots[0]

    def _root(self, number: int) -> int:
        while (above := int(self._parent[number])) != number:
            self._parent[number] = self._parent[above]
            number = above
        return number

    def _components(self) -> Iterator[list[int]]:
        """Pages that hang together, of each what has two at least."""
        for number in range(self.pages):
            self._parent[number] = self._parent[self._parent[number]]  # roots come first
        order = np.argsort(self._parent, kind="stable")
        roots = self._parent[order]
        starts = np.flatnonzero(np.concatenate(([True], roots[1:] != roots[:-1])))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(roots)], strict=True):
            if stop - start > 1:
                yield order[start:stop].tolist()

    def _groups(self, component: list[int], urls: IO[bytes]) -> Iterator[list[Copy]]:
        """The group that a component is; where a shell is in it, the parts of it without that."""
        parts = self._parts(component)
        shells = [self._is_shell(part, urls) for part in parts]
        if not any(shells):
            yield from self._told(component, urls)
            return
        self.shells += sum(shells)
        for part, is_shell in zip(parts, shells, strict=True):
            for members in self._by_digest(part).values() if is_shell else [part]:
                if len(members) > 1:
                    yield from self._told(members, urls)

    def _parts(self, component: list[int]) -> list[list[int]]:
        """Of each first page of a component what is equal to it, or nearer to it than to other first pages."""
        groups: dict[int, list[int]] = {}
        by_digest: dict[bytes, int] = {}
        firsts: list[int] = []
        for number in component:
            digest = self._rows[number]["digest"].tobytes()
            at = by_digest.get(digest)
            if at is None and self._near and self._rows[number]["near"]:
                near = self._all_near(number, firsts[:FIRST]) if firsts else []
                at = near[0] if near else None
                if at is None:
                    firsts.append(number)
            at = number if at is None else at
            by_digest.setdefault(digest, at)
            groups.setdefault(at, []).append(number)
        return list(groups.values())

    def _by_digest(self, members: list[int]) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = defaultdict(list)
        for number in members:
            found[self._rows[number]["digest"].tobytes()].append(number)
        return found

    def _is_shell(self, members: list[int], urls: IO[bytes]) -> bool:
        """Whether these are near pages that are more than half of their first one's host."""
        if len(members) * 2 <= FEW or len(self._by_digest(members)) < 2:
            return False
        host = self._place_of(members[0], urls)[0]
        if self._hosts[host] < FEW:
            return False
        return sum(self._place_of(number, urls)[0] == host for number in members) * 2 > self._hosts[host]

    def _told(self, members: list[int], urls: IO[bytes]) -> Iterator[list[Copy]]:
        """A group, its copies byte for byte together."""
        group = [
            Copy(self._place_of(number, urls)[1], digest.hex(), bool(at))
            for digest, same in self._by_digest(members).items()
            for at, number in enumerate(same)
        ]
        copies = sum(copy.exact for copy in group)
        self.exact += copies
        self.near_ones += len(group) - 1 - copies
        yield group

    def _place_of(self, number: int, urls: IO[bytes]) -> tuple[str, str]:
        urls.seek(int(self._rows[number]["at"]))
        host, _, url = urls.readline().decode().rstrip("\n").partition("\t")
        return host, url


def _equal(sorter: NumberSorter) -> Iterator[NDArray[np.int64]]:
    """The lower halves of numbers whose upper halves are equal, of each what has two at least."""
    rest: NDArray[np.uint64] = np.zeros(0, np.uint64)
    for block in sorter.blocks():
        numbers = np.concatenate([rest, block])
        upper = numbers >> _SHIFT
        cut = int(np.searchsorted(upper, upper[-1]))  # the last one may go on in the next block
        yield from _runs(numbers[:cut])
        rest = numbers[cut:]
    yield from _runs(rest)


def _runs(numbers: NDArray[np.uint64]) -> Iterator[NDArray[np.int64]]:
    if len(numbers) < 2:
        return
    upper = numbers >> _SHIFT
    starts = np.flatnonzero(np.concatenate(([True], upper[1:] != upper[:-1])))
    stops = np.append(starts[1:], len(numbers))
    several = stops - starts > 1
    for start, stop in zip(starts[several].tolist(), stops[several].tolist(), strict=True):
        yield (numbers[start:stop] & _LOW).astype(np.int64)
