"""The two ends of a connection before there is one, or after: neither does anything."""

from __future__ import annotations

import asyncio
from typing import Any


class _NotConnected(asyncio.Transport):
    """Stands for a transport that is not there yet: it is closing, and nothing is sent, held or known."""

    def is_closing(self) -> bool:
        return True

    def abort(self) -> None:
        pass

    def write(self, data: Any) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


NOT_CONNECTED: asyncio.Transport = _NotConnected()
NOBODY = asyncio.Protocol()  # hears of what comes after a connection was lost
