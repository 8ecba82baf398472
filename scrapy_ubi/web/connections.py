"""Connections of viewers: which have ended, and an end for those that are half open."""

from __future__ import annotations

import socket

from aiohttp import web

HALF_OPEN = 30.0  # s after which a peer that acknowledges nothing counts as gone
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux


def has_left(request: web.Request) -> bool:
    """Whether its connection has ended: closed by the peer, reset, or given up."""
    return request.transport is None or request.transport.is_closing()


def end_half_open(request: web.Request) -> None:
    """Let the system end this connection when what is written to it is not acknowledged for `HALF_OPEN`: its machine
    was switched off, or its network is gone. Without, that takes the system a quarter of an hour."""
    connected = request.get_extra_info("socket")
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6) and _USER_TIMEOUT is not None:
        connected.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, int(1000 * HALF_OPEN))
