"""One WARC file of all agents' parts, each page once, and a CDXJ of it.

Rules of this module:

* What counts of a page is chosen as for every store (`outputs.choice`), by the indexes alone. Then the parts are read
  one after the other, and the records that count are copied as they are: the order is that of parts, not of names.
* A revisit whose record was removed (the page was fetched by two agents, and the other one's counts) becomes a response
  again, with the payload of what was removed. Of a page that was not modified (304), the record names none then.
* What the warcinfo records of the parts say stands in that of the file, once each.
* In memory are the names of removed records, and nothing that grows with the crawl: pages are there twice only where
  an agent has crashed.
"""

from __future__ import annotations

import io
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO

from scrapy_ubi.outputs.choice import RANKS
from scrapy_ubi.outputs.collector import Collector, CollectTally, Frame, Out, UbiNothingCollected
from scrapy_ubi.outputs.part_files import INDEX, OPEN, SHORT
from scrapy_ubi.outputs.sorting import Sorter
from scrapy_ubi.outputs.warc import cdxj, members
from scrapy_ubi.outputs.warc.foreign import MOST_HEAD, BrokenRecord, read_at
from scrapy_ubi.outputs.warc.members import DIGESTS, WarcRecord, date, digest, new_id
from scrapy_ubi.outputs.warc.met import PROFILE
from scrapy_ubi.outputs.warc.warc_store import LINES, WARC

_SPAN = struct.Struct("!QQQ")  # number of the part, offset, length
_REFERS = ("WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date")
_OF_RECORD = ("WARC-Type", "Content-Length")  # written by `members.record`

MOST_SAID = 20  # different values of one field of the parts' warcinfo records: of crawls whose settings have changed

Span = tuple[int, int, int]


class _Nameless:
    """A collected WARC without a name, as on standard output: nothing stands beside it."""

    name = ""

    def begin(self) -> None:
        """The WARC begins. Raises OSError."""

    def add(self, record: WarcRecord, at: int) -> None:
        """This record is at that place of the WARC. Raises OSError."""

    def end(self) -> None:
        """The WARC is written, or cannot be."""

    def discard(self) -> None:
        """It cannot be. Raises OSError."""

    def place(self) -> None:
        """The WARC has its name. Raises OSError."""


class _Indexed(_Nameless):
    """One that will have this name, and its CDXJ beside it."""

    def __init__(self, output: Path) -> None:
        self.name = output.name
        self._output = output
        self._lines: IO[bytes] = io.BytesIO()

    def begin(self) -> None:
        self._lines = _beside(self._output).open("wb")

    def add(self, record: WarcRecord, at: int) -> None:
        if (line := cdxj.line_of(record, at, self.name)) is not None:
            self._lines.write(line)

    def end(self) -> None:
        self._lines.close()

    def discard(self) -> None:
        _beside(self._output).unlink(missing_ok=True)

    def place(self) -> None:
        cdxj.sort(_beside(self._output))
        os.replace(_beside(self._output), index_of(self._output))


