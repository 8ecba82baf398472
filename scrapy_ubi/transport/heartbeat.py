"""How an agent beats: from a thread (`Heartbeat`), or, without a network, from timers of its event loop (`LoopBeats`).

The beating thread: an agent's heart goes on while its event loop is busy.

A spider's callback may hold the event loop for seconds; beats sent from the loop would stop, and the others would take
the agent for dead. So beats come from a small daemon thread. There is no protocol in it: the text of a beat is prepared
by the loop, and what is read goes back to the loop. It has a connection of its own, and a synchronous one, because the
asyncio pool belongs to the loop: the thread could use it only when the loop turns, which it must not wait for. It still
needs the interpreter: C code that never lets go of it (a long regular expression) silences it too, and the lease
answers that.

Rules:
* The schedule is start + k * interval; beats missed are not made up for. `beat_now` beats out of turn, at most 20 times
  an interval, and never before the next turn after a failure: a server that is away is asked once an interval.
* After a silence it looks first: somebody else may have taken the identifier over meanwhile, and a line in the place of
  that one's would take it back. What is found instead of an own line is handed over as read, and looked at again: who
  lives writes the next one. Where none follows, the line is written over: it was in the file that the server has
  come back from, maybe.
* A server that is away is told of once: by the mail, which says what follows. Where mail goes on, or has not noticed
  after `QUIETLY` beats, the thread tells it.
* The thread ends when told, or when its event loop is closed. Nothing that happens to the server ends it.
* Beats of the loop come at the same turns (`next_turn`), and out of turn when asked for. Unlike those of the thread
  they follow a loop with a clock of its own, and a callback that blocks the loop silences all agents of the process
  alike.
* There the next turn is set before a beat is tried: a callback that raises must not end the beats.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scrapy_ubi.transport.contract import TransportDown, TransportError, always

logger = logging.getLogger(__name__)

READS = 64  # reads that wait for a busy loop: a minute of beats, after which the agent counts as stalled anyway
SOONER = 20  # out-of-turn beats an interval, at most
SILENCE = 2.5  # intervals without a word with the server, after which a beat begins with a look
QUIETLY = 5  # beats in a row that may fail without a word, while the server is away
PATIENCE = 2.5  # intervals for which another's line is looked at, to see whether a next one follows

Read = tuple[float, float, dict[str, str]]  # sent, received, beats


class Looks:
    """Whether the own line is looked at before it is written, as there was a silence. Times are of one clock (s)."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._contact = math.inf  # when the server last answered
        self._end = -math.inf

    def are_due(self, now: float) -> bool:
        """Whether to look before a beat."""
        if now - self._contact > SILENCE * self._interval:
            self._end = now + PATIENCE * self._interval
        return now < self._end

    def found(self, now: float) -> None:
        """Another line was there."""
        self._contact = now

    def wrote(self, now: float) -> None:
        """A beat was written."""
        self._contact, self._end = now, -math.inf


class BeatConnection(Protocol):
    """The thread's own connection. Both methods may block, for a bounded time, and raise TransportError."""

    def beat(self, line: str) -> dict[str, str]:
        """Write the line and read all beats, in one round trip."""

    def write(self, line: str) -> None:
        """Write the line only."""

    def look(self) -> dict[str, str] | None:
        """All beats where another process's line is in the place of the own one; else None."""

    def close(self) -> None:
        """Disconnect."""


def next_turn(start: float, interval: float, now: float) -> float:
    """The first time after `now` on the schedule start, start + interval, start + 2 * interval, ...

    What is next within a millionth of the interval is now: event loops fire timers a little early.
    """
    return start + (math.floor((now - start) / interval + 1e-6) + 1) * interval


class BeatCallbacks(NamedTuple):
    """What the agent gives its heart: see the contract's `start_beating`. `line` gives the next line; `mail_is_away`:
    whether the last exchange of mail has failed as beats do."""

    line: Callable[[], str]
    on_ack: Callable[[float], None]
    on_read: Callable[[float, float, dict[str, str]], None]
    clock: Callable[[], float]
    stalled: Callable[[], bool]
    apart: Callable[[], float] = always
    mail_is_away: Callable[[], bool] = lambda: False


