"""The file of refused links, UBI_FILTER_LOG: one JSON object a line.

Rules of this module:

* Noting a refusal touches memory only. A thread writes what has gathered, twice a second or when much has.
* What is kept in memory is bounded (`MOST_WAITING` lines, `LONGEST` characters of each URL), and so is the file
  (`MOST_BYTES`). What does not fit is counted, not written, and said once.
* Lines are appended whole, so the agents of one machine may share a file.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from scrapy_ubi.errors import UbiSettingError

logger = logging.getLogger("scrapy_ubi")

SETTING = "UBI_FILTER_LOG"
MOST_WAITING = 20_000  # lines in memory: some megabytes
LONGEST = 2000  # characters of a URL that are written
MOST_BYTES = 1_000_000_000  # of the file: about five million refusals
PAUSE = 0.5  # seconds between two writes


class Noted(NamedTuple):
    """One refused link: by which filter and why, found on which page ("" where that is not known)."""

    when: float
    filter: str
    why: str
    url: str
    depth: int
    page: str

    def line(self) -> str:
        """As JSON, with a line end."""
        fields = {
            "time": datetime.fromtimestamp(self.when, UTC).isoformat(timespec="milliseconds"),
            "filter": self.filter,
            "why": self.why,
            "url": self.url,
            "depth": self.depth,
            "page": self.page,
        }
        return json.dumps(fields, separators=(",", ":")) + "\n"


class FilterLog:
    """Writes refusals to a file until it is closed. `unwritten` counts those that did not fit."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, most_waiting: int = MOST_WAITING) -> None:
        """Raises UbiSettingError when the file cannot be opened."""
        self._path = path
        self._most_bytes = most_bytes
        self._most_waiting = most_waiting
        self._waiting: deque[Noted] = deque()
        self.unwritten = 0
        self._said = False
        self._wake = threading.Event()
        self._closing = False
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UbiSettingError(
                SETTING, f"is {str(path)!r}, which cannot be written ({error.strerror})", "name a file that can be"
            ) from error
        self._thread = threading.Thread(target=self._run, name="ubi-filter-log", daemon=True)
        self._thread.start()

    def note(self, noted: Noted) -> None:
        """Have a refusal written soon."""
        waiting = len(self._waiting)
        if waiting >= self._most_waiting:
            self.unwritten += 1
            return
        if len(noted.url) > LONGEST or len(noted.page) > LONGEST:  # pages may hold URLs of megabytes
            noted = noted._replace(url=noted.url[:LONGEST], page=noted.page[:LONGEST])
        self._waiting.append(noted)
        if waiting * 2 == self._most_waiting:
            self._wake.set()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        os.close(self._file)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wake.wait(PAUSE)
            self._wake.clear()
            closing = self._closing  # read first: what was noted before closing is written below
            while self._waiting:
                self._write([self._waiting.popleft() for _ in range(min(len(self._waiting), 1000))])

    def _write(self, batch: list[Noted]) -> None:
        data = "".join(noted.line() for noted in batch).encode()
        try:
            if os.fstat(self._file).st_size + len(data) > self._most_bytes:
                self._leave_out(batch, f"has {self._most_bytes:,} bytes")
                return
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self._leave_out(batch, f"cannot be written ({error.strerror})")

    def _leave_out(self, batch: list[Noted], reason: str) -> None:
        self.unwritten += len(batch)
        if not self._said:
            self._said = True
            logger.warning("%s (%s) %s: further refusals are counted only.", self._path, SETTING, reason)
