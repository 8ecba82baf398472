"""Pages that are done here and that others may not know to be: their done marks, and what an heir needs meanwhile (P5).

Rules of this module:

* Done marks come last: a mark leaves for the host's other keepers when every outlink of its flush and of those before
  is acknowledged, in the order in which the pages ended. After a view that had too few members for
  all copies none leaves before all have settled: who is gone may come back with its disk, and without outlinks that
  the others have.
* Until then the keepers are told a *redo*: the page's outlinks, so that an heir need not fetch it again (decision
  0005). A page whose mark may leave with the flush in which it ends needs none.
* A page that was visited again is done already: until its mark may leave with the new row the others are told the row
  before (`host_visits.py`). It has no redo: an heir visits it once more.
* A link that was found on no page (a seed, a *stray*) dies with its agent until it is acknowledged: it belongs into the
  redo of every page that has it, known or not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from scrapy_ubi.protocol.host import Entry, HostState, Redo, VisitRow
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import MOST_OUTLINKS, Record, done_mark, size

Outlinks = list[tuple[str, Entry]]  # what one page has taught: hosts and entries
MakeRedo = Callable[[], Redo]


class DoneMarkDelivery:
    """The pages of one agent that are closing. `replicate` tells the other keepers of a host, and returns how many they
    are; `settled(state)` is called for each page once its mark has left. `strays` has the links found on no page that
    may not be acknowledged yet: key -> flush in which they were told on.
    """

    def __init__(
        self,
        outbox: Outbox,
        replicate: Callable[[HostState, Record], int],
        settled: Callable[[HostState], None],
    ) -> None:
        self._outbox = outbox
        self._replicate = replicate
        self._settled = settled
        self.unsent: list[tuple[int, HostState, int]] = []  # flush, host state, key; oldest first
        self._redos: list[tuple[HostState, int, MakeRedo]] = []
        self.strays: dict[int, int] = {}  # always this same dict: the short path looks into it for every link

    def __len__(self) -> int:
        return len(self.unsent)

    def oldest(self) -> int | None:
        """The oldest flush with a page whose done mark has not left; None when there is none."""
        return self.unsent[0][0] if self.unsent else None

    def add(self, flush: int, state: HostState, entry: Entry, redo: MakeRedo | None) -> None:
        """A page is done, in this flush. `redo` makes its redo if one is needed; None when its outlinks may not be
        all."""
        state.close(entry)
        self.unsent.append((flush, state, entry.key))
        if redo is not None:
            self._redos.append((state, entry.key, redo))

    def resume(self, flush: int, state: HostState, entry: Entry) -> None:
        """A page that the disk says is done in that flush, and whose done mark had not left."""
        state.open_work += 1
        self.add(flush, state, entry, None)

    def add_visit(self, flush: int, state: HostState, key: int, before: VisitRow | None) -> None:
        """A page was visited again, in this flush; others know the row `before`."""
        state.visits.close(key, before)
        self.unsent.append((flush, state, key))

    def resume_visit(self, flush: int, state: HostState, key: int, before: VisitRow | None) -> None:
        """A page that the disk says was visited again in that flush, and whose row had not left."""
        state.open_work += 1
        self.add_visit(flush, state, key, before)

    def stray(self, key: int, flush: int) -> None:
        """A link was found on no page, and told on in this flush."""
        self.strays[key] = flush

    def send(self, flush: int, most: int, enough: bool) -> None:
        """Let the done marks leave that may, with this flush, and the redos of the others. `most` is about how many
        characters a letter may have; `enough`: whether an acknowledgement stands for all copies."""
        sent = 0
        for written, state, key in self.unsent:
            if not enough or not self._outbox.done_may_leave(written):
                break
            sent += 1
            if self._closed(state, key):
                state.open_work += self._replicate(state, done_mark(state, key, flush))
            self._settled(state)
        del self.unsent[:sent]
        self._send_redos(flush, most)
        self._forget_strays()

    def _closed(self, state: HostState, key: int) -> bool:
        """The done mark of a page may leave; False where one of a later visit will."""
        if key in state.closing:
            state.closed(key)
            return True
        return state.visits.closed(key)

    def _send_redos(self, flush: int, most: int) -> None:
        redos, self._redos = self._redos, []
        for state, key, make in redos:
            if key not in state.closing:
                continue
            redo = make()
            record = Record(state.host, flush, redo=redo)
            if len(redo.outlinks) + len(redo.own) <= MOST_OUTLINKS and size(record) <= most:
                self._replicate(state, record)

    def _forget_strays(self) -> None:
        strays, oldest = self.strays, self._outbox.oldest()
        # All in one pass: to start again for each takes seconds where a hundred thousand seeds waited for one letter.
        for key in [*takewhile(lambda key: oldest is None or strays[key] < oldest, strays)]:
            del strays[key]
