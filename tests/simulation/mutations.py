"""Deliberate mistakes in the protocol, to check the checkers: the simulator must catch every one of them.

Each is a patch of one rule, and must be caught within `TRIES` crawls, those with the seeds from 0 on. Where a mistake
shows under few kinds of fault, the crawls have just these (`AIM`). The seed that has caught it last is tried first
(`CAUGHT`); where it does not any longer, all are. `python -m tests.simulation.mutations [NAME...]` says which seed
catches which, and what the checker says.

Some rules are too rarely decisive for that, or concern what the simulator does not judge (`RARE`): a test of one
part is named that fails with it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.frontier.disk_visits import DiskVisits
from scrapy_ubi.frontier.memory import MemoryFrontier, MemoryVisits
from scrapy_ubi.protocol import custody, done_mark_delivery, handover, loss_counter, memory_state, snapshot, view_change
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import LEAVING, NEW, Beat
from scrapy_ubi.protocol.cancelling import Cancelling
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery
from scrapy_ubi.protocol.found_lines import FoundLines
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.host import ABROAD, HostState
from scrapy_ubi.protocol.inbound import Inbound
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Lane
from scrapy_ubi.protocol.lease import Lease
from scrapy_ubi.protocol.loss_counter import BEGUN, LossCounter
from scrapy_ubi.protocol.losses import GroupLoss, LossBook
from scrapy_ubi.protocol.lost_mail import LostMail
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.notes import Notes
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.quiescence import CrawlEnd, Quiescence
from scrapy_ubi.protocol.records import Record, whole
from scrapy_ubi.protocol.ring import Ring, point, replica_points
from scrapy_ubi.protocol.self_status import SelfStatus
from scrapy_ubi.protocol.view_change import ViewHistory
from scrapy_ubi.protocol.work import Work
from scrapy_ubi.transport.watched import WatchedKey
from tests.protocol.members import peers
from tests.simulation import outputs
from tests.simulation.checkers import Violation
from tests.simulation.mailstore import Redis
from tests.simulation.outputs import Outputs
from tests.simulation.plans import Plan
from tests.simulation.process import Process

TRIES = 60


# -- mail and done marks


def _done_mark_early() -> Any:
    return patch.object(Outbox, "done_may_leave", lambda self, flush: True)


def _done_marks_in_handoffs_early() -> Any:
    return patch.object(SetState, "told_done", lambda self: iter([*self.done]))


def _acknowledged_before_successors() -> Any:
    return patch.object(custody, "_told", lambda outbox, successor, flush: True)


def _one_window_for_both_lanes() -> Any:
    def one_window(self: Outbox, now: float, view: str) -> Iterator[Any]:
        for lane in list(self.lanes.values()):
            for letter in lane.resend(now):
                yield lane, letter, True
            other = self.lanes.get((lane.receiver, STATE if lane.kind == DISCOVERY else DISCOVERY))
            used = len(other.unacknowledged) if other is not None else 0
            bounds = self.bounds._replace(window=max(0, self.bounds.window - used))
            for letter in lane.post(now, view, bounds):
                yield lane, letter, False

    return patch.object(Outbox, "post", one_window)


def _no_window() -> Any:
    post = Lane.post

    def all_at_once(self: Lane, now: float, view: str, bounds: Any) -> Any:
        return post(self, now, view, bounds._replace(window=99))

    def both() -> Iterator[None]:  # its own invariant is put aside, to see what P7's checker sees
        with patch.object(Lane, "post", all_at_once), patch.object(Lane, "check_invariants", lambda self, window: None):
            yield

    return contextmanager(both)()


def _mail_of_the_dead_forgotten() -> Any:
    take_back = Outbox.take_back

    def forget(self: Outbox, view: Any) -> Any:
        gone, entries, states = take_back(self, view)
        for record in entries:
            self.close([record])
        return gone, [], states

    return patch.object(Outbox, "take_back", forget)


def _orphans_closed_at_once() -> Any:
    return patch.object(Outbox, "orphan", lambda self, record: self.close([record]))


def _resent_never() -> Any:
    return patch.object(Lane, "resend", lambda self, now: [])


# -- mail in slots


def _late_mail_taken_for_acknowledged() -> Any:
    """A letter that one slot did not take, or has forgotten, is taken for one that was acknowledged in another."""
    hurry = Outbox.hurry

    def settle(self: Outbox, to: Any = None) -> None:
        for lane in self.lanes.values() if to is not None else ():
            if lane.receiver in to:
                for seq in [*lane.unacknowledged]:
                    letter = lane.settle(seq)
                    assert letter is not None
                    self.close(letter.records)
        if to is None:
            hurry(self)

    return patch.object(Outbox, "hurry", settle)


def _answers_said_once() -> Any:
    """What was acknowledged in a slot that has forgotten it since is not said again."""
    receive = Inbound.receive

    def once(self: Inbound, letter: Any) -> None:
        lane = self.lanes.get(letter.lane)
        if lane is None or lane.outcomes.get(letter.seq) is None:
            receive(self, letter)

    def both() -> Iterator[None]:
        with patch.object(Inbound, "receive", once), patch.object(Inbound, "repeat", lambda self, to=None: None):
            yield

    return contextmanager(both)()


def _held_letters_forgotten_with_their_slot() -> Any:
    """What was received before the own slot lost its mail, and is not answered yet, is lost, too."""
    note = LostMail.note_memory

    def forget(self: Any, memory: str) -> bool:
        if lost := note(self, memory):
            self._repeat.__self__.inbound.custody.held.clear()
        return bool(lost)

    return patch.object(LostMail, "note_memory", forget)


# -- notes


def _notes_not_told() -> Any:
    return patch.object(Keepers, "tell_notes", lambda self: None)


def _notes_not_handed_over() -> Any:
    """Neither with an offer nor with the whole state."""
    put, every = Outbox.put, whole

    def leave_out(self: Outbox, receiver: str, kind: str, record: Record, view: Any) -> None:
        if record.notes is None or record.flush:
            put(self, receiver, kind, record, view)

    def without(state: Any, flush: int) -> Any:
        return (record for record in every(state, flush) if record.notes is None)

    def both() -> Iterator[None]:
        with patch.object(Outbox, "put", leave_out), patch.object(handover, "whole", without):
            yield

    return contextmanager(both)()


def _notes_of_the_sender_win() -> Any:
    def overwrite(self: HostState, notes: Any) -> bool:
        before, self.notes = self.notes, notes
        return before != notes

    return patch.object(HostState, "merge_notes", overwrite)


def _spent_added_up() -> Any:
    """A limit is counted twice: what two agents know of one sum is added."""

    def add(one: Any, other: Any) -> Any:
        sums = Counter(dict(one))
        for agent, amount in other:
            sums[agent] += amount
        return tuple(sorted(sums.items()))

    return patch.object(
        Notes, "merged", lambda self, other: max(self, other)._replace(spent=add(self.spent, other.spent))
    )


def _spent_not_handed_over() -> Any:
    """A limit is forgotten at a hand-over: neither an offer nor the whole state says what was spent."""
    put, every = Outbox.put, whole

    def bare(record: Record) -> Record:
        return record if record.notes is None else record._replace(notes=record.notes._replace(spent=()))

    def leave_out(self: Outbox, receiver: str, kind: str, record: Record, view: Any) -> None:
        put(self, receiver, kind, record if record.flush else bare(record), view)

    def without(state: Any, flush: int) -> Any:
        return map(bare, every(state, flush))

    def both() -> Iterator[None]:
        with patch.object(Outbox, "put", leave_out), patch.object(handover, "whole", without):
            yield

    return contextmanager(both)()


def _spent_of_the_winner_counts() -> Any:
    """Of two notes one counts as a whole, with what it says of what was spent."""
    return patch.object(Notes, "merged", lambda self, other: max(self, other))


def _spent_not_told() -> Any:
    """What is spent is no news to the keepers of the host, until something else is noted."""

    def spend(self: Keepers, state: HostState, amount: int) -> None:
        self.frontier.note(state, state.notes.spend(self.me, amount))

    return patch.object(Keepers, "spend", spend)


# -- who may fetch


def _no_lease_at_dispatch() -> Any:
    return patch.object(Membership, "may_act", lambda self, now: self.sure)


def _two_owners_of_a_shard() -> Any:
    """Who comes to own a shard of a host fetches at once, beside the agent that owned it."""
    free = ViewHistory.may_fetch
    return patch.object(ViewHistory, "may_fetch", lambda self, host, alive: "#" in host or free(self, host, alive))


def _two_loads_of_a_host_for_one() -> Any:
    pop = MemoryFrontier.pop

    def not_busy(self: MemoryFrontier, now: float, allowed: Any) -> Any:
        found = pop(self, now, allowed)
        if found is not None and found[0].waiting:
            self.workbench.release(found[0].host, now)
        return found

    return patch.object(MemoryFrontier, "pop", not_busy)


def _no_wait_for_settled() -> Any:
    return patch.object(ViewHistory, "may_fetch", lambda self, host, alive: True)


def _watched_ids_ignored() -> Any:
    ask = WatchedKey.ask

    def any_ids(self: WatchedKey, server: str, server_time: float, own: float) -> Any:
        return ask(self, server if self.said is None else self.said[0], server_time, own)

    return patch.object(WatchedKey, "ask", any_ids)


def _watched_not_reset_by_flushall() -> Any:
    forget = Redis.forget

    def keep(self: Redis) -> None:
        before = getattr(self, "watched", None)
        forget(self)
        self.watched = before or self.watched

    return patch.object(Redis, "forget", keep)


def _asleep_cancels_at_once() -> Any:
    return patch.object(Cancelling, "_wait", lambda self, now, word: self.cancel())


def _loads_never_cancelled() -> Any:
    return patch.object(Cancelling, "cancel", lambda self: None)


def _who_left_some_not_expected() -> Any:
    return patch.object(Membership, "_expected", lambda self, beats: ())


def _watched_by_the_clock_of_the_server_alone() -> Any:
    ask = WatchedKey.ask
    return patch.object(
        WatchedKey, "ask", lambda self, server, server_time, own: ask(self, server, server_time, server_time)
    )


def _views_entered_ignored() -> Any:
    def free(self: ViewHistory, host: str, alive: Any) -> bool:
        if self.released and view_change.point(host) not in self.listed:
            return True
        return self.complete is not None and self._heir(self.complete, host, alive)

    return patch.object(ViewHistory, "may_fetch", free)


def _complete_view_not_doubted() -> Any:
    return patch.object(ViewHistory, "doubt", lambda self, view: None)


def _ages_kept_after_own_pause() -> Any:
    read = Detector.read

    def never_away(self: Detector, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> bool:
        self._last_read = None
        return read(self, sent, received, beats)

    return patch.object(Detector, "read", never_away)


def _forgetting_not_noticed() -> Any:
    read = Detector.read

    def same(self: Detector, sent: float, received: float, beats: Mapping[str, Beat], memory: str = "") -> bool:
        return read(self, sent, received, beats)

    return patch.object(Detector, "read", same)


def _sure_at_once() -> Any:
    return patch.object(Membership, "sure", property(lambda self: True, lambda self, value: None), create=True)


def _fence_ends_by_itself() -> Any:
    def mend(self: Membership, alive: Mapping[str, Beat], digest: str) -> bool:
        self.lease.mend(self.lease.gaps)
        return True

    return patch.object(Membership, "mend", mend)


def _dead_may_come_back() -> Any:
    return patch.object(Agent, "_rejoin", lambda self: None)


def _clockwise_ring() -> Any:
    """P1's checker compares with the nearest; contravariance holds clockwise, too, and would not tell them apart."""

    def order(self: Ring, host: str, count: int) -> tuple[str, ...]:
        def gap(agent: str) -> int:
            return min((at - point(host)) % (1 << 64) for at in replica_points(agent, self.agents[agent]))

        return tuple(sorted(self.agents, key=gap)[:count])

    def owner(self: Ring, host: str) -> str:
        return order(self, host, 1)[0]

    def both() -> Iterator[None]:
        with patch.object(Ring, "order", order), patch.object(Ring, "owner", owner):
            yield

    return contextmanager(both)()


