"""`scrapy ubi search WORDS`: the pages of a crawl that have these words, the best first.

Rules of this module:

* Before it searches it reads what agents have written since (`catch_up`): the first search of a crawl takes long. The
  index lies beside the outputs of one of the agents, or, where that cannot be written, in a temporary directory.
* Nothing is asked of Redis, and nothing waits for an agent: it works beside a running crawl.
* What pages say is shown in printable characters only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import search_forms
from scrapy_ubi.cli.commands.collect_choice import Chosen, bar, choose
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.text_table import count, room
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain
from scrapy_ubi.outputs.index import search_words
from scrapy_ubi.outputs.index.catch_up import catch_up
from scrapy_ubi.outputs.index.search_index import FoundPage, SearchIndex, UbiNoIndex


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Search. Raises UbiError."""
    query = search_words.query(opts.words)
    try:
        with _index(settings, opts) as index:
            found, total, pages = index.search(query, opts.limit), index.count(query), index.pages
    except search_forms.ERRORS as error:
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
        with search_forms.existing(Path(opts.index)) as index:
            yield index
        return
    chosen, form = choose(settings, opts), search_forms.form_of(settings)
    path = min(out.path for out in chosen.outs) / form.name
    try:
        index = search_forms.made(form, path)
    except search_forms.Unwritable as error:
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
