"""One exchange: the round trip of an agent's mail between protocol, disk and transport.

What is under way, how it ends and what follows is a table: `exchange_states`.

Rules of this module:

* One exchange at a time. What a drain gave is repeated until an exchange has taken it (all of it is idempotent); only
  then is there a next drain. While Redis is away the agent goes on with what it has, up to so much that others do not
  know of (`ExchangeLoop.choked`), and tries again after a pause (`outage`); the disk is written as often as before.
* An exchange that is not answered may have been too much for the line to carry in time: the next one sends half as many
  letters, and the rest follows. Else the same would be sent, and fail, without end.
* What comes out of the inbox is checked first (`inbox_check`): the protocol sees what holds.
* An inbox entry is deleted after the drain that follows its merge, so never before it is durable (`disk_flush`).
* What the control hash says of the run is in `run_state`. After an absence an agent looks there before it sends. While
  another process may live under its identifier, to which the mail belongs then, it only looks.
* When there is an exchange, and what it reads, is decided by `timing`. With nothing to send or to read it is for the
  disk alone.
* An agent that writes to the control hash, or whose last exchange has failed, looks there at once; and in every
  exchange while others may write there what this agent has written, too (`RunState.has_rivals`).
* A disk that is full takes no flush, and so nothing leaves: the same flush is tried again until there is room. The
  profile is published, so that people see why the crawl waits, and what Redis has forgotten of the run is said again,
  as newcomers would say something else. So it is where items are not taken.
* Where mail is in slots of its own, and these at several servers, the exchange goes on without those that are away
  (`slots_away`). What could not be written there is said again when it can be; so it is where a slot has lost mail.
* A Redis that is full refuses what needs memory. Mail is still read and deleted, which makes room where the
  mail itself fills it; and the profile is published, so that people see why the crawl waits.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from scrapy_ubi.agent.crawl.crawl import LETTER_BYTES_A_CHARACTER
from scrapy_ubi.agent.mail.disk_flush import DiskFlush
from scrapy_ubi.agent.mail.exchange_states import AFTER, DiskFull, State, Then, result_of
from scrapy_ubi.agent.mail.inbox_check import RUN, InboxCheck
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.mail.line_watch import LineWatch
from scrapy_ubi.agent.mail.outage import AWAY, DISK, FULL, ITEMS, SLOW, Outage
from scrapy_ubi.agent.mail.run_state import RunState
from scrapy_ubi.agent.mail.timing import Timing
from scrapy_ubi.agent.mail.unsent import Unsent
from scrapy_ubi.frontier.store import StoreError, StoreFull
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.lost_mail import LostMail
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Fields, Incoming, Outgoing, Transport, TransportDown, TransportFull

logger = logging.getLogger("scrapy_ubi")

LOOK = Outgoing(read_inbox=False, read_acks=False)  # at the control hash
NOTHING = Outgoing(read_inbox=False, read_acks=False, read_control=False)  # for the disk alone

TOO_SLOW = (
    "Redis takes this agent's beats, and not its mail: the line may be too slow for so much in one round trip. Mail "
    "goes on in parts; where this comes again, set UBI_MAX_LETTER_BYTES smaller (alike for all agents), or see to the "
    "line."
)

NOTHING_SENT: Future[Incoming] = Future()  # an exchange that never ends

Profile = Callable[[], str | None]


class NoExchange:
    """In place of one before the agent has joined, and after it has left: there is nobody to exchange mail with."""

    def __init__(self) -> None:
        self.busy = self.full = self.disk_full = self.away = self.counts_anew = False
        self.control: Fields = {}
        self.outage = Outage()
        self.slots_away = 0
        self.told_at = -math.inf
        self.published: bool | None = None
        self.dead_letters = self.writes_refused = 0
        self.slowest = 0.0

    def collect(self, now: float) -> bool:
        """Nothing has ended."""
        return False

    def may_send(self, now: float, hurry: bool) -> bool:
        """Nothing begins."""
        return False

    def send(self, now: float, profile: Profile) -> None:
        """Nothing is sent."""

    def count_anew(self) -> None:
        """Nothing is counted."""


class Exchange:
    """Carries the mail of `agent`, one round trip at a time. `run` is what it knows of the run, `check` judges what
    comes in, `flush` writes the disk before anything leaves; `on_arrival` is called in the loop when there is something
    to `collect`.

    `full`: Redis has refused the last exchange as it has no memory left, and `writes_refused` exchanges so far;
    `disk_full`: the last flush could not be written; `slowest`: how long the slowest round trip took that was answered
    (s), since somebody has set it back; `slots_away`: mail slots that took nothing at the last one; `published`,
    `counts_anew`: as the transport's contract has them, of the last one that was answered, and of the next ones.
    """

    def __init__(
        self,
        agent: Agent,
        transport: Transport,
        io: IoThread,
        settings: UbiSettings,
        run: RunState,
        check: InboxCheck,
        flush: DiskFlush,
        on_arrival: Callable[[], None],
    ) -> None:
        self._agent = agent
        self._transport = transport
        self._io = io
        self._settings = settings
        self.run = run
        self._check = check
        self._flush = flush
        self._on_arrival = on_arrival
        self._timing = Timing(agent, settings.flush_interval, settings.lease_timeout)
        self.outage = Outage()
        self._begin = {State.DISK: self._begin_disk, State.LOOK: self._begin_look, State.MAIL: self._begin_mail}
        self._follow: Mapping[Then, Callable[[float, Any], None]] = {
            Then.WRITTEN: lambda now, incoming: None,
            Then.LOOKED: self._looked_at,
            Then.SENT: self._sent,
            Then.DISK_FULL: self._no_room,
            Then.FATAL: lambda now, error: flush.broken(error),
            Then.REDIS_FULL: self._refused,
            Then.AWAY: self._unanswered,
            Then.HALVED: self._halved,
        }
        self._state = State.IDLE
        self._under_way = NOTHING_SENT
        self._asks_end = False  # the exchange under way asks whether the crawl is over
        self._line = LineWatch(agent, transport)
        self._unsent = Unsent(agent, settings.max_letter_bytes // LETTER_BYTES_A_CHARACTER)
        self.full = self.disk_full = self.counts_anew = False
        self.published: bool | None = None
        self.writes_refused = 0
        self.slowest = 0.0
        self.slots_away = 0
        self._slot = agent.talks.keep_mail_slot() if settings.mail_slots > 1 else None

    @property
    def control(self) -> Fields:
        """What the control hash said last."""
        return self.run.control

    @property
    def dead_letters(self) -> int:
        """Letters, and parts of some, set aside so far."""
        return self._check.set_aside

    def count_anew(self) -> None:
        """Count dead letters and refused writes from nothing."""
        self._check.set_aside = self.writes_refused = 0

    @property
    def away(self) -> bool:
        """Whether the last exchange has not reached Redis, or was not answered in time."""
        return self.outage.kind in (AWAY, SLOW)

    @property
    def told_at(self) -> float:
        """When the last drain was (s) of which all has left, with a profile."""
        return self._unsent.told

    @property
    def busy(self) -> bool:
        """Whether something waits for an exchange to take it."""
        return self._unsent.out is not None

    # -- send

    async def write_first(self) -> None:
        """Write the disk before anything is said (`DiskFlush.write_first`)."""
        await self._flush.write_first(self.run.run)

    def may_send(self, now: float, hurry: bool) -> bool:
        """Whether it is time (s) for another exchange, or there is cause to hurry."""
        if self._state is not State.IDLE or self._agent.usurped:
            return False  # what is in the inbox of a usurped agent is for that other process
        if now < self.outage.retry_at:
            return not self.disk_full and now >= self._timing.due  # for the disk
        return hurry or self._timing.is_time(now)

    def send(self, now: float, profile: Profile) -> None:
        """Begin an exchange of what a drain gives (or of what the last exchange did not get rid of)."""
        self._timing.check_absence(now)
        self._state = self._next(now)
        out, held = self._begin[self._state](now, profile)
        self._under_way = self._io.send(self._carry(out, held), self._on_arrival)

    def _next(self, now: float) -> State:
        # What was collected at a mere look, and had no room, comes first: the next drain would not be durable with it.
        if now < self.outage.retry_at or (self._unsent.out is None and self._flush.due):
            return State.DISK
        return State.LOOK if self._timing.absent else State.MAIL

    def _begin_disk(self, now: float, profile: Profile) -> tuple[Outgoing, Outgoing]:
        """What to send, and what is sent where the disk has no room for it."""
        self._timing.wait(now)
        self._flush.collect(self.run.run)
        return NOTHING, self._held(now, profile)

    def _held(self, now: float, profile: Profile) -> Outgoing:
        """What is sent while nothing new may leave: nothing that the disk would have to hold."""
        if self._timing.absent:
            return LOOK
        if not self.disk_full:
            return Outgoing()
        return replace(self.run.knows_more(now), profile=profile())

    def _begin_look(self, now: float, profile: Profile) -> tuple[Outgoing, Outgoing]:
        if self._agent.group.claim.shadowed:
            self._timing.wait(now)
        self._flush.collect(self.run.run)  # while Redis is away the disk is still written
        return LOOK, LOOK

    def _begin_mail(self, now: float, profile: Profile) -> tuple[Outgoing, Outgoing]:
        self._line.look()
        out = self._out(now, profile)
        self._flush.collect(self.run.run)
        if not self._timing.sent:
            self.run.begin_exchanges(now)
        self._timing.begun(now)
        held = self._held(now, profile)
        return self._asking(out, now), held

    def _out(self, now: float, profile: Profile) -> Outgoing:
        """What is to leave: what a drain gives, or what is left of the last one."""
        unsent = self._unsent
        fresh = unsent.out is None
        if fresh:
            effects = self._agent.drain(now)
            text = profile()
            control = self.run.lacks(now, self._transport.now())  # names the run
            unsent.fill(effects, control, self.run, self._check, now)
            return unsent.add_profile(text, now, fresh)
        lacks = unsent.out is not None and unsent.out.profile is None  # what is sent in parts, or refused, takes long
        return unsent.add_profile(profile() if lacks else None, now, fresh)

    def _asking(self, out: Outgoing, now: float) -> Outgoing:
        """What to send, with what is to be read."""
        read = self._timing.reads(now, bool(self.outage.kind))
        waits = any(lane.unacknowledged for lane in self._agent.outbox.lanes.values())
        look = self._timing.looks(now) or self.run.has_rivals(now)
        look = (read and look) or bool(out.changes_control or self.outage.kind)
        inbox = self._check.seeds
        seeds = inbox.wanted(self._agent, self._settings.outbox_records) if inbox.is_open and read else 0
        part = self._unsent.part(out, self._line.part)
        ending = self._agent.end.seen if inbox.is_open and not self._agent.end.finished else None
        self._asks_end = ending is not None
        wanted = replace(
            part,
            read_inbox=read,
            read_acks=read and (waits or self._agent.talks.is_open),
            read_control=look or self._asks_end,
            read_seeds=seeds,
            look_outside=look and inbox.is_open,
            end=None if ending is None else self.run.end(ending, self._transport.now()),
        )
        return replace(wanted, counts_anew=self.counts_anew) if wanted.profile is not None else wanted

    async def _carry(self, out: Outgoing, held: Outgoing) -> Incoming:
        """Write the disk, then exchange. What has happened is durable before others hear of it."""
        try:
            await self._flush.write()
        except StoreFull as error:
            raise DiskFull(error, await self._look(held)) from error
        return Incoming(control=None) if out.is_nothing else await self._transport.exchange(out)

    async def _look(self, held: Outgoing) -> Incoming | None:
        """What Redis has, whatever state it is in, while nothing new may leave."""
        try:
            return await self._transport.exchange(held)
        except TransportFull as error:
            return error.incoming
        except TransportDown:
            return None

    # -- collect

    def collect(self, now: float) -> bool:
        """Take in what the exchange under way has brought; False when there is nothing (yet)."""
        if self._state is State.IDLE or not self._under_way.done():
            return False
        waits = now < self.outage.retry_at and (self.disk_full or self._state is not State.DISK)
        if waits or not self._settled(now):
            return False  # what has come stays where it is
        future, self._under_way = self._under_way, NOTHING_SENT
        state, self._state = self._state, State.IDLE
        self.disk_full = False
        error = future.exception()
        then = AFTER[state, result_of(error)]
        if then is not Then.WRITTEN:
            self._timing.end_exchange(now, self._line.round_trip)
        self._follow[then](now, future.result() if error is None else error)
        asked, self._asks_end = self._asks_end, False
        if asked and not self._agent.end.finished:
            self._agent.end.not_over()  # a seed has come; or whether one has is not known
        return True

    def _looked_at(self, now: float, incoming: Incoming) -> None:
        if self.outage.kind in (DISK, ITEMS):  # a replica can be looked at, and takes no mail
            self._works()
        self._take(incoming, now)

    def _sent(self, now: float, incoming: Incoming) -> None:
        self._works()
        self.slowest = max(self.slowest, took := now - self._timing.sent)
        if self._unsent.taken(now, took, self._line.easy):
            self._timing.due = now
        self._take(incoming, now)

    def _works(self) -> None:
        """Redis and the disk take what they are given."""
        self.outage.end_outage(told=self.run.forgotten_at >= self.outage.since)
        self.full = False

    def _no_room(self, now: float, error: DiskFull) -> None:
        self.disk_full = True
        kind = ITEMS if error.held_back else DISK
        self.outage.begin_outage(now, kind, f"{error.why} Nothing is fetched until then.")
        if error.incoming is not None:
            self._take(error.incoming, now)

    def _halved(self, now: float, error: TransportDown) -> None:
        """Mail was not answered: send half as many letters."""
        self._unsent.halve()
        took = now - self._timing.sent
        if took > self._line.easy and self._agent.group.lease.heard_since(self._timing.sent):
            self.outage.begin_outage(now, SLOW, f"{TOO_SLOW} {error}")
        else:
            self._unanswered(now, error)

    def _unanswered(self, now: float, error: TransportDown) -> None:
        sentence = (
            f"Redis is away: this agent fetches on until its lease ends or {self._settings.flush_records:,} records "
            f"wait to be sent (more with a larger UBI_MEMORY_MB), and goes on when it is back. {error}"
        )
        self.outage.begin_outage(now, AWAY, sentence)

    def _settled(self, now: float) -> bool:
        """Hear of what was written; False when the disk has no room for the table of what is known, or is damaged."""
        try:
            self._flush.settle()
        except StoreFull as error:
            self.disk_full = True
            self.outage.begin_outage(now, DISK, f"{error} Nothing is fetched until then.")
            return False
        except StoreError as error:
            self.outage.begin_outage(now, DISK, str(error))
            self._flush.broken(error)
            return False
        return True

    def _refused(self, now: float, error: TransportFull) -> None:
        """Redis is full: take in what was read, and try the rest again later."""
        self.full = True
        self.writes_refused += 1
        self.outage.begin_outage(
            now,
            FULL,
            f"Redis is full and takes no mail: this agent fetches on until {self._settings.flush_records:,} records "
            f"wait to be sent (more with a larger UBI_MEMORY_MB), then it waits until there is room. {error}",
        )
        self._take(error.incoming, now)
        self._unsent.refused()

    def _take(self, incoming: Incoming, now: float) -> None:
        self.published = incoming.published
        if self._slot is not None:
            self._take_of_slots(self._slot, incoming, now)
        if incoming.control is not None:
            self._timing.looked(now)
            self._look_at(incoming.control, now)
        if self._agent.end.outlived:
            return
        if incoming.refused:
            self._check.add_dead_letters(incoming.refused)
        self._timing.came(len(incoming.letters), len(incoming.refused))
        rivals = self.run.has_rivals(now)
        if not rivals:
            self._check.settle()
        for number, raw in incoming.letters:
            self._unsent.consumed.append(number)
            run = raw.get(RUN.encode(), b"").decode("ascii", "replace")
            if not self.run.is_past(run) and not self._check.receive(raw, self.run.run, rivals):
                self._timing.look_soon()  # there may be another run by now
        seeds = self._check.seeds
        if seeds.is_open and not self._agent.end.finished:  # else they wait for the next start
            if seeds.receive(incoming.seeds, self._agent.journal.flush):
                self._agent.end.took_outside()
            self._check.add_dead_letters(seeds.dead_letters())
            if incoming.outside is not None:
                self._agent.quiescence.look(incoming.outside.mark, now)
                if seeds.note_waiting(incoming.outside.waiting):
                    self._timing.due = now
        talks = self._agent.talks
        for lane, text in incoming.acks.items():
            if talks and talks.hear(lane, text, now):
                continue
            try:
                self._agent.outbound.answered(lane, text, now)
            except Malformed as error:
                logger.debug("Answer for lane %s not understood: %s", lane, error)

    def _take_of_slots(self, own: LostMail, incoming: Incoming, now: float) -> None:
        """What the exchange says of mail slots."""
        self.slots_away = incoming.slots_away
        self._agent.counters.mail_put_off += incoming.put_off
        if own.note_memory(incoming.memory):
            logger.info("The mail slot of this agent was emptied, or its Redis replaced: mail is sent again.")
            self._timing.due = now
        if incoming.late:
            self._agent.mail_lost(incoming.late)
            self._timing.due = now

    def _look_at(self, control: Fields, now: float) -> None:
        """What the control hash says."""
        control = self.run.read_control(control, now)
        if self._agent.end.outlived:
            self._unsent.drop_all()
        else:
            self._check.answer_queries(control, now)