# -- handover and the end


def _nobody_answers_for_the_dead() -> Any:
    def only_the_owner(self: ViewHistory, host: str, alive: Any) -> bool:
        return self.complete is not None and self.complete.ring.owner(host) == self.me

    return patch.object(ViewHistory, "answers_for", only_the_owner)


def _pending_hosts_not_listed() -> Any:
    return patch.object(Handover, "pending", property(lambda self: {}, lambda self, value: None), create=True)


def _few_hosts_not_listed() -> Any:
    """Who has few hosts left to hand on says so, and names none of them."""
    few = SelfStatus._few

    def nameless(self: SelfStatus, now: float) -> tuple[str, ...] | None:
        return () if few(self, now) is not None else None

    return patch.object(SelfStatus, "_few", nameless)


def _one_load_more_after_a_handoff() -> Any:
    """A host is let go when the first of its several loads has ended: it has room for one more."""
    closed_work = Handover.closed_work

    def one_ended(self: Handover, state: HostState) -> None:
        closed_work(self, state)
        if state.out:
            self.pending.pop(state.host, None)

    return patch.object(Handover, "closed_work", one_ended)


def _leaver_gone_before_the_others_are_settled() -> Any:
    may_go = SelfStatus.may_go

    def early(self: SelfStatus) -> bool:
        released, self._view_history.released = self._view_history.released, True
        try:
            return may_go(self)
        finally:
            self._view_history.released = released

    return patch.object(SelfStatus, "may_go", early)


def _last_leaver_drops_its_copies() -> Any:
    drop = Handover._drop

    def dropped(self: Handover, host: str) -> None:
        state = self.frontier.find(host)
        if state is not None and not self.keepers(state) and not state.open_work and not state.dirty:
            self.frontier.drop(host)
        else:
            drop(self, host)

    return patch.object(Handover, "_drop", dropped)


