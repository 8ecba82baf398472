"""Lanes: how the letters of one agent to another are numbered, sent again and acknowledged, so that none is lost
(docs/explanation/protocol.md#mail).

Rules of this module:

* Records travel in *letters*, grouped by host into deltas.
* A *lane* is (sender's store, receiver, kind) with sequence numbers of its own. Kinds: `discovery` (to owners, may be
  refused, acknowledged when durable at owner and successors) and `state` (to keepers, never refused, acknowledged
  when durable here, waits for nothing). Two lanes, so that acknowledgements never wait in a circle.
* At most `window` letters of a lane are unacknowledged; the rest waits in the sender's outbox. A letter is sent again
  after a time-out that doubles up to a bound.
* The *floor* of a lane is its lowest unacknowledged number. The receiver remembers what became of every letter from the
  floor on, and says it again when the letter comes again; so a lost acks key is harmless.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from scrapy_ubi.protocol import answer
from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.records import Record, Sync, size

DISCOVERY, STATE = "discovery", "state"
MOST_RESEND = 60.0  # s: a letter that is never acknowledged is sent again at least this often
MOST_WINDOW = 32  # letters of a lane that may be under way, however far Redis is
WINDOW_A_SECOND = 120  # letters more for each second of a round trip
RESEND_ROUND_TRIPS = 25  # that a letter waits longer for its acknowledgement, which takes several exchanges
MOST_LOOKED_AT = 20_000  # records that wait, when it is asked of which hosts they are: some milliseconds
MOST_LANES_IN = 4096  # lanes a receiver remembers; the one used longest ago is forgotten, and its resends merged again


@dataclass(slots=True)
class Letter:
    """A numbered batch of records on a lane, kept until acknowledged. Times are seconds of the sender's clock: it was
    `said` when it was last given out to be sent, and is `due` when it is to be again.
    """

    seq: int
    view: str
    records: list[Record]
    syncs: list[Sync] = field(default_factory=list)
    said: float = 0.0
    due: float = 0.0
    pause: float = 0.0
    size: int = 0

    def add(self, record: Record, bounds: Bounds) -> bool:
        """Append a record where the letter keeps to its bounds with it, too. Return whether it does. One record has
        room in any letter."""
        grown = self.size + size(record)
        if self.records and (len(self.records) >= bounds.records or grown > bounds.size):
            return False
        self.records.append(record)
        self.size = grown
        return True


class Bounds(NamedTuple):
    """What a lane keeps to: letters under way, records and characters a letter, seconds before the first resend."""

    window: int
    records: int
    size: int
    resend: float

    def stretched(self, round_trip: float) -> Bounds:
        """These for an agent whose Redis is so far away (s): an acknowledgement takes several round trips, and
        meanwhile no more is under way than the window. Receivers need not know."""
        window = max(self.window, min(MOST_WINDOW, self.window + int(WINDOW_A_SECOND * round_trip)))
        resend = max(self.resend, min(MOST_RESEND / 2, self.resend + RESEND_ROUND_TRIPS * round_trip))
        return self._replace(window=window, resend=resend)


class Lane:
    """The sender's end of a lane: what waits, what is under way. `store/receiver/kind` names it."""

    def __init__(self, store: str, receiver: str, kind: str, incarnation: str) -> None:
        self.name = f"{store}/{receiver}/{kind}"
        self.receiver = receiver
        self.kind = kind
        self.incarnation = incarnation
        self.waiting: deque[Record | Sync] = deque()
        self.unacknowledged: dict[int, Letter] = {}
        self.next_seq = 1
        self.open: dict[int, int] = {}  # flush -> how many of its records are not acknowledged; as `Outbox.outlinks`
        self._rising = True
        self.answered = ""  # the acks text last read, so that the same text costs nothing
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, record: Record) -> None:
        """Let a record wait for its letter."""
        self.waiting.append(record)
        self._opened(record.flush, 1)

    def put_all(self, records: Sequence[Record]) -> None:
        """Let records of one flush wait for their letter."""
        self.waiting.extend(records)
        self._opened(records[0].flush, len(records))

    def put_sync(self, sync: Sync) -> None:
        """Let the whole state of a host wait for its letters."""
        sync.waits = True
        self.waiting.append(sync)
        self._opened(sync.flush, 1)  # the promise itself is open until the last record of it is

    def cancel(self, sync: Sync) -> None:
        """What of a sync has not left need not. It is passed over when it has its turn: to seek it among all that wait
        takes long, and a change of view cancels thousands.
        """
        if sync.waits:
            sync.waits = False
            self.closed(sync.flush)

    def _opened(self, flush: int, count: int) -> None:
        self._count += count
        if flush in self.open:
            self.open[flush] += count
        else:  # where older flushes come back (re-routed), thousands may: they are put in order once, by `oldest`
            self._rising = self._rising and (not self.open or flush > next(reversed(self.open)))
            self.open[flush] = count

    def closed(self, flush: int, count: int = 1) -> None:
        """So many records of that flush need no acknowledgement any more."""
        self._count -= count
        left = self.open[flush] - count
        assert left >= 0, (self.name, flush)
        if left:
            self.open[flush] = left
        else:
            del self.open[flush]

    def oldest(self) -> int | None:
        """The oldest flush with a record that is not acknowledged; None when there is none."""
        if not self._rising:
            self.open, self._rising = dict(sorted(self.open.items())), True
        return next(iter(self.open), None)

    @property
    def floor(self) -> int:
        """The lowest number that is not acknowledged."""
        return min(self.unacknowledged, default=self.next_seq)

    def resend(self, now: float) -> list[Letter]:
        """The letters under way whose time-out has passed, to be sent again now; each waits twice as long from then
        on.
        """
        letters = [letter for letter in self.unacknowledged.values() if now >= letter.due]
        for letter in letters:
            letter.pause = min(letter.pause * 2, MOST_RESEND)
            letter.said, letter.due = now, now + letter.pause
        return letters

    def post(self, now: float, view: str, bounds: Bounds) -> list[Letter]:
        """New letters of what waits, as far as the window allows."""
        letters = []
        while len(self.unacknowledged) < bounds.window and self._waits():
            letter = Letter(self.next_seq, view, [], said=now, pause=bounds.resend, due=now + bounds.resend)
            self._fill(letter, bounds)
            self.next_seq += 1
            self.unacknowledged[letter.seq] = letter
            letters.append(letter)
        return letters

    def _waits(self) -> bool:
        """Whether anything waits; what was cancelled and stands before it goes."""
        waiting = self.waiting
        while waiting and isinstance(head := waiting[0], Sync) and not head.waits:
            waiting.popleft()
        return bool(waiting)

    def _fill(self, letter: Letter, bounds: Bounds) -> None:
        waiting, records, most, largest = self.waiting, letter.records, bounds.records, bounds.size
        while waiting:
            head = waiting[0]
            if isinstance(head, Sync):
                if not self._take(head, letter, bounds):
                    return
            else:  # `Letter.add` in place: nearly all are records
                grown = letter.size + size(head)
                if records and (len(records) >= most or grown > largest):
                    return
                records.append(head)
                letter.size = grown
            waiting.popleft()

    def _take(self, sync: Sync, letter: Letter, bounds: Bounds) -> bool:
        """Move records of a sync into the letter; True when all of it has left."""
        if not sync.waits:
            return True
        record = sync.peek()
        if record is not None and not letter.add(record, bounds):
            return False
        sync.outstanding += 1
        letter.syncs.append(sync)
        while record is not None:
            self._opened(record.flush, 1)
            sync.take_record()
            record = sync.peek()
            if record is not None and not letter.add(record, bounds):
                break
        if sync.exhausted:
            sync.waits = False
            self.closed(sync.flush)
        return sync.exhausted

    def settle(self, seq: int) -> Letter | None:
        """The letter with this number is answered: take it out; None when it is not under way (an old answer)."""
        letter = self.unacknowledged.pop(seq, None)
        if letter is not None:
            for flush, count in Counter([record.flush for record in letter.records]).items():
                self.closed(flush, count)
            for sync in letter.syncs:
                sync.outstanding -= 1
        return letter

    def left_later(self, said: float, left: float) -> None:
        """What was to leave at the first time (s) left at the second: its time-outs begin then. What was under way
        before may be lost, and waits no longer."""
        for letter in self.unacknowledged.values():
            if letter.said == said:
                letter.due += left - said

    def hurry(self) -> None:
        """Mail may have been lost: send what is under way again at once."""
        for letter in self.unacknowledged.values():
            letter.due, letter.pause = 0.0, min(letter.pause, MOST_RESEND)

    def hosts_until(self, flush: int, most: int) -> set[str] | None:
        """The hosts of which something of that flush, or an older one, is not acknowledged; None where it would take
        long to say, or these are more than `most`."""
        oldest = self.oldest()
        if oldest is None or oldest > flush:
            return set()
        if len(self.waiting) > MOST_LOOKED_AT:
            return None
        under_way = (record for letter in self.unacknowledged.values() for record in letter.records)
        waits = (item for item in self.waiting if isinstance(item, Record) or item.waits)
        hosts = {item.host for item in (*under_way, *waits) if item.flush <= flush}
        return hosts if len(hosts) <= most else None

    def records(self) -> list[Record]:
        """All that is under way or waits, syncs excepted."""
        records = [record for letter in self.unacknowledged.values() for record in letter.records]
        return records + [item for item in self.waiting if isinstance(item, Record)]

    def empty(self) -> list[Record]:
        """Take everything out, under way or waiting, syncs excepted (the receiver is gone)."""
        records = self.records()
        for item in self.waiting:
            if isinstance(item, Sync):
                item.waits = False
        self.unacknowledged.clear()
        self.waiting.clear()
        self.open.clear()
        self._count = 0
        return records

    def check_invariants(self, window: int) -> None:
        """Assert every invariant of the lane."""
        assert len(self.unacknowledged) <= window, self.name
        assert self.oldest() == min(self.open, default=None), self.name
        assert len(self) == sum(self.open.values()), self.name
        count = sum(len(letter.records) for letter in self.unacknowledged.values())
        waiting = sum(1 for item in self.waiting if isinstance(item, Record) or item.waits)
        assert count + waiting == len(self), (self.name, count, waiting, self.open)


class LaneIn:
    """The receiver's end of a lane: what became of each letter from the sender's floor on. None: not decided yet."""

    def __init__(self, sender: str) -> None:
        self.sender = sender
        self.floor = 0
        self.outcomes: dict[int, Outcome | None] = {}

    def raise_floor(self, floor: int) -> None:
        """The sender needs no answer below this number."""
        if floor > self.floor:
            self.floor = floor
            for seq in [s for s in self.outcomes if s < floor]:
                del self.outcomes[seq]

    def text(self, most: float = inf) -> str:
        """The answer to the sender: JSON, as it stands in the sender's acks hash. Where it would have more than `most`
        characters it says what became of the first letters; of the others when the floor has risen above those.
        """
        return answer.text(self.outcomes, most)
