"""`scrapy ubi items`: the items of a running crawl, from the stream of Redis (store `stream`), one a line.

Rules of this module:

* With `--follow` this is a consumer group of the stream: what it has not printed is not taken out, and agents wait for
  it where the stream is full. It says that it is there from a thread of its own, as who reads its output may let it
  wait. When it ends, or has said nothing for a minute, it holds up nothing any more.
* Each item is printed once, by run and identity: all that were printed are remembered, on the disk.
* Where Redis has lost the stream, agents give again what was not acknowledged: it is read from its beginning.
* Items go to standard output alone; what is waited for, and where to go on, to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from hashlib import blake2b
from typing import Any

from redis.exceptions import NoPermissionError
from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands.crawl_choice import UbiNoCrawl, choose_crawl, given_crawl
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.errors import UbiUnavailable
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.faults import FAULTS, explain
from scrapy_ubi.transport.item_stream import FOLLOW, GONE_AFTER, ItemStream, NoSuchGroup, read_id

HOST_ID = "host."  # how the id of a line begins that says that a host is complete
START, NOW = "start", "now"
BLOCK = 1.0  # s of waiting for items, so that Ctrl-C is soon heard
QUIET = 5.0  # s without an item, after which is said what is waited for
PAUSE = 1.0  # s between two tries
TIMEOUT = 10.0  # s

Entries = Iterable[tuple[str, dict[str, str]]]


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Print the last items, or follow. Raises UbiError."""
    with connect(settings, opts) as to:
        if not opts.follow:
            crawl = choose_crawl(settings, opts, to).crawl
            with to.explained(), closing(Printed()) as printed:
                printed.show(ItemStream(to.client, crawl).newest(opts.limit))
                if not printed.count:
                    _say(f"There are no items in the stream of crawl {crawl}. {WITHOUT}")
            return 0
        signal.signal(signal.SIGTERM, _interrupt)
        with suppress(KeyboardInterrupt):
            crawl, waited = _named(settings, opts, to)
            begin = START if waited and opts.begin == NOW else opts.begin  # it was there before the first item
            Follower(to, crawl, opts.until_end).print_until_end(begin)
    return 0


WITHOUT = "Agents give them where UBI_STORES names 'stream'."


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _say(sentence: str) -> None:
    print(f"scrapy ubi: {plain(sentence)}", file=sys.stderr, flush=True)


def _named(settings: BaseSettings, opts: argparse.Namespace, to: RedisConnection) -> tuple[str, bool]:
    """The name of the crawl, and whether it was waited for; one that is named need not have begun."""
    said = ""
    while True:
        try:
            return choose_crawl(settings, opts, to).crawl, bool(said)
        except UbiNoCrawl as error:
            if (name := given_crawl(settings, opts)) is not None:
                _say(f"Crawl {name} has not begun yet: waiting for it.")
                return name, False
            if str(error) != said:
                said = str(error)
                _say(f"{said} Waiting for it to begin.")
        time.sleep(PAUSE)


