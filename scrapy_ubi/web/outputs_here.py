"""What came out of a crawl, as it lies in the agents' directories on this machine: how many pages a store holds
something of, which copies of pages were found last, and the items that came last.

Rules of this module:

* Looked for is where commands look (`cli.commands.directories`), and where agents of this machine say that theirs are:
  each may have a UBI_DIR of its own. What Redis says of that is believed only where the directory itself says that it
  is this agent's of this crawl. Who is not found is named, with the reason: what it has written is not seen here.
* Every byte of an index is read once: what was counted of a file is remembered, and an open one is read on. In one look
  at most `MOST_READ` bytes are read; where that is too little the number is not known yet, and the next look goes on.
* Of copies and items the end of the newest file of each agent is read, as far as its last whole line, however long the
  file is. A copy that does not add up is left out.
* An item is given as the line that it is, cut to `MOST_ITEM` characters: it may hold whatever pages hold, and nothing
  of it is interpreted. Of several agents each gives its last ones in turn, as lines have no time. Where no agent here
  has any, the stream in Redis is asked.
"""

from __future__ import annotations

import argparse
import os
import platform
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiDirectoryError, UbiUnavailable
from scrapy_ubi.outputs import collector
from scrapy_ubi.outputs.collector import Out
from scrapy_ubi.outputs.duplicates.duplicate_record import BadLine, read_line
from scrapy_ubi.outputs.duplicates.duplicates_store import ENDING, DuplicatesStore
from scrapy_ubi.outputs.items import LINES, ItemsStore
from scrapy_ubi.outputs.part_files import INDEX, OPEN, newest_first
from scrapy_ubi.transport.item_stream import ItemStream
from scrapy_ubi.web.shelf_client import MEMORY_URL

MOST_MISSING = 200  # agents that are named
MOST_SAID = 3  # directories that are named

MOST_OUTPUTS = 1_000  # rows
MOST_FILES = 100_000  # looked at

MOST_READ = 32 << 20  # bytes
MOST_KNOWN = 100_000  # files
TAIL_OF_COPIES, TAIL_OF_ITEMS = 128 << 10, 256 << 10  # bytes of a file
MOST_COPIES = 20
MOST_ITEM = 2_000  # characters
MOST_AGENTS = 200  # whose items are read

NO_STORE = (
    "No agent on this machine keeps its items where they can be looked at: start them with UBI_STORES = ['items']. "
    "Items of feeds (-o, FEEDS) are in the files of these."
)
NONE_YET = "The agents on this machine have written no item yet."


# -- where


class AgentPlaces(NamedTuple):
    """The directories that can be read, where they were looked for, and why those of other agents cannot."""

    by_agent: dict[str, list[Path]]
    looked: str
    missing: dict[str, str]

    @property
    def paths(self) -> list[Path]:
        """All of them, each once."""
        return [*dict.fromkeys(path for paths in self.by_agent.values() for path in paths)]


def find_agents(settings: BaseSettings, status: CrawlStatus, named: Sequence[str] = ()) -> AgentPlaces:
    """The directories of the agents of this crawl; where some are `named`, those. Raises UbiDirectoryError where they
    cannot be read."""
    if named:
        places, looked = directories.named(named), ", ".join(named)
    else:
        places, looked = directories.find_directories(settings, status.crawl)
    found: dict[str, list[Path]] = {}
    for place in places:
        found.setdefault(place.agent, []).append(place.path.resolve())
    missing: dict[str, str] = {}
    said: list[str] = []  # where agents say that they are
    for agent in status.agents:
        if agent.name in found or agent.profile is None:
            continue
        try:
            found[agent.name] = [path := _said(agent, status.crawl)]
            said.append(str(path))
        except UbiDirectoryError as error:
            if len(missing) < MOST_MISSING:
                missing[agent.name] = str(error)
    rest = [f"{len(said) - MOST_SAID} more"] if len(said) > MOST_SAID else []
    return AgentPlaces(found, ", ".join([looked, *said[:MOST_SAID], *rest]), missing)


