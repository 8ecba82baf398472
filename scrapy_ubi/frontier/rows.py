"""The rows of an agent's store: what stands where, as bytes.

Keys begin with a byte that says what kind of row it is; a host goes by its number (`hid`, 4 bytes big-endian), which is
given once and never to another host.

| key | value |
| --- | --- |
| `h` hid | the record of a host: sums (counts, XORs of its keys, next arrival, next time), name, notes (JSON) |
| `l` number | sums of some hosts, of each with its hid: later ones than those in `h` (`host_totals.py`) |
| `q` hid rank | an entry that is known: key, URL, request. It may be done already; then it is garbage |
| `d` hid key | a key that is done; the HTTP status of its page (2 bytes) where it was fetched here |
| `f` hash key | JSON: a request that failed permanently, by a hash of its host's name: it outlives the host |
| `j` ... | the journal of the agent (not the frontier's matter) |
| `m` name | the agent's, and the frontier's own: `frontier` (JSON), `recent.0` to `recent.7` (keys changed lately) |

A *rank* is 15 bytes that sort as entries are fetched: the highest priority first, then the smallest depth, then the
first that came. Numbers are exact within the bounds of the wire (priority 10^12, depth 10^9).

In memory an entry that waits is its row and the value of it as one text of bytes, *queued*: `ROW` bytes, then the rest.
That is half of what two objects and a pair of them take, sorts as rows do, and the garbage collector looks at none.

The URL is stored without scheme and host where these are what the host's name says. Whatever is read is validated;
what does not hold raises `StoreDamaged` naming the row.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import mmh3

from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.protocol.host import Entry, Failure, Notes
from scrapy_ubi.protocol.notes import NOTHING, read_notes

HOST, LOG, QUEUE, DONE, FAILED, JOURNAL, META = b"h", b"l", b"q", b"d", b"f", b"j", b"m"
FRONTIER = META + b"frontier"
RECENT = META + b"recent."
RECENTS = 8  # flushes whose keys are at hand when a seen table is behind its store

_QUEUE = QUEUE[0]
HEAVY = 8  # bits: a row counts once more for each 256 bytes that it has, most have fewer
RANK = 15  # bytes
ROW = 5 + RANK
RANK_START = slice(5, ROW - 5)  # of a row: its rank, less the arrival
_PRIORITY = 1 << 47
_MOST_PRIORITY = _PRIORITY - 1
_UPPER = _PRIORITY >> 32
_NO_PRIORITY = _PRIORITY.to_bytes(6, "big")
_MOST_DEPTH = (1 << 32) - 1

_PREFIXES = ("", "http://", "https://", "http://www.", "https://www.")
_FLAGS = {prefix: flag for flag, prefix in enumerate(_PREFIXES)}
_REQUEST = 8  # flag of a value: the length of the URL is given, and a request follows it

# version, known_xor, done_xor, known, done, garbage, arrival, next_at, bytes of the name
_HOST = struct.Struct(">BQQIIIQdH")
_VERSION = 1  # of a host's row
_VERSIONS = (1, 2)  # of the frontier's own: before 2 there were no rows `l`; who does not know these must not open it
_FAILURE: dict[str, type | tuple[type, ...]] = {
    "host": str,
    "url": str,
    "depth": int,
    "priority": int,
    "request": str,
    "reason": str,
    "when": (int, float),
}
_made = tuple.__new__  # an `Entry` of a tuple, in half the time
_QUEUED = struct.Struct(">5xHII5xQB")  # kind and host; priority (2), depth; arrival; key, flag
_MADE = struct.Struct(">B4sHIIBIQB")  # the same with what is left out there
_PLAIN = struct.Struct(">BIQB")  # arrival (2); key, flag
_WITH_REQUEST = struct.Struct(">BIQBI")  # the same, and the length of the URL
_ARRIVAL = 5  # bytes
_URL = _QUEUED.size
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


def place(hid: bytes, priority: int, depth: int, arrival: int) -> bytes:
    """The row of an entry: where it stands in the store. Rows sort as entries are fetched."""
    if not (-_MOST_PRIORITY <= priority <= _MOST_PRIORITY and depth <= _MOST_DEPTH):  # only a program's own, by mistake
        priority, depth = max(-_MOST_PRIORITY, min(priority, _MOST_PRIORITY)), min(depth, _MOST_DEPTH)
    return QUEUE + hid + ((_PRIORITY - priority) << 72 | depth << 40 | arrival).to_bytes(RANK, "big")


@lru_cache(1024)
def rank_start(priority: int, depth: int) -> bytes:
    """The rank of all entries of this priority and depth, less the arrival."""
    return place(bytes(4), priority, depth, 0)[RANK_START]


def before(hid: bytes, priority: int, depth: int) -> bytes:
    """What sorts before all rows of this host with this priority and depth, and behind all that are fetched earlier."""
    return QUEUE + hid + rank_start(priority, depth)


def is_queued(row: bytes) -> bool:
    """Whether this is a row of a queue."""
    return row[:1] == QUEUE


def _encoded(text: str) -> bytes:
    """The bytes of a text. JSON from outside may hold half a surrogate pair; to allow for it takes twice the time."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _decoded(text: bytes) -> str:
    """The text of these bytes."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "surrogatepass")


def queued(hid: bytes, host: str, entry: Entry, arrival: int) -> bytes:
    """An entry that waits: its row (as `place` says) and the value of it."""
    key, url, depth, priority, request = entry
    if not (-_MOST_PRIORITY <= priority <= _MOST_PRIORITY and depth <= _MOST_DEPTH):  # as in `place`
        priority, depth = max(-_MOST_PRIORITY, min(priority, _MOST_PRIORITY)), min(depth, _MOST_DEPTH)
    flag, at, above = 0, url.find(host, 7, 12 + len(host)), _PRIORITY - priority
    if at > 0 and (found := _FLAGS.get(url[:at])):
        flag = found
        url = url[at + len(host) :]
    text = _encoded(url)
    if request:
        flag |= _REQUEST
        text = b"%b%b%b" % (len(text).to_bytes(4, "big"), text, request.encode("utf-8", "surrogatepass"))
    upper, lower = (above >> 32, above & 0xFFFFFFFF) if priority else (_UPPER, 0)
    return _MADE.pack(_QUEUE, hid, upper, lower, depth, arrival >> 32, arrival & 0xFFFFFFFF, key, flag) + text


def queued_all(hid: bytes, host: str, entries: Iterable[Entry], arrival: int) -> list[bytes]:
    """The same of several entries, one after the other. Those of one page differ in key and URL only: what they have in
    common is made once, which pays for three and more.
    """
    found: list[bytes] = []
    common: tuple[object, ...] = ()
    head, request, start, flag = b"", b"", "", 0
    for number, entry in enumerate(entries, arrival):
        key, url = entry[0], entry[1]
        if entry[2:] != common:
            common = entry[2:]
            head = before(hid, entry[3], entry[2])
            request = entry[4].encode("utf-8", "surrogatepass")
        if not start or not url.startswith(start):
            start, flag = _start(host, url)
        text = _encoded(url[len(start) :])
        upper, lower = number >> 32, number & 0xFFFFFFFF
        if request:
            rest = _WITH_REQUEST.pack(upper, lower, key, flag | _REQUEST, len(text))
            found.append(b"%b%b%b%b" % (head, rest, text, request))
        else:
            found.append(b"%b%b%b" % (head, _PLAIN.pack(upper, lower, key, flag), text))
    return found


def _start(host: str, url: str) -> tuple[str, int]:
    """What a URL begins with that its host's name says, and the flag for it; nothing where it is no such URL."""
    at = url.find(host, 7, 12 + len(host))
    flag = _FLAGS.get(url[:at], 0) if at > 0 else 0
    return (url[: at + len(host)], flag) if flag else ("", 0)


