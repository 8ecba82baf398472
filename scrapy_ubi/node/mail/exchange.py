"""The post: the agent's mail between protocol and transport.

Rules of this module:

* One exchange at a time. What a drain gave is repeated until an exchange has taken it (all of it is idempotent); only
  then is there a next drain. While Redis is away the agent goes on with what it has, up to so much that others do not
  know of (`Exchanges.choked`), and tries again after a pause (`trouble`); the disk is written as often as ever.
* An exchange that fails may have been too much for the line to carry in time: the next one sends half as many letters,
  and the rest follows. Else the same would be sent, in vain, for ever.
* What comes out of the inbox is sorted first (`sorting`): the protocol sees what holds.
* What pages have given outlasts the process before they are done on the disk (`on_flush`): where that cannot be, no
  flush is written, as with a full disk.
* An inbox entry is deleted after the drain that follows its merge, so never before it is durable.
* What the control hash says of the run is in `runs`. After an absence an agent looks there before it sends. While
  another process may live under its identifier, whose the mail is then, it only looks.
* When there is an exchange, and what it reads, is `pacing`'s matter. With nothing to send or to read it is for the disk
  alone.
* Who writes to the control hash, or whose last exchange has failed, looks there at once; and in every exchange while
  others may write there what this agent has written, too (`Runs.has_rivals`).
* A disk that is full takes no flush, and so nothing leaves: the same flush is tried again until there is room. The
  profile is published, so that people see why the crawl waits.
* A Redis that is full refuses what needs memory. Mail is read and deleted all the same, which makes room where the
  mail itself fills it; and the profile is published, so that people see why the crawl waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace

from scrapy_ubi.frontier.store import StoreError, StoreFull
from scrapy_ubi.node.disk import Disk
from scrapy_ubi.node.mail.inbox_check import RUN, Judge, Sorting
from scrapy_ubi.node.mail.io_thread import Courier
from scrapy_ubi.node.mail.outage import AWAY, DISK, FULL, SLOW, Trouble
from scrapy_ubi.node.mail.run_state import Runs
from scrapy_ubi.node.mail.timing import Pacing
from scrapy_ubi.node.protocol_config import LETTER_BYTES_A_CHARACTER
from scrapy_ubi.node.report.query_inbox import Desk
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent, Effects
from scrapy_ubi.protocol.bundle import gathered
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Fields, Incoming, Outgoing, Transport, TransportDown, TransportFull
from scrapy_ubi.untrusted.checks import Malformed

logger = logging.getLogger("scrapy_ubi")

ALL = 1_000_000  # letters of one exchange, as many as there may ever be
EASY = 0.5  # s: an exchange that took less may send twice as many

LOOK = Outgoing(read_inbox=False, read_acks=False)  # at the control hash
NOTHING = Outgoing(read_inbox=False, read_acks=False, read_control=False)  # for the disk alone


class DiskFull(Exception):
    """A flush could not be written for want of room. `incoming` is what Redis had meanwhile (None: it was away),
    `why` a sentence."""

    def __init__(self, why: StoreFull, incoming: Incoming | None) -> None:
        super().__init__(str(why))
        self.why = str(why)
        self.incoming = incoming


class Post:
    """Carries the mail of `agent`. `control` is what the control hash said at the start, `judge` knows what only the
    adapters can (callbacks, partition keys), `on_arrival` is called in the loop when there is something to `collect`,
    `disk` is written before anything leaves; `facts` says what it is to hold of the run with this name, None when
    nothing of that is new. `desk` answers what people ask. `on_flush`: see `Node`.
    """

    def __init__(
        self,
        agent: Agent,
        transport: Transport,
        courier: Courier,
        settings: UbiSettings,
        control: Mapping[str, str],
        judge: Judge,
        on_arrival: Callable[[], None],
        disk: Disk,
        facts: Callable[[str], Mapping[str, object] | None],
        desk: Desk | None = None,
        on_flush: Callable[[], str] = lambda: "",
    ) -> None:
        self._agent = agent
        self._transport = transport
        self._sorting = Sorting(agent, judge, settings.max_url_length)
        self._courier = courier
        self._on_arrival = on_arrival
        self._desk = desk
        self._largest = settings.max_letter_bytes // LETTER_BYTES_A_CHARACTER
        self._pacing, self._most_waiting = Pacing(agent, settings.flush_interval), settings.flush_records
        self._under_way: Future[Incoming] | None = None
        self._out: Outgoing | None = None
        self._filled = 0.0  # when a drain gave it (s)
        self._most = ALL  # letters of it that the next exchange sends
        self._consumed: list[str] = []
        self._absence, self._looked, self._only_looks = settings.lease_timeout, 0.0, False
        self._only_disk = False
        self._drained = 0.0  # when the last drain was that a profile goes with (s)
        self.told = 0.0  # and the last of those that has left
        self._disk, self._facts = disk, facts
        self._on_flush = on_flush
        self._unflushed = ""  # why what the pages have given may not outlast the process
        self._runs = Runs(agent, control, str(disk.facts.get("run", "")))
        self._trouble = Trouble()
        self.full = False  # the last exchange was refused for want of memory
        self.disk_full = False  # the last flush could not be written
        self.writes_refused = 0  # exchanges so far that were

    @property
    def control(self) -> Fields:
        """What the control hash said last."""
        return self._runs.control

    @property
    def dead_letters(self) -> int:
        """Letters, and parts of some, set aside so far."""
        return self._sorting.set_aside

    @property
    def away(self) -> bool:
        """Whether the last exchange has not reached Redis, or was not answered in time."""
        return self._trouble.kind in (AWAY, SLOW)

    @property
    def busy(self) -> bool:
        """Whether something waits for an exchange to take it."""
        return self._out is not None

    def may_send(self, now: float, hurry: bool) -> bool:
        """Whether it is time (s) for another exchange, or there is cause to hurry."""
        if self._under_way is not None or self._agent.usurped:
            return False  # what is in the inbox of a usurped agent is for that other process
        if now < self._trouble.retry_at:
            return not self.disk_full and now >= self._pacing.due  # for the disk
        return hurry or self._pacing.is_time(now)

    def send(self, now: float, profile: Callable[[], str | None]) -> None:
        """Begin an exchange of what a drain gives (or of what the last exchange did not get rid of)."""
        shadowed = self._agent.group.shadowed
        self._only_looks = bool(self._pacing.sent) and (shadowed or now - self._looked > self._absence)
        # What was collected at a mere look, and had no room, comes first: the next drain would not be durable with it.
        self._only_disk = now < self._trouble.retry_at or (self._out is None and self._disk.due)
        if self._only_disk:
            self._pacing.wait(now)
            self._collect()
            blocked = profile() if self.disk_full and not self._only_looks else None
            self._under_way = self._courier.send(self._carry(NOTHING, blocked), self._on_arrival)
            return
        if self._only_looks:
            if shadowed:
                self._pacing.wait(now)
            self._collect()  # while Redis is away the disk is written all the same
            self._under_way = self._courier.send(self._carry(LOOK, None), self._on_arrival)
            return
        if self._out is None:
            self._out, self._filled = self._outgoing(now, self._agent.drain(now), profile()), now
            self._drained = self._drained if self._out.profile is None else now
        elif self._out.profile is None:  # what is sent in parts, or refused, may take long
            self._out = replace(self._out, profile=profile())
        self._collect()
        if not self._pacing.sent:
            self._runs.begin(now)
            self._looked = now
        self._pacing.begun(now)
        blocked = profile() if self.disk_full else None
        self._under_way = self._courier.send(self._carry(self._asking(self._out, now), blocked), self._on_arrival)

    def _collect(self) -> None:
        """Have the disk take in what is new."""
        self._unflushed = self._on_flush()
        if not self._disk.due:
            self._disk.collect(snapshot.changes(self._agent), self._facts(self._runs.run))

    def _asking(self, out: Outgoing, now: float) -> Outgoing:
        """What to send, with what is to be read."""
        read = self._pacing.reads(now, bool(self._trouble.kind))
        waits = any(lane.unacknowledged for lane in self._agent.outbox.lanes.values())
        look = self._pacing.looks(now) or self._runs.has_rivals(now)
        look = (read and look) or bool(out.control or out.forget_control or self._trouble.kind)
        letters = out.letters[: self._most]
        return replace(out, letters=letters, read_inbox=read, read_acks=read and waits, read_control=look)

    async def _carry(self, out: Outgoing, blocked: str | None) -> Incoming:
        """Write the disk, then exchange. What has happened is durable before others hear of it."""
        try:
            if self._unflushed:
                raise StoreFull(self._unflushed)
            await self._disk.write()
        except StoreFull as error:
            raise DiskFull(error, await self._look(blocked)) from error
        return Incoming(control=None) if out.is_nothing else await self._transport.exchange(out)

    async def _look(self, profile: str | None) -> Incoming | None:
        """What Redis has, whatever state it is in, while nothing may leave."""
        try:
            return await self._transport.exchange(replace(LOOK if self._only_looks else Outgoing(), profile=profile))
        except TransportFull as error:
            return error.incoming
        except TransportDown:
            return None

    def collect(self, now: float) -> bool:
        """Take in what the exchange under way has brought; False when there is nothing (yet)."""
        if self._under_way is None or not self._under_way.done():
            return False
        waits = now < self._trouble.retry_at and (self.disk_full or not self._only_disk)
        if waits or not self._settled(now):
            return False  # what has come stays where it is
        future, self._under_way = self._under_way, None
        self.disk_full = False
        if self._only_disk and future.exception() is None:
            return True
        self._pacing.ended(now)
        try:
            incoming = future.result()
        except DiskFull as error:
            self.disk_full = True
            self._trouble.met(now, DISK, f"{error.why} Nothing is fetched until then.")
            if error.incoming is not None:
                self._take(error.incoming, now)
            return True
        except StoreError as error:
            self._disk.trouble(error)
            return True
        except TransportFull as error:
            self._refused(now, error)
            return True
        except TransportDown as error:
            if self._out is not None and self._out.letters and not self._only_looks:
                self._most = max(1, min(self._most, len(self._out.letters)) // 2)
            self._unanswered(now, error)
            return True
        if not self._only_looks or self._trouble.kind == DISK:  # a replica can be looked at, and takes no mail
            self._trouble.over()
            self.full = False
        if not self._only_looks:
            self._sent_so_far(now)
        self._take(incoming, now)
        return True

    def _unanswered(self, now: float, error: TransportDown) -> None:
        """Redis is away, or only too slow: then it took its time, and has answered a beat meanwhile."""
        took = now - self._pacing.sent
        if not self._only_looks and took > EASY and self._agent.lease.heard_since(self._pacing.sent):
            sentence = (
                "Redis takes this agent's beats, and not its mail: the line may be too slow for so much in one round "
                "trip. Mail goes on in parts; where this comes again, set UBI_MAX_LETTER_BYTES smaller (alike for all "
                f"agents), or see to the line. {error}"
            )
            self._trouble.met(now, SLOW, sentence)
            return
        sentence = (
            f"Redis is away: this agent fetches on until its lease ends or {self._most_waiting:,} records wait to be "
            f"sent (UBI_FLUSH_RECORDS), and goes on when it is back. {error}"
        )
        self._trouble.met(now, AWAY, sentence)

    def _sent_so_far(self, now: float) -> None:
        """An exchange has taken what it was given: what is left is for the next one."""
        letters = self._out.letters if self._out is not None else ()
        left = letters[self._most :]
        if len(letters) >= self._most:  # one with fewer says nothing of what the line carries
            self._most = min(2 * self._most if now - self._pacing.sent < EASY else self._most + 1, ALL)
        if left:
            self._out, self._pacing.due = Outgoing(letters=left), now
        else:
            self._out, self.told = None, self._drained
            if now - self._filled > EASY:  # not before all have left: what repeats them is the next drain
                self._agent.outbox.left_later(self._filled, now)

    def _settled(self, now: float) -> bool:
        """Hear of what was written; False when the disk has no room for the table of what is known, or is damaged."""
        try:
            self._disk.settle()
        except StoreFull as error:
            self.disk_full = True
            self._trouble.met(now, DISK, f"{error} Nothing is fetched until then.")
            return False
        except StoreError as error:
            self._trouble.met(now, DISK, str(error))
            self._disk.trouble(error)
            return False
        return True

    def _refused(self, now: float, error: TransportFull) -> None:
        """Redis is full: take in what was read, and try the rest again later."""
        self.full = True
        self.writes_refused += 1
        self._trouble.met(
            now,
            FULL,
            f"Redis is full and takes no mail: this agent fetches on until {self._most_waiting:,} records wait to be "
            f"sent (UBI_FLUSH_RECORDS), then it waits until there is room. {error}",
        )
        self._take(error.incoming, now)
        # What was read and merged is deleted with the next try: reading mail is what makes room again.
        self._out = replace(self._out, consumed=self._consumed, profile=None) if self._out is not None else None
        self._consumed = []

    def _outgoing(self, now: float, effects: Effects, profile: str | None) -> Outgoing:
        consumed, self._consumed = self._consumed, []
        control = self._runs.lacks(now, self._transport.now())  # names the run
        for _, fields in effects.letters:
            fields[RUN] = self._runs.run
        return Outgoing(
            letters=gathered(effects.letters, self._largest),
            acks=effects.answers,
            consumed=consumed,
            forget_acks=effects.forget,
            dead_letters=self._sorting.dead_letters(),
            profile=profile,
            control=control,
            forget_control=self._desk.forget() if self._desk is not None else (),
            replies=self._desk.replies() if self._desk is not None else {},
        )

    def _take(self, incoming: Incoming, now: float) -> None:
        if incoming.control is not None:
            self._pacing.looked(now)
            # What was asked for before an absence may have waited for its end.
            self._looked = now if self._only_looks else self._pacing.sent
            self._look_at(incoming.control, now)
        if self._agent.outlived:
            return
        self._pacing.eager = bool(incoming.letters)
        rivals = self._runs.has_rivals(now)
        for number, raw in incoming.letters:
            self._consumed.append(number)
            run = raw.get(RUN.encode(), b"").decode("ascii", "replace")
            if not self._runs.is_past(run) and not self._sorting.receive(raw, self._runs.run, rivals):
                self._pacing.look_soon()  # there may be another run by now
        for lane, text in incoming.acks.items():
            try:
                self._agent.answered(lane, text, now)
            except Malformed as error:
                logger.debug("Answer for lane %s not understood: %s", lane, error)

    def _look_at(self, control: Fields, now: float) -> None:
        """What the control hash says."""
        control = self._runs.look(control, now)
        if self._agent.outlived:
            self._out, self._consumed = None, []
        elif self._desk is not None:
            self._desk.look(control, now)
            self._sorting.bury(self._desk.refused())
