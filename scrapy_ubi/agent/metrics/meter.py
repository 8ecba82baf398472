"""What is measured only where somebody asks for it: how long loads, exchanges and flushes take, letters by lane, what
stores are given, how late the event loop is.

Rules of this module:

* It stands around parts of the agent (`carry`, `exchange`, `write`), which do not know it: without UBI_METRICS there is
  nothing to ask, and nothing to pay.
* What goes through it goes through unchanged, errors too.
* Each value is written by one thread, and read by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar

from scrapy_ubi.agent.metrics.exposition import Exposition, Histogram, label
from scrapy_ubi.protocol.bundle import opened
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown, TransportFull

LOADS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0)  # s
ROUND_TRIPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # s
LOOK = 0.25  # s between two looks at the loop
KEPT = 60.0  # s for which the longest lag is told: as long as any scrape interval
SLOTS = 12  # of that time
SENT, RECEIVED = "sent", "received"

P = ParamSpec("P")
R = TypeVar("R")
Exchange = Callable[[Outgoing], Coroutine[Any, Any, Incoming]]
Write = Callable[[], Coroutine[Any, Any, None]]


class Meter:
    """What one agent's process has measured so far. `redis_up`: the last exchange was answered."""

    def __init__(self) -> None:
        self.loads = Histogram(LOADS)
        self.exchanges = Histogram(ROUND_TRIPS)
        self.flushes = Histogram(ROUND_TRIPS)
        self.letters: Counter[tuple[str, str]] = Counter()  # (lane, direction); of no other lanes anything is told
        self.stored: Counter[str] = Counter()  # bytes, by store
        self.redis_up = True
        self.lag = Lag()

    # -- around parts of the agent

    def load(self, carry: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """`carry` makes one load."""
        observe, clock = self.loads.observe, time.monotonic

        async def carried(*args: P.args, **named: P.kwargs) -> R:
            begun = clock()
            try:
                return await carry(*args, **named)
            finally:
                observe(clock() - begun)

        return carried

    def exchange(self, exchange: Exchange) -> Exchange:
        """`exchange` makes one round trip to Redis; it runs in the I/O thread."""

        async def exchanged(out: Outgoing) -> Incoming:
            begun = time.monotonic()
            try:
                incoming = await exchange(out)
            except TransportDown:
                self.redis_up = False
                raise
            except TransportFull:
                self.redis_up = True
                raise
            finally:
                self.exchanges.observe(time.monotonic() - begun)
            self.redis_up = True
            self._count_letters(out, incoming)
            return incoming

        return exchanged

    def flush(self, write: Write, due: Callable[[], bool]) -> Write:
        """`write` writes what is `due` to the agent's disk."""

        async def written() -> None:
            if not due():
                return await write()
            begun = time.monotonic()
            try:
                return await write()
            finally:
                self.flushes.observe(time.monotonic() - begun)

        return written

    def store(self, name: str, write: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """`write(payload, part)` appends to the part of this store, in the writer's thread."""

        def written(payload: Any, part: Any) -> None:
            before = part.size
            write(payload, part)
            self.stored[name] += part.size - before

        return written

    def _count_letters(self, out: Outgoing, incoming: Incoming) -> None:
        for _, fields in out.letters:
            for lane in _lanes(fields):
                self.letters[lane, SENT] += 1
        for _, raw in incoming.letters:
            for letter in opened(raw):
                self.letters[letter.get(b"lane", b"").decode("ascii", "replace"), RECEIVED] += 1

    # -- for people

    def put(self, page: Exposition, own: str) -> None:
        """Everything of it; `own` are the agent's labels."""
        page.put_histogram("ubi_load_seconds", self.loads, own)
        page.put_histogram("ubi_exchange_seconds", self.exchanges, own)
        page.put_histogram("ubi_flush_seconds", self.flushes, own)
        page.put("ubi_loop_lag_seconds", round(self.lag.longest(), 6), own)
        page.put("ubi_redis_up", int(self.redis_up), own)
        for lane in (DISCOVERY, STATE):
            for direction in (SENT, RECEIVED):
                count = self.letters[lane, direction]
                page.put("ubi_letters_total", count, f'{own},lane="{lane}",direction="{direction}"')
        for store, size in list(self.stored.items()):
            page.put("ubi_store_bytes_total", size, f'{own},store="{label(store)}"')


def _lanes(fields: Mapping[str, str]) -> list[str]:
    """The kind of lane of each letter in one entry, which `protocol.bundle` has made: a field of a further letter ends
    with its number, and says only what differs from the first one."""
    further = {name[-2:] for name in fields if name[-2:-1] == "."}
    return [fields["lane"], *(fields.get(f"lane{number}", fields["lane"]) for number in further)]


class Lag:
    """How late the event loop was. `look` runs in it, until it is cancelled: `looks` so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.looks = 0  # so far
        self._slots: deque[tuple[float, float]] = deque(maxlen=SLOTS + 1)  # begun (s), the longest lag (s)

    async def look(self) -> None:
        """Look without end."""
        while True:
            due = self._clock() + LOOK
            await asyncio.sleep(LOOK)
            self.late(max(0.0, self._clock() - due))
            self.looks += 1

    def late(self, seconds: float) -> None:
        """The loop was so late just now."""
        now = self._clock()
        if not self._slots or now - self._slots[-1][0] >= KEPT / SLOTS:
            self._slots.append((now, seconds))
        elif seconds > self._slots[-1][1]:
            self._slots[-1] = (self._slots[-1][0], seconds)

    def longest(self) -> float:
        """The longest lag of the last minute."""
        now = self._clock()
        return max((lag for begun, lag in self._slots if now - begun < KEPT + KEPT / SLOTS), default=0.0)
