"""What a ranker keeps of hosts: tables of numbers by key, bounded over all hosts.

Rules of this module:

* At most `MOST_KEYS` keys are held. Where one more is wanted, the tables of the host that was asked for longest ago go;
  where that is the only one, the key is not taken, and those that are there go on.
* A host whose tables went begins again: its queue is ranked by what its pages teach from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

MOST_KEYS = 500_000  # over all hosts: some 50 MB

Number = TypeVar("Number", int, float)


class HostTables(Generic[Number]):
    """Tables by host, from the one asked for longest ago to the last one."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self._tables: OrderedDict[str, dict[int, Number]] = OrderedDict()
        self.held = 0

    def get_table(self, host: str) -> dict[int, Number]:
        """The table of a host, to be read; keys are put in by `put`."""
        table = self._tables.get(host)
        if table is None:
            table = self._tables[host] = {}
        self._tables.move_to_end(host)
        return table

    def put(self, table: dict[int, Number], key: int, value: Number) -> None:
        """Put a number into the table that was asked for last, if there is room."""
        if key not in table:
            while self.held >= self._most and len(self._tables) > 1:
                _, dropped = self._tables.popitem(last=False)
                self.held -= len(dropped)
            if self.held >= self._most:
                return
            self.held += 1
        table[key] = value

    def __len__(self) -> int:
        return len(self._tables)
