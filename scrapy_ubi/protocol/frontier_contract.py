"""The contract of a frontier: where an agent keeps its host states, in memory or on disk, and what the protocol and the
node ask of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from scrapy_ubi.protocol.host import Entry, Failure, HostState, VisitRow
from scrapy_ubi.protocol.notes import Notes

OUTPUTS_LOST = "outputs"  # the reason with which `pages_kept_by` gives pages

MOST_FAILED = 100_000  # failures kept by an agent; what fails beyond is only counted


class Frontier(Protocol):
    """Where an agent keeps its host states, in memory or on disk; what the protocol asks of it.

    Every change of a host's sets goes through it, so that the queue order and the workbench follow. Times are seconds
    of the agent's clock. `delay` (s) is that between the end of a load and the next of the same host. `on_new`, where
    there is one, is told of the state of each host that is met for the first time, before anything of it is queued.
    """

    delay: float
    on_new: Callable[[HostState], None]

    def __len__(self) -> int:
        """How many hosts are held."""
        ...

    def states(self) -> list[HostState]:
        """Every host state held, as a list of its own."""
        ...

    def find(self, host: str) -> HostState | None:
        """The state of a host, None when nothing of it is held."""
        ...

    def add(self, host: str, entries: Iterable[Entry]) -> tuple[HostState, list[Entry]]:
        """Merge discovered entries; the state, and those that were news."""
        ...

    def add_done(self, state: HostState, keys: Iterable[int], by: str = "") -> list[int]:
        """Merge done marks; those that were news. `by`: the agent that has told them, which is taken for the one that
        has the outputs of their pages.
        """
        ...

    def note(self, state: HostState, notes: Notes) -> bool:
        """Merge notes of a host held; True when that was news. They are kept as long as the host is."""
        ...

    def drop(self, host: str) -> None:
        """Forget a host."""
        ...

    def pop(self, now: float, allowed: Callable[[HostState], bool]) -> tuple[HostState, Entry] | None:
        """Hand out the next entry of the host that waits longest among those ready and allowed; the host is then
        busy.
        """
        ...

    def free(self, state: HostState, now: float) -> None:
        """The load of a busy host has ended at this time: it may be fetched again after its delay, the frontier's or
        the host's own `pause`.
        """
        ...

    def finish(self, state: HostState, key: int) -> bool:
        """An entry handed out is done; True when that was news."""
        ...

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """An entry handed out waits again, as `entry` when given."""
        ...

    def keep_row(self, state: HostState, row: VisitRow) -> bool:
        """Merge the visit row of a key that is done; True when that was news."""
        ...

    def visited(self, state: HostState, key: int, row: VisitRow) -> bool:
        """A page handed out to be visited again was, and this is its row; True when that was news."""
        ...

    def not_visited(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """A page handed out to be visited again was not, or is to be fetched once more (as `entry`): it is due."""
        ...

    def wake(self, wall: int, mine: Callable[[HostState], bool]) -> None:
        """It is that time (unix s): pages of such hosts that are due by then have their turn, with the host's queue."""
        ...

    def awaits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether a page of such a host is due to be visited again, now or later."""
        ...

    def look_again(self) -> None:
        """What was not allowed may be allowed now."""
        ...

    def defer(self, state: HostState, now: float) -> None:
        """Another agent may have fetched this host a moment ago: it is not fetched before its delay has passed."""
        ...

    def postpone(self, state: HostState, until: float) -> None:
        """The host is not fetched before that time, nor earlier than it would be anyway."""
        ...

    def hasten(self, state: HostState, now: float) -> None:
        """Nothing forbids the next fetch of the host from now on: no load of it was made, or none will be."""
        ...

    def waits(self, mine: Callable[[HostState], bool]) -> bool:
        """Whether any entry of such a host is queued. What `mine` says of a host changes with `look_again` only."""
        ...

    def note_status(self, state: HostState, key: int, status: int) -> None:
        """Keep the HTTP status with which a page was done just now, for people; where it costs little."""
        ...

    def status_of(self, state: HostState, key: int) -> int | None:
        """The HTTP status with which a page was done here; None where that is not known."""
        ...

    def fail(self, failure: Failure) -> None:
        """Keep a failure, while there is room (`MOST_FAILED`). It is kept even when its host is dropped."""
        ...

    def failures(self, host: str | None = None) -> Iterator[Failure]:
        """The failures kept, of one host or of all, in any order."""
        ...

    def forgive(self, failure: Failure) -> None:
        """Forget a failure, if it is kept."""
        ...

    def keep_elsewhere(self, host: str, entry: Entry, agent: str) -> None:
        """A page is done here, and its outputs are at that agent."""
        ...

    def pages_kept_by(self, agent: str) -> Iterator[Failure]:
        """The pages that are done here, and whose outputs that agent has, as far as is known here, in any order. They
        are given as failures with the reason `OUTPUTS_LOST`, since that is what they are once it is lost."""
        ...

    def forget_elsewhere(self, agent: str, page: Failure) -> None:
        """Such a page is not to be given again."""
        ...

    def rests(self, state: HostState) -> bool:
        """Whether a host with waiting entries has none of them in memory: its turn to be read has yet to come."""
        ...
