"""Feeds and crashes: an agent's feeds are its own, and hold the items of a page before the page counts as done.

The end of a feed's file that is to be appended to: what a process that was killed has left of its last item.

Rules of this module:

* Two agents on one feed name lose each other's items. The name of a local file is locked for as long as the process
  lives: the second agent on the machine is refused. Of any other feed an agent cannot see who else writes it: in a
  crawl of several agents its name has to hold `%(ubi_agent)s`, or be made by a function of the user's.
* UBI_SHARED_FEEDS lets both pass. A process that crawls alone, without Redis, is never refused, only warned.
* The locks are no files beside the user's: they are in the directory for temporary files.
* Local files are flushed before each flush of the agent's disk (`flush`): what is done on the disk has its items in the
  file, whenever the process is killed. What cannot be flushed is named at the start.
* What a killed process left of a line is cut off before the file is appended to (`mend`).
* Appended to as it is, the torn item and the next one would make one line that cannot be read: the next one would be
  lost, and its page is done. So what is torn is cut off. Its page was not done, so it comes again.
* A last line that is whole and only lacks its end is completed.
* Only JSON lines, and CSV in its usual dialect, are looked at, in an encoding in which their bytes are ASCII.
* A file that cannot be read or cut is left as it is, with a warning.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.feeds.feed_params import FeedParams
from scrapy_ubi.adapter.process.agent_directory import AgentLock, holder
from scrapy_ubi.adapter.scrapy_private.feed_slots import Feed, FeedSlots, path_of
from scrapy_ubi.errors import UbiRefused

logger = logging.getLogger(__name__)

_params = re.compile(r"%\((\w+)\)").findall
_password = re.compile(r"//[^/@]*@")
TIMES = ("time", "batch_time")  # what makes the name of a feed another one at the next start

REMOTE = (
    "The feed {!r} has one name for all agents, and each would write over the items of the others: put %(ubi_agent)s "
    "into its name, or set UBI_SHARED_FEEDS = True if nothing is lost by that."
)
LOCAL = (
    "The feed {!r} is written by another agent on this machine (process {}): put %(ubi_agent)s into its name, so that "
    "each agent has its own, or set UBI_SHARED_FEEDS = True if they may mix."
)
ALONE = (
    "The feed {!r} is also written by another process on this machine ({}): the two mix their lines, or one writes "
    "over the other's. Put %(ubi_agent)s into its name."
)
NOT_LOCKED = "It cannot be seen whether another agent writes the feed {!r}: no lock can be made in {} ({})."
TEMPORARY = (
    "The items of the feed {!r} are kept in a temporary file until the spider closes: should this process crash, they "
    "are lost, though their pages are done. Set FEED_EXPORT_BATCH_ITEM_COUNT, and put %(batch_time)s into its name: "
    "then at most one batch is lost."
)
PROCESSED = (
    "The items of the feed {!r} are compressed (postprocessing) and cannot be flushed: should this process crash, "
    "those of its last file may be lost, though their pages are done. Set FEED_EXPORT_BATCH_ITEM_COUNT, and put "
    "%(batch_time)s into its name: then at most one batch is lost."
)
AGAIN = (
    "The crawl goes on, and its feed {!r} begins again: the items that it has from before are written over. Put "
    "%(time)s into its name; a local file may be appended to instead (-o in place of -O, overwrite: False)."
)
SECOND = (
    "The crawl goes on, and its feed {!r} is appended to: a {} file with two beginnings cannot be read as one, though "
    "all items are in it. Let its format be jsonlines, or put %(time)s into its name."
)
FULL = "The feed {!r} cannot be written ({}): make room, and the crawl goes on."
CHUNK = 1 << 20  # bytes read at a time
DOCUMENTS = ("json", "xml")  # formats of which a file has one beginning and one end
LINES = ("jsonlines", "jsonl", "jl")
CSV_DIALECT = ("quotechar", "escapechar", "quoting", "lineterminator", "doublequote", "dialect")


class FeedClaims:
    """The feeds of one agent, from its start to its end. `shared` is UBI_SHARED_FEEDS; `alone`: the crawl is one of
    this process only, without Redis."""

    def __init__(self, crawler: Crawler, shared: bool, alone: bool) -> None:
        self._crawler = crawler
        self._slots = FeedSlots(crawler)
        self._feeds = self._slots.feeds()
        self._shared = shared
        self._alone = alone
        self._locks: list[AgentLock] = []
        self._exclusive = True  # no other process writes the local files, as far as can be seen

    def claim(self, spider: Spider) -> None:
        """Make the feeds this agent's own. Raises UbiRefused with one sentence when one is another's, too."""
        try:
            for feed in self._feeds:
                self._check_name(feed)
            for path, name in self._files(spider).items():
                self._lock(path, name)
        except UbiRefused:
            self.close()
            raise
        self._slots.watch(mend if self._exclusive else None)
        self._crawler.signals.connect(self.close, signals.engine_stopped)  # the last items are written at the end
        for sentence in self._remarks():
            logger.warning("%s", sentence)

    def _check_name(self, feed: Feed) -> None:
        if feed.kind == "remote" and not self._alone and not self._shared and not _differs(feed):
            raise UbiRefused(REMOTE.format(_shown(feed.uri)))

    def _files(self, spider: Spider) -> dict[Path, str]:
        """The local files that the feeds begin with, and their names. Of those in several files the time makes no
        difference: two agents may begin one in the same second."""
        named = [
            self._slots.name(feed, spider, **({"time": ""} if feed.batches else {}))
            for feed in self._feeds
            if feed.kind == "file"
        ]
        paths = {Path(os.path.realpath(path_of(name))): name for name in named}
        return {path: name for path, name in paths.items() if path.is_file() or not path.exists()}

    def _lock(self, path: Path, name: str) -> None:
        place = lock_place(path)
        try:
            _make_own(place.parent.parent)
            self._locks.append(AgentLock(place))
        except BlockingIOError as error:
            self._exclusive = False
            if not self._alone and not self._shared:
                raise UbiRefused(LOCAL.format(name, holder(place))) from error
            if not self._shared:
                logger.warning("%s", ALONE.format(name, holder(place)))
        except OSError as error:
            self._exclusive = False
            logger.warning("%s", NOT_LOCKED.format(name, place, error.strerror or error))

    def _remarks(self) -> Iterator[str]:
        """What a crash would cost."""
        for feed in self._feeds:
            if feed.batches and _is_renewed(feed):
                continue
            if feed.kind == "remote":
                yield TEMPORARY.format(_shown(feed.uri))
            elif feed.kind == "file" and feed.processed:
                yield PROCESSED.format(_shown(feed.uri))

    def goes_on(self, spider: Spider) -> None:
        """The crawl goes on from this agent's disk: say which feeds lose what they have from before, and which cannot
        be appended to."""
        for feed in self._feeds:
            if feed.kind == "remote":
                if not _is_renewed(feed):
                    logger.warning("%s", AGAIN.format(_shown(feed.uri)))
            elif feed.kind == "file" and self._holds(feed, spider):
                if feed.options.get("overwrite"):
                    logger.warning("%s", AGAIN.format(_shown(feed.uri)))
                elif (name := feed.options.get("format")) in DOCUMENTS:
                    logger.warning("%s", SECOND.format(_shown(feed.uri), name))

    def _holds(self, feed: Feed, spider: Spider) -> bool:
        try:
            return path_of(self._slots.name(feed, spider)).stat().st_size > 0
        except OSError:
            return False

    def flush(self) -> str:
        """Give all items exported so far to the operating system. Why that cannot be, as a sentence; '' when done."""
        try:
            self._slots.flush()
        except OSError as error:
            return FULL.format(_shown(str(error.filename)), error.strerror or error)
        return ""

    def close(self) -> None:
        """Let others have the names."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()


