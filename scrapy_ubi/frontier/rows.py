"""The rows of an agent's store: what stands where, as bytes.

Keys begin with a byte that says what kind of row it is; a host goes by its number (`hid`, 4 bytes big-endian), which is
given once and never to another host.

| key | value |
| --- | --- |
| `h` hid | the record of a host: sums (counts, XORs of its keys, next arrival, next time), name, notes (JSON) |
| `l` number | sums of some hosts, of each with its hid: later ones than those in `h` (`host_totals.py`) |
| `q` hid rank | an entry that is known: key, URL, request. It may be done already; then it is garbage |
| `d` hid key | a key that is done; the HTTP status of its page (2 bytes) where fetched here; or see `elsewhere` |
| `f` hash key | JSON: a request that failed permanently, by a hash of its host's name: it outlives the host |
| `o` number key | JSON: the request of a page whose outputs another agent has (`elsewhere.py`) |
| `v`, `u`, `w` ... | visits of pages that are done (`visit_rows.py`) |
| `j` ... | the journal of the agent (not the frontier's matter) |
| `m` name | the agent's, and the frontier's own: `frontier` (JSON), `recent.0` to `recent.7` (keys changed lately) |

Rules of this module:

* Here are keys, and the values of all rows but those of queues, which are in `queue_rows`.
* Whatever is read is validated; what does not hold raises `StoreDamaged` naming the row.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mmh3

from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.protocol.host import Entry, Failure, Notes
from scrapy_ubi.protocol.notes import NOTHING, read_notes

HOST, LOG, QUEUE, DONE, FAILED, ELSEWHERE, JOURNAL, META = b"h", b"l", b"q", b"d", b"f", b"o", b"j", b"m"
FRONTIER = META + b"frontier"
RECENT = META + b"recent."
AGENTS = META + b"agents"
RECENTS = 8  # flushes whose keys are at hand when a seen table is behind its store
RANK = 15  # bytes

# version, known_xor, done_xor, known, done, garbage, arrival, next_at, bytes of the name
_HOST = struct.Struct(">BQQIIIQdH")
_VERSION = 1  # of a host's row
_VERSIONS = (1, 2, 3)  # of the frontier's own: before 2 there were no rows `l`, before 3 none of visits
_FAILURE: dict[str, type | tuple[type, ...]] = {
    "host": str,
    "url": str,
    "depth": int,
    "priority": int,
    "request": str,
    "reason": str,
    "when": (int, float),
}
_KEYS = struct.Struct(">QI")  # of a recent row: flush, how many keys are known; the rest are done


class HostRecord(NamedTuple):
    """What is durable of a host beside its entries. `next_at` is unix seconds, 0 when it may be fetched at any time."""

    host: str
    known: int
    known_xor: int
    done: int
    done_xor: int
    garbage: int
    arrival: int
    next_at: float
    notes: Notes = NOTHING


def host_value(record: HostRecord) -> bytes:
    """The value of a host's row."""
    host, known, known_xor, done, done_xor, garbage, arrival, next_at, notes = record
    name = host.encode("utf-8", "surrogatepass")
    head = _HOST.pack(_VERSION, known_xor, done_xor, known, done, garbage, arrival, next_at, len(name))
    return b"%b%b%b" % (head, name, notes.shown().encode() if notes.version else b"")


def read_host(key: bytes, value: bytes) -> HostRecord:
    """The record of a host's row. Raises `StoreDamaged`."""
    try:
        version, known_xor, done_xor, known, done, garbage, arrival, next_at, length = _HOST.unpack_from(value)
        name = str(value[_HOST.size : _HOST.size + length], "utf-8", "surrogatepass")
        text = value[_HOST.size + length :]
        notes = read_notes(json.loads(text)) if text else NOTHING
        if version != _VERSION or len(key) != 5 or len(value) < _HOST.size + length:
            raise ValueError(f"version {version}, {len(value)} bytes")
        if done > known or not next_at >= 0.0:
            raise ValueError(f"{done} of {known} done, next at {next_at}")
    except (ValueError, RecursionError, struct.error) as error:
        raise damaged(key, error) from error
    return HostRecord(name, known, known_xor, done, done_xor, garbage, arrival, next_at, notes)


def done_key(key: bytes) -> int:
    """The key that a done row stands for. Raises `StoreDamaged`."""
    if len(key) != 13:
        raise damaged(key, ValueError(f"{len(key)} bytes"))
    return int.from_bytes(key[5:], "big")


def done_row(hid: bytes, key: int) -> bytes:
    """Where it stands that a key is done."""
    return DONE + hid + key.to_bytes(8, "big")


def done_value(status: int) -> bytes:
    """The value of a done row: the HTTP status that the page came with; empty for none."""
    return status.to_bytes(2, "big") if 0 < status < 1 << 16 else b""


def read_status(key: bytes, value: bytes) -> int | None:
    """The HTTP status of a done row, None where it has none. Raises `StoreDamaged`."""
    if len(value) not in (0, 2, 4):
        raise damaged(key, ValueError(f"{len(value)} bytes"))
    return int.from_bytes(value, "big") if len(value) == 2 else None


