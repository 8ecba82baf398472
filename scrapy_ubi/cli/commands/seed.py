"""`scrapy ubi seed URL...`: give URLs to a crawl, and say what became of each; for a page, what became of the last.

Rules of this module:

* A seed is an entry of the stream `ubi:{<crawl>}:seeds`, as anybody may write it (`redis-cli XADD`), unless the agents
  take signed ones only (`signing`); the agents judge it. Here it is seen only that a line is no URL: it is refused with
  its number, and the others go on.
* None is written into a crawl that is over: the look and the writing are one step (`seed_scripts.APPEND`), as are the
  agents' look at the stream and the end. So each is taken or refused, and the writer knows which.
* No more than `MOST_WAITING` seeds are let wait in Redis: the writer waits instead.
* Answers are read while seeds are written, so that none is gone before it is read. They are printed as they come; only
  `--json` keeps them, for its one document.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, NamedTuple, TextIO, TypedDict, cast

from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.outside import why_no_seed
from scrapy_ubi.adapter.requests.seed_marks import FIELDS, read_marks
from scrapy_ubi.cli.commands import signing
from scrapy_ubi.cli.commands.crawl_choice import UbiNoCrawl, choose_crawl, given_crawl
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.contract import MOST_SEED_URL
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.seed_scripts import APPEND

PIECE = 500  # seeds written at once
MOST_WAITING = 100_000  # seeds in Redis, some 20 MB
LOOK_EVERY = 0.2  # s, for room
BLOCK = 500  # ms of a look at answers
ANSWERS = 1000  # read at once
MOST_SHOWN = 200  # characters of a line that is no URL
MOST_WHY = 300  # characters of a reason
MOST_NAME = 200  # characters of what its writer calls a seed

Fields = dict[str, str]


class ToldSeed(TypedDict):
    """What became of a seed: OK, KNOWN or REFUSED, and why; `by`: the agent that says so."""

    url: str
    said: str
    why: str
    by: str


class Line(NamedTuple):
    """What was given, and where: "" for an argument, else the file and the number of the line."""

    text: str
    place: str = ""


class UbiNotSeeded(UbiError):
    """The URLs cannot be read, there is no room for them, or the crawl takes none."""


OVER = "Crawl {} is over: it takes no URLs any more{}. Start it again, and give them to the crawl that begins then."
NOT_TAKEN = (
    "Crawl {} takes no URLs from outside: its agents may not read them in this Redis, or it is older than 6.2; their "
    "logs say which."
)


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Write the seeds; wait for the answers if asked. Raises UbiError, UsageError."""
    if not opts.url and opts.file is None:
        raise UsageError("scrapy ubi seed wants URLs, or a file of them (-f).", print_help=False)
    try:
        read_marks({name: getattr(opts, name, None) for name in FIELDS})
    except Malformed as error:
        raise UsageError(f"scrapy ubi seed: --{error}", print_help=False) from None
    with ExitStack() as stack:
        lines = stack.enter_context(_opened(opts.file)) if opts.file is not None else None
        to = stack.enter_context(connect(settings, opts))
        status = _crawl(settings, opts, to)
        answers: list[ToldSeed] = []
        writer = SeedWriter(to, status, answers.append if opts.json else _say, opts.wait)
        given = _given(opts, lines)
        while piece := list(islice(given, PIECE)):
            writer.write(_seeds(opts, piece, writer.refuse), opts.timeout)
            if opts.wait:
                writer.read(block=False)
        end = time.monotonic() + opts.timeout
        while opts.wait and writer.pending and time.monotonic() < end:
            writer.read(block=True)
    return writer.report(opts.timeout, answers)


def _say(answer: ToldSeed) -> None:
    taken = f"taken by {answer['by']}" if answer["by"] and answer["said"] == "OK" else ""
    print(plain(": ".join(filter(None, (f"{answer['said']} {answer['url']}", answer["why"] or taken)))), flush=True)


