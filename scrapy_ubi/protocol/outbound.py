"""Outbound: the letters that leave an agent, and what follows when they are answered
(docs/explanation/protocol.md#mail).

Rules of this module:

* A record is closed when its receiver has acknowledged it. Of a discovery letter hosts may be refused: their records
  rest for a moment, and are routed again, with the name in the refusal as a hint.
* State is never refused, whatever an answer says. A record of it whose receiver is gone soils the copy: others are to
  be told.
* An outlink that is acknowledged while no done mark may leave is thin (`outbox.py`).
* A done mark that is acknowledged is work closed, and so is one whose receiver is gone.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from scrapy_ubi.protocol.answer import read_answer
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.outbox import REFUSED_PAUSE
from scrapy_ubi.protocol.quiescence import Quiescence
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.wire import encode


class Outbound:
    """The sending end of one agent."""

    def __init__(self, keeping: Keepers, handover: Handover, quiescence: Quiescence) -> None:
        self._me = keeping.me
        self._keeping = keeping
        self._counters = keeping.counters
        self._frontier = keeping.frontier
        self._outbox = keeping.outbox
        self._handover = handover
        self._quiescence = quiescence

    def letters(self, now: float) -> tuple[tuple[str, dict[str, str]], ...]:
        """The letters that are to leave at this time (s): receiver and stream fields."""
        letters = []
        for lane, letter, again in self._outbox.post(now, self._keeping.view.digest):
            fields = encode(self._me, lane, self._outbox.store, letter)
            letters.append((lane.receiver, fields))
            self._counters.letters_sent += 1
            self._counters.resent += again
            self._counters.bytes_sent += len(fields["body"])
        return tuple(letters)

    def answered(self, lane_name: str, text: str, now: float) -> None:
        """The answers that stand in the own acks hash for a lane. Raises Malformed when the text is none."""
        lane = self._outbox.by_name.get(lane_name)
        if lane is None or text == lane.answered:
            return
        lane.answered = text
        for seq, outcome in read_answer(text).items():
            letter = lane.settle(seq)
            if letter is None:
                continue
            self._quiescence.activity += 1
            if lane.kind == DISCOVERY:
                self._discovered(letter.records, outcome.refused, now)
            else:
                self._told(lane.receiver, letter.records, outcome.want)
            self._handover.sweep(letter.syncs)

    def _discovered(self, records: list[Record], refused: Mapping[str, str], now: float) -> None:
        """The owner has these entries, but for those of refused hosts."""
        taken = [record for record in records if record.host not in refused] if refused else records
        self._outbox.close(taken)
        if not self._keeping.enough(now):
            self._outbox.thin += taken
        for record in records if refused else ():
            if record.host in refused:
                self._outbox.hold_back((record,), now + REFUSED_PAUSE, refused[record.host])

    def _told(self, receiver: str, records: list[Record], want: Container[str]) -> None:
        """This receiver has these records of state; of hosts in `want` it wants all there is."""
        self._outbox.close(records)
        for record in records:
            if record.entry is not None:
                continue
            if record.done is not None:
                self._close_work(record)
            elif record.offer is not None:
                self._handover.answered(receiver, record, record.host in want, self._keeping.view)

    def lost(self, record: Record) -> None:
        """The receiver of this record of state is gone."""
        self._outbox.orphan(record)
        state = self._frontier.find(record.host)
        if state is not None and record.flush:
            state.dirty = True
            self._close_work(record)

    def _close_work(self, record: Record) -> None:
        state = self._frontier.find(record.host)
        if state is not None and record.flush and record.done is not None:
            self._handover.closed_work(state)
