"""Where agents answer by HTTP: /metrics for Prometheus, /live and /ready for probes.

Rules of this module:

* It reads, and changes nothing: GET and HEAD only, and no answer depends on what is sent, but for its path.
* An answer is made in the agent's loop, and at most once in `FRESH` seconds, however many ask.
* A port that is taken is no reason not to crawl: the next free one of `MOST_PORTS` is, and the log and the agent's
  profile say which. So the agents of one machine share a setting.
"""

from __future__ import annotations

import errno
import logging
import platform
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web

from scrapy_ubi.agent.metrics.exposition import CONTENT_TYPE
from scrapy_ubi.agent.metrics.server_log import ServerLog
from scrapy_ubi.errors import UbiSettingError

logger = logging.getLogger("scrapy_ubi")

FRESH = 1.0  # s for which an answer is given again
MOST_PORTS = 100
WAIT = 1.0  # s that requests under way have at the end
TAKEN = (errno.EADDRINUSE, errno.EACCES)
ANY = ("0.0.0.0", "::")


class EndpointPages(NamedTuple):
    """What is told: the metrics; why it is not alive, and why not ready, each empty when it is."""

    metrics: Callable[[], str]
    not_alive: Callable[[], str]
    not_ready: Callable[[], str]


class Endpoint:
    """EndpointPages at one address, from `open` to `close`. `address`: host and port by which others reach it."""

    def __init__(self, listen: str, answers: EndpointPages, clock: Callable[[], float] = time.monotonic) -> None:
        host, _, port = listen.rpartition(":")
        self._host = host.strip("[]")
        self._port = int(port)
        self._answers = answers
        self._clock = clock
        self._text = ""
        self._made_at = -FRESH
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def listen(self) -> None:
        """Listen. Raises UbiSettingError where that cannot be."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/live", self._live)
        app.router.add_get("/ready", self._ready)
        bound = self._bind()
        log = ServerLog(logger)
        self._runner = web.AppRunner(app, access_log=None, logger=log, handle_signals=False, shutdown_timeout=WAIT)
        await self._runner.setup()
        await web.SockSite(self._runner, bound).start()
        port = bound.getsockname()[1]
        host = platform.node() if self._host in ANY else self._host
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        logger.info("Prometheus is answered at http://%s/metrics (UBI_METRICS).", self.address)

    async def close(self) -> None:
        """Stop answering."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _bind(self) -> socket.socket:
        """A socket at this address, or at the next port that is free."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        last = min(self._port + MOST_PORTS, 65_536) if self._port else 1
        error: OSError | None = None
        for port in range(self._port, last):
            bound = socket.socket(family, socket.SOCK_STREAM)
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind((self._host, port))
                bound.listen()
            except OSError as failed:
                bound.close()
                error = failed
                if failed.errno not in TAKEN:
                    break
            else:
                bound.setblocking(False)
                return bound
        assert error is not None
        raise UbiSettingError(
            "UBI_METRICS",
            f"is {self._host}:{self._port}, where this process cannot listen ({error.strerror or error})",
            "name an address of this machine and a free port",
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        now = self._clock()
        if now - self._made_at >= FRESH:
            self._text, self._made_at = self._answers.metrics(), now
        return web.Response(body=self._text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _live(self, request: web.Request) -> web.Response:
        return probe(self._answers.not_alive())

    async def _ready(self, request: web.Request) -> web.Response:
        return probe(self._answers.not_ready())


def probe(why_not: str) -> web.Response:
    """200, or 503 and why not, as one sentence."""
    text = f"Not now: {why_not}.\n" if why_not else "ok\n"
    return web.Response(text=text, status=503 if why_not else 200, headers={"Cache-Control": "no-store"})