def _crawl(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> CrawlStatus:
    """The crawl that is meant; one that is named need not have begun."""
    try:
        status = choose_crawl(settings, opts, to)
        working = [one.profile for one in status.agents if one.working and one.profile is not None]
        if working and not any(profile.seeds for profile in working):
            raise UbiNotSeeded(NOT_TAKEN.format(plain(status.crawl, 64)))
        return status
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


def _given(opts: argparse.Namespace, lines: TextIO | None) -> Iterator[Line]:
    """What was given, without empty lines and remarks."""
    where = "standard input" if opts.file == "-" else str(opts.file)
    numbered = ((text, f"{where}, line {number}") for number, text in enumerate(lines if lines is not None else (), 1))
    for text, place in chain(((url, "") for url in opts.url), numbered):
        if (text := text.strip()) and not text.startswith("#"):
            yield Line(text, place)


def _seeds(opts: argparse.Namespace, lines: Iterable[Line], refuse: Callable[[Line, str], None]) -> list[Fields]:
    """The fields of each seed; `refuse` is told of what is none."""
    more: Fields = {"priority": str(opts.priority)} if opts.priority is not None else {}
    if opts.force:
        more["force"] = "1"
    more |= {name: value for name in FIELDS if (value := getattr(opts, name, None)) is not None}
    seeds: list[Fields] = []
    for line in lines:
        if why := why_no_seed(line.text):
            refuse(line, why)
        else:
            is_object = line.text.startswith("{")
            own = [name for name in FIELDS if name in more and is_object and name in json.loads(line.text)]
            said = {name: value for name, value in more.items() if name not in own}
            seeds.append({"request" if is_object else "url": line.text, **said})
    return seeds


class SeedWriter:
    """Writes seeds of the crawl of this status, and tells `told` what becomes of each: of all where it `waits` for the
    agents' answers, else of what is refused here. `pending`: those not answered, by id, as written."""

    def __init__(self, to: RedisConnection, status: CrawlStatus, told: Callable[[ToldSeed], None], waits: bool) -> None:
        self._to = to
        self._status = status
        self._told = told
        self._waits = waits
        self._crawl = status.crawl
        self._keys = RedisKeys(status.crawl)
        self._signed = signing.seeds(to, status)
        self.pending: dict[bytes, str] = {}
        self._sent = self._here = 0  # the second: refused before they were sent
        self._words: Counter[str] = Counter()
        with to.explained():
            last = cast(list[Any], to.client.xrevrange(self._keys.seeded, count=1))
        self._read_to: bytes = last[0][0] if last else b"0-0"

    def refuse(self, line: Line, why: str) -> None:
        """This is no seed."""
        self._words["REFUSED"] += 1
        self._here += 1
        where = f"{line.place}: " if line.place else ""
        self._told({"url": line.text[:MOST_SHOWN], "said": "REFUSED", "why": f"{where}{why}", "by": ""})

    def write(self, seeds: list[Fields], timeout: float) -> None:
        """Write these. Raises UbiNotSeeded where there is no room for so many seconds, or the crawl is over."""
        end = time.monotonic() + timeout
        with self._to.explained():
            while self._to.client.xlen(self._keys.seeds) >= MOST_WAITING:
                if time.monotonic() > end:
                    raise UbiNotSeeded(
                        f"{count(MOST_WAITING)} URLs wait already, {count(self._sent)} of these among them, and none "
                        "is taken: see that an agent of the crawl runs."
                    )
                time.sleep(LOOK_EVERY)
            texts: list[str | bytes] = []
            for fields in seeds:
                flat = [text for pair in self._signed(fields).items() for text in pair]
                texts += [str(len(flat)), *(text.encode("utf-8", "surrogateescape") for text in flat)]
            keys = (self._keys.seeds, self._keys.control)
            written = cast(list[bytes], self._to.client.eval(APPEND, 2, *keys, *texts)) if seeds else []
        if len(written) < len(seeds):
            before = f"; it has got {count(self._sent)} of these before its end" if self._sent else ""
            raise UbiNotSeeded(OVER.format(plain(self._crawl, 64), before))
        for number, fields in zip(written, seeds, strict=True) if self._waits else ():
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
                if url is not None:
                    said, why, by = (
                        answer.get(name, b"").decode("utf-8", "replace") for name in (b"said", b"why", b"by")
                    )
                    self._words[said] += 1
                    self._told({"url": url, "said": said, "why": why, "by": by})

    def report(self, timeout: float, answers: list[ToldSeed]) -> QueryReport:
        """What is left to say; `answers`: all that were told, for the document."""
        refused, unanswered, given = self._words["REFUSED"], len(self.pending), self._sent + self._here
        document = {"crawl": self._crawl, "sent": self._sent}
        complaints = [f"{count(refused)} of {count(given)} were refused."] if refused else []
        if not self._waits:
            lines = [self._waiting()] if self._sent else []
            more = {"answers": answers} if answers else {}
            return QueryReport(lines, {**document, **more}, " ".join(complaints))
        if unanswered:
            complaints.append(
                f"{count(unanswered)} of {count(self._sent)} were not answered within {timeout:g} s: they wait, unless "
                f"Redis has lost them; {self._who()}."
            )
        return QueryReport([], {**document, "unanswered": unanswered, "answers": answers}, " ".join(complaints))

    def _waiting(self) -> str:
        """That they wait, and for whom."""
        what = "URL waits" if self._sent == 1 else "URLs wait"
        return f"{count(self._sent)} {what} for crawl {plain(self._crawl, 64)}: {self._who()}."

    def _who(self) -> str:
        """Who takes them."""
        working = [one.name for one in self._status.agents if one.working]
        if not working:
            return "no agent of it runs, the next that is started takes them"
        paused = "; the crawl is paused, and they are fetched when it is resumed" if self._status.paused else ""
        who = f"agent {working[0]} takes" if len(working) == 1 else f"{len(working)} agents take"
        return f"{who} them (--wait says what becomes of each){paused}"


def read_state(settings: BaseSettings, opts: argparse.Namespace) -> Document:
    """How many seeds wait in Redis, and what became of the last `limit`, the newest first. Raises UbiError."""
    with connect(settings, opts) as to:
        crawl = choose_crawl(settings, opts, to).crawl
        keys = RedisKeys(crawl)
        with to.explained():
            waiting = to.client.xlen(keys.seeds)
            rows = cast(list[Any], to.client.xrevrange(keys.seeded, count=opts.limit))
    return {"crawl": crawl, "waiting": waiting, "answers": [_answer(number, fields) for number, fields in rows]}


def _answer(number: bytes, fields: dict[bytes, bytes]) -> Document:
    millis = number.split(b"-")[0]
    return {
        "seed": plain(fields.get(b"seed", b""), 40),
        "time": int(millis) / 1000 if millis.isdigit() and len(millis) < 20 else 0.0,
        "said": plain(fields.get(b"said", b""), 16),
        "why": plain(fields.get(b"why", b""), MOST_WHY),
        "by": plain(fields.get(b"by", b""), 64),
        "url": plain(fields.get(b"url", b""), MOST_SEED_URL),  # none in the answers of agents of before
        "name": plain(fields.get(b"id", b""), MOST_NAME),
    }
