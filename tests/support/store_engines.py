"""The engines of stores that this Python has: there is no rocksdict for every one (decision 0117)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.frontier.engines import Engine, chosen
from scrapy_ubi.frontier.sqlite_store import SqliteStore

ENGINES: tuple[Engine, ...] = ("rocksdb", "sqlite") if chosen(Path("new")) == "rocksdb" else ("sqlite",)
needs_rocksdb = pytest.mark.skipif("rocksdb" not in ENGINES, reason="rocksdict cannot be imported with this Python")


def store_class(engine: Engine) -> Any:
    """The class of an engine's stores."""
    if engine == "sqlite":
        return SqliteStore
    return importlib.import_module("scrapy_ubi.frontier.rocks").RocksStore
