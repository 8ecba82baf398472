"""One result from all agents' parts: every page once, in an order that does not depend on who fetched it.

Rules of this module:

* A page that was fetched by two agents (one of them crashed before the others heard that it was done) is in the parts
  of both, under one name: one whole set of what was kept of it counts, that of the last attempt that did not fail. What
  other attempts of it have left ("again") counts beside it.
* A page that is visited again has a name of each visit (`visit_names`), and each counts. With `latest` only the last
  visit that did not fail does, also where it has left nothing.
* Parts of one run of the crawl only, the one that began last, unless another is named: two runs never mix.
* A part that is still written (`.open`) counts where its agent does not run any more: it was killed, and not started
  again. As far as it is whole: what a killed process has left of a record is passed over. Where its agent runs, the
  part comes when it is sealed.
* The order is by name. Records are sorted on disk (`sorting`): memory is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, NamedTuple

from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs import part_files
from scrapy_ubi.outputs.choice import (
    MOST_ATTEMPT,
    RANKS,
    Claim,
    attempt_of_visit,
    chosen,
    claim_of,
    order,
    visit_of,
)
from scrapy_ubi.outputs.part_files import INDEX, OPEN, SHORT
from scrapy_ubi.outputs.sorting import Record, Sorter
from scrapy_ubi.outputs.visit_names import read_visit_name

CHUNK = 1 << 20
LONGEST = 1000  # characters of a page's name


class UbiNothingCollected(UbiError):
    """There is nothing to collect; the sentence says what was looked for."""


@dataclass(frozen=True, slots=True)
class Out:
    """A directory of outputs, and whose they are. `runs`: its agent runs now."""

    path: Path
    crawl: str
    agent: str
    run: str
    began: float
    runs: bool


class Frame(NamedTuple):
    """What one part has of one page."""

    name: str
    attempt: int
    kind: str
    data: bytes


@dataclass(slots=True)
class CollectTally:
    """What was found: pages, records of them that were there twice, parts, and those of a running agent that wait."""

    pages: int = 0
    doubles: int = 0
    older: int = 0  # records of visits before the last one, where only that counts
    parts: int = 0
    open_parts: int = 0
    damaged: int = 0


def find_outputs(directories: Sequence[Path]) -> list[Out]:
    """The outputs in these agents' directories, those put aside among them. One that no `crawl.json` speaks for has no
    page that is done, and is left out."""
    found = []
    for directory in directories:
        runs = is_held(directory)
        for path in part_files.outs(directory):
            record = part_files.read_record(path)
            run, began = record.get("run"), record.get("began")
            if isinstance(run, str) and run:
                here = runs and path.name == part_files.OUT
                when = began if isinstance(began, int | float) else 0.0
                found.append(Out(path, str(record.get("crawl")), str(record.get("agent")), run, when, here))
    return found


def runs_of(outs: Sequence[Out]) -> list[str]:
    """The runs that these are of, the one that began last first."""
    began: dict[str, float] = {}
    for out in outs:
        began[out.run] = min(out.began, began.get(out.run, out.began))
    return sorted(began, key=lambda run: (-began[run], run))


def is_held(directory: Path) -> bool:
    """Whether an agent runs in a directory on this machine: whether somebody has its lock. Looked up where the system
    lists all locks, as a try to take it would be in the way of an agent that starts."""
    try:
        facts = (directory / "lock").stat()
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    mark = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    return any(mark in line.split() and "FLOCK" in line for line in locks)


class Collector:
    """Collects what the store `store` has in its files of that `ending`, from these `outs`. `told(done, total)` is told
    of the bytes that were read. `latest`: of pages that were visited again, the last visit alone."""

    def __init__(
        self,
        outs: Sequence[Out],
        store: str,
        ending: str,
        place: Path | None = None,
        told: Callable[[int, int], None] = lambda done, total: None,
        *,
        latest: bool = False,
    ) -> None:
        self._latest = latest
        self.tally = CollectTally()
        self._outs = outs
        self._store = store
        self._ending = ending
        self._place = place
        self._told = told
        self._read = 0

    def collect(self, file: IO[bytes]) -> CollectTally:
        """Write every page's records to a file. Raises UbiNothingCollected, OSError."""
        for records in self.pages():
            for data in records:
                file.write(data)
        return self.tally

    def pages(self, met: Callable[[bytes], bytes] = bytes) -> Iterator[list[bytes]]:
        """The records that count, page by page, that of the last complete fetch last. `met` is shown every record
        before, also those that will not count, and answers what is to be kept of it; nothing: it does not count. Raises
        UbiNothingCollected, OSError."""
        parts = self._parts()
        if not parts:
            raise UbiNothingCollected(self._nothing())
        total = 2 * sum(_size(base) for base, _ in parts)
        with Sorter(self._place) as sorter:
            for number, (base, opened) in enumerate(parts):
                self._add(sorter, number, base, opened, total, met)
            for _, group in groupby(sorter, key=lambda record: record[0][0]):
                records = list(self._chosen(group))
                yield records
                self._tell(sum(map(len, records)), total)
        self._told(total, total)

    def place_beside(self) -> None:
        """The file has got its name: put beside it what belongs there. Raises OSError."""

    def _nothing(self) -> str:
        where = ", ".join(str(out.path) for out in self._outs)
        if self.tally.open_parts:
            return (
                f"All that the store {self._store!r} has in {where} is still written by agents that run: it can be "
                f"collected when it is sealed, at the end, or after the time that UBI_STORES says ('{self._store}"
                "(seconds=60)')."
            )
        return f"There is nothing of the store {self._store!r} in {where}: see UBI_STORES."

    def _parts(self) -> list[tuple[Path, bool]]:
        """The parts to be read, by the path of their data without an ending, in an order by their names."""
        found = []
        for out in self._outs:
            for index in sorted(out.path.glob(f"{self._store}/**/*{INDEX}*")):
                if not index.name.removesuffix(OPEN).removesuffix(SHORT).endswith(INDEX):
                    continue
                if index.suffix == OPEN and out.runs:
                    self.tally.open_parts += 1
                    continue
                found.append((index, index.suffix in (OPEN, SHORT)))
        self.tally.parts = len(found)
        return sorted(found, key=lambda part: (part[0].name, str(part[0])))

    def _add(
        self, sorter: Sorter, number: int, index: Path, opened: bool, total: int, met: Callable[[bytes], bytes]
    ) -> None:
        """Read a part. What is not whole in one that was left open is passed over, and counted in any other."""
        place = 0
        for frame in self._frames(index, opened):
            place += 1
            self._tell(len(frame.data), total)
            data = met(frame.data) if frame.data else b""
            if not data and (frame.data or not self._latest):
                continue
            name, attempt = frame.name, frame.attempt
            if self._latest:
                of = read_visit_name(name)
                name, attempt = of.page, attempt_of_visit(of.visit, attempt)
            sorter.add((name, *order(Claim(frame.kind, attempt, number, place))), data)

    def _frames(self, index: Path, opened: bool) -> Iterator[Frame]:
        base = str(index).removesuffix(OPEN).removesuffix(SHORT).removesuffix(INDEX)
        data = next((path for path in _variants(f"{base}{self._ending}") if path.exists()), None)
        if data is None:
            return
        with index.open("rb") as lines, data.open("rb") as file:
            for line in lines:
                frame = self._frame(line, file)
                if frame is None:
                    self.tally.damaged += not opened
                    return
                yield frame

    def _frame(self, line: bytes, file: IO[bytes]) -> Frame | None:
        """None where the line, or what it points to, is not whole."""
        return frame_of(line, file, self._ending)

    def _chosen(self, group: Iterator[Record]) -> Iterator[bytes]:
        """What counts of one page. The records are read only as far as they may count."""
        claims: list[Claim] = []
        data: dict[Claim, bytes] = {}
        for (_, *numbers), found in group:
            claim = claim_of(*numbers)
            if claim in chosen([*claims, claim]):
                claims.append(claim)
                data[claim] = found
            elif visit_of(claim) < visit_of(claims[0]):
                self.tally.older += 1
            else:
                self.tally.doubles += 1
        counting = [claim for claim in chosen(claims) if data[claim]]
        self.tally.pages += bool(counting)
        for claim in counting:
            yield data[claim]

    def _tell(self, count: int, total: int) -> None:
        before, self._read = self._read, self._read + count
        if before // CHUNK != self._read // CHUNK:
            self._told(min(self._read, total), total)


