"""Scrapy's handler on aiohttp, which a project without a Twisted reactor may have: it sends a request once.

aiohttp by itself sends a request again, immediately, when the connection has ended without an answer, kept or new:
below the delay of the host. Rules of this module:

* That is switched off (`_retry_connection`, a private name of aiohttp) at the first transfer of each handler.
* Where aiohttp would have sent it again, the right of the transfer is told so (`OneTransfer.broken`), once for each
  request: the gate sends it again when the delay has passed. A transfer without such a right is not repeated.
* Nothing here imports aiohttp before there is such a handler: a project may be without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from scrapy import Request
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response

from scrapy_ubi.adapter.scrapy_private import socket_gate

# What aiohttp sends again (`IDEMPOTENT_METHODS` of its client).
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


def sends_again(handler: object) -> bool:
    """Whether a download handler has a session of aiohttp that sends requests again."""
    return getattr(_session(handler), "_retry_connection", False) is True


def send_once(handler: object) -> None:
    """Let this handler send each request once."""
    session = _session(handler)
    session._retry_connection = False


def telling(download: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """`download`, which tells the right of its transfer when the request is to be sent again."""

    async def download_request_async(request: Request) -> Response:
        try:
            return await download(request)
        except DownloadFailedError as error:
            right = socket_gate.may_write.get()
            if isinstance(right, socket_gate.OneTransfer) and not right.repeats and request.method in REPEATABLE:
                right.broken = _is_cut_off(error.__cause__)
            raise

    return download_request_async


def _session(handler: object) -> Any:
    return getattr(handler, "_session", None)


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether aiohttp says that a connection has ended without an answer."""
    import aiohttp  # the handler has it

    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
