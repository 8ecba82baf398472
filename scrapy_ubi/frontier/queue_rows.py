"""Rows of queues: an entry that waits, as bytes that sort as entries are fetched.

A *rank* is 15 bytes: the highest priority first, then the smallest depth, then the first that came. Numbers are exact
within the bounds of the wire (priority 10^12, depth 10^9).

In memory an entry that waits is its row and the value of it as one text of bytes, *queued*: `ROW` bytes, then the rest.
That is half of what two objects and a pair of them take, sorts as rows do, and the garbage collector looks at none.

Rules of this module:

* The URL is stored without scheme and host where these are what the host's name says.
* Whatever is read is validated; what does not hold raises `StoreDamaged` naming the row.
* `queued` and `queued_all` write the same bytes: the first for one entry, the second for those of a page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from scrapy_ubi.frontier.rows import QUEUE, RANK, damaged
from scrapy_ubi.protocol.host import Entry

_QUEUE = QUEUE[0]
HEAVY = 8  # bits: a row counts once more for each 256 bytes that it has, most have fewer
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
_made = tuple.__new__  # an `Entry` of a tuple, in half the time
_QUEUED = struct.Struct(">5xHII5xQB")  # kind and host; priority (2), depth; arrival; key, flag
_MADE = struct.Struct(">B4sHIIBIQB")  # the same with what is left out there
_PLAIN = struct.Struct(">BIQB")  # arrival (2); key, flag
_WITH_REQUEST = struct.Struct(">BIQBI")  # the same, and the length of the URL
_ARRIVAL = 5  # bytes
_URL = _QUEUED.size


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
    """Several entries that wait, as `queued` makes them, one after the other. Those of one page differ in key and URL
    only: what they have in common is made once, which pays for three and more."""
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
    """An entry found so deep, with no priority, is better than none of these entries, which are in their order."""
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