def _one_wave_of_quiescence() -> Any:
    read = Quiescence.read

    def once(
        self: Quiescence, beats: Mapping[str, Beat], digest: str, members: frozenset[str], sent: float = 0.0
    ) -> bool:
        read(self, beats, digest, members, sent)
        return self._first is not None

    return patch.object(Quiescence, "read", once)


# -- disks


def _acknowledged_before_durable() -> Any:
    save = Process.save

    def late(self: Process, effects: Any) -> None:
        self.late_saves = getattr(self, "late_saves", 0) + 1
        if self.late_saves % 8 == 1:
            save(self, effects)

    return patch.object(Process, "save", late)


def _lane_numbers_not_restored() -> Any:
    resume = Outbox.resume
    return patch.object(Outbox, "resume", lambda self, numbers, discovered, told: resume(self, {}, discovered, told))


def _restored_outbox_thrown_away() -> Any:
    resume = Outbox.resume
    return patch.object(Outbox, "resume", lambda self, numbers, discovered, told: resume(self, numbers, (), ()))


def _restored_done_marks_early() -> Any:
    def resume(self: DoneMarkDelivery, flush: int, state: SetState, entry: Any) -> None:
        """The marks are taken for sent."""

    return patch.object(DoneMarkDelivery, "resume", resume)


def _absent_peers_not_missed() -> Any:
    resume = LossCounter.resume

    def without(self: LossCounter, lossy: bool, peers: Any, *rest: Any, **named: Any) -> None:
        resume(self, lossy, {}, *rest, **named)

    return patch.object(LossCounter, "resume", without)


def _copies_not_dirty_after_restart() -> Any:
    """The restored agent is taken for one that has seen the view of its disk complete, and offers nothing."""
    restore = snapshot.restore

    def clean(*args: Any) -> Agent:
        agent = restore(*args)
        agent.handover.todo.clear()
        agent.handover.rescan = lambda: None  # type: ignore[method-assign]
        return agent

    return patch.object(snapshot, "restore", clean)


# -- who is lost


def _one_death_too_many_among_newcomers() -> Any:
    """Where nobody is left who was there, each death counts as that of all who knew."""
    return patch.object(LossCounter, "_era_of", lambda self, incarnation: 1 << 30)


def _deaths_not_counted_for_others() -> Any:
    """Who comes back misses whoever has died meanwhile."""
    return patch.object(LossBook, "count", lambda self, lives: None)


def _last_words_of_the_lost_ignored() -> Any:
    return patch.object(LossCounter, "_is_level", lambda self, line, incarnation: False)


def _view_of_an_era_ignored() -> Any:
    """Who is of a later era is ahead, whoever was in the view of that."""
    return patch.object(LossCounter, "base_view", property(lambda self: "", lambda self, value: None), create=True)


def _leavers_in_a_hurry_not_counted() -> Any:
    """Who has left is gone, whatever it took with it."""
    return patch.object(Beat, "has_left_some", property(lambda self: False))


def _leavers_by_views_of_others_ahead() -> Any:
    """Who has settled on its way out counts as one of that view."""
    era_of = LossCounter._era_of

    def of_a_member(self: LossCounter, incarnation: str) -> int:
        beat = self._last.get(incarnation)
        if beat is None:
            return era_of(self, incarnation)
        with patch.dict(self._last, {incarnation: replace(beat, flags=beat.flags.replace(LEAVING, ""))}):
            return era_of(self, incarnation)

    return patch.object(LossCounter, "_era_of", of_a_member)


def _newcomers_judge() -> Any:
    return patch.object(LossCounter, "_leaves_judgement", lambda self, others: False)


def _returned_disks_forgotten() -> Any:
    """Who came back with its disk and loses it later was never back."""
    return patch.object(LossBook, "are_safe", lambda self, lives: None)


def _empty_disk_taken_for_a_returned_one() -> Any:
    follow = LossCounter.follow

    def carries_all(self: LossCounter, last: Beat) -> None:
        follow(self, last)
        self.former = list(dict.fromkeys((*self.former, *(words.incarnation for words in self.before))))

    return patch.object(LossCounter, "follow", carries_all)


def without_lines(shared: Callable[[LossCounter, str], bool]) -> Callable[[LossCounter, str], bool]:
    """The same, without what lines say of members."""

    def by_views_seen(self: LossCounter, digest: str) -> bool:
        with patch.object(self, "_found", FoundLines()):
            return shared(self, digest)

    return by_views_seen


def _members_of_a_view_not_looked_at() -> Any:
    """Who has settled alone may be ahead, whoever was to be in its view and never was."""
    return patch.multiple(
        LossCounter,
        _has_had_part=lambda self, said: self._shared(said.digest),
        _shared=without_lines(LossCounter._shared),
    )


def _companions_of_those_ahead_not_counted() -> Any:
    """Who was ahead stays lost, whoever of its view is back."""
    return patch.object(LossCounter, "_companions", lambda self, ahead: ())


def _somebody_had_part_in_each_view() -> Any:
    """Nobody is ahead by the view that it has settled in last."""
    return patch.object(LossCounter, "_has_had_part", lambda self, said: True)


def _end_before_losses_are_published() -> Any:
    """And before all who are there have counted who was lost."""
    passive = SelfStatus.passive

    def at_once(self: SelfStatus, now: float, exhausted: bool) -> bool:
        released, self._view_history.released = self._view_history.released, True
        try:
            return passive(self, now, exhausted)
        finally:
            self._view_history.released = released

    def both() -> Iterator[None]:
        always = property(lambda self: True)
        with patch.object(SelfStatus, "passive", at_once), patch.object(LossBook, "is_published", always):
            yield

    return contextmanager(both)()


def _one_loss_of_all_and_of_those_ahead() -> Any:
    """Those who were ahead are recorded in the place of all who were lost together."""
    record = LossBook.record
    return patch.object(LossBook, "record", lambda self, lost, spare, ahead=False: record(self, lost, spare))


def _losses_not_recorded() -> Any:
    return patch.object(LossBook, "record", lambda self, lost, spare, ahead=False: None)


# -- the delay of a host


def _heir_waits_a_whole_delay() -> Any:
    """Whoever may have fetched a host before is taken for one that may still be doing it."""
    return patch.object(Handover, "loaded_until", lambda self, host: ABROAD)


# -- pages that are visited again


def _row_not_told() -> Any:
    """The new row of a page that was visited again stays with its owner."""

    def bare(state: HostState, key: int, flush: int) -> Record:
        row = state.told_row(key)
        return Record(state.host, flush, done=key, row=row if row is not None and row.generation == 1 else None)

    return patch.object(done_mark_delivery, "done_mark", bare)


def _row_told_before_its_outlinks() -> Any:
    def at_once(self: DoneMarkDelivery, flush: int, state: HostState, key: int, before: Any) -> None:
        state.open_work += self._replicate(state, Record(state.host, flush, done=key, row=state.visit_row(key)))
        self._settled(state)

    return patch.object(DoneMarkDelivery, "add_visit", at_once)


def _row_lost_at_a_restart() -> Any:
    return patch.object(DiskVisits, "restore", lambda self, states: None)


