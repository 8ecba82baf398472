"""Discovery: what becomes of a URL that was found, here or by another agent that could not place it
(docs/explanation/protocol.md#mail).

Rules of this module:

* A URL of an own host is queued here, and the host's other keepers are told. Any other one is told its owner, unless
  that one has been told before: a bounded memory, forgotten when an agent dies, for what the dead knew may be lost.
* Most links of a page are known. Whether one is (`met`) is asked before an entry is made of it, which costs ten times
  as much; nothing on that way may cost a call more than it must.
* What is too large for a letter is no news of another's host: it is not told, and `too_large` says why.
* A link that was found on no page is a *stray* (`done_mark_delivery.py`), and belongs into the redo of every page that
  has it.
* Of a page with more links than a redo may have none are gathered any longer: it has no redo (`done_mark_delivery.py`).
* Mail that was refused, or whose receiver is gone, is routed by the present view; the name in a refusal is a hint,
  followed only if that agent is in the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery, Outlinks
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.host_policy import HostPolicy, refuses_none
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.key_memory import KeyMemory
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.quiescence import Quiescence
from scrapy_ubi.protocol.records import MOST_OUTLINKS, Record, weight


def _firsts(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Without what one before it makes known: a page may have several spellings of one URL."""
    if len({entry.key for entry in entries}) == len(entries):
        return entries
    best: dict[int, tuple[int, int]] = {}
    kept: list[Entry] = []
    for entry in entries:
        rank, before = (entry.depth, -entry.priority), best.get(entry.key)
        if before is None or rank < before:
            best[entry.key] = rank
            kept.append(entry)
    return kept


class Discovery:
    """What one agent finds, under this policy. `forwarded` has what owners were told."""

    def __init__(self, keeping: Keepers, closing: DoneMarkDelivery, quiescence: Quiescence, policy: HostPolicy) -> None:
        self._me = keeping.me
        self._keeping = keeping
        self._config = keeping.config
        self._counters = keeping.counters
        self._frontier = keeping.frontier
        self._outbox = keeping.outbox
        self._journal = keeping.journal
        self._closing = closing
        self._quiescence = quiescence
        self.refuses, self._on_request = policy.refuses, policy.on_request
        self.forwarded = KeyMemory(keeping.config.suppressed_keys)

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        """Whether a URL that was found is known, here or by its owner, as far as is known here; counted if so.

        A stray (see `discover`) is never met.
        """
        if key in self._closing.strays:
            return False
        owner = self._keeping.owner(host)
        if owner == self._me:
            state = self._frontier.find(host)
            known = state is not None and state.holds(key, depth, priority)
        else:
            known = self.told(key, depth, priority)
        self._counters.links += known
        return known

    def told(self, key: int, depth: int, priority: int) -> bool:
        """Whether a URL of another's host was told its owner before, as one found no deeper; counted if so. The
        priority does not matter: it is there for this to be asked as `SetState.holds` is.
        """
        if not self.forwarded.has(key, depth):
            return False
        self._counters.suppressed += 1
        return True

    def too_large(self, host: str, entry: Entry) -> bool:
        """Whether a URL that was no news is of another's host, and too large to tell its owner: no agent has it."""
        if weight(entry) <= self._config.bounds.size or entry.key in self.forwarded:
            return False
        return self._keeping.owner(host) != self._me

    def discover(self, host: str, entry: Entry, outlinks: Outlinks | None = None) -> bool:
        """A URL was found: queue it here, tell its owner, or let it be. True when it was news, as far as is known
        here. `outlinks` gathers what was learned from one page; without it the URL comes from nowhere (a seed).
        """
        self._counters.links += 1
        news = self._discover(host, entry)
        if outlinks is None:
            if news:
                self._closing.stray(entry.key, self._journal.flush)
        elif len(outlinks) <= MOST_OUTLINKS and (news or entry.key in self._closing.strays):
            outlinks.append((host, entry))
        return news

    def discover_all(self, host: str, entries: Sequence[Entry], outlinks: Outlinks) -> list[Entry]:
        """Take in what one page says of one host, at once: that costs half as much. Return those that were news."""
        if self.refuses is not refuses_none:  # which may depend on those before
            return [entry for entry in entries if self.discover(host, entry, outlinks)]
        self._counters.links += len(entries)
        owner = self._keeping.owner(host)
        if owner == self._me:
            news = self._keep(host, entries if len(entries) == 1 else _firsts(entries), self._journal.flush)
        else:
            news = self._tell(owner, host, entries)
        if len(outlinks) > MOST_OUTLINKS:
            return news
        outlinks += [(host, entry) for entry in news]
        if strays := self._closing.strays:
            outlinks += [(host, entry) for entry in entries if entry.key in strays and entry not in news]
        return news

    def _discover(self, host: str, entry: Entry) -> bool:
        owner = self._keeping.owner(host)
        if owner != self._me:
            return bool(self._tell(owner, host, (entry,)))
        state = self._frontier.find(host)
        if state is not None and state.holds(entry.key, entry.depth, entry.priority):
            return False
        if self.refuses(state, entry):
            return False
        return bool(self._keep(host, (entry,), self._journal.flush))

    def _tell(self, owner: str, host: str, entries: Sequence[Entry]) -> list[Entry]:
        """Tell the owner of a host of entries; those that it was not told before."""
        forwarded, flush = self.forwarded, self._journal.flush
        most, news = self._config.bounds.size, []
        for entry in entries:
            key, url, depth, _, request = entry
            if len(url) + len(request) > most and not forwarded.has(key, depth):  # `weight` in place
                self._counters.untravelled += 1
                continue
            if not forwarded.add(key, depth):
                self._counters.suppressed += 1
                continue
            news.append(entry)
        records = [Record(host, flush, entry) for entry in news]
        self._outbox.put_entries(owner, DISCOVERY, records, self._keeping.view)
        self._journal.discovered(records)
        self._quiescence.activity += len(news)
        self._counters.forwarded += len(news)
        return news

    def _keep(self, host: str, entries: Iterable[Entry], flush: int) -> list[Entry]:
        """Merge entries of an own host, and tell its successors what is news, which is returned."""
        state, news = self._frontier.add(host, entries)
        if news:
            self._quiescence.activity += len(news)
            self._keeping.found(state, news, flush)
        return news

    def route(self, record: Record, hint: str) -> None:
        """A discovered entry needs another receiver. `hint`: the owner in the view of the one that refused it."""
        if record.entry is None:
            return
        owner = self._keeping.owner(record.host)
        if hint in self._keeping.view.members and hint != self._me:
            owner = hint
        self._outbox.close((record,))
        if owner == self._me:
            self.announce(self._frontier.find(record.host), (record.entry,))
            self._keep(record.host, (record.entry,), record.flush)
        else:
            self._outbox.put(owner, DISCOVERY, record, self._keeping.view)

    def announce(self, state: HostState | None, entries: Iterable[Entry]) -> None:
        """These entries of an own host come from elsewhere, and are about to be taken."""
        if state is None:
            return
        for entry in entries:
            if entry.request:
                self._on_request(state, entry)

    def forget(self) -> None:
        """An agent is gone: what it knew may have to be told again."""
        self.forwarded.clear()
