"""What a server says of itself to a new connection: who it is, and whether it throws keys away."""

from __future__ import annotations

import re
from typing import Any

from redis import exceptions as lib

_NAMES = re.compile(rb"^(?:run_id|master_replid):(\w+)", re.MULTILINE)
_BOUND = re.compile(rb"^maxmemory:0*[1-9]", re.MULTILINE)
_EVICTS = re.compile(rb"^maxmemory_policy:(allkeys-[a-z]{1,20})\s*$", re.MULTILINE)


def informed(connection: Any) -> list[bytes]:
    """What a server says of itself, its replication and its memory; b"" for what it does not tell (INFO is not allowed
    to everybody)."""
    sections = ("server", "replication", "memory")
    connection.send_packed_command(connection.pack_commands([("INFO", section) for section in sections]))
    return [_answer(connection) for _ in sections]


def server_name(said: list[bytes]) -> bytes:
    """What names the server and what it holds: another text after a new start, or when a replica took over; b"" where
    it does not tell."""
    found = [_NAMES.search(text) for text in said]
    return b" ".join(one[1] for one in found if one is not None) if None not in found else b""


def run_id(said: object) -> str:
    """What names one process of a server, by its INFO; "" where it does not tell."""
    found = _NAMES.search(said) if isinstance(said, bytes) else None
    return found[1].decode() if found is not None else ""


def evicts_by(memory: bytes) -> str:
    """The policy by which the server throws any key away when its memory is full; "" where it does not, or no memory
    is too much for it."""
    policy = _EVICTS.search(memory)
    return policy[1].decode("ascii") if policy is not None and _BOUND.search(memory) else ""


def _answer(connection: Any) -> bytes:
    """The text that is answered, b"" where there is none."""
    try:
        said = connection.read_response()
    except lib.ResponseError:
        return b""
    return said if isinstance(said, bytes) else b""
