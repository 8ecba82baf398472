"""What an HTTP server of an agent logs of its clients: one line a minute about those that send what is no HTTP.

Anybody who reaches the port can send that: a scanner, a TLS client, a proxy that is set wrongly. It is their fault, and
is answered with 400; a traceback for each would fill the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import MutableMapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

EVERY = 60.0  # s between two lines
MOST_SAID = 120  # characters of what was wrong
MALFORMED = (HttpProcessingError, web.RequestPayloadError)


class ServerLog(logging.LoggerAdapter[logging.Logger]):
    """The logger that aiohttp is given: what it says goes to `logger`, but for malformed requests. They are counted."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger, None)
        self._said_at = float("-inf")
        self._unsaid = 0

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Change nothing."""
        return msg, kwargs

    def debug(self, msg: object, *args: object, **kwargs: Any) -> None:
        """As a logger; see `malformed`."""
        if not self.malformed(kwargs.get("exc_info")):
            super().debug(msg, *args, **kwargs)

    def exception(self, msg: object, *args: object, exc_info: Any = True, **kwargs: Any) -> None:
        """As a logger; see `malformed`."""
        if not self.malformed(exc_info):
            super().exception(msg, *args, exc_info=exc_info, **kwargs)

    def malformed(self, error: object) -> bool:
        """Whether that is the doing of a client, and no fault of ours: a request that is none is counted, and said once
        in `EVERY`; one that has left is nothing to say."""
        if isinstance(error, ConnectionError):  # the client has left while it was answered
            return True
        if not isinstance(error, MALFORMED):
            return False
        self._unsaid += 1
        now = time.monotonic()
        if now - self._said_at >= EVERY:
            more = f"; {self._unsaid} such since the last line" if self._unsaid > 1 else ""
            text = (str(error) or type(error).__name__).split("\n")[0][:MOST_SAID]
            self.logger.warning(
                "What a client has sent is no HTTP, and was refused: %r%s. More is counted for a minute.",
                text,
                more,
            )
            self._said_at = now
            self._unsaid = 0
        return True
