"""`scrapy ubi search WORDS`: the pages of a crawl that have these words, the best first; and the kinds of index that
are searched, and collected: where each lies, and how it is opened.

Rules of this module:

* Before it searches it reads what agents have written since (`catch_up`): the first search of a crawl takes long. The
  index lies beside the outputs of one of the agents, or, where that cannot be written, in a temporary directory.
* A database of SQLite is a file, an index of tantivy a directory: by that they are told. What lies in an agent's `out`
  is made again where it is damaged. What a user names is opened as it is.
* Nothing is asked of Redis, and nothing waits for an agent: it works beside a running crawl.
* What pages say is shown in printable characters only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.collect_choice import Chosen, bar, choose
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.text_table import count, room
from scrapy_ubi.errors import UbiDirectoryError, UbiSettingError
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.index import search_words
from scrapy_ubi.outputs.index.catch_up import catch_up
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.index.search_database import SearchDatabase
from scrapy_ubi.outputs.index.search_index import FoundPage, SearchIndex, UbiNoIndex
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


# -- the command


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Search. Raises UbiError."""
    query = search_words.query(opts.words)
    try:
        with _index(settings, opts) as index:
            found, total, pages = index.search(query, opts.limit), index.count(query), index.pages
    except ERRORS as error:
        raise UbiNoIndex(f"The search index {opts.index or 'of this crawl'} cannot be used ({error}).") from error
    except OSError as error:
        raise UbiDirectoryError(f"{error.filename} cannot be read ({error.strerror or error}).") from error
    lines = [line for number, page in enumerate(found, 1) for line in _lines(number, page)]
    lines.append(f"{count(total)} of {count(pages)} pages have these words.")
    return QueryReport(lines, {"found": total, "pages": pages, "results": [page._asdict() for page in found]})


@contextmanager
def _index(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[SearchIndex]:
    """The index to search in, with all that agents have written. Raises UbiError, OSError, and its own errors."""
    if opts.index:
        with existing(Path(opts.index)) as index:
            yield index
        return
    chosen, form = choose(settings, opts), form_of(settings)
    path = min(out.path for out in chosen.outs) / form.name
    try:
        index = made(form, path)
    except Unwritable as error:
        with tempfile.TemporaryDirectory(prefix="ubi-search-") as place:
            print(
                f"scrapy ubi: {path} cannot be written ({error}): the index is made for this search.", file=sys.stderr
            )
            with form.opened(Path(place) / form.name) as index:
                yield _caught_up(index, chosen)
        return
    with index:
        yield _caught_up(index, chosen)


def _caught_up(index: SearchIndex, chosen: Chosen) -> SearchIndex:
    done = catch_up(index, chosen.outs, bar())
    if not done.parts:
        where = ", ".join(str(out.path) for out in chosen.outs)
        raise UbiNoIndex(f"No text was kept in {where}: set UBI_STORES = ['index'] before the crawl begins.")
    if done.refused:
        print(f"scrapy ubi: {done.refused} records are damaged, and are left out.", file=sys.stderr)
    index.commit()
    return index


def _lines(number: int, page: FoundPage) -> list[str]:
    most = room()
    head = f"{number}. "
    title = plain(page.title or page.url, most)
    return [
        head + cut(title, most - len(head)),
        f"   {cut_middle(plain(page.url), most - 3)}",
        *([f"   {cut(plain(page.snippet, 2 * most), most - 3)}"] if page.snippet else []),
        "",
    ]
