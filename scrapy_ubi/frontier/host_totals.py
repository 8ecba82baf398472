"""The log of hosts' sums: of each host that a flush changes 48 bytes, all of them together in a row or a few.

A host's own row holds its name, its notes and its sums; nearly every flush changes the sums of thousands of hosts, and
nothing else of them. Those sums go into rows `l`, numbered on and on. What counts of a host is what the highest number
says; where none says anything, its own row.

Rules of this module:

* A row is never changed. When there are more than `TIMES` as many sums in the log as hosts (and `LEAST` more), the
  oldest row goes: whatever in it is still the latest of its host is said again with the same flush, which deletes the
  row. So a flush writes the sums of the hosts that it has changed, and of some that none has changed for long.
* In a row no host stands twice; of hosts dropped there may be sums, until their row goes.
"""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import count

from scrapy_ubi.frontier.disk_state import DiskState
from scrapy_ubi.frontier.rows import LOG, HostRecord, damaged
from scrapy_ubi.frontier.store import Store, every

TIMES = 3  # with 2, a quarter of all sums and more would be said again, with 3 one in sixteen and more
LEAST = 8192  # sums in the log before any row of it goes
PART = 4096  # sums in a row
_SUMS = struct.Struct(">4sIQIQIQd")
_ROWS_AT_ONCE = 16
_PLACE = 24  # bits


class SumsLog:
    """Which rows of the log there are, and of which hosts each has the latest sums."""

    def __init__(self) -> None:
        self._rows: deque[tuple[int, int, list[DiskState]]] = deque()  # number, sums in it, hosts whose latest they are
        self._next = 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def restore(self, number: int, sums: int, hosts: list[DiskState]) -> None:
        """A row that was read: how many sums it has, and the hosts whose latest they are. Ascending."""
        for state in hosts:
            state.logged = number
        self._rows.append((number, sums, hosts))
        self._next = number + 1
        self._count += sums

    def add(self, states: list[DiskState], most: int, offset: float) -> Iterator[tuple[bytes, bytes | None]]:
        """The rows with the sums of these hosts, and the oldest rows deleted (None), so that the log stays short.

        `most` is how many hosts are held. What is yielded must be written in one batch.
        """
        waiting = states
        while waiting:
            for start in range(0, len(waiting), PART):
                yield self._add(waiting[start : start + PART], offset)
            waiting = []
            while self._count > TIMES * most + LEAST and len(waiting) < PART:
                number, sums, hosts = self._rows.popleft()
                self._count -= sums
                waiting += [state for state in hosts if state.logged == number]
                yield log_key(number), None

    def check_invariants(self, states: Iterable[DiskState]) -> None:
        """Assert every invariant of the log."""
        numbers = [number for number, _, _ in self._rows]
        assert numbers == sorted({*numbers}) and (not numbers or numbers[-1] < self._next), numbers
        assert self._count == sum(sums for _, sums, _ in self._rows)
        latest = {number: {*hosts} for number, _, hosts in self._rows}
        assert all(state.logged < 0 or state in latest[state.logged] for state in states)

    def _add(self, states: list[DiskState], offset: float) -> tuple[bytes, bytes]:
        """One row more."""
        number, self._next = self._next, self._next + 1
        self._rows.append((number, len(states), states))
        self._count += len(states)
        pack = _SUMS.pack
        for state in states:
            state.logged = number
        return log_key(number), b"".join([pack(state.hid, *state.sums(offset)) for state in states])


class TotalsLog:
    """The log as it lies in a store: the latest sums of each host, by `hid`."""

    def __init__(self, store: Store) -> None:
        """Read it all. Raises `StoreDamaged`."""
        self._rows: dict[int, bytes] = {}
        self._latest: dict[bytes, int] = {}  # of each hid: the number of the row, and where in it
        self._hosts: dict[int, list[DiskState]] = defaultdict(list)
        for key, value in every(store, LOG, LOG + b"\xff" * 9, _ROWS_AT_ONCE):
            if len(key) != 9 or not value or len(value) % _SUMS.size or len(value) > PART * _SUMS.size:
                raise damaged(key, ValueError(f"{len(value)} bytes"))
            number = int.from_bytes(key[1:], "big")
            self._rows[number] = value
            hids = [value[start : start + 4] for start in range(0, len(value), _SUMS.size)]
            self._latest.update(zip(hids, count(number << _PLACE, _SUMS.size), strict=False))

    def check(self, given: int) -> None:
        """Raises `StoreDamaged` where there are sums of a host whose number is none of those given."""
        for hid, place in self._latest.items():
            if int.from_bytes(hid, "big") >= given:
                raise damaged(log_key(place >> _PLACE), ValueError(f"host {hid.hex()} has a number never given"))

    def latest(self, hid: bytes, record: HostRecord) -> HostRecord:
        """The record of a host with its latest sums, where the log has any. Raises `StoreDamaged`."""
        if (place := self._latest.get(hid)) is None:
            return record
        number, start = place >> _PLACE, place & (1 << _PLACE) - 1
        _, known, known_xor, done, done_xor, garbage, arrival, next_at = _SUMS.unpack_from(self._rows[number], start)
        if done > known or not next_at >= 0.0:
            raise damaged(log_key(number), ValueError(f"{done} of {known} done, next at {next_at}"))
        return HostRecord(record.host, known, known_xor, done, done_xor, garbage, arrival, next_at, record.notes)

    def held(self, state: DiskState) -> None:
        """This host is held."""
        if (place := self._latest.get(state.hid)) is not None:
            self._hosts[place >> _PLACE].append(state)

    def into(self, log: SumsLog) -> None:
        """All that was read is what the log has."""
        for number, value in self._rows.items():
            log.restore(number, len(value) // _SUMS.size, self._hosts[number])


def log_key(number: int) -> bytes:
    """Where sums stand; the higher the number, the later they are."""
    return LOG + number.to_bytes(8, "big")