def frame_of(line: bytes, file: IO[bytes], ending: str) -> Frame | None:
    """What a line of an index points to in the file of that ending. None where one of them is not whole."""
    try:
        name, attempt, kind, *spans = line.decode("ascii").split()
        if not line.endswith(b"\n") or kind not in RANKS or len(name) > LONGEST or not attempt.isdigit():
            return None
        data = b""
        for span in spans:
            its, begin, length = span.rsplit(":", 2)
            if its == ending:
                data = _span(file, int(begin), int(length))
        return Frame(name, min(int(attempt), MOST_ATTEMPT), kind, data)
    except ValueError:
        return None


def _span(file: IO[bytes], begin: int, length: int) -> bytes:
    """So many bytes of a file from there. Raises ValueError where they are not there."""
    if begin < 0 or not 0 <= length <= os.fstat(file.fileno()).st_size - begin:
        raise ValueError("an index points behind its file's end")
    file.seek(begin)
    return file.read(length)


def _variants(path: str) -> list[Path]:
    return [Path(path + ending) for ending in ("", OPEN, SHORT)]


def _size(index: Path) -> int:
    """Bytes of a part's data, about: of all its files."""
    base = str(index).removesuffix(OPEN).removesuffix(SHORT).removesuffix(INDEX)
    return sum(path.stat().st_size for path in Path(base).parent.glob("*") if str(path).startswith(base))
