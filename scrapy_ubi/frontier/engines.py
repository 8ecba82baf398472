"""Which of the two stores on disk keeps a frontier (UBI_STORE_ENGINE): RocksDB, or SQLite where that cannot be had.

Whether there is address space for a store is asked before it is opened: RocksDB ends the process (SIGABRT) where it
gets none. `ulimit -v`, and some batch systems, bound the addresses that a process may use, whether there is memory
behind them or not. Threads take most of them: a stack each, and the 64 MB that the C library sets aside for what a
thread allocates.

Rules of this module:

* What lies in a directory is gone on with by the engine that has written it. One that is named and has not is refused,
  and so is one that cannot be imported: nothing is moved, deleted or begun beside it.
* Where nothing lies, `auto` is RocksDB, and SQLite where RocksDB cannot be imported. That is a package of its own,
  which is not there for every Python; SQLite comes with Python.
* The address space asked for is an estimate from above: what the process has now, all caches filled, the index of known
  URLs twice (it is made again beside the old one), and every thread of an agent.
* Where the system tells no limit, or not what is used, nothing is refused.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal, NamedTuple

from scrapy_ubi.frontier.store import Store, StoreError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

MIB = 1 << 20
THREADS = 8  # RocksDB's two, two for the disk, mail, beats, the timeline, and one that comes and goes
ARENA = 64 * MIB  # glibc's HEAP_MAX_SIZE on 64 bits
STACK = 8 * MIB  # of a thread where the limit of stacks says nothing
STATUS = Path("/proc/self/status")

Engine = Literal["auto", "rocksdb", "sqlite"]


def check_address_space(memory: int, index: Path) -> None:
    """Raise `StoreError` when the limit of this process leaves no room for a store with caches of `memory` bytes and
    the index of known URLs in the file `index`."""
    if not hasattr(resource, "getrlimit"):
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _used()
    if limit == resource.RLIM_INFINITY or used is None:
        return
    needed = used + memory + 2 * _size(index) + THREADS * (ARENA + _stack())
    if needed > limit:
        raise StoreError(
            f"This process may use {limit // MIB} MB of address space (ulimit -v), and {needed // MIB + 1} MB are "
            f"needed, {memory // MIB} of them for UBI_MEMORY_MB: start it with 'ulimit -v unlimited' or "
            f"'ulimit -v {(needed // MIB + 1) * 1024}'; a smaller UBI_MEMORY_MB needs so much less."
        )


def _used() -> int | None:
    """The bytes of addresses that this process has now, None where the system does not tell."""
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmSize:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _stack() -> int:
    size, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return STACK if size == resource.RLIM_INFINITY else size


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


class _Kind(NamedTuple):
    """How people call it, its module and class, a package that it needs, and files of which a store of it has one."""

    title: str
    module: str
    name: str
    needs: str
    files: tuple[str, ...]


_KINDS = {
    "rocksdb": _Kind(
        "RocksDB", "scrapy_ubi.frontier.rocks", "RocksStore", "rocksdict", ("CURRENT", "MANIFEST-*", "*.sst", "*.log")
    ),
    "sqlite": _Kind("SQLite", "scrapy_ubi.frontier.sqlite_store", "SqliteStore", "sqlite3", ("rows.sqlite*",)),
}


def open_store(path: Path, memory: int, engine: Engine = "auto") -> Store:
    """The store in the directory `path`, by the engine wanted; `memory` are bytes.

    Raises `StoreDamaged`, `StoreFull`, `StoreError`.
    """
    kind = _KINDS[chosen(path, engine)]
    store: Store = getattr(importlib.import_module(kind.module), kind.name)(path, memory)
    return store


def chosen(path: Path, engine: Engine = "auto") -> str:
    """The engine that is to open this directory, which can be imported. Raises `StoreError`."""
    found = written_by(path)
    if found and engine not in ("auto", found):
        raise StoreError(
            f'The store {path} was written by {_KINDS[found].title}, and UBI_STORE_ENGINE is "{engine}": set it to '
            f'"{found}" or "auto" to go on with what lies there, or set UBI_DIR to another directory to begin anew.'
        )
    if engine == "auto" and not found:
        return "sqlite" if _missing("rocksdb") else "rocksdb"
    wanted = found or engine
    if why := _missing(wanted):
        kind = _KINDS[wanted]
        written = f"The store {path} was written by {kind.title}" if found else f'UBI_STORE_ENGINE is "{engine}"'
        remedy = "set UBI_DIR to another directory to begin anew" if found else 'set UBI_STORE_ENGINE to "auto"'
        raise StoreError(
            f"{written}, but {kind.needs} cannot be imported here ({why}): install it, with a Python for which there "
            f"is one, or {remedy}."
        )
    return wanted


def written_by(path: Path) -> str:
    """The engine whose files lie in a directory; '' where there are none."""
    for name, kind in _KINDS.items():
        if any(True for pattern in kind.files for _ in path.glob(pattern)):
            return name
    return ""


def _missing(engine: str) -> str:
    """Why it cannot be had; '' when it can."""
    try:
        importlib.import_module(_KINDS[engine].module)
    except ImportError as error:
        return str(error)
    return ""
