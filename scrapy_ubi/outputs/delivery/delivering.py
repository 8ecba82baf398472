"""A store that gives items to a receiver, besides keeping them in files until that one has them.

Rules of this module:

* Items are appended to the store's parts as any store's are. At each mark of the writer, before the flush that says
  that their pages are done, what stands in the files behind `sent` is given to the receiver (`deliver`, in the writer's
  thread). Where it is not taken, the flush waits as for a full disk (`NotTaken`), and the crawl with it. So a page that
  is done has given its items: at least once (P9).
* An item's identity makes that once: `item_id` for those of pages, see `_name` for others. It is the same wherever, and
  however often, the page is fetched in one run.
* All are read back from the files: memory holds one batch, whatever waits, and what is given again after a loss goes
  the same way as what is given first.
* Two places are kept beside the files (`<store>.state`): `sent`, and `low`, behind which the receiver may still lose
  what it was given. A state that is older than it should be only gives something again. Sealed parts before `low` are
  deleted.
* With `hosts=yes` it gives a line for each host that is complete as well, by the same way; its id begins with `host.`.
* Of one agent items come in the order in which their pages have ended, those of one page in the order in which it has
  yielded them; between agents there is no order.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.items import LINES, ItemsStore
from scrapy_ubi.outputs.part_files import INDEX, OPEN, SHORT
from scrapy_ubi.outputs.stores import Page, choice
from scrapy_ubi.settings import UbiSettings

logger = logging.getLogger("scrapy_ubi")

SIZE, SECONDS = "6.4e7", "600"  # of a part: what is given may be deleted when its part is sealed
MOST_BYTES = 1 << 20  # of one batch, unless one item has more
FIRST_PAUSE = 0.5  # s between two tries, and twice as long after each
BETWEEN = b'","item":'


class NotTaken(Exception):
    """The receiver has not taken what it was given: a sentence. `pause` (s): it wants to be left alone so long."""

    def __init__(self, sentence: str, pause: float = 0.0) -> None:
        super().__init__(sentence)
        self.pause = pause


class Entry(NamedTuple):
    """An item to be given. `item` is JSON."""

    id: str
    item: bytes


class Place(NamedTuple):
    """A place in the store's files: so many bytes of the part with this name."""

    part: str
    offset: int


Places = dict[str, int]  # part -> bytes of it


