"""What waits in an agent's inbox, and what it set aside, made readable.

A letter is judged by the same `protocol.wire.decode` as its receiver uses, with bounds wide enough for any setting:
one that does not hold is shown as `unreadable`, with the reason and its first characters. (What only the receiver can
judge, such as a callback that its spider lacks, is not seen here.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.bundle import opened
from scrapy_ubi.protocol.received import Delta
from scrapy_ubi.protocol.wire import decode
from scrapy_ubi.transport.packed_letters import unpacked
from scrapy_ubi.transport.redis_keys import RedisKeys

MAX_BODY = 16_000_000  # bytes of a body that is parsed to be shown
MAX_RECORDS = 1_000_000
MAX_URL = 65_536  # characters
HEAD = 256  # characters shown of what cannot be read


@dataclass(frozen=True, slots=True)
class InboxLetter:
    """A letter in an inbox; several may have come in one entry, and share its id. `time` is unix seconds (Redis's
    clock); `trouble` says why it is unreadable, '' if it is not.

    `size` is bytes; `records` counts what the deltas hold.
    """

    id: str
    time: float
    sender: str
    lane: str
    seq: str
    view: str
    size: int
    deltas: tuple[Delta, ...] = ()
    trouble: str = ""
    head: str = ""

    @property
    def records(self) -> int:
        """Discovered URLs, done marks, redos, notes and offers together."""
        return sum(self.hosts.values())

    @property
    def hosts(self) -> dict[str, int]:
        """Records by host, in the order of the letter."""
        found: dict[str, int] = {}
        for delta in self.deltas:
            count = len(delta.discovered) + len(delta.done) + len(delta.redo)
            single = (delta.offer is not None) + (delta.notes is not None)
            found[delta.host] = found.get(delta.host, 0) + count + single
        return found


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One entry of a dead-letter stream: what was refused, from whom, why, and how it began."""

    id: str
    time: float
    reason: str
    sender: str
    size: int
    """Bytes; 0 where its entry does not say so."""
    head: str


@dataclass(frozen=True, slots=True)
class Box:
    """Some letters of a stream, and how many there are in all."""

    total: int
    letters: tuple[InboxLetter, ...] = ()
    dead: tuple[DeadLetter, ...] = ()


def read_inbox(client: redis.Redis, keys: RedisKeys, agent: str, limit: int) -> Box:
    """The `limit` oldest letters that wait for `agent`; in all, entries that were not read count as one letter each.
    Raises redis.RedisError."""
    total, rows = _read(client, keys.inbox(agent), limit, newest=False)
    whole = [(key, unpacked(entry, MAX_BODY) or entry) for key, entry in rows]
    letters = tuple(read_letter(agent, key, fields) for key, entry in whole for fields in opened(entry))
    return Box(max(total - len(rows), 0) + len(letters), letters=letters[:limit])


def read_dead(client: redis.Redis, keys: RedisKeys, agent: str, limit: int) -> Box:
    """The `limit` newest dead letters of `agent`, newest first. Raises redis.RedisError."""
    total, rows = _read(client, keys.dead(agent), limit, newest=True)
    return Box(total, dead=tuple(_dead_letter(key, fields) for key, fields in rows))


def _read(
    client: redis.Redis, key: str, limit: int, newest: bool
) -> tuple[int, list[tuple[bytes, Mapping[bytes, bytes]]]]:
    try:
        total = client.xlen(key)
        rows: Any = client.xrevrange(key, count=limit) if newest else client.xrange(key, count=limit)
    except redis.ResponseError as trouble:
        if "WRONGTYPE" not in str(trouble):
            raise
        raise redis.ResponseError(f"WRONGTYPE {key}") from trouble  # an empty list would say that no mail waits
    return total, rows


def read_letter(receiver: str, key: bytes, fields: Mapping[bytes, bytes]) -> InboxLetter:
    """A letter as people see it; never raises."""
    body = fields.get(b"body", b"")
    deltas: tuple[Delta, ...] = ()
    trouble = ""
    try:
        if len(body) > MAX_BODY:
            raise Malformed(f"a body of {len(body)} bytes")
        texts = {name.decode(): value.decode() for name, value in fields.items()}
        deltas = decode(texts, receiver, MAX_RECORDS, MAX_URL).deltas
    except UnicodeDecodeError:
        trouble = "not UTF-8"
    except Malformed as malformed:
        trouble = plain(str(malformed), 120)
    return InboxLetter(
        id=plain(key, 40),
        time=_time(key),
        sender=plain(fields.get(b"from", b""), 64),
        lane=plain(fields.get(b"lane", b""), 16),
        seq=plain(fields.get(b"seq", b""), 20),
        view=plain(fields.get(b"view", b""), 16),
        size=sum(len(name) + len(value) for name, value in fields.items()),
        deltas=deltas,
        trouble=trouble,
        head=plain(body or next(iter(fields.values()), b""), HEAD) if trouble else "",
    )


def _dead_letter(key: bytes, fields: Mapping[bytes, bytes]) -> DeadLetter:
    return DeadLetter(
        id=plain(key, 40),
        time=_time(key),
        reason=plain(fields.get(b"reason", b""), HEAD),
        sender=plain(fields.get(b"from", b""), 64),
        size=int(size) if (size := fields.get(b"size", b"")).isdigit() and len(size) < 16 else 0,
        head=plain(fields.get(b"head", b""), HEAD),
    )


def _time(key: bytes) -> float:
    """Unix seconds of a stream id, whose first part is milliseconds."""
    millis = key.split(b"-")[0]
    return int(millis) / 1000 if millis.isdigit() and len(millis) < 20 else 0.0