def _differs(feed: Feed) -> bool:
    """Whether the name of a feed is another one for each agent. Of an attribute of the spider that cannot be known: its
    arguments are those of all agents."""
    params = feed.options.get("uri_params")
    own = params.own if isinstance(params, FeedParams) else params
    return bool(own) or "ubi_agent" in _params(feed.uri)


def _is_renewed(feed: Feed) -> bool:
    return not set(TIMES).isdisjoint(_params(feed.uri))


def _shown(uri: str) -> str:
    """A URI without user and password."""
    return _password.sub("//", uri)


def _make_own(root: Path) -> None:
    """Make the directory of all locks. Raises OSError where it is another user's, who could put links into it."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = root.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise OSError(errno.EPERM, "another user may write there")


def lock_place(path: Path) -> Path:
    """The directory whose lock stands for this file, for all processes of this user."""
    digest = hashlib.blake2b(str(path).encode(errors="surrogateescape"), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir()) / f"scrapy_ubi-{os.getuid()}" / "feeds" / digest


def mend(path: Path, options: dict[str, Any]) -> None:
    """Let the file of a feed with these options end with a whole item, where there is such a file."""
    as_text = options.get("format")
    is_csv = as_text == "csv" and not set(CSV_DIALECT) & set(options.get("item_export_kwargs") or ())
    if not (as_text in LINES or is_csv) or "postprocessing" in options or not _is_ascii(options.get("encoding")):
        return
    try:
        if not path.is_file():
            return
        with path.open("rb+") as file:
            _mend(file, path, is_csv)
    except OSError as error:
        logger.warning("The end of the feed %s cannot be looked at (%s).", path, error.strerror or error)


def _mend(file: IO[bytes], path: Path, is_csv: bool) -> None:
    size = file.seek(0, 2)
    end = _end_of_rows(file) if is_csv else _end_of_lines(file, size)
    if end == size:
        return
    file.seek(end)
    if not is_csv and _is_whole(file.read()):
        file.seek(0, 2)
        file.write(b"\n")
        return
    logger.warning(
        "The feed %s ends with a part of an item, of a process that was killed: these %d bytes are cut off, and the "
        "page is fetched again.",
        path,
        size - end,
    )
    file.truncate(end)


def _end_of_lines(file: IO[bytes], size: int) -> int:
    """Where the last whole line ends."""
    begin = size
    while begin:
        begin = max(0, begin - CHUNK)
        file.seek(begin)
        found = file.read(CHUNK).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
    return 0


def _end_of_rows(file: IO[bytes]) -> int:
    """Where the last whole row of a CSV ends: at the last line end that stands in no quotes."""
    file.seek(0)
    offset = end = 0
    quoted = False
    while chunk := file.read(CHUNK):
        found, quoted = _last_row_end(chunk, quoted)
        if found:
            end = offset + found
        offset += len(chunk)
    return end


def _last_row_end(chunk: bytes, quoted: bool) -> tuple[int, bool]:
    """Where in this chunk the last row ends (0: nowhere), and whether it ends in quotes; `quoted`: it begins so."""
    parts = chunk.split(b'"')
    ends_quoted = inside = quoted ^ (len(parts) % 2 == 0)
    end = len(chunk)
    for part in reversed(parts):
        if not inside and (found := part.rfind(b"\n")) >= 0:
            return end - len(part) + found + 1, ends_quoted
        end -= len(part) + 1
        inside = not inside
    return 0, ends_quoted


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_ascii(encoding: object) -> bool:
    try:
        return encoding is None or '{}",\n'.encode(str(encoding)) == b'{}",\n'
    except LookupError:
        return False