def _row_before_not_restored() -> Any:
    """A page visited again whose row had not left: the row is taken for told."""
    return patch.object(DoneMarkDelivery, "resume_visit", lambda self, flush, state, key, before: None)


def _rows_not_handed_over() -> Any:
    def bare(state: Any, flush: int) -> Any:
        return (record._replace(row=None) for record in whole(state, flush))

    return patch.object(handover, "whole", bare)


def _rows_not_compared() -> Any:
    return patch.object(HostState, "_told_rows_xor", lambda self: 0)


def _older_row_wins() -> Any:
    return patch.object(memory_state, "merged", min)


def _revisit_before_due() -> Any:
    wake = MemoryVisits.wake
    return patch.object(MemoryVisits, "wake", lambda self, wall, mine: wake(self, wall + 2, mine))


def _revisit_by_a_non_owner() -> Any:
    may_fetch = Work.may_fetch

    def any_agent(self: Work, state: HostState, now: float) -> bool:
        return bool(state.visits.ready) or may_fetch(self, state, now)

    def both() -> Iterator[None]:
        with patch.object(Work, "may_fetch", any_agent), patch.object(Work, "_is_mine", lambda self, state: True):
            yield

    return contextmanager(both)()


def _end_while_pages_are_due() -> Any:
    return patch.object(Work, "awaits_visits", lambda self: False)


def _visits_due_no_work_of_the_last_leaver() -> Any:
    def waits(self: Work) -> bool:
        return any(state.waiting or state.out for state in self._frontier.states())

    return patch.object(Work, "holds_undone", waits)


# -- seeds from outside


def _end_without_a_look_at_seeds() -> Any:
    """As agents did that took no seeds: they end by themselves. What waits is looked at by no one."""
    return patch.object(CrawlEnd, "allow_outside_entries", lambda self: None)


def _end_looks_only_whether_seeds_wait() -> Any:
    """Not whether one has come, and was taken and acknowledged, since the reads that show the end."""

    def end(self: Redis, mark: str, how: str) -> None:
        if not self.control.get("finished") and not self.seeds:
            self.control["finished"] = how

    return patch.object(Redis, "end_crawl", end)


def _seed_acknowledged_before_disk() -> Any:
    take = Process.take_seeds

    def at_once(self: Process, seeds: Mapping[int, str]) -> None:
        before = {number for number, _ in self.inbox._handed}
        take(self, seeds)
        mine = [number for number in seeds if str(number) not in {one for one, _ in self.inbox._handed} - before]
        self.world.redis.answer_seeds(mine)
        self.world.outside.answered(mine)

    return patch.object(Process, "take_seeds", at_once)


def _seed_acknowledged_before_the_successors_have_it() -> Any:
    answers = SeedInbox.answers
    return patch.object(SeedInbox, "answers", lambda self, oldest: answers(self, None))


def _seeds_of_the_dead_not_claimed() -> Any:
    begin = Redis.__init__
    return patch.object(Redis, "__init__", lambda self, idle=0.0: begin(self))


# -- outputs (P9)


def _done_before_its_outputs() -> Any:
    """The flush is written before the records of its pages."""
    write = Outputs.write

    def flushed(self: Outputs) -> None:
        self.held = len(self.file)
        write(self)

    def both() -> Iterator[None]:
        with (
            patch.object(Outputs, "write", lambda self: None),
            patch.object(Outputs, "flushed", flushed),
            patch.object(Outputs, "close", write),
        ):
            yield

    return contextmanager(both)()


def _outputs_not_cut() -> Any:
    return patch.object(Outputs, "cut", lambda self: None)


def _doubled_page_kept() -> Any:
    return patch.object(outputs, "chosen", list)


def _newcomers_know_nobody() -> Any:
    """Who is back before all had settled once misses nobody."""
    return patch.object(LossCounter, "peers", property(lambda self: self._peers))


def _missed_counted_however_many() -> Any:
    missing = LossCounter._missing

    def all_counted(self: LossCounter, view: Any, there: Any) -> tuple[list[GroupLoss], list[str]]:
        groups, counted = missing(self, view, there)
        return groups, [life for _, life in groups[-1].members] if groups and groups[-1].spare else counted

    return patch.object(LossCounter, "_missing", all_counted)


def _who_leaves_alone_says_nothing() -> Any:
    return patch.object(LossCounter, "leave_alone", lambda self: None)


def _none_missed_may_be_away_where_one_was_ahead() -> Any:
    """Nor when that one is back."""
    missing = LossCounter._missing

    def strictly(self: LossCounter, view: Any, there: Any) -> tuple[list[GroupLoss], list[str]]:
        groups, counted = missing(self, view, there)
        return [GroupLoss(loss.members, 0 if len(groups) > 1 else loss.spare) for loss in groups], counted

    return patch.object(LossCounter, "_missing", strictly)


def _those_ahead_counted_twice() -> Any:
    """Who was never heard is one of them, and of those who were lost as well."""
    record = LossCounter._record_ahead

    def with_more_spare(self: LossCounter, ahead: Any, spare: int) -> None:
        note = self.book.record
        with patch.object(self.book, "record", lambda lost, few, ahead=False: note(lost, min(spare, few + 1), ahead)):
            record(self, ahead, spare)

    return patch.object(LossCounter, "_record_ahead", with_more_spare)


def _later_words_not_taken() -> Any:
    return patch.object(LossCounter, "_take_later", lambda self, said, counter=None: None)


def _word_of_the_killed_stands() -> Any:
    """Who is sure by the word of another is sure for good."""
    read = Membership.read

    def sure_for_good(self: Membership, *args: Any, **named: Any) -> Any:
        alive = read(self, *args, **named)
        if any(sight.beat.settled for sight in self.watch.seen.values()):
            self.make_sure()
        return alive

    return patch.object(Membership, "read", sure_for_good)


def _back_from_a_fence_as_sure_as_before() -> Any:
    """Who comes back from a fence in which Redis has forgotten everything is as sure who lives as it was."""
    return patch.object(Membership, "_come_back", lambda self: None)


def _words_from_before_the_fence_count() -> Any:
    """Who comes back so is sure by what others had said before."""
    knows = Membership._those_who_know

    def known(self: Membership, seen: Iterable[Beat]) -> Iterator[Beat]:
        with patch.object(self, "_came_back", False):
            return iter([*knows(self, seen)])

    return patch.object(Membership, "_those_who_know", known)


def _gap_not_known_before_a_beat() -> Any:
    """Who sees that Redis has forgotten before it beats again is as sure who lives as it was."""
    return patch.object(Lease, "ended", lambda self, now: False)


def _dead_before_not_missed() -> Any:
    """Who was dead before anybody came is nobody's loss."""
    return patch.object(LossCounter, "_look_for_unheard", lambda self, beats: None)


def _members_of_an_era_not_looked_at() -> Any:
    """Who had settled in the view of an era is ahead by it, though lines name a member whose disk is here."""
    return patch.object(LossCounter, "_shared", without_lines(LossCounter._shared))


def _views_are_not_opened() -> Any:
    """Who was in a view is not known where no line names its members."""
    return patch.object(FoundLines, "open_views", lambda self, here: None)


