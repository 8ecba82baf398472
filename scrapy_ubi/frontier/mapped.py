"""A file of 64-bit words that is part of this process's memory, and where in it there is room.

Rules of this module:

* What is written into the words survives the process however it ends: the pages are the kernel's. Only a crash of the
  machine loses some, in any order; who uses the file must be able to find that out, and to do without the file.
* One assignment `file.words[i] = x` is one store of the processor: a killed process leaves the old word or the new.
* The disk gives all of the file's space before any of it is mapped. A full disk is therefore an error of `create` or
  `grow`, after which all is as it was, and never a SIGBUS in the middle of a write. (A disk that can no longer read a
  page is one: there the process dies, like any program whose code cannot be read.)
* Python's mmap keeps one descriptor of the file; nothing else stays open.
* A file is made beside and moved over: under its name there is never half of one.
"""

from __future__ import annotations

import errno
import mmap
import os
from bisect import bisect_left, insort
from pathlib import Path

from scrapy_ubi.errors import UbiError
from scrapy_ubi.frontier.store import StoreFull

WORD = 8  # bytes
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows has the latter alone
LINE = 8  # words: room is given out in lines, as long as those of the processor's cache


class SeenDamaged(UbiError):
    """The file cannot be used as what it should be, and why; its owner makes it again from the store.

    Nothing is lost by that: the file is an index of what the store holds.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The index of known URLs {path} {reason}; it can be made again from the store.")


class MappedWords:
    """The words of one file, and the same bytes as slots of 8 or 4 bytes.

    `words` and `slots` are other objects after every `grow`: keep no part of them meanwhile.
    """

    def __init__(self, path: Path, descriptor: int, slot: int) -> None:
        """Map the file open at `descriptor`, which stays the caller's. Raises `OSError`."""
        self.path = path
        self._slot = slot
        state = os.fstat(descriptor)
        self._identity = (state.st_dev, state.st_ino)
        self._map = mmap.mmap(descriptor, state.st_size - state.st_size % WORD)
        self._look()

    def _look(self) -> None:
        self.words = memoryview(self._map).cast("Q")
        self.slots = memoryview(self._map).cast("Q" if self._slot == WORD else "I")

    @classmethod
    def create(cls, path: Path, words: int, slot: int) -> MappedWords:
        """A file of zeros under a name beside `path`, until `publish`. Raises `StoreFull` and `OSError`."""
        beside = path.with_name(path.name + ".new")
        descriptor = os.open(beside, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _reserve(descriptor, 0, words * WORD, beside)
            return cls(beside, descriptor, slot)
        finally:
            os.close(descriptor)

    @classmethod
    def open(cls, path: Path, least: int, slot: int) -> MappedWords:
        """The file at `path`, of at least so many words. Raises `SeenDamaged`, `FileNotFoundError`, `OSError`."""
        descriptor = os.open(path, _FLAGS)
        try:
            size = os.fstat(descriptor).st_size
            if size < least * WORD:
                raise SeenDamaged(path, f"has {size} bytes, its header alone {least * WORD}")
            return cls(path, descriptor, slot)
        finally:
            os.close(descriptor)

    def publish(self, path: Path) -> None:
        """Give the file its name, in the place of what has it now. Raises `OSError`."""
        os.replace(self.path, path)
        self.path = path

    def grow(self, words: int) -> None:
        """Lengthen the file by zeros to `words`. Raises `StoreFull`, `OSError`, `SeenDamaged` when it was replaced."""
        descriptor = os.open(self.path, _FLAGS)
        try:
            state = os.fstat(descriptor)
            if (state.st_dev, state.st_ino) != self._identity:
                raise SeenDamaged(self.path, "was replaced by another file while in use")
            _reserve(descriptor, len(self.words) * WORD, words * WORD, self.path)
        finally:
            os.close(descriptor)
        self.words.release()
        self.slots.release()
        try:
            self._map.resize(words * WORD)
        finally:  # an address space that has no room leaves all as it was, too
            self._look()

    def rest(self, start: int, words: int) -> None:
        """Words that are not needed any more: their pages need not stay in this process's memory."""
        first = -(-start * WORD // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (start + words) * WORD // mmap.PAGESIZE * mmap.PAGESIZE
        if first < end and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED, first, end - first)

    def sync(self) -> None:
        """Return when the disk has all words. Blocks; raises `OSError`."""
        self._map.flush()

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        self.words.release()
        self.slots.release()
        self._map.close()


def _reserve(descriptor: int, start: int, end: int, path: Path) -> None:
    """Have the disk give bytes `start` to `end`, zeros. Raises `StoreFull`, and leaves the file as it was."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, start, end - start)
        else:  # macOS, Windows: zeros are written, else a disk that is full would end the process (SIGBUS)
            _write_zeros(descriptor, start, end)
    except OSError as error:
        os.ftruncate(descriptor, start)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"The disk is full: {path} needs {end - start} bytes more.") from error
        raise


def _write_zeros(descriptor: int, start: int, end: int) -> None:
    os.lseek(descriptor, start, os.SEEK_SET)
    while start < end:
        start += os.write(descriptor, bytes(min(end - start, 1 << 20)))


class Room:
    """Which lines of a file are free. It is known from what is used and stands nowhere else.

    `end` is the first line that no piece, used or free, has: the file's length. Pieces side by side are one.
    """

    __slots__ = ("_free", "_sizes", "end")

    def __init__(self, used: list[tuple[int, int]], end: int) -> None:
        """`used`: first line and number of lines of each piece, none upon another; the file has `end` lines."""
        self.end = end
        self._free: list[tuple[int, int]] = []  # first line, number of lines; ascending
        self._sizes: list[tuple[int, int]] = []  # the other way round, ascending
        at = 0
        for start, lines in [*sorted(used), (end, 0)]:
            if start > at:
                self._add(at, start - at)
            at = start + lines

    @property
    def free(self) -> int:
        """How many lines are free."""
        return sum(lines for _, lines in self._free)

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """The free pieces: first line and number of lines of each, ascending."""
        return tuple(self._free)

    def find(self, lines: int) -> tuple[int, int]:
        """Where a piece would lie, and how many lines the file is too short for it. The tightest place that fits."""
        index = bisect_left(self._sizes, (lines, 0))
        if index < len(self._sizes):
            return self._sizes[index][1], 0
        start = self.end
        if self._free and sum(self._free[-1]) == self.end:
            start = self._free[-1][0]
        return start, start + lines - self.end

    def take(self, start: int, lines: int) -> None:
        """Use what `find` found, the file being long enough now."""
        self.end = max(self.end, start + lines)
        index = bisect_left(self._free, (start, 0))
        if index < len(self._free) and self._free[index][0] == start:
            length = self._remove(index)
            if length > lines:
                self._add(start + lines, length - lines)

    def give(self, start: int, lines: int) -> None:
        """A piece is free again."""
        index = bisect_left(self._free, (start, 0))
        if index < len(self._free) and self._free[index][0] == start + lines:
            lines += self._remove(index)
        if index and sum(self._free[index - 1]) == start:
            start = self._free[index - 1][0]
            lines += self._remove(index - 1)
        self._add(start, lines)

    def _add(self, start: int, lines: int) -> None:
        insort(self._free, (start, lines))
        insort(self._sizes, (lines, start))

    def _remove(self, index: int) -> int:
        """Forget a free piece; how many lines it had."""
        start, lines = self._free.pop(index)
        del self._sizes[bisect_left(self._sizes, (lines, start))]
        return lines