class Heartbeat:
    """One beating thread, from `start` to `stop`. `counts` is the thread's own."""

    def __init__(self, link: BeatConnection, interval: float, agent: BeatCallbacks, counts: Counter[str]) -> None:
        if not interval > 0:
            raise ValueError("the interval of beats must be more than 0 s")
        self._link = link
        self._interval = interval
        self._counts = counts
        self._line, self._on_ack, self._on_read, self._clock, self._stalled, self._apart, self._mail_is_away = agent
        self._looks = Looks(interval)  # the thread's own
        self._last_read = -math.inf  # when the last read was begun, s of the clock; the thread's own
        self._turn = threading.Condition()  # guards the four below
        self._stopping = False
        self._soon = False
        self._due = self._earliest = 0.0  # seconds of time.monotonic()
        self._last_line: str | None = None
        self._failures, self._said = 0, False  # in a row, and whether the log says so; the thread's own
        self._reads: deque[Read] = deque(maxlen=READS)  # appended by the thread, taken by the loop
        self._open = True  # reads are still handed over; the loop's own
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="ubi-heartbeat", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Beat at once, and go on."""
        self._thread.start()

    def soon(self) -> None:
        """Beat out of turn. From any thread."""
        with self._turn:
            self._soon = True
            self._turn.notify()

    async def stop(self, last_line: str | None, limit: float) -> None:
        """End the thread, after it has written `last_line`. Waits `limit` seconds at most: a server may hang."""
        self._open = False
        with self._turn:
            self._stopping = True
            self._last_line = last_line
            self._turn.notify()
        try:
            async with asyncio.timeout(limit):
                await self._ended.wait()
        except TimeoutError:
            logger.warning("Redis hangs: the last beat of this agent may not have been written")

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        start = time.monotonic()
        self._due = self._earliest = start
        try:
            while self._wait():
                well = self._attempt()
                now = time.monotonic()
                with self._turn:
                    self._due = next_turn(start, self._interval, now)
                    self._earliest = now + self._interval / SOONER if well else self._due
            self._write_last()
        finally:
            self._link.close()
            self._call(self._ended.set)

    def _wait(self) -> bool:
        """Until it is time for a beat (True), or to stop (False)."""
        with self._turn:
            while not self._stopping:
                now = time.monotonic()
                at = min(self._due, max(self._earliest, now)) if self._soon else self._due
                if at <= now:
                    self._soon = False
                    return True
                self._turn.wait(at - now)
            return False

    def _attempt(self) -> bool:
        """One beat. Return whether it succeeded, or was not to be sent."""
        try:
            if self._stalled():
                self._counts["beats_stalled"] += 1
                return True
            line = self._line()
            sent = self._clock()
            if self._looks.are_due(sent) and (found := self._link.look()) is not None:
                self._looks.found(self._clock())
                self._hand_over((sent, self._clock(), found))
                return True
            beats = self._exchange(line, sent)
            received = self._clock()
            self._looks.wrote(received)
            self._on_ack(sent)
        except TransportError as error:
            text = f"{error} Beats are tried again every {self._interval:g} s."
            self._failed(text, quietly=isinstance(error, TransportDown))
            return False
        except Exception:  # noqa: BLE001 - a bug in a callback must be seen, and must not end the heart unnoticed
            self._failed("a beat failed by a mistake in this program", trace=True)
            return False
        if self._said:
            logger.info("Redis is back: beats are written again")
        self._failures = 0
        self._said = False
        if beats is not None:
            self._hand_over((sent, received, beats))
        return True

    def _exchange(self, line: str, sent: float) -> dict[str, str] | None:
        """Write the line; all beats, or None where it is too early to read them again."""
        if sent - self._last_read < self._apart() - self._interval / 2:
            self._link.write(line)
            return None
        beats = self._link.beat(line)
        self._last_read = sent
        return beats

    def _failed(self, text: str, trace: bool = False, quietly: bool = False) -> None:
        """Count each failure, tell one of a row."""
        self._counts["beats_failed"] += 1
        self._failures += 1
        if self._said or (quietly and (self._failures <= QUIETLY or self._mail_is_away())):
            return
        self._said = True
        logger.warning(text, exc_info=trace)

    def _write_last(self) -> None:
        if self._last_line is None:
            return
        try:
            self._link.write(self._last_line)
        except TransportError as error:
            logger.warning("the last beat could not be written: %s", error)

    def _hand_over(self, read: Read) -> None:
        if len(self._reads) == READS:
            self._counts["reads_dropped"] += 1
        self._reads.append(read)
        self._call(self._take)

    def _call(self, callback: Callable[[], object]) -> None:
        """Into the event loop; when that is closed there is no agent to beat for."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            with self._turn:
                self._stopping = True
                self._last_line = None

    # -- in the event loop -------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Hand on the oldest read. Called once for each read; of those dropped the call finds nothing."""
        if self._open and self._reads:
            self._on_read(*self._reads.popleft())