def _all_are_in_views_of_unknown_members() -> Any:
    """All who are known were in each view of which no line names the members."""
    return patch.object(FoundLines, "members", lambda self, digest: {*self})


def _who_came_since_is_not_missed() -> Any:
    """Who is back misses those alone who were there when all had settled for it."""
    return patch.object(LossCounter, "_miss_those_with_whom_it_was", lambda self: None)


def _settled_is_handed_on_to_those_here() -> Any:
    """Who has settled in a view is not ahead by an earlier one, however many of the later are away."""
    return patch.object(LossCounter, "_has_handed_on", lambda self, said: bool(said.settled))


def _left_to_owners_is_handed_on() -> Any:
    """Who has settled in a view is not ahead by an earlier one, though owners who are away had not settled."""
    return patch.object(LossCounter, "_had_settled", lambda self, life, digest: True)


def _handed_on_is_ahead() -> Any:
    """Who has handed on all to those who are here is ahead by an earlier view."""
    return patch.object(LossCounter, "_has_handed_on", lambda self, said: False)


def _all_have_settled_since() -> Any:
    """Who begins again misses nobody whom it had seen dead."""
    return patch.object(LossCounter, "_have_settled_since", lambda self: True)


def _nobody_has_settled_since() -> Any:
    """Who begins again misses all whom it had seen dead, though all have settled since."""
    return patch.object(LossCounter, "_have_settled_since", lambda self: False)


def _one_has_settled_for_all() -> Any:
    """Who begins again misses nobody whom it had seen dead, where a line tells that its writer has settled since."""
    one = lambda self: any(line.settled == self._roll_call.views[-1] for _, line in self._found.values())  # noqa: E731
    return patch.object(LossCounter, "_have_settled_since", one)


def _leavers_have_handed_on() -> Any:
    """That all members have settled is enough, though one on its way out has not handed on."""

    def settled(self: Any) -> bool:
        lines = [line for _, line in self._found.values()]
        members = {life for line in lines if line.digest == self._roll_call.views[-1] for life in line.members}
        return bool(members) and members <= {
            line.incarnation for line in lines if line.settled == self._roll_call.views[-1]
        }

    return patch.object(LossCounter, "_have_settled_since", settled)


def _views_of_others_are_not_noted() -> Any:
    """The last view that one on its way out was in stays its last one."""

    def entered(self: Any, view: Any) -> None:
        self.base, self.base_view = self.era, self.complete
        if self.me in view.members:
            self._has_entered(self.incarnation, view.digest)

    return patch.object(LossCounter, "entered", entered)


def _repeated_words_are_of_unknown_time() -> Any:
    """Words that a name repeats are later only if they tell of more."""
    return patch.object(LossCounter, "_is_met_since", lambda self, said, known: False)


def _repeated_words_are_later() -> Any:
    """Words that a name repeats are later than any line."""
    return patch.object(LossCounter, "_is_met_since", lambda self, said, known: True)


def _nobody_is_expected_after_the_first_read() -> Any:
    """Who is sure at its first read stays so, though one that was there leaves with its work a moment later."""
    look = Membership._look_who_knows

    def once(self: Membership, *args: Any) -> None:
        if not self._sure_for_good:
            look(self, *args)

    return patch.object(Membership, "_look_who_knows", once)


def _hurried_leavers_have_told_all() -> Any:
    """A leaver tells every keeper what it tells one, though it goes before it has."""
    return patch.object(Handover, "tells", lambda self, leaver, incarnation, state: None)


def _judges_live_for_ever() -> Any:
    """Whom to miss is left to those who had looked first, though they die before they have judged."""
    return patch.object(LossCounter, "_judge_in_place_of_the_dead", lambda self, beats: None)


def _disks_are_as_late_as_words() -> Any:
    """Who is back misses nobody with whom it had settled after its disk was written."""
    begin = LossCounter._miss_those_with_whom_it_was

    def by_disk(self: LossCounter) -> None:
        with patch.object(self, "before", ()):
            begin(self)

    return patch.object(LossCounter, "_miss_those_with_whom_it_was", by_disk)


def _one_judges_for_all() -> Any:
    """Who has seen all settle has judged, though it had left that to others."""
    return patch.object(LossCounter, "_have_judged", lambda self, seen: bool(seen))


def _eras_as_they_are_now() -> Any:
    """What others have seen since they were found says that they know what the dead knew."""
    return patch.object(FoundLines, "first_era", lambda self, line: line.era)


def _disks_are_of_one_line_of_eras() -> Any:
    """The era of a disk counts, though the dead went on without it."""
    return patch.object(
        loss_counter, "_went_further", lambda line, era, here: era > BEGUN and all(era > known for known, _ in here)
    )


def _a_name_begins_anew() -> Any:
    """Who takes a name forgets what was published under it of those who were lost."""
    return patch.object(LossCounter, "take_over", lambda self, book: None)


def _who_is_behind_keeps_nothing() -> Any:
    """Who is back with a disk of before all had settled leaves it to others for ever whom it misses."""
    leave = LossCounter._leave_judgement

    def newcomers(self: LossCounter, judges: Any, unjudged: Any) -> None:
        leave(self, judges, () if self.era else unjudged)

    return patch.object(LossCounter, "_leave_judgement", newcomers)


def _each_disk_judges() -> Any:
    """Who goes on from a disk of before all had settled has judged when it sees that."""

    def judged(self: LossCounter, seen: Any) -> bool:
        with_disk = any(era and last.carried for last, era in seen)
        return with_disk or {last.incarnation for last, _ in seen} == self._judges.keys()

    return patch.object(LossCounter, "_have_judged", judged)


def _the_dead_that_a_line_names_are_all() -> Any:
    """Who went on without a disk is known by whom it held dead."""
    held_dead = lambda line, lives: not set(lives).isdisjoint(line.dead)  # noqa: E731
    return patch.object(loss_counter, "_went_on_without", held_dead)


def _who_had_settled_had_told_all() -> Any:
    """Whose death is counted had told others where the crawl begins."""
    book = lambda self: {name for life, name in self._unshared.items() if life not in self.book.counted}  # noqa: E731
    end = LossCounter.end_without_urls
    return patch.object(LossCounter, "end_without_urls", lambda self: end(self) if book(self) else None)


def _only_the_last_life_is_asked_with_whom_it_was() -> Any:
    """Who is back looks at what it said last, and not at what the life before that had seen."""
    begin = LossCounter._views_not_seen_complete

    def by_last(self: LossCounter, lines: Any) -> set[str]:
        with patch.object(self, "before", self.before[-1:]), patch.object(self, "former", self.former[-1:]):
            return begin(self, lines)

    return patch.object(LossCounter, "_views_not_seen_complete", by_last)


def _who_waits_for_seeds_may_know_urls() -> Any:
    """Who waits for seeds, and never had a URL, does not say so."""
    now = SelfStatus.beat
    return patch.object(SelfStatus, "beat", lambda self, at, exhausted, start_over=False: now(self, at, exhausted))


