"""`scrapy ubi seed URL...`: give URLs to a crawl that waits for them, and say what became of each.

Rules of this module:

* A seed is an entry of the stream `ubi:{<crawl>}:seeds`, as anybody may write it (`redis-cli XADD`), unless the agents
  take signed ones only (`signing`); the agents judge it.
* No more than `MOST_WAITING` seeds are let wait in Redis: the writer waits instead.
* Answers are read while seeds are written, so that none is gone before it is read. They are printed as they come; only
  `--json` keeps them, for its one document.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, TextIO, TypedDict, cast

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_ubi.commands import signing
from scrapy_ubi.commands.crawl_choice import UbiNoCrawl, choose_crawl, given_crawl
from scrapy_ubi.commands.query import QueryReport
from scrapy_ubi.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.errors import UbiError
from scrapy_ubi.monitor.status import CrawlStatus
from scrapy_ubi.monitor.text_table import count
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.untrusted.terminal_text import plain

PIECE = 500  # seeds written at once
MOST_WAITING = 100_000  # seeds in Redis, some 20 MB
LOOK_EVERY = 0.2  # s, for room
BLOCK = 500  # ms of a look at answers
ANSWERS = 1000  # read at once

Fields = dict[str, str]


class ToldSeed(TypedDict):
    """What became of a seed: OK, KNOWN or REFUSED, and why."""

    url: str
    said: str
    why: str


class UbiNotSeeded(UbiError):
    """The URLs cannot be read, or there is no room for them."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Write the seeds; wait for the answers if asked. Raises UbiError, UsageError."""
    if not opts.url and opts.file is None:
        raise UsageError("scrapy ubi seed wants URLs, or a file of them (-f).", print_help=False)
    with ExitStack() as stack:
        lines = stack.enter_context(_opened(opts.file)) if opts.file is not None else None
        to = stack.enter_context(connect(settings, opts))
        status = _crawl(settings, opts, to)
        answers: list[ToldSeed] = []
        writer = SeedWriter(to, status, None if not opts.wait else answers.append if opts.json else _say)
        seeds = _seeds(opts, lines)
        while piece := list(islice(seeds, PIECE)):
            writer.write(piece, opts.timeout)
            if opts.wait:
                writer.read(block=False)
        end = time.monotonic() + opts.timeout
        while opts.wait and writer.pending and time.monotonic() < end:
            writer.read(block=True)
    return writer.report(opts.timeout, answers)


def _say(answer: ToldSeed) -> None:
    print(plain(": ".join(filter(None, (f"{answer['said']} {answer['url']}", answer["why"])))), flush=True)


def _crawl(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> CrawlStatus:
    """The crawl that is meant; one that is named need not have begun."""
    try:
        return choose_crawl(settings, opts, to)
    except UbiNoCrawl:
        name = given_crawl(settings, opts)
        if name is None:
            raise
        print(f"scrapy ubi: Crawl {plain(name, 64)} has not begun yet: its agents find them.", file=sys.stderr)
        return CrawlStatus(name)


def _opened(name: str) -> TextIO:
    if name == "-":
        return sys.stdin
    try:
        return open(name, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UbiNotSeeded(f"{name} cannot be read ({error.strerror}).") from None


def _seeds(opts: argparse.Namespace, lines: TextIO | None) -> Iterator[Fields]:
    """The fields of each seed."""
    more: Fields = {"priority": str(opts.priority)} if opts.priority is not None else {}
    if opts.force:
        more["force"] = "1"
    for line in chain(opts.url, lines if lines is not None else ()):
        text = line.strip()
        if text and not text.startswith("#"):
            yield {"request" if text.startswith("{") else "url": text, **more}


class SeedWriter:
    """Writes seeds of the crawl of this status, and tells `told` what becomes of each; None: no answer is waited for.
    `pending`: those not answered, by id, as written."""

    def __init__(self, to: RedisConnection, status: CrawlStatus, told: Callable[[ToldSeed], None] | None) -> None:
        self._to, self._crawl, self._keys, self._told = to, status.crawl, RedisKeys(status.crawl), told
        self._signed = signing.seeds(to, status)
        self.pending: dict[bytes, str] = {}
        self._sent = 0
        self._words: Counter[str] = Counter()
        with to.explained():
            last = cast(list[Any], to.client.xrevrange(self._keys.seeded, count=1))
        self._read_to: bytes = last[0][0] if last else b"0-0"

    def write(self, seeds: list[Fields], timeout: float) -> None:
        """Write these. Raises UbiNotSeeded where there is no room for so many seconds."""
        end = time.monotonic() + timeout
        with self._to.explained():
            while self._to.client.xlen(self._keys.seeds) >= MOST_WAITING:
                if time.monotonic() > end:
                    raise UbiNotSeeded(
                        f"{count(MOST_WAITING)} URLs wait already, {count(self._sent)} of these among them, and none "
                        "is taken: see that an agent runs with UBI_SERVE."
                    )
                time.sleep(LOOK_EVERY)
            pipe = self._to.client.pipeline(transaction=False)
            for fields in seeds:
                signed = self._signed(fields)
                said = {name: value.encode("utf-8", "surrogateescape") for name, value in signed.items()}
                pipe.xadd(self._keys.seeds, cast(Any, said))
            written = pipe.execute()
        for number, fields in zip(written, seeds, strict=True) if self._told is not None else ():
            self.pending[number] = fields.get("url") or fields["request"]
        self._sent += len(seeds)

    def read(self, block: bool) -> None:
        """Take the answers that are there; with `block` wait a moment for some."""
        with self._to.explained():
            found = self._to.client.xread({self._keys.seeded: self._read_to}, ANSWERS, BLOCK if block else None)
        for _, entries in cast(list[Any], found):
            for number, answer in entries:
                self._read_to = number
                url = self.pending.pop(answer.get(b"seed", b""), None)
                if url is not None and self._told is not None:
                    said, why = (answer.get(name, b"").decode("utf-8", "replace") for name in (b"said", b"why"))
                    self._words[said] += 1
                    self._told({"url": url, "said": said, "why": why})

    def report(self, timeout: float, answers: list[ToldSeed]) -> QueryReport:
        """What is left to say; `answers`: all that were told, for the document."""
        document = {"crawl": self._crawl, "sent": self._sent}
        if self._told is None:
            what = "URL waits" if self._sent == 1 else "URLs wait"
            return QueryReport([f"{count(self._sent)} {what} for crawl {plain(self._crawl, 64)}."], document)
        refused, unanswered = self._words["REFUSED"], len(self.pending)
        complaints = []
        if refused:
            complaints.append(f"{count(refused)} of {count(self._sent)} were refused.")
        if unanswered:
            complaints.append(
                f"{count(unanswered)} of {count(self._sent)} were not answered within {timeout:g} s: they wait, unless "
                "Redis has lost them; see that an agent runs with UBI_SERVE."
            )
        return QueryReport([], {**document, "unanswered": unanswered, "answers": answers}, " ".join(complaints))
