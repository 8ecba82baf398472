"""What a part of the agent has the I/O thread do now and then: one errand at a time.

Rules of this module: what Redis has not done is over, and is tried again when that part looks the next time. Any other
error is a fault of this program, and is raised in the agent's loop, which logs it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.transport import TransportError

T = TypeVar("T")


class Errand(Generic[T]):
    """The errands of one part; `done` is called with what came of each, in the agent's loop."""

    def __init__(self, io: IoThread, done: Callable[[T], object] = lambda found: None) -> None:
        self._io = io
        self._done = done
        self._under_way: Future[T] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether one has not ended: no other one may be sent."""
        return self._under_way is not None

    def send(self, coroutine: Coroutine[Any, Any, T]) -> None:
        """Have this done."""
        self._under_way = self._io.send(coroutine, self._arrived)

    def _arrived(self) -> None:
        under_way, self._under_way = self._under_way, None
        assert under_way is not None
        if not isinstance(under_way.exception(), TransportError):
            self._done(under_way.result())
