"""When an agent publishes its profile (`profile`): every two seconds, and where counting takes long, seldomer."""

from __future__ import annotations

from collections.abc import Callable

from . import profile
from .crawl import Crawl

COUNTING = 50  # where counting takes long (it is linear in the hosts): how many times that long between profiles


class Publishing:
    """The profiles of one agent. `state` says what it is doing."""

    def __init__(self, crawl: Crawl, state: Callable[[], str], clock: Callable[[], float]) -> None:
        self._crawl, self._state, self._clock = crawl, state, clock
        self._next_at = 0.0

    def profile(self) -> str | None:
        """The profile, None when it is too soon for another one."""
        now = self._clock()
        if now < self._next_at:
            return None
        text = profile.text(self._crawl.fixed, self._crawl.agent, self._state(), self._crawl.counters())
        took = self._clock() - now
        self._next_at = now + max(profile.PUBLISH, took * COUNTING)
        return text

    def renew(self) -> None:
        """Let the next one be due now."""
        self._next_at = 0.0

    @property
    def is_new(self) -> bool:
        """Whether one was made since `renew`."""
        return self._next_at > 0.0