def _who_lacked_urls_lacks_them_for_ever() -> Any:
    """That nobody knew a URL stands though somebody comes who knows some."""
    lack = LossBook.lack_urls
    return patch.object(LossBook, "lack_urls", lambda self, lost: lack(self, lost) if lost else None)


def _the_dead_answer_for_views_their_disk_does_not_know() -> Any:
    """Who is back answers for every view in which lines name a life of it."""
    shared = LossCounter._shared

    def with_all(self: LossCounter, digest: str) -> bool:
        return shared(self, digest) or not self._found.members(digest).isdisjoint(self.former)

    return patch.object(LossCounter, "_shared", with_all)


def _all_know_where_the_crawl_begins() -> Any:
    """Who was lost before all had settled is missed by nobody, though nobody who is there knows a URL."""
    return patch.object(LossCounter, "end_without_urls", lambda self: None)


MUTATIONS: dict[str, Callable[[], Any]] = {
    name[1:]: make
    for name, make in sorted(globals().items())
    if name.startswith("_") and callable(make) and getattr(make, "__module__", "") == __name__
}

# Where a mistake shows under few kinds of fault, crawls with just these find it sooner.
AIM: dict[str, tuple[str, ...]] = {
    "answers_said_once": ("slot_emptied", "slot_emptied", "slot_away"),
    "held_letters_forgotten_with_their_slot": ("slot_emptied", "slot_emptied", "slot_emptied"),
    "late_mail_taken_for_acknowledged": ("slot_away", "slot_full"),
    "asleep_cancels_at_once": ("pause",),
    "loads_never_cancelled": ("cut", "deaf"),
    "ages_kept_after_own_pause": ("outage", "amnesia"),
    "dead_may_come_back": ("pause", "cut"),
    "done_before_its_outputs": ("comeback", "blackout"),
    "doubled_page_kept": ("comeback", "blackout"),
    "fence_ends_by_itself": ("pause", "cut", "slow"),
    "forgetting_not_noticed": ("blink", "blink", "blink", "lossy"),
    "last_leaver_drops_its_copies": ("leave", "leave", "pause"),
    "leaver_gone_before_the_others_are_settled": ("leave", "slow"),
    "leavers_in_a_hurry_not_counted": ("hurry", "hurry", "hurry"),
    "losses_not_recorded": ("crash", "crash", "restart"),
    "returned_disks_forgotten": ("pause", "crash", "crash", "restart"),
    "no_lease_at_dispatch": ("pause", "pause", "pause"),
    "notes_not_handed_over": ("join", "join", "restart"),
    "notes_of_the_sender_win": ("shuffle", "shuffle", "shuffle", "leave"),
    "one_load_more_after_a_handoff": ("join", "join", "leave", "leave"),
    "outputs_not_cut": ("comeback", "blackout"),
    "orphans_closed_at_once": ("restart", "slow"),
    "row_lost_at_a_restart": ("comeback", "blackout"),
    "rows_not_compared": ("join", "leave", "comeback"),
    "seed_acknowledged_before_disk": ("comeback", "comeback", "blackout"),
    "seeds_of_the_dead_not_claimed": ("crash", "crash", "join"),
    "rows_not_handed_over": ("join", "join", "restart"),
    "restored_done_marks_early": ("comeback", "blackout"),
    "restored_outbox_thrown_away": ("comeback", "blackout"),
    "spent_added_up": ("join", "leave"),
    "spent_not_handed_over": ("join", "join", "leave"),
    "spent_not_told": ("crash",),
    "spent_of_the_winner_counts": ("pause", "slow", "join", "leave"),
    "sure_at_once": ("amnesia", "join", "outage"),
    "watched_ids_ignored": ("forsake",),
    "watched_not_reset_by_flushall": ("forsake",),
    "who_left_some_not_expected": ("shutdown",),
    "later_words_not_taken": ("desert",),
    "none_missed_may_be_away_where_one_was_ahead": ("desert",),
}

# Where it shows in small crawls whose agents are killed in the first seconds.
EARLY = {
    "later_words_not_taken",
    "none_missed_may_be_away_where_one_was_ahead",
    "companions_of_those_ahead_not_counted",
    "last_words_of_the_lost_ignored",
    "members_of_a_view_not_looked_at",
    "leavers_in_a_hurry_not_counted",
    "view_of_an_era_ignored",
    "one_death_too_many_among_newcomers",
    "missed_counted_however_many",
    "visits_due_no_work_of_the_last_leaver",
}

# Where it shows with a Redis that is known to have forgotten nothing, and forgets when others come.
WATCHED = {
    "watched_ids_ignored",
    "watched_not_reset_by_flushall",
    "who_left_some_not_expected",
}

# Where it shows when more disks are lost at once than there are copies.
CARELESS = {"losses_not_recorded"}

# Where it shows with several loads of a host at once only.
LOADS: dict[str, int] = {"one_load_more_after_a_handoff": 2}

# Where it shows with mail in slots of its own only: how many.
SLOTS: dict[str, int] = dict.fromkeys(
    ("answers_said_once", "held_letters_forgotten_with_their_slot", "late_mail_taken_for_acknowledged"), 3
)

ROUNDS = {  # where it shows with pages that are visited again only: how often
    "end_while_pages_are_due": 1,
    "older_row_wins": 2,
    "revisit_before_due": 1,
    "revisit_by_a_non_owner": 2,
    "row_lost_at_a_restart": 1,
    "row_not_told": 2,
    "row_told_before_its_outlinks": 2,
    "rows_not_compared": 2,
    "rows_not_handed_over": 2,
}

OUTSIDE = {  # where it shows with seeds from outside only: how many
    "end_without_a_look_at_seeds": 5,
    "seed_acknowledged_before_disk": 12,
    "seeds_of_the_dead_not_claimed": 12,
}

# Where it shows with the frontier on disk only.
ON_DISK = {"row_lost_at_a_restart", "none_missed_may_be_away_where_one_was_ahead"}

SHARDS: dict[str, int] = {"two_owners_of_a_shard": 4}  # where it shows with hosts in shards only

# Where it shows in one crawl of thousands, and the seed that has shown it is tried with all as it draws it.
AS_DRAWN = {
    "later_words_not_taken",
    "none_missed_may_be_away_where_one_was_ahead",
    "companions_of_those_ahead_not_counted",
    "members_of_a_view_not_looked_at",
    "missed_counted_however_many",
    "view_of_an_era_ignored",
    "visits_due_no_work_of_the_last_leaver",
}