class DeliveringStore(ItemsStore):
    """What `stream` and `webhook` have in common; `send` gives a batch."""

    batch: int = 500  # entries, at most
    longest_pause: float = 2.0  # s between two tries
    any_encoding: ClassVar[bool] = False

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        arguments.setdefault("size", (SIZE,))
        arguments.setdefault("seconds", (SECONDS,))
        self.tells_hosts = choice(arguments, "hosts", default=False)
        super().__init__(arguments, settings)
        self.sent: Places = {}
        self.low: Places = {}
        self._state: dict[str, Any] | None = None  # as it was saved last; None: not read yet
        self._pause = self._again_at = 0.0
        self._why = ""

    def connect(self, settings: UbiSettings) -> None:
        """Take what is needed of the agent's settings, before the crawl begins. Raises UbiSettingError."""

    def page(self, page: Page) -> bytes | None:
        """A line for each item, with its identity."""
        lines = []
        for number, kept in sorted(page.numbered.items()):
            if text := kept.get(self.name):
                name = json.dumps(f"{_name(page)}-{number}").encode()[:-1]
                lines.append(b'{"id":' + name + BETWEEN + text.rstrip(b"\n") + b"}\n")
        return b"".join(lines) or None

    # -- in the writer's thread

    @property
    def due(self) -> bool:
        """Whether a mark is wanted though no item has come: the first, for what the process before has left."""
        return self._state is None

    def deliver(self, out: Path, run: str) -> None:
        """Give what stands in the files to the receiver. Raises NotTaken, OSError; then it is called again."""
        if self._state is None:
            self._restore(out)
        if time.monotonic() < self._again_at:
            raise NotTaken(self._why)
        try:
            self.look()
            while not self._give_all(out, run):
                """Something was lost meanwhile, and is given again."""
        except NotTaken as error:
            self._pause = min(max(FIRST_PAUSE, 2 * self._pause), self.longest_pause)
            self._again_at = time.monotonic() + max(self._pause, min(error.pause, self.longest_pause))
            self._why = str(error)
            raise
        finally:
            self._drop(out)
            self._save(out)
        self._pause = 0.0

    def begin(self) -> None:
        """The files are those of the agent's disk: what is known of them is read anew."""
        self._state, self.sent, self.low = None, {}, {}

    def close(self) -> None:
        """Hang up; what is given after this is given by another connection."""

    def look(self) -> None:
        """See how the receiver is, before anything is sent. Raises NotTaken."""

    def send(self, entries: Sequence[Entry], run: str, after: Place) -> bool:
        """Give one batch, of this run, which ends at that place. Return True when the receiver has it, False where it
        has lost what it was given before: `sent` is set back then. Raises NotTaken."""
        raise NotImplementedError

    def _give_all(self, out: Path, run: str) -> bool:
        for part, path in self._parts(out):
            for entries, offset in self._waiting(path, self.sent.get(part, 0)):
                if not self.send(entries, run, Place(part, offset)):
                    return False
                self.sent[part] = offset
        return True

    def _waiting(self, path: Path, offset: int) -> Iterator[tuple[list[Entry], int]]:
        """What stands in a file behind an offset, in batches, and where each ends. What a killed process has left of a
        line is passed over."""
        with path.open("rb") as file:
            file.seek(offset)
            entries, size = list[Entry](), 0
            while (line := file.readline()).endswith(b"\n"):
                offset += len(line)
                size += len(line)
                entries.append(_entry(line))
                if len(entries) >= self.batch or size >= MOST_BYTES:
                    yield entries, offset
                    entries, size = [], 0
            if entries:
                yield entries, offset

    def _parts(self, out: Path) -> list[tuple[str, Path]]:
        """The parts that are there, by name, in the order in which they were begun (as far as the clock is right)."""
        found = []
        for path in (out / self.name).glob(f"*.{LINES}*"):
            name = path.name.removesuffix(OPEN).removesuffix(SHORT)
            if name.endswith(f".{LINES}"):
                part = name.removesuffix(f".{LINES}")
                _, started, serial = part.rsplit("-", 2)
                found.append(((started, int(serial)), part, path))
        return [(part, path) for _, part, path in sorted(found)]

    # -- what is kept beside the files

    def state(self) -> dict[str, Any]:
        """What is to be kept."""
        return {"sent": dict(self.sent), "low": dict(self.low)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take in what was kept. Raises KeyError, ValueError or the like where it is something else."""
        self.sent, self.low = _places(state["sent"]), _places(state["low"])

    def _restore(self, out: Path) -> None:
        self._state = {}
        try:
            self.restore(json.loads(_state_file(out, self.name).read_text(encoding="utf-8")))
        except FileNotFoundError:
            pass
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self.sent, self.low = {}, {}
            logger.warning("%s is damaged (%s): items are given once more.", _state_file(out, self.name), error)

    def _save(self, out: Path) -> None:
        """Not synced: an older state only gives something again."""
        if (state := self.state()) != self._state:
            path = _state_file(out, self.name)
            beside = path.with_name(f"{path.name}.new")
            beside.write_text(json.dumps(state), encoding="utf-8")
            os.replace(beside, path)
            self._state = state

    def _drop(self, out: Path) -> None:
        """Delete sealed parts of which the receiver has all for good, and forget places in parts that are gone."""
        if len(self.low) < 2 and len(self.sent) < 2:
            return
        there = dict(self._parts(out))
        for part, path in list(there.items()):
            if path.suffix == f".{LINES}" and self.low.get(part) == path.stat().st_size:
                with suppress(FileNotFoundError):
                    path.with_name(f"{part}.{INDEX}").unlink()
                path.unlink()
                del there[part]
        for places in (self.sent, self.low):
            for part in places.keys() - there.keys():
                del places[part]


def _name(page: Page) -> str:
    """The first part of an item's identity: of a page that is done, its name. What an attempt has left whose callback
    asks for its page once more counts beside that, and what an errback has yielded must not stand for what the page
    gives elsewhere."""
    return page.name if page.kind == "ok" else f"{page.name}.{page.kind}{page.attempt}"


def _entry(line: bytes) -> Entry:
    head, _, item = line.partition(BETWEEN)
    return Entry(json.loads(head[len(b'{"id":') :] + b'"'), item[:-2])


def _places(values: Any) -> Places:
    if not all(type(part) is str and type(offset) is int and offset >= 0 for part, offset in values.items()):
        raise ValueError("it holds no places")
    return dict(values)


def _state_file(out: Path, store: str) -> Path:
    return out / f"{store}.state"