class WarcCollector(Collector):
    """Collects into one WARC file that will be called `output`; None: it has no name, and no CDXJ."""

    def __init__(
        self,
        outs: Sequence[Out],
        output: Path | None,
        told: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        super().__init__(outs, "warc", WARC, output and output.absolute().parent, told)
        self._index = _Indexed(output) if output is not None else _Nameless()
        self._number = 0
        self._compress = members.by_isal() or members.by_zlib
        self._paths: list[Path] = []
        self._removed: dict[str, Span] = {}  # name of a record -> where it is
        self._end = 0

    def collect(self, file: IO[bytes]) -> CollectTally:
        """Write the file. Raises UbiNothingCollected, OSError."""
        parts = self._parts()
        if not parts:
            raise UbiNothingCollected(self._nothing())
        self._paths = [_data(index) for index, _ in parts]
        total = sum(path.stat().st_size for path in self._paths if path.exists())
        with Sorter(self._place) as sorter, Sorter(self._place) as kept, Sorter(self._place) as removed:
            for number, (index, opened) in enumerate(parts):
                self._number = number
                self._add(sorter, number, index, opened, 0, bytes)
            for _, group in groupby(sorter, key=lambda record: record[0][0]):
                records = list(group)
                counts = set(self._chosen(iter(records)))
                for _, span in records:
                    (kept if span in counts else removed).add(_key(span), span)
            for _, span in removed:
                self._remove(_SPAN.unpack(span))
            self._write(file, (_SPAN.unpack(span) for _, span in kept), total)
        self._told(total, total)
        return self.tally

    def place_beside(self) -> None:
        """The file has its name: give the CDXJ its own. Raises OSError."""
        self._index.place()

    def _frame(self, line: bytes, file: IO[bytes]) -> Frame | None:
        """As of any store; but its data is where the records are, which are not read yet."""
        try:
            name, attempt, kind, *spans = line.decode("ascii").split()
            if not line.endswith(b"\n") or kind not in RANKS:
                return None
            data = b""
            for span in spans:
                ending, begin, length = span.rsplit(":", 2)
                if ending == WARC:
                    if int(begin) + int(length) > os.fstat(file.fileno()).st_size:
                        return None
                    data = _SPAN.pack(self._number, int(begin), int(length))
            return Frame(name, int(attempt), kind, data)
        except (ValueError, struct.error):
            return None

    def _tell(self, count: int, total: int) -> None:
        if total:
            super()._tell(count, total)

    def _remove(self, span: Span) -> None:
        for record in self._records(span):
            if record.kind == "response":
                self._removed[record.id] = span[0], span[1] + record.offset, record.length

    def _records(self, span: Span) -> Iterator[WarcRecord]:
        with self._paths[span[0]].open("rb") as file:
            file.seek(span[1])
            yield from members.records(file.read(span[2]))

    def _write(self, file: IO[bytes], spans: Iterator[Span], total: int) -> None:
        self._end = 0
        self._index.begin()
        try:
            self._put(file, self._compress(self._info()))
            for number, span in groupby(spans, key=lambda span: span[0]):
                with self._paths[number].open("rb") as part:
                    for _, begin, length in span:
                        part.seek(begin)
                        self._copy(file, part.read(length))
                        self._tell(length, total)
        except BaseException:
            self._index.discard()
            raise
        finally:
            self._index.end()

    def _copy(self, file: IO[bytes], data: bytes) -> None:
        for record in members.records(data):
            if record.kind == "warcinfo":
                continue
            member = data[record.offset :][: record.length]
            if record.kind == "revisit" and record.fields.get("WARC-Refers-To") in self._removed:
                record, member = self._without_reference(record)
            self._index.add(record, self._end)
            self._put(file, member)

    def _without_reference(self, revisit: WarcRecord) -> tuple[WarcRecord, bytes]:
        """Make of a revisit whose record was removed the response that it was; of a 304 a revisit that names none."""
        fields = {name: value for name, value in revisit.fields.items() if name not in _REFERS}
        kind, block = "revisit", revisit.block
        if fields.get("WARC-Profile") == PROFILE:
            del fields["WARC-Profile"]
            (removed,) = self._records(self._removed[revisit.fields["WARC-Refers-To"]])
            kind, block = "response", revisit.http_head + removed.payload
            label = fields.get("WARC-Block-Digest", "").partition(":")[0]
            fields["WARC-Block-Digest"] = DIGESTS.get(label, digest)(block)
        fields["WARC-Type"] = kind
        named = [(name, value) for name, value in fields.items() if name not in _OF_RECORD]
        member = self._compress(members.record(kind, named, block))
        return WarcRecord(fields, block, 0, len(member)), member

    def _put(self, file: IO[bytes], member: bytes) -> None:
        file.write(member)
        self._end += len(member)

    def _info(self) -> bytes:
        name = [("WARC-Filename", self._index.name)] if self._index.name else []
        fields = [("WARC-Record-ID", new_id()), ("WARC-Date", date(time.time())), *name]
        agents = ", ".join(sorted({out.agent for out in self._outs}))
        said = self._said()
        said |= {"isPartOf": [self._outs[0].crawl], "description": [f"collected from the parts of {agents}"]}
        text = "".join(f"{name}: {', '.join(values)}\r\n" for name, values in said.items())
        return members.record("warcinfo", [*fields, ("Content-Type", "application/warc-fields")], text.encode())

    def _said(self) -> dict[str, list[str]]:
        """Return the fields of the parts' warcinfo records, each value once, in the order of the parts."""
        said: dict[str, list[str]] = {}
        for path in self._paths:
            for name, value in _info_of(path):
                values = said.setdefault(name, [])
                if value not in values and len(values) < MOST_SAID:
                    values.append(value)
        return said


def _info_of(path: Path) -> list[tuple[str, str]]:
    """Return the fields of the warcinfo record that a part begins with; none where it has none."""
    try:
        with path.open("rb") as file:
            record = read_at(file, 0, MOST_HEAD)
    except (OSError, BrokenRecord):
        return []
    if record.kind != "warcinfo":
        return []
    lines = (line.partition(":") for line in record.block.decode("utf-8", "replace").splitlines())
    return [(name.strip(), value.strip()) for name, mark, value in lines if mark]


def index_of(warc: Path) -> Path:
    """The CDXJ that belongs to a WARC file."""
    name = warc.name.removesuffix(".gz").removesuffix(".warc")
    return warc.with_name(f"{name}.{LINES}")


def _beside(output: Path) -> Path:
    return output.with_name(f"{output.name}.{LINES}.part")


def _data(index: Path) -> Path:
    """The WARC file of a part, by its index."""
    base = str(index).removesuffix(OPEN).removesuffix(SHORT).removesuffix(INDEX)
    return next((path for end in ("", OPEN, SHORT) if (path := Path(f"{base}{WARC}{end}")).exists()), Path(base + WARC))


def _key(span: bytes) -> tuple[str, int, int, int, int]:
    """In the order of parts, and of offsets there."""
    number, begin, _ = _SPAN.unpack(span)
    return "", number, begin, 0, 0