def done_elsewhere(number: int) -> bytes:
    """The value of a done row: the agent with this number has the outputs of the page."""
    return number.to_bytes(4, "big")


def holder_of(value: bytes) -> int:
    """The number of the agent that a done row names; 0 for none."""
    return int.from_bytes(value, "big") if len(value) == 4 else 0


def elsewhere_key(number: int, key: int) -> bytes:
    """Where the request stands of a page whose outputs the agent with this number has."""
    return ELSEWHERE + number.to_bytes(4, "big") + key.to_bytes(8, "big")


def agents_value(names: Sequence[str]) -> bytes:
    """The value of the row of agents' names."""
    return json.dumps({"agents": list(names)}).encode()


def read_agents(value: bytes) -> list[str]:
    """The names in it. Raises `StoreDamaged`."""
    names = read_json(AGENTS, value).get("agents")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise damaged(AGENTS, ValueError("no list of names"))
    return names


def failed_key(host: str, key: int) -> bytes:
    """Where a failure stands."""
    return failed_prefix(host) + key.to_bytes(8, "big")


def failed_prefix(host: str) -> bytes:
    """What the failures of a host, and by a rare chance those of another, begin with."""
    return FAILED + mmh3.hash64(host.encode("utf-8", "surrogatepass"), signed=False)[0].to_bytes(8, "big")


def failed_value(failure: Failure) -> bytes:
    """The value of a failure's row."""
    entry = failure.entry
    return json.dumps(
        {
            "host": failure.host,
            "url": entry.url,
            "depth": entry.depth,
            "priority": entry.priority,
            "request": entry.request,
            "reason": failure.reason,
            "when": failure.when,
        }
    ).encode()


def read_failed(key: bytes, value: bytes) -> Failure:
    """The failure of a row. Raises `StoreDamaged`."""
    row = read_json(key, value)
    if len(key) != 17 or any(not isinstance(row.get(name), kind) for name, kind in _FAILURE.items()):
        raise damaged(key, ValueError("a field is missing or of another type"))
    entry = Entry(int.from_bytes(key[9:], "big"), row["url"], row["depth"], row["priority"], row["request"])
    return Failure(row["host"], entry, row["reason"], float(row["when"]))


def recent_key(flush: int) -> bytes:
    """Where the keys that a flush has changed stand, until they are written over."""
    return RECENT + b"%d" % (flush % RECENTS)


def recent_value(flush: int, known: Sequence[int], done: Sequence[int]) -> bytes:
    """The keys that a flush has made known, and those it has made done."""
    return _KEYS.pack(flush, len(known)) + struct.pack(f">{len(known) + len(done)}Q", *known, *done)


def read_recent(key: bytes, value: bytes) -> tuple[int, dict[int, int]]:
    """The number of a flush, and key -> 1 (known) or 2 (done). Raises `StoreDamaged`."""
    try:
        flush, known = _KEYS.unpack_from(value)
        keys = struct.unpack(f">{(len(value) - _KEYS.size) // 8}Q", value[_KEYS.size :])
        if known > len(keys):
            raise ValueError(f"{known} of {len(keys)} keys")
    except (ValueError, struct.error) as error:
        raise damaged(key, error) from error
    return flush, {**dict.fromkeys(keys[:known], 1), **dict.fromkeys(keys[known:], 2)}


def frontier_value(saved: Mapping[str, int], has_visits: bool = False) -> bytes:
    """The value of the frontier's own row. Its version is that of the rows there are: who does not know one of these
    must not open it."""
    return json.dumps({"version": _VERSIONS[-1 if has_visits else -2], **saved}).encode()


def read_frontier(value: bytes) -> dict[str, int]:
    """What the frontier's own row says. Raises `StoreDamaged`."""
    saved = read_json(FRONTIER, value)
    if saved.pop("version", None) not in _VERSIONS or any(type(number) is not int for number in saved.values()):
        raise damaged(FRONTIER, ValueError("another version, or no numbers"))
    return saved


def read_json(key: bytes, value: bytes) -> dict[str, Any]:
    """The JSON object of a row. Raises `StoreDamaged`."""
    try:
        row = json.loads(value)
    except ValueError as error:
        raise damaged(key, error) from error
    if not isinstance(row, dict):
        raise damaged(key, ValueError("no JSON object"))
    return row


def of_host(kind: bytes, hid: bytes) -> tuple[bytes, bytes]:
    """The first key of a host's rows of a kind, and one behind the last."""
    return kind + hid, kind + hid + b"\xff" * (RANK + 1)


def salt(hid: bytes) -> int:
    """What a host's keys are XORed with in the seen table: 64 bits that have nothing to do with another host's."""
    return mmh3.hash64(hid, 4, signed=False)[0]


def damaged(key: bytes, error: Exception) -> StoreDamaged:
    """The row with this key is not what was written."""
    return StoreDamaged(f"The row {key[:1].decode('latin-1')}:{key[1:].hex()} of the agent's store", str(error))