# Seeds that have caught a mistake, where the first ones do not: to be tried first.
CAUGHT: dict[str, int] = {
    "answers_said_once": 1,
    "held_letters_forgotten_with_their_slot": 1,
    "late_mail_taken_for_acknowledged": 0,
    "later_words_not_taken": 2980021816,
    "none_missed_may_be_away_where_one_was_ahead": 2980020199,
    "end_while_pages_are_due": 7,
    "row_told_before_its_outlinks": 6,
    "rows_not_compared": 38,
    "acknowledged_before_successors": 8,
    "copies_not_dirty_after_restart": 6,
    "doubled_page_kept": 11,
    "seed_acknowledged_before_disk": 80,
    "fence_ends_by_itself": 5,
    "forgetting_not_noticed": 7,
    "lane_numbers_not_restored": 6,
    "last_leaver_drops_its_copies": 6,
    "last_words_of_the_lost_ignored": 9,
    "leaver_gone_before_the_others_are_settled": 17,
    "leavers_in_a_hurry_not_counted": 164,
    "companions_of_those_ahead_not_counted": 2950002666,
    "members_of_a_view_not_looked_at": 2921000716,
    "view_of_an_era_ignored": 1795959124138,
    "missed_counted_however_many": 2921001137,
    "visits_due_no_work_of_the_last_leaver": 2918000928,
    "returned_disks_forgotten": 18,
    "loads_never_cancelled": 101,
    "done_marks_in_handoffs_early": 64,
    "losses_not_recorded": 55,
    "one_death_too_many_among_newcomers": 12,
    "mail_of_the_dead_forgotten": 3,
    "no_lease_at_dispatch": 10,
    "notes_of_the_sender_win": 32,
    "one_load_more_after_a_handoff": 152,
    "one_window_for_both_lanes": 5,
    "few_hosts_not_listed": 18,
    "pending_hosts_not_listed": 18,
    "resent_never": 4,
    "restored_outbox_thrown_away": 3,
    "spent_added_up": 0,
    "spent_not_handed_over": 3,
    "spent_not_told": 2,
    "spent_of_the_winner_counts": 0,
    "watched_ids_ignored": 0,
}