class Printed:
    """Prints items to standard output, each once. `count`: how many."""

    def __init__(self) -> None:
        self.count = self.odd = 0
        self._met = sqlite3.connect("", isolation_level=None)  # a file of its own, which goes with it
        self._met.execute("PRAGMA journal_mode=OFF")
        self._met.execute("CREATE TABLE met (name BLOB PRIMARY KEY) WITHOUT ROWID")

    def show(self, entries: Entries) -> None:
        """Print those that were not printed before. Raises OSError."""
        self._met.execute("BEGIN")
        try:
            for at, fields in entries:
                if (line := line_of(at, fields)) is None:
                    self._odd(at)
                elif self._is_new(fields):
                    sys.stdout.write(line)
                    self.count += 1
        finally:
            self._met.execute("COMMIT")
        sys.stdout.flush()

    def _is_new(self, fields: dict[str, str]) -> bool:
        name = blake2b(f"{fields['run']} {fields['id']}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return self._met.execute("INSERT OR IGNORE INTO met VALUES (?)", (name,)).rowcount == 1

    def _odd(self, at: str) -> None:
        self.odd += 1
        if self.odd == 1:
            _say(f"The entry {at} of the stream is no item, and is left out; so are others like it.")

    def close(self) -> None:
        """Forget them."""
        self._met.close()


def line_of(at: str, fields: dict[str, str]) -> str | None:
    """The line of an entry; None where it is no item."""
    try:
        item = fields["item"]
        value = json.loads(item)
        if "\n" in item or "\r" in item:
            item = json.dumps(value)
        what = "host" if fields["id"].startswith(HOST_ID) else "item"
        return f'{{"id":{json.dumps(fields["id"])},"run":{json.dumps(fields["run"])},"at":"{at}","{what}":{item}}}\n'
    except (KeyError, ValueError, RecursionError):
        return None


class Follower:
    """Follows one crawl, until its end where that is wanted."""

    def __init__(self, to: RedisConnection, crawl: str, until_end: bool) -> None:
        self._to = to
        self._crawl = crawl
        self._until_end = until_end
        self._stream = ItemStream(to.client, crawl)
        self._group = f"{FOLLOW}{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._begin = self._at = self._token = ""  # where to begin; the last id that was printed; Redis's data
        self._heard = time.monotonic()
        self._finished = self._over = False
        self._said = ""
        self._ended = threading.Event()

    def print_until_end(self, begin: str) -> None:
        """Print items until Ctrl-C, or the end."""
        beat = threading.Thread(target=self._stay, name="ubi-follower", daemon=True)
        beat.start()
        with closing(Printed()) as printed:
            try:
                self._begin = begin
                while not self._over:
                    self._turn(printed)
            finally:
                self._ended.set()
                with suppress(*FAULTS):
                    self._stream.unfollow(self._group)
                where = f" Go on with --from {self._at}." if self._at else ""
                _say(f"{printed.count:,} items of crawl {self._crawl}.{where}")

    def _turn(self, printed: Printed) -> None:
        """One look at the stream, or at why nothing comes."""
        try:
            if self._begin:
                self._start(self._begin)
                self._begin = ""
            entries = self._stream.read(self._group, BLOCK)
        except NoSuchGroup:
            self._begin = self._at or START
            return
        except FAULTS as error:
            self._wait_for_redis(error)
            return
        if entries:
            printed.show(entries)
            self._at, self._heard, self._said = entries[-1][0], time.monotonic(), ""
            with suppress(*FAULTS):  # they come again then, and are left out
                self._stream.acknowledge(self._group, [at for at, _ in entries])
        elif self._finished:
            self._over = True
        elif self._until_end or time.monotonic() - self._heard > QUIET:
            self._look()

    def _start(self, begin: str) -> None:
        """Begin, or go on, behind this place."""
        token, known = self._stream.append((), "").token, self._token
        self._token = token
        if begin == NOW:
            begin = self._at = "{}-{}".format(*self._stream.last_id())
        after = "0" if begin == START else begin
        gone = self._stream.gone_to()
        if known not in ("", token) or (after != "0" and self._stream.last_id() < read_id(after)):
            _say("Redis has lost the stream of items: it is read from its beginning, without what was printed before.")
            after = "0"
        elif gone > read_id(after):
            _say(
                f"Items before {gone[0]}-{gone[1]} are no longer in the stream, as it is bounded: some are missing "
                "here. `scrapy ubi collect items` has all (store 'items')."
            )
        self._stream.join_at(self._group, after)

    def _wait_for_redis(self, error: Exception) -> None:
        """Say what is wrong, and wait. Raises UbiUnavailable where waiting does not help."""
        sentence = explain(error, self._to.at, TIMEOUT)
        if isinstance(error, NoPermissionError):
            raise UbiUnavailable(sentence) from error
        self._tell(f"{sentence} Waiting for it.")
        time.sleep(PAUSE)

    def _look(self) -> None:
        """See why nothing comes."""
        try:
            status = read_status(self._to.client, self._crawl)
        except FAULTS as error:
            self._wait_for_redis(error)
            return
        self._finished = status.finished and self._until_end
        if time.monotonic() - self._heard > QUIET:
            self._tell(_waits(status))

    def _tell(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            _say(sentence)

    def _stay(self) -> None:
        """Say that this is there, in a thread."""
        client: Any = client_of(self._to.at, TIMEOUT)
        stream = ItemStream(client, self._crawl)
        while not self._ended.wait(GONE_AFTER / 6):
            with suppress(*FAULTS):
                stream.say_there(self._group)
        client.close()


def _waits(status: CrawlStatus) -> str:
    working = sum(agent.working for agent in status.agents)
    if status.finished:
        return f"Crawl {status.crawl} is finished: waiting for its next run."
    if not working:
        return f"No agent of crawl {status.crawl} works: waiting for one."
    if status.paused:
        return f"Crawl {status.crawl} is paused: waiting for `scrapy ubi resume`."
    return f"Waiting for items of {working} agent{'' if working == 1 else 's'} (state: {status.state}). {WITHOUT}"
