"""Beats from timers of the event loop, for transports without a network.

Rules of this module:

* They come at the turns that `heartbeat.next_turn` gives, and out of turn when asked for (`soon`), as from the thread
  in `heartbeat.py`. Unlike there a loop with a clock of its own drives them too, and a callback that blocks the loop
  silences all agents of the process alike.
* The next turn is set before a beat is tried: a callback that raises must not end the beats.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from scrapy_ubi.transport.heartbeat import SOONER, Looks, next_turn


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
