"""The text of one page, as the stores `markdown` and `index` in the agents' directories have it.

Rules of this module:

* Read is the run that began last, as by `scrapy ubi search`, also beside a running agent: the newest file first, each
  as far as its last whole line, `MOST_READ` bytes in all. Markdown comes before the text of an index, the newest first.
* A page is found by its URL, or else by the one that it calls its canonical one.
* It is given in pieces, of as many characters as were asked for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urldefrag

from scrapy.settings import BaseSettings
from w3lib.url import safe_url_string

from scrapy_ubi.cli.commands.collect_choice import choose
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.outputs.index.index_store import ENDING as INDEX_LINES
from scrapy_ubi.outputs.index.index_store import IndexStore
from scrapy_ubi.outputs.markdown.markdown_store import ENDING as MARKDOWN_LINES
from scrapy_ubi.outputs.markdown.markdown_store import MarkdownStore
from scrapy_ubi.outputs.part_files import OPEN, SHORT, newest_first, open_part

MOST_READ = 4 << 30  # bytes
SHOWN = 200  # characters of a URL in a sentence


class _Kind(NamedTuple):
    """A store that keeps text: the ending of its files, and the field of the text."""

    store: str
    ending: str
    field: str


_KINDS = (_Kind(MarkdownStore.name, MARKDOWN_LINES, "markdown"), _Kind(IndexStore.name, INDEX_LINES, "text"))
_FACTS = ("url", "canonical", "title", "language", "date", "time", "status", "kind", "cut", "refused")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """`limit` characters, from `start`, of the text of the page `url`. Raises UbiError."""
    opts.run = None
    outs = [out.path for out in choose(settings, opts).outs]
    where = ", ".join(map(str, outs))
    try:
        files = [(kind, file) for kind in _KINDS for file in _newest(outs, kind)]
        record, kind = _find(files, _spellings(opts.url))
    except OSError as error:
        raise UbiUnavailable(f"{error.filename} cannot be read ({error.strerror or error}).") from error
    if not files:
        raise UbiNotFound(
            f"No text of pages is kept in {where}: start the crawl with UBI_STORES = ['markdown'] (or 'index')."
        )
    if record is None:
        raise UbiNotFound(f"No text of {plain(opts.url, SHOWN)} is kept in {where}: `url` says what became of it.")
    text = str(record.get(kind.field) or "")
    end = opts.start + opts.limit
    return {
        "store": kind.store,
        **{name: record[name] for name in _FACTS if record.get(name)},
        "characters": len(text),
        "start": opts.start,
        "next": end if end < len(text) else None,
        "text": text[opts.start : end],
    }


def _newest(outs: Iterable[Path], kind: _Kind) -> list[Path]:
    """The files of a store, the newest first."""
    files = (file for out in outs for file in (out / kind.store).glob(f"*.{kind.ending}*"))
    return newest_first(
        file for file in files if file.name.removesuffix(OPEN).removesuffix(SHORT).endswith(f".{kind.ending}")
    )


def _spellings(url: str) -> list[str]:
    """How a page of this URL may be called: as it is written, and as it is fetched."""
    with suppress(ValueError):
        return [*dict.fromkeys((url, urldefrag(url).url, safe_url_string(urldefrag(url).url)))]
    return [url]


def _find(files: Iterable[tuple[_Kind, Path]], urls: list[str]) -> tuple[Mapping[str, Any] | None, _Kind]:
    """The newest record of this page in the first file that has one."""
    left = MOST_READ
    for kind, file in files:
        named = [*_records(file, urls, left)]
        if named:
            return max(named, key=lambda one: (one["url"] in urls, str(one.get("time")))), kind
        with suppress(FileNotFoundError):
            left -= file.stat().st_size
    return None, _KINDS[0]


def _records(file: Path, urls: list[str], most: int) -> Iterator[Mapping[str, Any]]:
    """The records in a file that name one of these URLs as theirs."""
    named = [json.dumps(url, ensure_ascii=False).encode("utf-8", "replace") for url in urls]
    with open_part(file) as lines:
        read = 0
        for line in lines:
            if (read := read + len(line)) > most or not line.endswith(b"\n"):
                return
            if any(name in line for name in named):
                with suppress(ValueError, RecursionError):
                    record = json.loads(line)
                    if isinstance(record, dict) and {record.get("url"), record.get("canonical")} & {*urls}:
                        yield {"url": "", **record}
