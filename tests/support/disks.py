"""What lies on the disks of agents that have ended, seen from outside: a copy is opened, the disk itself is let be."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.key import seed_key

LITTLE = 32 << 20  # bytes of memory


class Disk:
    """A copy of an agent's directory, open; a context manager."""

    def __init__(self, directory: Path) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="ubi-disk-")
        copy = Path(self._place.name) / "agent"
        shutil.copytree(directory, copy)
        self.frontier: DiskFrontier = open_frontier(copy, memory=LITTLE)
        self.facts = ledger.load_crawl(self.frontier.store)

    def done(self, urls: Iterable[str]) -> set[str]:
        """Those of these URLs that are done: fetched by GET as links or as seeds, with hosts as partition keys."""
        return {url for url in urls if self._is_done(url)}

    def _is_done(self, url: str) -> bool:
        state = self.frontier.find(str(urlsplit(url).hostname))
        normal = normal_form(url)
        if state is None or normal is None:
            return False
        key = url_key("GET", normal)
        return state.is_done(key) or state.is_done(seed_key(key))

    @property
    def done_count(self) -> int:
        """How many pages are done on it."""
        return sum(state.done_count for state in self.frontier.states())

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *_: object) -> None:
        self.frontier.close()
        self._place.cleanup()


def unwritten(directories: Iterable[Path], urls: Iterable[str]) -> set[str]:
    """Those of these URLs that are not done on any of the disks: a killed agent may fetch them again."""
    left = set(urls)
    for directory in directories:
        if (directory / "store").exists():
            with Disk(directory) as disk:
                left -= disk.done(left)
    return left