@dataclass(slots=True)
class LoopBeats:
    """The beats of one agent, from `begin` to `stop`. `write` writes a line to where everybody's are, False when that
    cannot be done; `read` reads all; `look` does so where the own line is not the one last written, else it gives None;
    `numbers` count the beats, `counts` what went wrong. The rest is what the contract's `start_beating` is given.
    """

    interval: float
    line: Callable[[int], str]
    on_ack: Callable[[float], None]
    on_read: Callable[[float, float, dict[str, str]], None]
    clock: Callable[[], float]
    stalled: Callable[[], bool]
    apart: Callable[[], float]
    write: Callable[[str], bool]
    read: Callable[[], dict[str, str]]
    look: Callable[[], dict[str, str] | None]
    numbers: Iterator[int]
    counts: Counter[str]
    _start: float = 0.0
    _earliest: float = 0.0
    _last_read: float = -math.inf
    _soon: bool = False  # asked for since the last turn
    _timer: asyncio.Handle | None = None
    _open: bool = True
    _looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        self._looks = Looks(self.interval)

    def begin(self) -> None:
        """Beat as soon as the running loop turns, and go on."""
        loop = asyncio.get_running_loop()
        self._start = self._earliest = loop.time()
        self._set(loop.call_soon(self._turn))

    def soon(self) -> None:
        """Beat out of turn."""
        if not self._soon:
            loop = asyncio.get_running_loop()
            self._soon = True
            self._set(loop.call_at(max(loop.time(), self._earliest), self._turn))

    def stop(self) -> None:
        """No beat more, and nothing more is read."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, timer: asyncio.Handle) -> None:
        """This timer instead of the one before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer

    def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        due = next_turn(self._start, self.interval, now)
        self._set(loop.call_at(due, self._turn))
        self._soon, self._earliest = False, min(due, now + self.interval / SOONER)
        if not self._attempt():
            self._earliest = due

    def _attempt(self) -> bool:
        if self.stalled():
            self.counts["beats_stalled"] += 1
            return True
        line, sent = self.line(next(self.numbers)), self.clock()
        if self._looks.are_due(sent) and (found := self.look()) is not None:
            self._looks.found(sent)
            asyncio.get_running_loop().call_soon(self._deliver, sent, sent, found)
            return True
        if not self.write(line):
            self.counts["beats_failed"] += 1
            return False
        self._looks.wrote(sent)
        self.on_ack(sent)
        if sent - self._last_read < self.apart() - self.interval / 2:
            return True
        self._last_read = sent
        beats, received = self.read(), self.clock()
        asyncio.get_running_loop().call_soon(self._deliver, sent, received, beats)
        return True

    def _deliver(self, sent: float, received: float, beats: dict[str, str]) -> None:
        if self._open:
            self.on_read(sent, received, beats)
