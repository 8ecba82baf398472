"""Work: what is handed out to be fetched, and what becomes of it (docs/explanation/protocol.md#view-change).

Rules of this module:

* The owner alone fetches, when the view lets it (`view_change.py`) and its lease holds. Both are asked at the dispatch
  itself (`may_fetch`), not only when something is handed out (`next`).
* Every request handed out comes back, by `ended` or `put_back`. Until then, and until its done mark is acknowledged, it
  is *open work* of its host, as a load is that is in no queue (`borrow`): the host is not let go before.
* A page that the host's dead owner had fetched, and whose outlinks it had told, is done without a fetch.
* A page done is *closing* (`done_mark_delivery.py`) and stands in the journal of its flush.
* A page that is due to be visited again is handed out as any other one, and what becomes of it is the same, but that it
  is done all the time: what is new is its *visit row* (`visit_row.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from scrapy_ubi.protocol.discovery import Discovery
from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery, MakeRedo, Outlinks
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.host import ABROAD, NEVER_ABROAD, Entry, HostState, Redo, VisitRow
from scrapy_ubi.protocol.host_policy import HostPolicy
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.quiescence import Quiescence
from scrapy_ubi.protocol.records import row_weight

COUNTED = 5_000  # hosts looked at a tick, to count those that wait: some tens of milliseconds


class Work:
    """The work of one agent. `out`: how many requests are handed out; `stopped`: none will be from now on;
    `visits_ended`: no page is visited again from now on."""

    def __init__(
        self,
        keeping: Keepers,
        discovery: Discovery,
        closing: DoneMarkDelivery,
        handover: Handover,
        quiescence: Quiescence,
        policy: HostPolicy,
    ) -> None:
        self._me = keeping.me
        self._keeping = keeping
        self._config = keeping.config
        self._counters = keeping.counters
        self._frontier = keeping.frontier
        self._group = keeping.group
        self._lease = keeping.group.lease
        self._view_history = keeping.view_history
        self._outbox = keeping.outbox
        self._journal = keeping.journal
        self._discovery = discovery
        self._closing = closing
        self._handover = handover
        self._quiescence = quiescence
        self._on_turn, self._may_take, self._redone_row = policy.on_turn, policy.may_take, policy.redone_row
        self.out = 0
        self.stopped = self.visits_ended = False
        self._uncounted: Iterator[HostState] | None = None  # hosts that `overdue` has to look at yet
        self._overdue = 0

    # -- what may be fetched

    def may_fetch(self, state: HostState, now: float) -> bool:
        """Whether a fetch of this host may start at this moment: asked last, at the dispatch itself."""
        return (
            self._keeping.keepers(state)[:1] == (self._me,)
            and self._group.may_act(now)
            and not self.stopped
            and self._view_history.may_fetch(state.host, self._group.alive)
        )

    def may_act(self, now: float) -> bool:
        """Whether this agent may load anything at this moment: what of `may_fetch` concerns no host."""
        return self._group.may_act(now) and not self.stopped

    def next(self, now: float) -> tuple[HostState, Entry] | None:
        """Hand out the next request, None when nothing may be fetched now: as where the outbox is full."""
        outbox, most, may_take = self._outbox, self._config.outbox_records, self._may_take
        if not self._lease.holds(now) or len(outbox) > most or len(outbox.thin) > most:
            return None
        while True:
            found = self._frontier.pop(
                now,
                lambda state: (
                    self.may_fetch(state, now) and (may_take is None or may_take(state)) and self._polite(state, now)
                ),
            )
            if found is None:
                return None
            state, entry = found
            self.out += 1
            self._quiescence.activity += 1
            state.open_work += 1
            if not state.redo or not self._redone(state, entry):
                return found
            self._frontier.free(state, now)

    def _polite(self, state: HostState, now: float) -> bool:
        """Where another agent may have fetched this host, its delay begins at the end of the last load that it can have
        made, or now (the frontier looks)."""
        if state.abroad != NEVER_ABROAD:
            until = now if state.abroad == ABROAD or self._group.watch.restless else state.abroad
            state.abroad = NEVER_ABROAD
            self._frontier.defer(state, until)
        if state.next_at <= now:
            self._on_turn(state, now)
        return True

    def _redone(self, state: HostState, entry: Entry) -> bool:
        """The host's last owner is dead: where it had fetched this page, and told its outlinks, the page is done
        without a fetch. True when that is so.
        """
        told = state.redo.pop(entry.key, None)
        redo = state.still(told) if told is not None else None
        if redo is None:
            return False
        for host, link in redo.outlinks:
            self._discovery.discover(host, link, [])
        self.out -= 1
        self._finish(state, entry, lambda: redo, self._redone_row(state, entry))
        self._frontier.keep_elsewhere(state.host, entry, redo.by)
        self._counters.redone += 1
        return True

    def count_overdue(self) -> None:
        """The handoff time-out has passed: count the hosts that no agent has handed over, from now on."""
        self._uncounted, self._overdue = iter(self._frontier.states()), 0

    def overdue(self) -> int | None:
        """How many own hosts with requests they are, said once. It looks at some more of them, and is None until it has
        looked at all; or until the view has changed, under which the others wait again.
        """
        if self._uncounted is None:
            return None
        some = [*islice(self._uncounted, COUNTED if self._view_history.forced else 0)]
        self._overdue += sum(map(self._is_overdue, some))
        if len(some) == COUNTED:
            return None
        self._uncounted = None
        return self._overdue

    def _is_overdue(self, state: HostState) -> bool:
        mine = bool(state.waiting) and self._keeping.keepers(state)[:1] == (self._me,)
        view_history, host = self._view_history, state.host
        return mine and view_history.is_overdue(host, self._group.alive) and not view_history.is_brought(host)

    def is_left(self) -> bool:
        """Whether something waits here, or is out, in a copy that is not to be dropped as others keep the host."""
        return self.awaits_visits() or any(
            (state.waiting or state.out)
            and (self._view_history.complete is not self._keeping.view or self._me in self._keeping.keepers(state))
            for state in self._frontier.states()
        )

    def holds_undone(self) -> bool:
        """Whether something is undone in any copy here, whoever keeps the host: a page that waits, is out, or may be
        due to be visited again (a copy knows no more than a time before which none is)."""
        return any(
            state.waiting or state.out or (state.visits.awaited and not self.visits_ended)
            for state in self._frontier.states()
        )

    # -- what becomes of it

    def freed(self, state: HostState, now: float) -> None:
        """The load of this host has ended: it may be fetched again after its delay."""
        self._frontier.free(state, now)

    def ended(self, state: HostState, key: int, outlinks: Outlinks | None = None, row: VisitRow | None = None) -> None:
        """A request handed out is done: everything that followed from it was discovered before, or it failed
        permanently. `outlinks` is what `discover` gathered of it, None when that may not be all. `row` is that of the
        visit, where the page is to be visited again, or was.
        """
        self.out -= 1
        self._quiescence.activity += 1
        if key in state.visits.out:
            self._visited(state, key, row)
            return
        redo = partial(Redo.from_outlinks, state.host, key, outlinks) if outlinks is not None else None
        self._counters.done += self._finish(state, state.out[key], redo, row)

    def _finish(self, state: HostState, entry: Entry, redo: MakeRedo | None, row: VisitRow | None) -> bool:
        """A page is done, here; False when it was before."""
        if not self._frontier.finish(state, entry.key):
            self._handover.closed_work(state)
            return False
        if row is not None and row_weight(row) <= self._config.bounds.size // 2:
            self._frontier.keep_row(state, row)
        elif row is not None:
            self._counters.heavy_rows += 1
        self._closing.add(self._journal.flush, state, entry, redo)
        self._journal.done(self._journal.flush, state.host, entry)
        return True

    def _visited(self, state: HostState, key: int, row: VisitRow | None) -> None:
        """A page was visited again. Without a row it has the one before, and is due still."""
        before = state.visit_row(key)
        if row is None or before is None:
            self._frontier.not_visited(state, key)
            self._handover.closed_work(state)
        elif not self._frontier.visited(state, key, row):
            self._handover.closed_work(state)  # another agent has visited it meanwhile
        else:
            self._closing.add_visit(self._journal.flush, state, key, before)
            self._journal.visited(self._journal.flush, state.host, before)
            self._counters.visited += 1

    def mark_joined_done(self, state: HostState, entry: Entry) -> None:
        """Count `entry` as done with the page that ended right before: its key belongs to the same page. Its done mark
        leaves no earlier than that page's, and waits for nothing else. Should this agent be lost before, the next owner
        fetches `entry`.
        """
        if state.is_known(entry.key):
            return
        self._frontier.add_done(state, (entry.key,))
        self._quiescence.activity += 1
        self._counters.done += 1
        state.open_work += 1
        self._closing.add(self._journal.flush, state, entry, None)
        self._journal.done(self._journal.flush, state.host, entry)

    def put_back(self, state: HostState, key: int, entry: Entry | None = None) -> None:
        """A request handed out was not fetched, or is to be fetched again (as `entry`)."""
        self.out -= 1
        self._quiescence.activity += 1
        if key in state.visits.out:
            self._frontier.not_visited(state, key, entry)
            self._handover.closed_work(state)
            return
        self._frontier.put_back(state, key, entry)
        if entry is not None:  # an heir is not to count its retries from zero
            self._keeping.found(state, (entry,), self._journal.flush)
        self._handover.closed_work(state)

    # -- pages that are visited again

    def wake(self, wall: int) -> None:
        """It is that time (unix s): pages of own hosts that are due have their turn from now on."""
        if not self.visits_ended and not self.stopped:
            self._frontier.wake(wall, self._is_mine)

    def awaits_visits(self) -> bool:
        """Whether a page of an own host is due, now or later."""
        return not self.visits_ended and self._frontier.awaits(self._is_mine)

    def _is_mine(self, state: HostState) -> bool:
        return self._keeping.keepers(state)[:1] == (self._me,)

    # -- loads beside the queues

    def borrow(self, host: str) -> HostState:
        """A load of this host begins that is not in its queue (robots.txt, media): it counts as work open here."""
        state, _ = self._frontier.add(host, ())
        state.open_work += 1
        self._quiescence.activity += 1
        return state

    def give_back(self, state: HostState, now: float | None) -> None:
        """Such a load has ended at this time; None: its delay has counted from its start."""
        if now is not None:
            self._frontier.defer(state, now)
        self._handover.closed_work(state)
