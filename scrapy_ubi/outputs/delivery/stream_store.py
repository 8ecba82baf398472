"""The store `stream`: items into a bounded stream of Redis, for those who read along.

Rules of this module:

* The stream holds at most about `length` entries and `memory` bytes. Where it is full, the oldest that all consumer
  groups have acknowledged are taken out; where there are none, the agent waits.
* What no group has acknowledged is kept in this store's files, and is given again where Redis has lost its data.
* Redis is asked in the writer's thread, by a connection of its own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from scrapy.settings import BaseSettings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore, Entry, NotTaken, Place, logger
from scrapy_ubi.outputs.stores import number
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.credentials import named_credentials
from scrapy_ubi.transport.faults import FAULTS, explain
from scrapy_ubi.transport.item_stream import Id, ItemStream, read_id

LENGTH, MEMORY = 10_000, 64e6
TIMEOUT = 5.0  # s for Redis to answer
EVERY = 1.0  # s between two looks at what the groups have read
ROOM = 10  # a tenth of the stream is made free at once


class StreamStore(DeliveringStore):
    """`stream(length=10000, memory=6.4e7)`: entries, and about how many bytes of them, that wait in Redis."""

    name: ClassVar[str] = "stream"

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self.length = int(max(1.0, number(arguments, "length", LENGTH)))
        self.memory = number(arguments, "memory", MEMORY)
        super().__init__(arguments, settings)
        self.batch = max(1, min(self.batch, self.length // ROOM))
        self._token = ""
        self._last: Id = (0, 0)  # the highest id that Redis has given here
        self._given: deque[tuple[Id, Place]] = deque()  # what not every group has acknowledged
        self._there = 0  # entries in the stream, as far as is known
        self._average = 0.0  # bytes of an item
        self._look_at = 0.0

    def connect(self, settings: UbiSettings) -> None:
        """Make a client; nothing is asked yet. Raises UbiSettingError."""
        if settings.redis_url is None:
            raise UbiSettingError("UBI_STORES", "names 'stream', and UBI_REDIS_URL is not set", "name the Redis")
        self._at = address(settings.redis_url, named_credentials(settings.redis_credentials))
        self._stream = ItemStream(client_of(self._at, TIMEOUT), settings.crawl)

    def begin(self) -> None:
        """Also what Redis has is not known."""
        super().begin()
        self._token, self._last = "", (0, 0)
        self._given.clear()

    def close(self) -> None:
        """Close the connection to Redis."""
        self._stream.client.close()

    @property
    def due(self) -> bool:
        """Whether Redis should be looked at, as it has something that may still be lost."""
        return super().due or (bool(self._given) and time.monotonic() >= self._look_at)

    def state(self) -> dict[str, Any]:
        """Places, the token of Redis's data, and the highest id there."""
        return {**super().state(), "token": self._token, "last": list(self._last)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """What was given by the process before counts as one."""
        super().restore(state)
        self._token, (first, second) = str(state["token"]), state["last"]
        self._last = (int(first), int(second))
        self._given.extend((self._last, Place(part, offset)) for part, offset in self.sent.items())

    def look(self) -> None:
        """See whether Redis still has what it was given, and what of it was acknowledged."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + EVERY
        if not self._given and self._there < self.length:
            return
        try:
            self._know(self._stream.append((), "").token)
            if self._given and self._stream.last_id() < self._last:
                self._lost()
            groups = self._stream.groups()
        except FAULTS as error:
            raise self._away(error) from error
        self._acknowledged(min((group.needs for group in groups), default=(0, 0)))

    def send(self, entries: Sequence[Entry], run: str, after: Place) -> bool:
        """Append a batch; False where Redis had lost what was there before."""
        self._average += (sum(len(entry.item) for entry in entries) / len(entries) - self._average) / 4
        try:
            if self._is_full(len(entries)):
                self._make_room(len(entries))
            added = self._stream.append(((entry.id, entry.item) for entry in entries), run)
        except FAULTS as error:
            raise self._away(error) from error
        self._there = added.length
        if self._know(added.token):
            return False
        self._last = read_id(added.last)
        self._given.append((self._last, after))
        return True

    # -- what Redis has

    def _know(self, token: str) -> bool:
        """Whether Redis has lost what it had: then all that was not acknowledged is to be given again."""
        lost = self._token not in ("", token)
        self._token = token
        if lost:
            self._lost()
        return lost

    def _lost(self) -> None:
        logger.warning(
            "Redis has lost the stream of items: those that its readers have not acknowledged are given again."
        )
        self.sent, self._last = dict(self.low), (0, 0)
        self._given.clear()

    def _acknowledged(self, before: Id) -> None:
        """All groups have what stands before this id."""
        while self._given and self._given[0][0] < before:
            _, place = self._given.popleft()
            self.low[place.part] = max(place.offset, self.low.get(place.part, 0))

    def _is_full(self, more: int) -> bool:
        entries = self._there + more
        return entries > self.length or entries * self._average > self.memory > more * self._average

    def _make_room(self, more: int) -> None:
        """Take out what all groups have. Raises NotTaken where the stream is full of what one of them has not."""
        self._there = self._stream.append((), "").length
        if not self._is_full(more):
            return
        groups = self._stream.groups()
        if groups:
            most = int(min(self.length, self.memory / max(1.0, self._average)))
            slowest = min(groups, key=lambda group: group.needs)
            self._acknowledged(slowest.needs)
            wanted = self._there + more - (most - most // ROOM)
            self._there -= self._stream.take_out(max(more, wanted), slowest.needs)
            if not self._is_full(more):
                return
        whose = f"the group {slowest.name!r} has not acknowledged them" if groups else "no consumer group reads it"
        raise NotTaken(
            f"The stream of items {self._stream.keys.items} is full ({self._there:,} entries): {whose}. Read it "
            "(scrapy ubi items --follow, XREADGROUP), or destroy the group (XGROUP DESTROY)."
        )

    def _away(self, error: Exception) -> NotTaken:
        self._look_at = 0.0
        return NotTaken(f"The stream of items takes none. {explain(error, self._at, TIMEOUT)}")
