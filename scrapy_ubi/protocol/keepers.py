"""Keepers: who keeps a host under the present view, and what its other keepers are told of it
(docs/explanation/protocol.md#assignment).

Rules of this module:

* The ring of the present view says who: the owner first, then its successors. A host state remembers them until the
  view is another one.
* The news of a host goes to its other keepers on the state lane, with the flush in which it became known: done marks
  wait for it there (P5). What is too large for a letter is told to no agent, and counted.
* Of notes the last ones are told, once a tick, however often they have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import ABROAD, MOST_NOTES, NEVER_ABROAD, Entry, HostState, Notes
from scrapy_ubi.protocol.journal import Journal
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.notes import MOST_VERSION
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.view_change import ViewHistory


class Keepers:
    """The keepers of hosts, as one agent sees them. `view` is the one believed in, `ring` the assignment under it;
    `view_no` counts the views, and `view_flush` is the flush in which the present one was entered. `noted` has the
    hosts of which something was noted here and not told yet.
    """

    view: View
    ring: Ring

    def __init__(
        self,
        me: str,
        config: Config,
        counters: Counters,
        frontier: Frontier,
        group: Membership,
        view_history: ViewHistory,
        outbox: Outbox,
        journal: Journal,
    ) -> None:
        self.me = me
        self.config = config
        self.counters = counters
        self.frontier = frontier
        self.group = group
        self.view_history = view_history
        self.outbox = outbox
        self.journal = journal
        self.view_no = 0
        self.view_flush = journal.flush
        self.noted: dict[str, None] = {}

    def enter(self, view: View) -> None:
        """Believe in another view."""
        self.view, self.ring = view, view.ring
        self.view_no += 1
        self.view_flush = self.journal.flush

    # -- who keeps a host

    def keepers(self, state: HostState) -> tuple[str, ...]:
        """Owner and successors of a host held, under the present view."""
        if state.keepers_at != self.view_no:
            if state.keepers_at < 0:  # met for the first time: whose was it until now?
                alone = self.group.sure and len(self.view.members) == 1
                state.abroad = NEVER_ABROAD if alone or self.view_history.complete is self.view else ABROAD
            state.keepers = self.keepers_of(state.host)
            state.keepers_at = self.view_no
        return state.keepers

    def keepers_of(self, host: str) -> tuple[str, ...]:
        """Owner and successors of any host, under the present view; empty when no agent is left in it."""
        return self.ring.order(host, self.config.replication + 1) if self.view.members else ()

    def owner(self, host: str) -> str:
        """Whom a URL of this host is for: its owner, or this agent when no agent is left in the view."""
        return self.ring.owner(host) if self.view.members else self.me

    def owns(self, host: str) -> bool:
        """Whether this agent is the host's owner in its view."""
        return self.keepers_of(host)[:1] == (self.me,)

    def enough(self, now: float) -> bool:
        """Whether what is acknowledged at this time (s) has as many copies as it can have, and done marks may leave.

        Who is fenced may be held dead: what was acknowledged since has as many copies as there are agents without it.
        """
        return self.group.lease.holds(now) and self.view_history.enough

    # -- what they are told

    def others(self, state: HostState, but: str = "") -> list[str]:
        """The other keepers of a host, but one: those who are to be told of it."""
        keepers = self.keepers(state)
        if len(keepers) == 1 and keepers[0] == self.me:  # as of an agent alone: asked for each page several times
            return []
        return [keeper for keeper in keepers if keeper not in (self.me, but)]

    def found(self, state: HostState, news: Sequence[Entry], flush: int, but: str = "") -> None:
        """Tell the other keepers of a host, but one, of entries that are news."""
        others = self.others(state, but)
        if not others or not news:  # an agent alone has none, and makes no record
            return
        host, most, counters = state.host, self.config.bounds.size, self.counters
        told = [entry for entry in news if len(entry[1]) + len(entry[4]) <= most]  # `weight` in place
        records = [Record(host, flush, entry) for entry in told]
        counters.untravelled += len(news) - len(told)
        counters.replicated += len(others) * len(told)
        if told and flush:
            self.journal.told(flush, host)
        for keeper in others:
            self.outbox.put_entries(keeper, STATE, records, self.view)

    def replicate(self, state: HostState, record: Record, but: str = "") -> int:
        """Tell the other keepers of a host, but one, of this, which is no entry (see `found`); how many they are."""
        others = self.others(state, but)
        for keeper in others:
            self.outbox.put(keeper, STATE, record, self.view)
        self.counters.replicated += len(others)
        return len(others)

    def note(self, state: HostState, text: str) -> bool:
        """Note this of a host, in the place of all that was noted of it: a JSON object as `notes.canonical` writes it.
        The host's other keepers are told at the next tick, of the last of several notes only. True when that was news;
        of a host that is not held any more nothing is noted. Raises ValueError when it is too long.
        """
        if len(text) > MOST_NOTES:
            raise ValueError(f"notes of {len(text)} characters, more than {MOST_NOTES}")
        before = state.notes
        if text == before.text or before.version >= MOST_VERSION or self.frontier.find(state.host) is not state:
            return False
        self.frontier.note(state, Notes(before.version + 1, text, before.spent))
        self.noted[state.host] = None
        return True

    def spend(self, state: HostState, amount: int) -> None:
        """Count what this agent has spent on a host, before what it was spent for is done: who knows that it is done
        knows what it has cost, as notes are told first. Of a host that is not held any more nothing is counted."""
        if amount > 0 and self.frontier.find(state.host) is state:
            self.frontier.note(state, state.notes.spend(self.me, amount))
            self.noted[state.host] = None

    def tell_notes(self) -> None:
        """Tell what was noted since the last time."""
        noted, self.noted = self.noted, {}
        for host in noted:
            state = self.frontier.find(host)
            if state is not None:
                self.replicate(state, Record(host, self.journal.flush, notes=state.notes))
