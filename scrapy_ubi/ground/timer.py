"""A call that the event loop makes later: at most one, which may be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timer:
    """Set for one call at a time."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether a call is to be made."""
        return self._handle is not None

    def set(self, seconds: float, call: Callable[[], object]) -> None:
        """Have this called after so many seconds, in place of what was to be called."""
        self.clear()
        self._handle = asyncio.get_running_loop().call_later(seconds, self._run, call)

    def clear(self) -> None:
        """Have nothing called."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run(self, call: Callable[[], object]) -> None:
        self._handle = None
        call()
