"""The outbox: every lane of one sender, and what depends on their acknowledgements.

Rules of this module:

* What an agent writes is numbered by *flush*. An outlink (a discovered entry told to its owner or, by an owner, to its
  successors) is *open* from the flush it was written in until it is acknowledged. A done mark of flush f leaves only
  when no outlink of flush <= f is open (P5).
* Mail for an agent that is gone is taken back: discovered entries are routed again, state is dropped, for a view
  change brings the whole state of every host concerned to its new keepers. An outlink among it is an *orphan*, and
  open, until that has been done for its host.
* An outlink that was acknowledged while views had too few members is *thin*: fewer agents have it than copies are asked
  for, and it is told again when one of those who were there is gone. That ends when acknowledgements stand for all
  copies again; until then no done mark leaves, so none stands on a thin one. To a leaver, which keeps no copy of what
  it tells, it never ends.
* What comes back refused waits a moment before it is routed again, so that two agents whose views differ do not send
  it to and fro.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf

from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Bounds, Lane, Letter
from scrapy_ubi.protocol.records import Record, Sync
from scrapy_ubi.protocol.view import View

REFUSED_PAUSE = 0.25  # s: about a flush; views that differ agree within a heartbeat or two


class Outbox:
    """Lanes by (receiver, kind); `store` names the disk or memory their numbers live in."""

    def __init__(self, store: str, bounds: Bounds) -> None:
        self.store = store
        self.bounds = bounds
        self._widest = bounds.window
        self.lanes: dict[tuple[str, str], Lane] = {}
        self.by_name: dict[str, Lane] = {}
        self.outlinks: dict[int, int] = {}  # flush -> open outlinks; in rising order once `oldest` was asked
        self._rising = True
        self.returned: deque[tuple[float, Record, str]] = deque()
        self.orphans: list[tuple[int, str]] = []  # (flush, host) of outlinks whose host is to be brought to new keepers
        self.thin: list[Record] = []
        self.forgotten: list[str] = []
        self._numbers: dict[str, int] = {}  # of lanes that are gone: nothing goes through all of them
        self._told_numbers: dict[str, int] = {}
        self._untold: set[str] = set()  # of these, lanes that are gone since numbers were told

    def stretch(self, bounds: Bounds) -> None:
        """Keep to these from now on; what is under way stays so."""
        self.bounds, self._widest = bounds, max(self._widest, bounds.window)

    def __len__(self) -> int:
        return sum(map(len, self.lanes.values())) + len(self.returned)

    def lane(self, receiver: str, kind: str, view: View) -> Lane:
        """The lane to a receiver, made when it is first needed."""
        lane = self.lanes.get((receiver, kind))
        if lane is None:
            lane = Lane(self.store, receiver, kind, view.incarnation(receiver))
            lane.next_seq = self._numbers.get(lane.name, 1)
            self.lanes[receiver, kind] = self.by_name[lane.name] = lane
        return lane

    def put(self, receiver: str, kind: str, record: Record, view: View) -> None:
        """A record for a receiver; an entry with a flush is an outlink, and open from now on."""
        self.lane(receiver, kind, view).put(record)
        if record.entry is not None and record.flush:
            self._open(record.flush)

    def put_entries(self, receiver: str, kind: str, records: Sequence[Record], view: View) -> None:
        """Put records of entries of one flush, at once: what one page has told of one host."""
        if records:
            self.lane(receiver, kind, view).put_all(records)
            if records[0].flush:
                self._open(records[0].flush, len(records))

    def _open(self, flush: int, count: int = 1) -> None:
        outlinks = self.outlinks
        if flush in outlinks:
            outlinks[flush] += count
        else:
            self._rising = self._rising and (not outlinks or flush > next(reversed(outlinks)))
            outlinks[flush] = count

    def close(self, records: Iterable[Record]) -> None:
        """These records need no acknowledgement any more."""
        flushes = [record.flush for record in records if record.entry is not None and record.flush]
        for flush, count in Counter(flushes).items():
            self._close(flush, count)

    def _close(self, flush: int, count: int = 1) -> None:
        left = self.outlinks[flush] - count
        if left:
            self.outlinks[flush] = left
        else:
            del self.outlinks[flush]

    def orphan(self, record: Record) -> None:
        """The successor that was told this is gone: an outlink stays open until its host is with its new keepers."""
        if record.entry is not None and record.flush:
            self.orphans.append((record.flush, record.host))

    def close_orphans(self, busy: Callable[[Iterable[str]], bool]) -> None:
        """Close those whose host is brought. `busy`: whether one of these hosts is still to be; asked of none, whether
        all hosts are.
        """
        if busy(()):
            return
        still = []
        for flush, host in self.orphans:
            if busy((host,)):
                still.append((flush, host))
            else:
                self._close(flush)
        self.orphans = still

    def done_may_leave(self, flush: int) -> bool:
        """Whether a done mark written in that flush may leave its owner (P5)."""
        oldest = self.oldest()
        return oldest is None or flush < oldest

    def oldest(self) -> int | None:
        """The oldest flush with an open outlink; None when none is open."""
        if not self._rising:
            self.outlinks, self._rising = dict(sorted(self.outlinks.items())), True
        return next(iter(self.outlinks), None)

    def hold_back(self, records: Iterable[Record], until: float, hint: str) -> None:
        """Refused records wait until that time (s); they stay open. `hint` names who should have them."""
        self.returned.extend((until, record, hint) for record in records)

    def due_again(self, now: float) -> list[tuple[Record, str]]:
        """The refused records whose pause is over."""
        due = []
        while self.returned and self.returned[0][0] <= now:
            _, record, hint = self.returned.popleft()
            due.append((record, hint))
        return due

    def take_back(self, view: View) -> tuple[set[str], list[Record], list[Record]]:
        """Empty the lanes to receivers that are not in the view: who they are, and the discovery and state records in
        them.

        A receiver that is there under another incarnation is as good as gone, too: what was under way may have died
        with it.
        """
        gone: set[str] = set()
        entries: list[Record] = []
        state: list[Record] = []
        for (receiver, kind), lane in list(self.lanes.items()):
            present = view.incarnation(receiver)
            if present == lane.incarnation:
                continue
            (entries if kind == DISCOVERY else state).extend(lane.empty())
            lane.incarnation = present
            gone.add(receiver)
            if not present:
                self._numbers[lane.name] = lane.next_seq
                self._untold.add(lane.name)
                self.forgotten.append(lane.name)
                del self.lanes[receiver, kind], self.by_name[lane.name]
        return gone, entries, state

    def take_thin(self) -> list[Record]:
        """The thin outlinks, to be told again: they are open again."""
        thin, self.thin = self.thin, []
        for record in thin:
            self._open(record.flush)
        return thin

    def new_numbers(self) -> dict[str, int]:
        """The next numbers of lanes, by the lane's name, that have changed since this was last asked."""
        present = {name: self._numbers[name] for name in self._untold}
        present.update((name, lane.next_seq) for name, lane in self.by_name.items())
        self._untold.clear()
        before = self._told_numbers
        new = {name: number for name, number in present.items() if before.get(name) != number}
        before.update(new)
        return new

    def resume(self, numbers: Mapping[str, int], discovered: Iterable[Record], told: Iterable[tuple[int, str]]) -> None:
        """Begin again with what was found on disk: lanes go on counting, outlinks are open until they are told
        again."""
        self._numbers, self._told_numbers = dict(numbers), dict(numbers)
        for record in discovered:
            self._open(record.flush)
            self.returned.append((-inf, record, ""))
        for flush, host in told:
            self._open(flush)
            self.orphans.append((flush, host))

    def post(self, now: float, view: str) -> Iterator[tuple[Lane, Letter, bool]]:
        """Every letter to send now; the flag says whether it is sent again. Lanes with nothing under way need no answer
        any more: those are `forgotten`.
        """
        for lane in list(self.lanes.values()):
            if lane.answered and not lane.unacknowledged:
                # All own answers are read in every exchange: what is not waited for would make up most of it in a large
                # group. Should an answer go with it that was wanted after all, its letter is sent again.
                self.forgotten.append(lane.name)
                lane.answered = ""
            for letter in lane.resend(now):
                yield lane, letter, True
            for letter in lane.post(now, view, self.bounds):
                yield lane, letter, False

    def left_later(self, said: float, left: float) -> None:
        """An exchange took long, or was tried for long: no receiver could have answered what was to leave at the first
        time (s), and left at the second."""
        for lane in self.lanes.values():
            lane.left_later(said, left)

    def hurry(self, to: Collection[str] | None = None) -> None:
        """Mail may have been lost: everything under way, or what is to these agents, is due now."""
        for lane in self.lanes.values():
            if to is None or lane.receiver in to:
                lane.hurry()

    def state_oldest(self, receiver: str) -> int | None:
        """The oldest flush with a record for that receiver's copy that is not acknowledged; None when all is."""
        lane = self.lanes.get((receiver, STATE))
        return lane.oldest() if lane is not None else None

    def cancel(self, sync: Sync) -> None:
        """The receiver of a sync keeps the host no longer: what has not left need not."""
        lane = self.lanes.get((sync.receiver, STATE))
        if lane is not None:
            lane.cancel(sync)

    def check_invariants(self) -> None:
        """Assert every invariant of the outbox."""
        count: dict[int, int] = {}
        for lane in self.lanes.values():
            lane.check_invariants(self._widest)
            for letter in lane.unacknowledged.values():
                for record in letter.records:
                    count[record.flush] = count.get(record.flush, 0) + (record.entry is not None)
            for item in lane.waiting:
                if isinstance(item, Record):
                    count[item.flush] = count.get(item.flush, 0) + (item.entry is not None)
        for _, record, _ in self.returned:
            count[record.flush] = count.get(record.flush, 0) + 1
        for flush, _ in self.orphans:
            count[flush] = count.get(flush, 0) + 1
        count.pop(0, None)
        assert {f: n for f, n in count.items() if n} == self.outlinks, (count, self.outlinks)
        assert self.oldest() == min(self.outlinks, default=None)
