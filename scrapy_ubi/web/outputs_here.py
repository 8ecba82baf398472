"""What came out of a crawl, as it lies in the agents' directories on this machine: how many pages a store holds
something of, and which copies of pages were found last.

Rules of this module:

* Every byte of an index is read once: what was counted of a file is remembered, and an open one is read on. In one look
  at most `MOST_READ` bytes are read; where that is too little the number is not known yet, and the next look goes on.
* Of copies the end of the newest file of each agent is read. What does not add up there is left out: it is written on.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.outputs import collector
from scrapy_ubi.outputs.collector import Out
from scrapy_ubi.outputs.duplicates.duplicate_record import BadLine, read_line
from scrapy_ubi.outputs.duplicates.duplicates_store import ENDING, DuplicatesStore
from scrapy_ubi.outputs.part_files import INDEX, OPEN
from scrapy_ubi.web import agent_places

MOST_OUTPUTS = 1_000  # rows
MOST_FILES = 100_000  # looked at

MOST_READ = 32 << 20  # bytes
MOST_KNOWN = 100_000  # files
TAIL = 128 << 10  # bytes of a file of copies
MOST_COPIES = 20


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The stores and their sizes; what was joined as a duplicate. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    found = agent_places.find_agents(settings, status)
    try:
        outs = [out for out in collector.find_outputs(found.paths) if out.crawl == status.crawl]
        COUNTS.look()
        rows = [row for out in outs for row in stores(out)]
        copies = newest_copies(out.path for out in outs)
    except OSError as error:
        raise UbiUnavailable(f"The directories in {found.looked} cannot be read ({error.strerror}).") from error
    measures = measures_of(status)
    rows.sort(key=lambda row: (row["agent"], row["run"], row["store"]))
    return {
        "crawl": status.crawl,
        "looked": found.looked,
        "missing": found.missing,
        "outputs": rows[:MOST_OUTPUTS],
        "duplicates": {
            "joined": dict(measures.joined),
            "examples": {step: list(pair) for step, pair in measures.examples.items()},
            "overlap": measures.overlap,
            "copies": copies,
        },
    }


def stores(out: Out) -> Iterator[Document]:
    """What each store of an agent has, in one run. Raises OSError."""
    for store in sorted(path for path in out.path.iterdir() if path.is_dir()):
        sizes = [*_files(store)]
        pages = [COUNTS.count_lines(store / name, size) for name, size in sizes if is_index(name)]
        yield {
            "agent": out.agent,
            "run": out.run,
            "store": store.name,
            "parts": sum(not name.endswith(OPEN) for name, _ in sizes),
            "open_parts": sum(name.endswith(OPEN) for name, _ in sizes),
            "bytes": sum(size for _, size in sizes),
            "pages": sum(pages) if None not in pages else None,
        }


def _files(store: Path) -> Iterator[tuple[str, int]]:
    """The files of a store with their sizes; those of LARM lie in a directory for each part."""
    return islice(_below(store, ""), MOST_FILES)


def _below(store: Path, inner: str) -> Iterator[tuple[str, int]]:
    with os.scandir(store / inner) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False) and not inner:
                yield from _below(store, f"{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # sealed meanwhile: it has another name, and is seen the next time
                    yield inner + entry.name, entry.stat(follow_symlinks=False).st_size


class PageCounts:
    """The lines of index files, one for each page. For several threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}  # path without .open -> bytes read, lines in them
        self._lock = threading.Lock()
        self._left = 0

    def look(self) -> None:
        """A new look begins."""
        with self._lock:
            self._left = MOST_READ
            if len(self._known) > MOST_KNOWN:
                self._known.clear()

    def count_lines(self, index: Path, size: int) -> int | None:
        """Lines of an index that has so many bytes; None where they were not all read yet. Raises OSError."""
        name = str(index).removesuffix(OPEN)
        with self._lock:
            begin, lines = self._known.get(name, (0, 0))
            if begin > size:  # a crash has cut it, and it was written again
                begin = lines = 0
            wanted = min(size - begin, self._left)
            if wanted:
                try:
                    with index.open("rb") as file:
                        file.seek(begin)
                        data = file.read(wanted)
                except FileNotFoundError:  # sealed meanwhile
                    return None
                self._left -= len(data)
                begin, lines = begin + len(data), lines + data.count(b"\n")
                self._known[name] = begin, lines
            return lines if begin == size else None


COUNTS = PageCounts()  # of this process


def is_index(name: str) -> bool:
    """Whether a file of this name is the index of a part."""
    return name.removesuffix(OPEN).rpartition(".")[2].rpartition("/")[2] == INDEX


def newest_copies(outs: Iterable[Path]) -> list[Document]:
    """Pages that were found to be copies, the newest of each agent first; `first` is the page they are copies of."""
    found: list[Document] = []
    for out in outs:
        files = [*(out / DuplicatesStore.name).glob(f"*.{ENDING}*")]
        with suppress(FileNotFoundError):  # sealed meanwhile
            if files:
                found += _copies(max(files, key=lambda path: path.stat().st_mtime))
    return found[:MOST_COPIES]


def _copies(path: Path) -> Iterator[Document]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        lines = file.read(TAIL).splitlines()
    for line in reversed(lines[1:] if size > TAIL else lines):
        try:
            page = read_line(line)
        except BadLine:
            continue
        if page.judged.kind:
            yield {"url": page.url, "kind": page.judged.kind, "first": page.judged.of or None}
