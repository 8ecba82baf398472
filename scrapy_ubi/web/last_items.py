"""The items that came last, as the `items` stores of agents on this machine have them, or else the stream in Redis:
text, and no more than that.

Rules of this module:

* Read is the end of the newest file of each agent, `TAIL` bytes of it, however long it is; one that is written on is
  read as far as its last whole line.
* An item is given as the line that it is, cut to `MOST_ITEM` characters: it may hold whatever pages hold, and nothing
  of it is interpreted.
* Of several agents each gives its last ones in turn, as lines have no time.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from itertools import chain, islice, zip_longest
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.outputs import collector
from scrapy_ubi.outputs.items import LINES, ItemsStore
from scrapy_ubi.outputs.part_files import OPEN
from scrapy_ubi.transport.item_stream import ItemStream
from scrapy_ubi.web import agent_places
from scrapy_ubi.web.shelf_client import MEMORY_URL

TAIL = 256 << 10  # bytes of a file
MOST_ITEM = 2_000  # characters
MOST_AGENTS = 200  # whose files are read

NO_STORE = (
    "No agent on this machine keeps its items where they can be looked at: start them with UBI_STORES = ['items']. "
    "Items of feeds (-o, FEEDS) are in the files of these."
)
NONE_YET = "The agents on this machine have written no item yet."


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The last `limit` items, of `agent` where it is given, the newest first. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    found = agent_places.find_agents(settings, status, opts.dir)
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
                for file in _files(out.path)
            ]
            kept = kept or bool(files)
            told.append([{"agent": name, **item} for item in _last(files, opts.limit)])
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


def _files(out: Path) -> list[Path]:
    store = out / ItemsStore.name
    return [file for file in store.glob(f"*.{LINES}*") if file.name.removesuffix(OPEN).endswith(f".{LINES}")]


def _last(files: list[Path], limit: int) -> list[Document]:
    """The last lines of the newest of these files that have some."""
    times: dict[Path, float] = {}
    for file in files:
        with suppress(FileNotFoundError):  # sealed meanwhile
            times[file] = file.stat().st_mtime
    found: list[Document] = []
    for file in sorted(times, key=lambda one: -times[one])[:2]:
        if len(found) < limit:
            with suppress(FileNotFoundError):
                found += _lines(file, limit - len(found))
    return found


def _lines(file: Path, limit: int) -> list[Document]:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(max(0, size - TAIL))
        data = opened.read(TAIL)
    lines = data.split(b"\n")[:-1]  # what follows the last line end is still being written
    if size > TAIL:
        lines = lines[1:]
    return [_item(line) for line in reversed(lines[-limit:])]


def _item(line: bytes) -> Document:
    text = line[: 4 * MOST_ITEM].decode("utf-8", "replace")
    return {"item": text[:MOST_ITEM], "bytes": len(line), "cut": len(text) > MOST_ITEM or len(line) > 4 * MOST_ITEM}
