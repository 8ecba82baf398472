"""What came out of a crawl, as it lies in the agents' directories on this machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.commands import directories
from scrapy_ubi.commands.stopped_status import read_figures
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.monitor.document import Document
from scrapy_ubi.monitor.render_report import measures_of
from scrapy_ubi.outputs import collector
from scrapy_ubi.outputs.collector import Out

MOST_OUTPUTS = 1_000  # rows
MOST_FILES = 100_000  # looked at
OPEN = ".open"  # how a part's name ends while it is written


def run(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """The stores and their sizes; what was joined as a duplicate. Raises UbiError."""
    status, _ = read_figures(settings, opts)
    places, looked = directories.find(settings, status.crawl)
    try:
        outs = [out for out in collector.find([place.path for place in places]) if out.crawl == status.crawl]
        rows = [row for out in outs for row in _stores(out)]
    except OSError as error:
        raise UbiUnavailable(f"The directories in {looked} cannot be read ({error.strerror}).") from error
    measures = measures_of(status)
    rows.sort(key=lambda row: (row["agent"], row["run"], row["store"]))
    return {
        "crawl": status.crawl,
        "looked": looked,
        "outputs": rows[:MOST_OUTPUTS],
        "duplicates": {
            "joined": dict(measures.joined),
            "examples": {step: list(pair) for step, pair in measures.examples.items()},
            "overlap": measures.overlap,
        },
    }


def _stores(out: Out) -> Iterator[Document]:
    for store in sorted(path for path in out.path.iterdir() if path.is_dir()):
        sizes = [(name, size) for name, size in _files(store)]
        yield {
            "agent": out.agent,
            "run": out.run,
            "store": store.name,
            "parts": sum(not name.endswith(OPEN) for name, _ in sizes),
            "open_parts": sum(name.endswith(OPEN) for name, _ in sizes),
            "bytes": sum(size for _, size in sizes),
        }


def _files(store: Path) -> Iterator[tuple[str, int]]:
    with os.scandir(store) as found:
        for number, entry in enumerate(found):
            if number >= MOST_FILES:
                return
            if entry.is_file(follow_symlinks=False):
                yield entry.name, entry.stat(follow_symlinks=False).st_size