def _said(agent: AgentStatus, crawl: str) -> Path:
    """The directory that an agent says it has. Raises UbiDirectoryError where it cannot be read here."""
    profile = agent.profile
    assert profile is not None
    if profile.host_name != platform.node():
        raise UbiDirectoryError(f"It runs on the machine {profile.host_name or '?'}: collect its outputs there.")
    if not profile.directory:
        raise UbiDirectoryError("It does not say where its directory is: start this server with its UBI_DIR.")
    path = Path(profile.directory)
    place = directories.read(path)
    if (place.agent, place.crawl) != (agent.name, crawl):
        raise UbiDirectoryError(f"{path} is the directory of agent {place.agent} of crawl {place.crawl} now.")
    return path


# -- stores and copies


def read_outputs(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The stores and their sizes; what was joined as a duplicate. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    found = find_agents(settings, status)
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
        for file in newest_first((out / DuplicatesStore.name).glob(f"*.{ENDING}*"))[:1]:
            with suppress(FileNotFoundError):  # sealed meanwhile
                found += _copies(file)
    return found[:MOST_COPIES]


def _copies(path: Path) -> Iterator[Document]:
    for line in _last_lines(path, TAIL_OF_COPIES):
        try:
            page = read_line(line)
        except BadLine:
            continue
        if page.judged.kind:
            yield {"url": page.url, "kind": page.judged.kind, "first": page.judged.of or None}


# -- items


def read_items(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The last `limit` items, of `agent` where it is given, the newest first. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    found = find_agents(settings, status, opts.dir)
    names = [opts.agent] if opts.agent else [*found.by_agent]
    if opts.agent and opts.agent not in found.by_agent:
        raise UbiNotFound(found.missing.get(opts.agent) or f"No directory of agent {opts.agent} is on this machine.")
    told: list[list[Document]] = []
    kept = False
    try:
        for name in names[:MOST_AGENTS]:
            files = [
                file
                for out in collector.find_outputs(found.by_agent[name])
                if out.crawl == status.crawl
                for file in _item_files(out.path)
            ]
            kept = kept or bool(files)
            told.append([{"agent": name, **item} for item in _last_of(files, opts.limit)])
    except OSError as error:
        raise UbiUnavailable(f"The directories in {found.looked} cannot be read ({error.strerror}).") from error
    turns = chain.from_iterable(zip_longest(*told))
    items = [*islice((item for item in turns if item is not None), opts.limit)]
    if not items and not opts.agent and opts.connection is not None and opts.redis_url != MEMORY_URL:
        items = _of_stream(opts, status.crawl)
    return {
        "crawl": status.crawl,
        "looked": found.looked,
        "missing": found.missing,
        "items": items,
        "hint": None if items else NONE_YET if kept else NO_STORE,
    }


def _of_stream(opts: argparse.Namespace, crawl: str) -> list[Document]:
    """The last items of agents elsewhere, where these give them to the stream in Redis."""
    with opts.connection.explained():
        entries = ItemStream(opts.connection.client, crawl).newest(opts.limit)
    return [{"agent": "", **_item(fields.get("item", "").encode())} for _, fields in reversed(entries)]


def _item_files(out: Path) -> list[Path]:
    store = out / ItemsStore.name
    return [file for file in store.glob(f"*.{LINES}*") if file.name.removesuffix(OPEN).endswith(f".{LINES}")]


def _last_of(files: list[Path], limit: int) -> list[Document]:
    """The last lines of the newest of these files that have some."""
    found: list[Document] = []
    for file in newest_first(files)[:2]:
        with suppress(FileNotFoundError):
            found += map(_item, islice(_last_lines(file, TAIL_OF_ITEMS), limit - len(found)))
    return found


def _item(line: bytes) -> Document:
    text = line[: 4 * MOST_ITEM].decode("utf-8", "replace")
    return {"item": text[:MOST_ITEM], "bytes": len(line), "cut": len(text) > MOST_ITEM or len(line) > 4 * MOST_ITEM}


# --


def _last_lines(path: Path, size: int) -> Iterator[bytes]:
    """The whole lines in the last `size` bytes of a file, the last first. Raises OSError."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, 2) - size)
        file.seek(begin)
        lines = file.read(size).split(b"\n")[:-1]  # what follows the last line end is still being written
    return reversed(lines[1:] if begin else lines)
