"""The filter chain between Scrapy's requests and the frontier: which requests it is asked about, and what it is told.

The file of refused links, UBI_FILTER_LOG: one JSON object a line.

Rules of this module:

* The chain judges what pages link to, before a request is encoded, queued or forwarded.
* Not judged are: sitemaps of the host of the page that leads there; requisites of pages; seeds, as a person
  named them (filters are told of them); requests with `dont_filter`, retries among them, as their spider wants them
  whatever they are (Scrapy's own offsite filter lets them pass, too); and where redirects of admitted
  requests lead to, but by filters that say so (`scope(..., redirects=yes)`).
* What is no http or https URL is judged by those filters only that are about such (`schemes`).
* Every refusal is counted (`ubi/filtered/<filter>`), said once for each filter, and noted in UBI_FILTER_LOG.
* `visited` is told what the frontier knows of a request that was found on a page.
* It judges the `safe` normal form, whatever UBI_NORMALISE is: patterns may tell capital letters apart.
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
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from scrapy import Request

from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.codec import depth_of
from scrapy_ubi.adapter.robots.sitemaps import is_own
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import FilterChain, Link, Refusal, UrlFilter
from scrapy_ubi.urls.filters.simple import Visited

logger = logging.getLogger("scrapy_ubi")
SETTING = "UBI_FILTER_LOG"
MOST_WAITING = 20_000  # lines in memory: some megabytes
LONGEST = 2000  # characters of a URL that are written
MOST_BYTES = 1_000_000_000  # of the file: about five million refusals
PAUSE = 0.5  # seconds between two writes


class LinkFilter:
    """The chain of one agent's settings. `count` adds one to the stat of a name."""

    def __init__(self, chain: FilterChain, count: Callable[[str], object], log: Path | None = None) -> None:
        """Raises UbiSettingError when the log cannot be written."""
        self._count = count
        self._first = chain
        self._put(chain)
        self._log = FilterLog(log) if log is not None else None
        self._said: set[str] = set()
        self._is_known: Callable[[Request], bool] = lambda request: False
        self._asked: Callable[[], bool] = lambda: False  # whether the link in hand is known

    def _put(self, chain: FilterChain) -> None:
        self._chain = chain
        chain.on_error = self._failed
        self.idle = not chain  # nothing to ask: one look at an attribute is all that it costs

    def follow(self, entries: Sequence[object]) -> None:
        """These are the filters from now on; what those of the start, and those before, have met of seeds they know.
        Raises UbiSettingError."""
        chain = FilterChain.read(entries)
        chain.know_seeds_of(self._first)
        chain.know_seeds_of(self._chain)
        self._put(chain)
        self.ask_frontier(self._is_known)

    @classmethod
    def from_settings(cls, settings: UbiSettings, count: Callable[[str], object]) -> LinkFilter:
        """Raises UbiSettingError for a malformed chain, and when the log cannot be written."""
        return cls(FilterChain.read(settings.filters), count, settings.filter_log)

    def ask_frontier(self, is_known: Callable[[Request], bool]) -> None:
        """Have the filter `visited` use this."""

        self._is_known = is_known

        def is_known_link(link: Link) -> bool:
            return bool(link.page) and self._asked()

        for judge in self._chain:
            if isinstance(judge, Visited):
                judge.is_known = is_known_link

    def seed(self, request: Request) -> None:
        """A seed was met."""
        link = Link(request.url, normal_form(request.url) or "")
        self._chain.seed(link)
        if self._first is not self._chain:
            self._first.seed(link)

    def refuses_request(self, request: Request, page: str, redirect: bool) -> bool:
        """Whether a filter refuses the request, found on `page` ("" where that is not known); counted if so.
        `redirect`: it is where a redirect of `page` leads to.
        """
        if request.dont_filter or REQUISITE in request.meta or is_own(request, page):
            return False
        link = Link(request.url, normal_form(request.url) or "", depth_of(request), page)
        return self.refuses_link(link, lambda: self._is_known(request), redirect)

    def refuses_link(self, link: Link, is_known: Callable[[], bool], redirect: bool = False) -> bool:
        """Whether a filter refuses a link without a request; counted if so. `is_known`: whether the frontier knows it,
        for `visited`."""
        self._asked = is_known
        refusal = self._chain.refusal(link, redirect)
        if refusal is None:
            return False
        self._refused(link, refusal)
        return True

    def note(self, name: str, why: str, url: str, depth: int, page: str) -> None:
        """Note in UBI_FILTER_LOG what was refused by no filter."""
        if self._log is not None:
            self._log.note(Noted(time.time(), name, why, url, depth, page))

    def close(self) -> None:
        """Write what is noted."""
        if self._log is not None:
            self._log.close()
            if self._log.unwritten:
                logger.warning("%d refusals did not fit into UBI_FILTER_LOG.", self._log.unwritten)

    def _refused(self, link: Link, refusal: Refusal) -> None:
        name = refusal.filter.name
        self._count(f"ubi/filtered/{name}")
        if name not in self._said:
            self._said.add(name)
            logger.info(
                "%.200s, found on %.200s, is refused by the filter %.200s (%s). (Shown once; ubi/filtered/%s counts.)",
                link.url,
                link.page or "no known page",
                refusal.filter,
                refusal.why,
                name,
            )
        self.note(name, str(refusal.why), link.url, link.depth, link.page)

    def _failed(self, judge: UrlFilter, error: Exception) -> None:
        """A filter of the user's raised: the link passes it."""
        self._count(f"ubi/filter_errors/{judge.name}")
        if (kind := f"!{judge.name}") not in self._said:
            self._said.add(kind)
            logger.error("The filter %.200s raised; what it is asked passes. (Shown once.)", judge, exc_info=error)


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