# Caught in one crawl of several hundred, if at all: module, name and arguments of a test that fails with it.
RARE: dict[str, tuple[Any, ...]] = {
    "absent_peers_not_missed": (
        "tests.protocol.test_snapshot",
        "test_who_is_not_back_when_a_view_is_complete_may_come_later_with_work",
    ),
    "complete_view_not_doubted": (
        "tests.protocol.test_view_change",
        "test_after_a_fence_a_view_with_a_newcomer_is_doubted",
    ),
    "deaths_not_counted_for_others": (
        "tests.protocol.test_loss_counter",
        "test_deaths_are_counted_for_those_who_come_back_later",
    ),
    "end_before_losses_are_published": (
        "tests.protocol.test_self_status",
        "test_not_passive_before_all_have_settled_and_what_is_known_of_losses_is_published",
    ),
    "end_looks_only_whether_seeds_wait": (
        "tests.simulation.test_simulation",
        "test_the_end_is_none_where_a_seed_has_come_and_was_taken",
    ),
    "heir_waits_a_whole_delay": (
        "tests.protocol.test_handover",
        "test_an_heir_waits_for_the_delay_before_its_first_fetch",
    ),
    "leavers_by_views_of_others_ahead": (
        "tests.protocol.test_loss_counter",
        "test_a_leaver_is_not_ahead_by_a_view_that_it_is_not_in",
        NEW + LEAVING,
    ),
    "newcomers_judge": (
        "tests.protocol.test_loss_counter",
        "test_a_newcomer_leaves_the_judgement_to_who_had_looked_before",
        NEW,
        False,
        1,
    ),
    "newcomers_know_nobody": (
        "tests.protocol.test_loss_counter",
        "test_a_newcomer_whose_disk_comes_back_misses_whom_it_had_heard_before_all_had_settled",
    ),
    "one_loss_of_all_and_of_those_ahead": (
        "tests.protocol.test_losses",
        "test_those_who_were_ahead_are_a_loss_of_their_own",
    ),
    "one_wave_of_quiescence": ("tests.protocol.test_quiescence", "test_one_read_is_not_enough"),
    "seed_acknowledged_before_the_successors_have_it": (
        "tests.agent.mail.test_seed_inbox",
        "test_a_seed_is_answered_when_the_successors_have_it",
    ),
    "somebody_had_part_in_each_view": (
        "tests.protocol.test_loss_counter",
        "test_an_own_life_before_is_one_whose_disk_is_here",
    ),
    "who_waits_for_seeds_may_know_urls": (
        "tests.protocol.test_agent",
        "test_an_idle_crawl_that_never_had_a_url_has_lost_nothing",
    ),
    "who_lacked_urls_lacks_them_for_ever": (
        "tests.protocol.test_agent",
        "test_what_was_said_where_nobody_knew_a_url_stands_no_more_when_one_comes_who_knows_some",
    ),
    "the_dead_answer_for_views_their_disk_does_not_know": (
        "tests.protocol.test_loss_counter",
        "test_a_life_before_does_not_answer_for_a_view_that_the_disk_does_not_know",
        2,
    ),
    "only_the_last_life_is_asked_with_whom_it_was": (
        "tests.protocol.test_loss_counter",
        "test_who_is_killed_once_more_before_all_have_settled_misses_the_same",
        2,
    ),
    "all_know_where_the_crawl_begins": (
        "tests.protocol.test_agent",
        "test_an_end_without_urls_names_who_was_lost_before_all_had_settled",
    ),
    "members_of_an_era_not_looked_at": (
        "tests.protocol.test_loss_counter",
        "test_nobody_is_ahead_by_an_era_whose_view_had_one_whose_disk_is_here",
        "c",
        False,
    ),
    "who_had_settled_had_told_all": (
        "tests.protocol.test_loss_counter",
        "test_so_is_who_was_lost_before_it_had_told_others_though_all_had_settled",
        "",
        "",
        "b",
    ),
    "disks_are_as_late_as_words": (
        "tests.protocol.test_loss_counter",
        "test_who_is_killed_once_more_before_all_have_settled_misses_the_same",
        1,
    ),
    "one_judges_for_all": (
        "tests.protocol.test_loss_counter",
        "test_an_elder_that_has_seen_all_settle_may_have_left_the_judgement_to_another",
        "c",
        0,
        (),
        True,
    ),
    "eras_as_they_are_now": (
        "tests.protocol.test_loss_counter",
        "test_what_others_have_seen_with_the_judge_tells_nothing_of_the_dead",
    ),
    "disks_are_of_one_line_of_eras": (
        "tests.protocol.test_loss_counter",
        "test_the_era_of_a_disk_tells_nothing_of_one_that_went_on_without_it",
        (),
        peers("b"),
        True,
    ),
    "a_name_begins_anew": (
        "tests.agent.test_joining",
        "test_who_takes_a_name_takes_over_what_was_published_of_the_lost",
        True,
    ),
    "who_is_behind_keeps_nothing": (
        "tests.protocol.test_loss_counter",
        "test_who_is_behind_judges_in_place_of_those_who_came_further",
        False,
    ),
    "each_disk_judges": (
        "tests.protocol.test_loss_counter",
        "test_a_disk_of_before_all_had_settled_judges_nobody_where_others_came_further",
        BEGUN,
        True,
    ),
    "the_dead_that_a_line_names_are_all": (
        "tests.protocol.test_loss_counter",
        "test_nor_where_more_had_been_killed_than_a_line_names_dead",
        30,
    ),
    "views_are_not_opened": (
        "tests.protocol.test_loss_counter",
        "test_so_it_is_where_the_digest_alone_tells_who_was_in_that_view",
        True,
        "c",
        "",
        "",
    ),
    "all_are_in_views_of_unknown_members": (
        "tests.protocol.test_loss_counter",
        "test_so_it_is_where_the_digest_alone_tells_who_was_in_that_view",
        False,
        "e",
        "",
        "b",
    ),
    "who_came_since_is_not_missed": (
        "tests.protocol.test_loss_counter",
        "test_who_is_back_misses_those_who_had_come_since_all_had_settled_for_it",
    ),
    "settled_is_handed_on_to_those_here": (
        "tests.protocol.test_loss_counter",
        "test_nobody_is_ahead_by_an_earlier_view_who_has_handed_on_all_to_those_who_are_here",
        1,
        "bcd",
        "cc" * 8,
        True,
        False,
    ),
    "left_to_owners_is_handed_on": (
        "tests.protocol.test_loss_counter",
        "test_who_has_settled_has_left_hosts_to_their_owners_who_have_to_have_settled_too",
        False,
        True,
    ),
    "handed_on_is_ahead": (
        "tests.protocol.test_loss_counter",
        "test_nobody_is_ahead_by_an_earlier_view_who_has_handed_on_all_to_those_who_are_here",
        1,
        "bc",
        "cc" * 8,
        False,
        False,
    ),
    "all_have_settled_since": (
        "tests.protocol.test_loss_counter",
        "test_whom_it_had_seen_dead_before_all_settled_it_does_not_miss",
        ("00000000000000ee", "00000000000000ff"),
        False,
        0,
        True,
    ),
    "nobody_has_settled_since": (
        "tests.protocol.test_loss_counter",
        "test_whom_it_had_seen_dead_before_all_settled_it_does_not_miss",
        ("00000000000000ee",),
        False,
        0,
        False,
    ),
    "one_has_settled_for_all": (
        "tests.protocol.test_loss_counter",
        "test_that_all_have_settled_since_is_told_by_the_lines_of_all_together",
        "b",
        "bc",
        True,
    ),
    "leavers_have_handed_on": (
        "tests.protocol.test_loss_counter",
        "test_members_have_not_settled_for_one_on_its_way_out",
        "l",
        "00000000000000ee",
    ),
    "views_of_others_are_not_noted": (
        "tests.protocol.test_loss_counter",
        "test_whom_one_on_its_way_out_saw_dead_died_after_its_last_view",
        "00000000000000ff",
        3,
    ),
    "repeated_words_are_of_unknown_time": (
        "tests.protocol.test_loss_counter",
        "test_words_that_a_name_repeats_are_later_than_a_line_that_knows_less_of_this_agent",
        {},
        {},
        False,
    ),
    "repeated_words_are_later": (
        "tests.protocol.test_loss_counter",
        "test_words_that_a_name_repeats_are_later_than_a_line_that_knows_less_of_this_agent",
        {"members": ()},
        {},
        True,
    ),
    "nobody_is_expected_after_the_first_read": (
        "tests.protocol.test_membership",
        "test_who_leaves_with_work_after_this_agent_came_is_expected_as_long_as_all_have_not_settled",
        "Lx",
        False,
        False,
    ),
    "hurried_leavers_have_told_all": (
        "tests.protocol.test_handover",
        "test_who_was_told_by_a_leaver_that_went_before_it_had_told_all_tells_the_others",
        False,
    ),
    "those_ahead_counted_twice": (
        "tests.protocol.test_loss_counter",
        "test_of_those_ahead_who_were_lost_one_at_least_has_to_be_back",
    ),
    "judges_live_for_ever": (
        "tests.protocol.test_loss_counter",
        "test_a_newcomer_judges_in_place_of_an_elder_that_died_before_it_could",
        ["dead"],
        True,
    ),
    "dead_before_not_missed": (
        "tests.protocol.test_loss_counter",
        "test_a_crawl_whose_agents_are_all_gone_misses_them",
    ),
    "empty_disk_taken_for_a_returned_one": (
        "tests.protocol.test_loss_counter",
        "test_an_empty_directory_has_the_disk_of_nobody_who_had_its_name",
    ),
    "row_before_not_restored": (
        "tests.protocol.test_done_mark_delivery",
        "test_a_visit_whose_row_had_not_left_is_told_as_the_one_before_after_a_restart",
    ),
    "watched_by_the_clock_of_the_server_alone": (
        "tests.transport.test_watched",
        "test_the_smaller_of_what_both_clocks_say_has_passed",
    ),
    "who_leaves_alone_says_nothing": (
        "tests.protocol.test_loss_counter",
        "test_who_leaves_alone_with_work_says_who_is_away",
    ),
    "back_from_a_fence_as_sure_as_before": (
        "tests.protocol.test_membership",
        "test_who_comes_back_from_a_fence_in_which_redis_has_forgotten_is_not_sure",
    ),
    "words_from_before_the_fence_count": (
        "tests.protocol.test_membership",
        "test_a_word_counts_after_such_a_fence_only_where_it_was_said_after_it",
        False,
        "",
        False,
    ),
    "gap_not_known_before_a_beat": (
        "tests.protocol.test_membership",
        "test_so_it_is_where_it_was_seen_before_a_beat_was_acknowledged_that_redis_has_forgotten",
    ),
    "word_of_the_killed_stands": (
        "tests.protocol.test_membership",
        "test_the_word_of_another_ends_with_its_life",
    ),
    "views_entered_ignored": (
        "tests.protocol.test_view_change",
        "test_at_once_holds_in_every_view_entered_since",
    ),
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The protocol with one mistake."""
    with MUTATIONS[name]():
        yield


def said(name: str, seed: int) -> str:
    """What the simulator says of the protocol as it is, in the crawl of that seed for this mutation; '' if nothing."""
    try:
        drawn = name in AS_DRAWN
        Plan(
            seed,
            kinds=AIM.get(name),
            on_disk=name in ON_DISK,
            loads=None if drawn else LOADS.get(name, 1),
            shards=None if drawn else SHARDS.get(name, 1),
            rounds=None if drawn else ROUNDS.get(name, 0),
            outside=None if drawn else OUTSIDE.get(name, 0),
            early=name in EARLY,
            careless=name in CARELESS or None,
            watched=name in WATCHED,
            slots=SLOTS.get(name, 1),
        ).run()
    except (Violation, AssertionError) as violation:
        return str(violation) or "an invariant does not hold"
    return ""


def caught(name: str, seed: int) -> str:
    """What it says of this mutation; '' when it notices nothing."""
    with mutated(name):
        return said(name, seed)


def search(name: str, seeds: Iterable[int]) -> tuple[int, str]:
    """The first seed that catches a mutation, and what it says. Raises Violation when it is the protocol itself."""
    for seed in seeds:
        if told := caught(name, seed):
            if rightly := said(name, seed):
                raise Violation(f"seed {seed}, kinds {AIM.get(name)}, without any mistake: {rightly}")
            return seed, told
    return -1, ""


if __name__ == "__main__":
    for mutation in sys.argv[1:] or MUTATIONS:
        found, what = search(mutation, range(400))
        print(f'    "{mutation}": {found},  # {what[:90]}', flush=True)
