"""What a crawl of `scrapy ubi compare` has besides the project's own: a download handler that records or repeats, and a
record of what this process has done.

Rules of this module:

* It is an add-on behind all others, and wraps the handlers that the project ends up with: middlewares, retries,
  redirects, robots.txt and media all go their usual way above it.
* What a process has done is appended to files of its own as it happens, so that it is there after a kill as well.
* A repeated answer comes after some milliseconds, other ones in each process: what depends on the order of answers
  shows up as such between two crawls of plain Scrapy too.
* Agents give no answer before all of them have seen each other: a small crawl would else be over before the second
  has come, and nothing said of what two processes do to it.
* Each process keeps files and images in a directory of its own: what one crawl has left there, or the user's own, would
  be *uptodate* for the next, and the user's store holds nothing of a comparison.
* The recording is read in the loop's thread: it is a file of this machine, and this is no crawl that others wait for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import time
from pathlib import Path
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.place_component import place_component
from scrapy_ubi.adapter.requests.page_outcome import NotArchived
from scrapy_ubi.cli.commands.compare_recording import Failed, Recording

# In the environment: the directory of this crawl, whose parent has the recording; one of the two below; how many agents
# there are to be.
PLACE, MODE, GROUP = "SCRAPY_UBI_COMPARE_PLACE", "SCRAPY_UBI_COMPARE_MODE", "SCRAPY_UBI_COMPARE_AGENTS"
RECORD, REPEAT = "record", "repeat"
RECORDING = "recording.sqlite"
REQUESTS, RESULT = "requests", "result"  # how the files of a process begin
STORES = ("FILES_STORE", "IMAGES_STORE")  # what the names of settings end with that say where media are kept
SCHEMES = ("http", "https", "ftp", "s3")
SLOWEST = 0.01  # s after which an answer is repeated, at most
MET = "met"  # a file that says that all agents have seen each other
MEETS_WITHIN = 60.0  # s that the first answer waits for that, at most
MEETS_EVERY = 0.05  # s between two looks
MOST_WARNINGS = 200  # different ones of a process that are kept

_THEIRS = "_SCRAPY_UBI_COMPARE_HANDLERS"
_LAST = 2_000_000_000  # an add-on's priority behind those of others


class CompareAddon:
    """Puts the handler and the record in place."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Scrapy's hook, called behind all other add-ons."""
        theirs = settings.getwithbase("DOWNLOAD_HANDLERS")
        wrapped = {scheme: theirs[scheme] for scheme in SCHEMES if theirs.get(scheme) is not None}
        over = max(SETTINGS_PRIORITIES["cmdline"], settings.getpriority("DOWNLOAD_HANDLERS") or 0)
        settings.set(_THEIRS, dict(wrapped), over)
        own = {**settings.getdict("DOWNLOAD_HANDLERS"), **dict.fromkeys(wrapped, CompareHandler)}
        settings.set("DOWNLOAD_HANDLERS", BaseSettings(own, "cmdline"), over)
        for name in [name for name in settings if isinstance(name, str) and name.endswith(STORES) and settings[name]]:
            own_store = Path(os.environ[PLACE]) / f"{name.lower()}-{os.getpid()}"
            settings.set(name, str(own_store), max(over, settings.getpriority(name) or 0))
        place_component(settings, "EXTENSIONS", CompareRecord, 0)


