"""The kinds of search index that `scrapy ubi search` and `collect index` know: where each lies, and how it is opened.

Rules of this module:

* A database of SQLite is a file, an index of tantivy a directory: by that they are told.
* What lies in an agent's `out` is made again where it is damaged. What a user names is opened as it is.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.index.search_database import SearchDatabase
from scrapy_ubi.outputs.index.search_index import SearchIndex, UbiNoIndex
from scrapy_ubi.outputs.index.tantivy_index import TantivyBusy, TantivyError, TantivyIndex

ERRORS = (sqlite3.Error, TantivyError)
BESIDE = ("", "-journal")  # files of a database


class IndexForm(NamedTuple):
    """A kind of index: its name in an agent's `out`, the ending of one that is collected, and how it is opened."""

    name: str
    ending: str
    opened: Callable[[Path], SearchIndex]


class Unwritable(Exception):
    """There is no index in this place, and none can be made."""


FTS5 = IndexForm("search.db", ".db", SearchDatabase)
TANTIVY = IndexForm("search.tantivy", ".tantivy", TantivyIndex)


def form_of(settings: BaseSettings) -> IndexForm:
    """What UBI_STORES asks for: `index(tantivy)`, or a database."""
    try:
        made = stores.make(settings.getlist("UBI_STORES"), settings)
    except UbiSettingError:
        return FTS5
    return TANTIVY if any(isinstance(one, IndexStore) and one.form == "tantivy" for one in made) else FTS5


def existing(path: Path) -> SearchIndex:
    """An index that was collected. Raises UbiNoIndex, and its own errors."""
    if path.is_dir():
        return TantivyIndex(path, read_only=True)
    if not path.is_file():
        raise UbiNoIndex(f"There is no file {path}: scrapy ubi collect index -o {path} makes one.")
    return SearchDatabase(path, read_only=True)


def made(form: IndexForm, path: Path) -> SearchIndex:
    """The index there; made again where it is damaged. Raises Unwritable, UbiError, and its own errors."""
    try:
        return form.opened(path)
    except (sqlite3.OperationalError, TantivyBusy) as error:
        raise Unwritable(str(error)) from error
    except ERRORS as error:
        if not os.access(path.parent, os.W_OK):
            raise Unwritable(str(error)) from error
        remove(path)
        return form.opened(path)


def remove(path: Path) -> None:
    """Take an index away, where there is one."""
    if path.is_dir():
        shutil.rmtree(path)
    for ending in BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)
