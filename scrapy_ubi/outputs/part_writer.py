"""Parts: the files that a store writes from one rotation to the next, with an index of which page has which bytes.

Rules of this module:

* What is appended stays in memory until it is written: what was appended for a page can be taken back whole (`undo`).
* What waits is kept in the pieces in which it came, and the system takes them as they are: bodies are not copied.
* The index is written after the data that it points to.
* What is written is as lasting as the flush that says how long it is: that is synced, so files are as well (`sync`),
  and the directories that name them. A rename (`seal`) is synced before a flush leaves the file out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from scrapy_ubi.outputs.part_files import INDEX, OPEN, sync_directory

BUFFER = 1 << 20  # bytes of a file before they are written, if no mark comes first
MOST_PIECES = 1024  # that the system takes at once (IOV_MAX)


class PartStore(Protocol):
    """What the writer needs to know of a store."""

    @property
    def name(self) -> str:
        """Of the directory in `out`."""

    @property
    def separator(self) -> str:
        """Between the name of a part and that of a file: "." or "/"."""

    size: float  # bytes of a part
    seconds: float  # for which a part is written

    def write(self, payload: Any, part: Part) -> None:
        """Append what is kept of a page; in the writer's thread."""

    def sealed(self, files: Mapping[str, Path]) -> None:
        """A part was sealed; its files by their names in it. In the writer's thread. Raises OSError."""


@dataclass(slots=True, eq=False)
class Bundle:
    """What one store keeps of one page: `name` is the page's, `attempt` how often it was retried before, `kind` "ok",
    "failed", or "again" where it is fetched once more. `size` (bytes) is what the payload takes while it waits."""

    store: PartStore
    name: str
    attempt: int
    kind: str
    payload: Any
    size: int


class _PartFile:
    """One file of a part. `end`: its length once everything is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(f"{path}{OPEN}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._waits: list[bytes] = []
        self._waiting = 0  # bytes
        self._unsynced = False
        self.end = 0

    def append(self, data: bytes) -> None:
        self._waits.append(data if type(data) is bytes else bytes(data))  # a user's store may change its bytearray
        self._waiting += len(data)
        self.end += len(data)

    def undo(self, end: int) -> None:
        """Take back what was appended behind this length, of which nothing is written yet."""
        while self.end > end:
            piece = self._waits.pop()
            self._waiting -= len(piece)
            self.end -= len(piece)

    @property
    def many(self) -> bool:
        return self._waiting >= BUFFER

    def write(self) -> None:
        """Raises OSError; then the rest waits on."""
        while self._waits:
            pieces = self._waits[:MOST_PIECES]
            written = os.writev(self._fd, pieces)
            self._unsynced = True
            self._waiting -= written
            whole = len(pieces)
            if written < sum(map(len, pieces)):
                whole, written = _whole(pieces, written)
                self._waits[whole] = self._waits[whole][written:]
            del self._waits[:whole]

    def sync(self) -> None:
        """What was written outlasts a loss of power. Raises OSError; then it may be asked again."""
        if self._unsynced:
            os.fdatasync(self._fd)
            self._unsynced = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _whole(pieces: list[bytes], written: int) -> tuple[int, int]:
    """How many of these pieces are within so many bytes, fewer than all of them have, and how much of the next one."""
    number = 0
    while written >= len(pieces[number]):
        written -= len(pieces[number])
        number += 1
    return number, written


class Part:
    """The files that a store writes now. `append` is for the store, in the writer's thread."""

    def __init__(self, out: Path, store: PartStore, stem: str, now: float) -> None:
        self.opened = now
        self.size = 0
        self._store = store
        self._out = out
        self._base = f"{store.name}/{stem}{store.separator}"
        self.files: dict[str, _PartFile] = {}
        self._unnamed = False  # there are files whose names are not synced
        self._spans: dict[str, tuple[int, int]] = {}

    def append(self, name: str, data: bytes) -> int:
        """Put data at the end of this part's file of that name; the offset where it begins there."""
        file = self._file(name)
        offset = file.end
        file.append(data)
        self.size += len(data)
        begin, length = self._spans.get(name, (offset, 0))
        self._spans[name] = begin, length + len(data)
        return offset

    def end_of(self, name: str) -> int:
        """How long this part's file of that name is."""
        return self.files[name].end if name in self.files else 0

    def path_of(self, name: str) -> Path:
        """Where this part's file of that name is, once it is sealed."""
        return self._out / f"{self._base}{name}"

    def undo(self) -> None:
        """Take back what was appended since the last note."""
        for name, (begin, length) in self._spans.items():
            self.files[name].undo(begin)
            self.size -= length
        self._spans = {}

    def index(self, bundle: Bundle) -> None:
        """Note where what was appended since the last note lies."""
        spans = " ".join(f"{name}:{begin}:{length}" for name, (begin, length) in self._spans.items())
        self._spans = {}
        self._file(INDEX).append(f"{bundle.name} {bundle.attempt} {bundle.kind} {spans}\n".encode())

    def _file(self, name: str) -> _PartFile:
        if (file := self.files.get(name)) is None:
            file = self.files[name] = _PartFile(self.path_of(name))
            self._unnamed = True
        return file

    def ends(self) -> dict[str, int]:
        """How long each file is, by its path in `out`."""
        return {f"{self._base}{name}": file.end for name, file in self.files.items()}

    def write(self, all_of_it: bool = True) -> None:
        """Give what waits to the system; the index after what it points to. Raises OSError."""
        for name, file in self.files.items():
            if name != INDEX and (all_of_it or file.many):
                file.write()
        if all_of_it and INDEX in self.files:
            self.files[INDEX].write()

    def sync(self) -> None:
        """What was written outlasts a loss of power. Raises OSError; then it may be asked again."""
        for file in self.files.values():
            file.sync()
        if self._unnamed:
            self._sync_names()
            self._unnamed = False

    def _sync_names(self) -> None:
        place = self.path_of(INDEX).parent
        while place != self._out.parent.parent:  # up to the agent's directory, which was there before
            sync_directory(place)
            place = place.parent

    def close(self) -> None:
        for file in self.files.values():
            file.close()

    def seal(self) -> None:
        """Nothing is written here any more. Raises OSError."""
        self.close()
        for file in self.files.values():
            opened = Path(f"{file.path}{OPEN}")
            if opened.exists():
                opened.rename(file.path)
        self._store.sealed({name: file.path for name, file in self.files.items()})
        sync_directory(self.path_of(INDEX).parent)
