"""A simulated disk: what an agent's last flush left. A flush is atomic; a crash leaves the disk as the last one did."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.durable import Saved
from scrapy_ubi.protocol.host import Entry, HostState
from tests.support.ledger import Ledger

Change = tuple[str, Entry | None, int | None]  # host, an entry that is known, a key that is done; neither: dropped


class LoggedFrontier(MemoryFrontier):
    """The production frontier; what changes in it is noted for the next flush."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(delay)
        self.changes: list[Change] = []

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        state, news = super().add(host, entries)
        self.changes += [(host, entry, None) for entry in news]
        return state, news

    def add_done(self, state: HostState, keys: Iterable[int]) -> list[int]:
        news = super().add_done(state, keys)
        self.changes += [(state.host, None, key) for key in news]
        return news

    def finish(self, state: HostState, key: int) -> bool:
        news = super().finish(state, key)
        if news:
            self.changes.append((state.host, None, key))
        return news

    def drop(self, host: str) -> None:
        super().drop(host)
        self.changes.append((host, None, None))


class Disk:
    """`undone`: host -> key -> entry; `done`: host -> keys; `ledger`: the rest of the agent;
    `merged`: the numbers of the inbox entries whose content is in it."""

    def __init__(self) -> None:
        self.undone: dict[str, dict[int, Entry]] = {}
        self.done: dict[str, set[int]] = {}
        self.ledger = Ledger()
        self.merged: frozenset[int] = frozenset()

    @property
    def saved(self) -> Saved | None:
        """What is durable beside the host states."""
        return self.ledger.saved

    def flush(self, changes: list[Change]) -> None:
        """Make these changes durable."""
        for host, entry, key in changes:
            if entry is not None:
                self.undone.setdefault(host, {})[entry.key] = entry
            elif key is not None:
                self.undone.get(host, {}).pop(key, None)
                self.done.setdefault(host, set()).add(key)
            else:
                self.undone.pop(host, None)
                self.done.pop(host, None)

    def frontier(self) -> LoggedFrontier:
        """The frontier that a process finds here: what was out waits."""
        frontier = LoggedFrontier()
        for host in dict.fromkeys((*self.undone, *self.done)):
            state, _ = frontier.add(host, self.undone.get(host, {}).values())
            frontier.add_done(state, self.done.get(host, ()))
        frontier.changes.clear()
        return frontier

    def knows(self, host: str, key: int) -> bool:
        """Whether a page is known here, done or not."""
        return key in self.undone.get(host, ()) or key in self.done.get(host, ())

    def done_keys(self) -> set[int]:
        """Every page that is done as far as this disk knows."""
        return {key for keys in self.done.values() for key in keys}
