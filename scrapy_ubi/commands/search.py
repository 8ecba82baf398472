"""`scrapy ubi search WORDS`: the pages of a crawl that have these words, the best first.

Rules of this module:

* Before it searches it reads what agents have written since (`catch_up`): the first search of a crawl takes long. The
  database lies beside the outputs of one of the agents, or, where that cannot be written, in a temporary directory.
* Nothing is asked of Redis, and nothing waits for an agent: it works beside a running crawl.
* What pages say is shown in printable characters only.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.commands.collect_choice import Chosen, bar, choose
from scrapy_ubi.commands.query import QueryReport
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.monitor.table import count, room
from scrapy_ubi.outputs.index import search_words
from scrapy_ubi.outputs.index.catch_up import catch_up
from scrapy_ubi.outputs.index.search_database import FoundPage, SearchDatabase, UbiNoIndex
from scrapy_ubi.untrusted.terminal_text import cut, cut_middle, plain

DATABASE = "search.db"  # in the `out` of one agent
BESIDE = ("", "-journal")  # files of a database


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Search. Raises UbiError."""
    query = search_words.query(opts.words)
    try:
        with _database(settings, opts) as database:
            found, total, pages = database.search(query, opts.limit), database.count(query), database.pages
    except sqlite3.Error as error:
        raise UbiNoIndex(f"The search index {opts.index or 'of this crawl'} cannot be used ({error}).") from error
    except OSError as error:
        raise UbiDirectoryError(f"{error.filename} cannot be read ({error.strerror or error}).") from error
    lines = [line for number, page in enumerate(found, 1) for line in _lines(number, page)]
    lines.append(f"{count(total)} of {count(pages)} pages have these words.")
    return QueryReport(lines, {"found": total, "pages": pages, "results": [page._asdict() for page in found]})


@contextmanager
def _database(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[SearchDatabase]:
    """The database to search in, with all that agents have written. Raises UbiError, OSError, sqlite3.Error."""
    if opts.index:
        if not Path(opts.index).is_file():
            raise UbiNoIndex(f"There is no file {opts.index}: scrapy ubi collect index -o {opts.index} makes one.")
        with SearchDatabase(Path(opts.index), read_only=True) as database:
            yield database
        return
    chosen = choose(settings, opts)
    path = min(out.path for out in chosen.outs) / DATABASE
    try:
        database = _made(path)
    except sqlite3.OperationalError as error:
        with tempfile.TemporaryDirectory(prefix="ubi-search-") as place:
            print(
                f"scrapy ubi: {path} cannot be written ({error}): the index is made for this search.", file=sys.stderr
            )
            with SearchDatabase(Path(place) / DATABASE) as database:
                yield _caught_up(database, chosen)
        return
    with database:
        yield _caught_up(database, chosen)


def _made(path: Path) -> SearchDatabase:
    """The database there; made again where it is damaged. Raises sqlite3.Error."""
    try:
        return SearchDatabase(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        for ending in BESIDE:
            path.with_name(path.name + ending).unlink(missing_ok=True)
        return SearchDatabase(path)


def _caught_up(database: SearchDatabase, chosen: Chosen) -> SearchDatabase:
    done = catch_up(database, chosen.outs, bar())
    if not done.parts:
        where = ", ".join(str(out.path) for out in chosen.outs)
        raise UbiNoIndex(f"No text was kept in {where}: set UBI_STORES = ['index'] before the crawl begins.")
    if done.refused:
        print(f"scrapy ubi: {done.refused} records are damaged, and are left out.", file=sys.stderr)
    database.commit()
    return database


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