class CompareHandler(BaseDownloadHandler):
    """Records what the project's own handlers bring, or repeats it."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        place = Path(os.environ[PLACE])
        self._records = os.environ[MODE] == RECORD
        self._recording = Recording(place.parent / RECORDING)
        self._handlers: dict[str, Any] = {}
        self._log = os.open(_own_file(REQUESTS), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._met = False
        self._random = random.Random(f"{os.environ[PLACE]} {os.environ[MODE]} {os.getpid()}")

    async def download_request(self, request: Request) -> Response:
        """The response, of the site or of the recording. Raises what the download ended with."""
        if self._records:
            return await self._record(request)
        how, outcome = self._recording.find(request)
        self._note(request, how)
        await self._meet()
        await asyncio.sleep(self._random.uniform(0, SLOWEST))
        if outcome is None:
            raise NotArchived(f"{request} was not made by plain Scrapy")
        if isinstance(outcome, Failed):
            raise outcome.exception()
        return outcome

    async def _meet(self) -> None:
        """Wait until this agent sees all others, or one of them has."""
        if self._met:
            return
        place, number = Path(os.environ[PLACE]), int(os.environ.get(GROUP, 1))
        limit = time.monotonic() + MEETS_WITHIN
        while number > 1 and not (place / MET).exists() and time.monotonic() < limit:
            scheduler = scheduler_of(self.crawler)
            if scheduler is not None and len(scheduler.node.agent.view.members) >= number:
                break
            await asyncio.sleep(MEETS_EVERY)
        (place / MET).touch()
        self._met = True

    async def _record(self, request: Request) -> Response:
        self._note(request, "asked")
        scheme = request.url.partition(":")[0]
        handler = self._handlers.get(scheme)
        if handler is None:
            cls = load_object(self.crawler.settings[_THEIRS][scheme])
            handler = self._handlers[scheme] = build_from_crawler(cls, self.crawler)
        try:
            response: Response = await ensure_awaitable(handler.download_request(request))
        except Exception as error:
            self._recording.add(request, error)
            raise
        self._recording.add(request, response)
        return response

    def _note(self, request: Request, how: str) -> None:
        line = json.dumps([request.method, request.url, how])
        os.write(self._log, line.encode() + b"\n")

    async def close(self) -> None:
        """Close the recording, and the handlers that were wrapped."""
        for handler in self._handlers.values():
            if hasattr(handler, "close"):
                await ensure_awaitable(handler.close())
        self._recording.close()


class CompareRecord(logging.Handler):
    """Keeps this process's warnings, which of its items are of start pages that a link led to once more, and its stats
    at the end. (Scrapy does not know its start requests again, as they have dont_filter; agents do.)"""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(logging.WARNING)
        self._crawler = crawler
        self._warnings: dict[str, int] = {}
        self._pages: dict[bytes, Request] = {}  # by fingerprint the first request whose page gave an item
        self._items = 0
        self._again: list[int] = []  # numbers of items, from 0
        logging.getLogger("scrapy_ubi").addHandler(self)
        crawler.signals.connect(self._count_item, signals.item_scraped)
        crawler.signals.connect(self._write, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CompareRecord:
        """Scrapy's way to make an extension."""
        return cls(crawler)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a warning."""
        text = record.getMessage()
        if text in self._warnings or len(self._warnings) < MOST_WARNINGS:
            self._warnings[text] = self._warnings.get(text, 0) + 1

    def _count_item(self, response: Response | None) -> None:
        number = self._items
        self._items += 1
        request = getattr(response, "request", None)
        if request is None:
            return
        assert self._crawler.request_fingerprinter is not None
        first = self._pages.setdefault(self._crawler.request_fingerprinter.fingerprint(request), request)
        if first is not request and first.dont_filter and not request.dont_filter:
            self._again.append(number)

    def _write(self, spider: Spider, reason: str) -> None:
        logging.getLogger("scrapy_ubi").removeHandler(self)
        stats = {name: value for name, value in self._crawler.stats.get_stats().items() if _is_plain(value)}
        told = {
            "reason": reason,
            "stats": stats,
            "warnings": self._warnings,
            "items": self._items,
            "again": self._again,
        }
        _own_file(RESULT).write_text(json.dumps(told), encoding="utf-8")


def _own_file(kind: str) -> Path:
    return Path(os.environ[PLACE]) / f"{kind}-{os.getpid()}.jsonl"


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool))


def addons_with(settings: BaseSettings, ours: str | None) -> dict[str, int]:
    """The project's add-ons by their paths, and this one behind them. `ours`: the agent's, where it is missing."""
    found = {}
    for addon, priority in settings.getdict("ADDONS").items():
        if priority is not None:
            path = addon if isinstance(addon, str) else f"{addon.__module__}.{addon.__qualname__}"
            found[path] = int(priority)
    if ours is not None:
        found[ours] = 500
    return {**found, f"{__name__}.{CompareAddon.__name__}": _LAST}