def joined(found: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Rows of a queue with their values. Raises `StoreDamaged`."""
    queued = [row + value for row, value in found if len(row) == ROW]
    if len(queued) < len(found):
        wrong = next(row for row, _ in found if len(row) != ROW)
        raise damaged(wrong, ValueError(f"{len(wrong)} bytes"))
    return queued


def are_usual(head: Iterable[bytes]) -> bool:
    """Whether all these rows have the usual length, at most: each counts as one."""
    return max(map(len, head), default=0) >> HEAVY == 0


def weight(head: Sequence[bytes]) -> int:
    """How many rows of usual length take the memory that these do."""
    return len(head) if are_usual(head) else sum([1 + (len(queued) >> HEAVY) for queued in head])


def queued_key(queued: bytes) -> int:
    """The key of an entry that waits."""
    return int.from_bytes(queued[ROW : ROW + 8], "big")


def arrival_of(queued: bytes) -> int:
    """Which arrival of its host an entry that waits was."""
    return int.from_bytes(queued[ROW - 5 : ROW], "big")


def are_alike(queued: list[bytes]) -> bool:
    """Whether these rows are in their order, and of entries of one depth and priority."""
    return queued[0][: ROW - _ARRIVAL] == queued[-1][: ROW - _ARRIVAL] and sorted(queued) == queued


def deepest(head: Sequence[bytes]) -> int:
    """An entry that is found so deep, with no priority, is better than none of these entries, which are in their
    order."""
    first, last = head[0], head[-1]
    if first[5:11] != last[5:11]:
        return _MOST_DEPTH + 2  # of several priorities: the caller has to look at each
    return int.from_bytes(last[11:15], "big") + (last[5:11] > _NO_PRIORITY)


def read_queue(host: str, queued: bytes) -> Entry:
    """The entry of a row and its value. Raises `StoreDamaged`."""
    try:
        above, priority, depth, key, flag = _QUEUED.unpack_from(queued)
        if flag < _REQUEST:
            url, request = _decoded(queued[_URL:]), ""
        else:
            start = _URL + 4
            end = start + int.from_bytes(queued[_URL:start], "big")
            url, request = str(queued[start:end], "utf-8", "surrogatepass"), str(queued[end:], "utf-8", "surrogatepass")
            if flag > 15 or not request:
                raise ValueError(f"flag {flag}, or a length does not hold")
            flag &= 7
        if flag:
            url = f"{_PREFIXES[flag]}{host}{url}"
    except (ValueError, IndexError, struct.error) as error:
        raise damaged(queued[:ROW], error) from error
    priority = _PRIORITY - (above << 32 | priority) if priority or above != _UPPER else 0
    return _made(Entry, (key, url, depth, priority, request))


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
    if len(value) not in (0, 2):
        raise damaged(key, ValueError(f"{len(value)} bytes"))
    return int.from_bytes(value, "big") if value else None


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


def frontier_value(saved: Mapping[str, int]) -> bytes:
    """The value of the frontier's own row."""
    return json.dumps({"version": _VERSIONS[-1], **saved}).encode()


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
