"""Which of the two stores on disk keeps a frontier (UBI_STORE_ENGINE): RocksDB, or SQLite where that cannot be had.

Rules of this module:

* What lies in a directory is gone on with by the engine that has written it. One that is named and has not is refused,
  and so is one that cannot be imported: nothing is moved, deleted or begun beside it.
* Where nothing lies, `auto` is RocksDB, and SQLite where RocksDB cannot be imported. That is a package of its own,
  which is not there for every Python; SQLite comes with Python.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal, NamedTuple

from scrapy_ubi.frontier.store import Store, StoreError

Engine = Literal["auto", "rocksdb", "sqlite"]


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
