"""How the requests of pages whose outputs another agent has leave the queues, when their rows there are thrown away
(`elsewhere`).

Rules of this module:

* It runs in the thread that writes a flush, before the flush: what a row says is in the store twice for a moment, and
  never nowhere. Done again it is the same.
* Which agent it is the done row says: that of the flush, else that of the store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import HostChanges
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Entry, Failure

PIECE = 1000  # requests written at once: a host that is dropped may have a million


class Left(NamedTuple):
    """A row of a queue that is thrown away, with its value; or the whole queue of a host, where there is none."""

    host: str
    hid: bytes
    queued: bytes = b""


def elsewhere_value(host: str, entry: Entry) -> bytes:
    """The value of a row `o`."""
    fields = {"host": host, "url": entry.url, "depth": entry.depth, "priority": entry.priority}
    return json.dumps({**fields, "request": entry.request}, separators=(",", ":")).encode()


def read_elsewhere(key: bytes, value: bytes) -> Failure:
    """The page of such a row. Raises `StoreDamaged`."""
    row = rows.read_json(key, value)
    kinds = {"host": str, "url": str, "depth": int, "priority": int, "request": str}
    if len(key) != 13 or any(type(row.get(name)) is not kind for name, kind in kinds.items()):
        raise rows.damaged(key, ValueError("a field is missing or of another type"))
    entry = Entry(int.from_bytes(key[5:], "big"), row["url"], row["depth"], row["priority"], row["request"])
    return Failure(row["host"], entry, OUTPUTS_LOST, 0.0)


def move(store: Store, left: list[Left], changes: Mapping[bytes, HostChanges]) -> None:
    """Write rows `o` for what is thrown away; in any thread, any number of times. `changes`: by number of the host,
    those of the flush that throws it away. Raises what `Store.write` does."""
    batch, count = store.batch(), 0
    for host, hid, queued in left:
        own = changes.get(hid, {})
        for row in [queued] if queued else _queue(store, hid):
            done = rows.done_row(hid, queue_rows.queued_key(row))
            value = own.get(done)
            if value is None:
                value = store.get(done)
            if number := rows.holder_of(value or b""):
                entry = queue_rows.read_queue(host, row)
                batch.put(rows.elsewhere_key(number, entry.key), elsewhere_value(host, entry))
                count += 1
                if count % PIECE == 0:
                    store.write(batch)
                    batch = store.batch()
    if count % PIECE:
        store.write(batch)


def _queue(store: Store, hid: bytes) -> Iterator[bytes]:
    for row, value in every(store, *rows.of_host(rows.QUEUE, hid)):
        yield row + value
