"""Pages that are done and whose outputs are in the directory of another agent: which one, and what to fetch if its disk
is lost.

| row | value |
| --- | --- |
| `d` hid key | 4 bytes: the number of the agent whose done mark came while the entry waited here |
| `o` number key | JSON: the request of such a page, by the number of the agent. It outlives the host here |
| `m` `agents` | JSON: the names of the agents, in the order of their numbers, from 1 |

Rules of this module:

* A done mark has a key only, and the row of the queue that has the text is not looked for: it stays there, as garbage.
  When it is thrown away, alone or with all of its queue, the request moves into a row `o` (`left_rows`).
* Rows `o` are written before the flush that deletes their rows of the queue, so none is lost between. Those written too
  early, or twice, are harmless: a page that is fetched again has its name again, and is collected once.
* The sender of a done mark is taken for the agent that has the outputs. Where it is not, as it passes on what an agent
  before it did, that one's own copies know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.disk_state import PIECE, DiskState
from scrapy_ubi.frontier.flushes import Flushes
from scrapy_ubi.frontier.left_rows import elsewhere_value, read_elsewhere
from scrapy_ubi.frontier.store import Store, every
from scrapy_ubi.protocol.frontier_contract import OUTPUTS_LOST
from scrapy_ubi.protocol.host import Entry, Failure


class Elsewhere:
    """What one frontier knows of outputs elsewhere. Nothing is kept before `on` is set."""

    def __init__(self, store: Store, flushes: Flushes) -> None:
        self._store = store
        self._flushes = flushes
        text = store.get(rows.AGENTS)
        names = rows.read_agents(text) if text is not None else []
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self.on = flushes.keeps_left = bool(names)

    def start(self) -> None:
        """From now on it is kept."""
        self.on = self._flushes.keeps_left = True

    def number(self, agent: str) -> int:
        """The number of an agent; given here, where it has none."""
        number = self._numbers.get(agent)
        if number is None:
            number = self._numbers[agent] = len(self._numbers) + 1
            self._flushes.changes.elsewhere[rows.AGENTS] = rows.agents_value([*self._numbers])
        return number

    def keep(self, host: str, entry: Entry, agent: str) -> None:
        """A page is done, and its outputs are at this agent."""
        if self.on and agent:
            row = rows.elsewhere_key(self.number(agent), entry.key)
            self._flushes.changes.elsewhere[row] = elsewhere_value(host, entry)

    def forget_failure(self, agent: str, failure: Failure, state: DiskState | None) -> None:
        """A page has its outputs not there any more, or they are asked for again."""
        key = failure.entry.key
        if (number := self._numbers.get(agent)) is None:
            return
        self._flushes.changes.elsewhere[rows.elsewhere_key(number, key)] = None
        if state is not None and self._holder(state, key) == number:
            self._flushes.of(state)[rows.done_row(state.hid, key)] = b""

    def pages(self, agent: str, states: Mapping[str, DiskState]) -> Iterator[Failure]:
        """The pages whose outputs are at this agent. Those whose rows wait in queues are looked for there: that takes a
        second a million. Raises `StoreDamaged`."""
        number = self._numbers.get(agent)
        if number is None:
            return
        start = rows.ELSEWHERE + number.to_bytes(4, "big")
        flush = self._flushes.unwritten
        changed = {**(flush.elsewhere if flush is not None else {}), **self._flushes.changes.elsewhere}
        mine = {row: value for row, value in changed.items() if row.startswith(start)}
        stored = ((row, value) for row, value in every(self._store, start, start + b"\xff" * 9) if row not in mine)
        for row, value in [*mine.items(), *stored]:
            if value is not None:
                yield read_elsewhere(row, value)
        left = [*(flush.left if flush is not None else []), *self._flushes.changes.left]
        for one in left:
            state = states.get(one.host)
            if one.queued and state is not None and (found := self._at(state, one.queued, number)) is not None:
                yield found
        for state in [*states.values()]:
            if state.garbage:
                yield from self._waiting(state, number)

    def _waiting(self, state: DiskState, number: int) -> Iterator[Failure]:
        """Those of one host whose rows are in its queue."""
        start, last = rows.of_host(rows.QUEUE, state.hid)
        while start < last:
            read = queue_rows.joined(self._store.scan(start, last, PIECE))
            end = read[-1][: queue_rows.ROW] if len(read) == PIECE else last
            for queued in state.merged(read, {}, start, end):
                if (found := self._at(state, queued, number)) is not None:
                    yield found
            start = end + b"\0"

    def _at(self, state: DiskState, queued: bytes, number: int) -> Failure | None:
        key = queue_rows.queued_key(queued)
        if not state.is_done(key) or self._holder(state, key) != number:
            return None
        return Failure(state.host, queue_rows.read_queue(state.host, queued), OUTPUTS_LOST, 0.0)

    def _holder(self, state: DiskState, key: int) -> int:
        """The number of the agent that has the outputs of a page; 0 where that is not known."""
        row = rows.done_row(state.hid, key)
        for changes in (state.fresh, state.writing):
            if changes is not None and (value := changes.get(row)) is not None:
                return rows.holder_of(value)
        return rows.holder_of(self._store.get(row) or b"")
