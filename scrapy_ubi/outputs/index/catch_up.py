"""Read into a search index what the agents' files have that it has not.

Rules of this module:

* Parts are read on from where the last search has stopped, also those that a running agent writes. As far as
  they are whole: what an agent is writing just now comes with the next search.
* A part that has become shorter (its agent was killed, and cut it at its start), or is gone, makes the index begin
  again: what it has read may be of no page that is done.
* Names of parts never meet, so a part is known wherever its directory is moved or copied to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from scrapy_ubi.outputs.choice import Claim, attempt_of_visit, order
from scrapy_ubi.outputs.collector import Collector, CollectTally, Frame, Out, frame_of
from scrapy_ubi.outputs.index.index_record import BadIndexRecord, unpacked
from scrapy_ubi.outputs.index.index_store import ENDING, IndexStore
from scrapy_ubi.outputs.index.search_index import SearchIndex
from scrapy_ubi.outputs.part_files import INDEX, OPEN, SHORT, open_part
from scrapy_ubi.outputs.visit_names import read_visit_name

Told = Callable[[int, int], None]

BATCH = 2000  # pages between two commits
MOST_LINE = 4096  # bytes of a line of an index


class _FoundPart(NamedTuple):
    name: str
    lines: Path  # the part's index
    data: Path
    size: int  # bytes of `lines`


class CatchUp(NamedTuple):
    """What was done: pages read, records that were refused, parts there are."""

    read: int
    refused: int
    parts: int


def catch_up(
    index: SearchIndex, outs: Sequence[Out], told: Callable[[int, int], None] = lambda done, total: None
) -> CatchUp:
    """Bring an index up to these outputs. `told(done, total)`: bytes of the parts' own indexes. Raises OSError, and the
    errors of the index."""
    parts = [part for out in outs for part in _parts(out.path / IndexStore.name)]
    before = index.read()
    sizes = {part.name: part.size for part in parts}
    if any(sizes.get(name, -1) < end for name, (end, _) in before.items()):
        index.clear()
        before = {}
    total = sum(sizes.values())
    done = read = refused = 0
    for part in parts:
        end, lines = begin = before.get(part.name, (0, 0))
        for frame, *place in _frames(part, *begin):
            end, lines = place
            read += 1
            refused += not _put(index, part, frame, lines)
            if read % BATCH == 0:
                index.has_read(part.name, end, lines)
                index.commit()
                told(done + min(end, part.size), total)
        index.has_read(part.name, end, lines)
        done += part.size
    if read:
        told(total, total)
    return CatchUp(read, refused, len(parts))


def _put(index: SearchIndex, part: _FoundPart, frame: Frame, line: int) -> bool:
    try:
        record = unpacked(frame.data)
    except BadIndexRecord:
        return False
    attempt = attempt_of_visit(read_visit_name(frame.name).visit, frame.attempt)
    rank, newest, _, place = order(Claim(frame.kind, attempt, 0, line))
    index.put(record, (rank, newest, part.name, place))
    return True


def _parts(store: Path) -> list[_FoundPart]:
    found = []
    for index in sorted(store.glob(f"*.{INDEX}*")):
        base = str(index).removesuffix(OPEN).removesuffix(SHORT).removesuffix(INDEX)
        data = next((path for end in ("", OPEN, SHORT) if (path := Path(f"{base}{ENDING}{end}")).exists()), None)
        try:
            size = index.stat().st_size
        except FileNotFoundError:  # it was sealed just now, under another name
            index = index.with_name(index.name.removesuffix(OPEN))
            size = index.stat().st_size
        if data is not None:
            found.append(_FoundPart(Path(base).name.rstrip("."), index, data, size))
    return found


def _frames(part: _FoundPart, end: int, lines: int) -> Iterator[tuple[Frame, int, int]]:
    """What is whole behind that place, with the place behind it, and the number of the line."""
    with open_part(part.lines) as index, open_part(part.data) as data:
        index.seek(end)
        while line := index.readline(MOST_LINE):
            frame = frame_of(line, data, ENDING)
            if frame is None:
                return
            end, lines = end + len(line), lines + 1
            yield frame, end, lines


class IndexCollector(Collector):
    """`collect index -o OUT.db`, `-o OUT.tantivy`: an index of every page, as it is searched."""

    def __init__(
        self, outs: Sequence[Out], place: Path | None, told: Told, opened: Callable[[Path], SearchIndex]
    ) -> None:
        super().__init__(outs, IndexStore.name, ENDING, place, told, latest=True)
        self._opened = opened

    def collect(self, file: IO[bytes]) -> CollectTally:
        """Write it to the file of this name. Raises UbiNothingCollected, OSError, and the errors of the index."""
        return self.collect_into(Path(file.name))

    def collect_into(self, path: Path) -> CollectTally:
        """Write it there."""
        with self._opened(path) as index:
            for number, records in enumerate(self.pages()):
                for data in records:
                    try:
                        index.put(unpacked(data), (0, 0, "", number))
                    except BadIndexRecord:
                        self.tally.damaged += 1
                if number % BATCH == BATCH - 1:
                    index.commit()
        return self.tally
