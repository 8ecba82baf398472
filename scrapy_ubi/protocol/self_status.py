"""Status: how far one agent is, as it tells the others in its beat. Everything here is read from its other parts, and
changes nothing.

* *settled*: it has handed on all it holds under the present view, but for the pending hosts
  (docs/explanation/protocol.md#view-change);
* *few* hosts left: what it has still to hand on is of so few hosts that its beat names them, so the others need not
  wait for those that it does not name;
* *passive*: nothing is left to do here (P6), and what this agent knows of losses was published: it has seen that all
  have settled, and so has counted who was lost before that;
* a leaver *may go* when it has handed on all it holds, and no agent counts on its copies any longer.
"""

from __future__ import annotations

from dataclasses import replace

from scrapy_ubi.protocol.beat import (
    BLANK,
    FENCED,
    FEW,
    LEAVING,
    LEFT,
    LOSSY,
    MANY,
    MOST_NAMED,
    NEW,
    OVER,
    PASSIVE,
    RELIEVED,
    Beat,
)
from scrapy_ubi.protocol.done_mark_delivery import DoneMarkDelivery
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.inbound import Inbound
from scrapy_ubi.protocol.keepers import Keepers
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.loss_counter import BEGUN
from scrapy_ubi.protocol.quiescence import Quiescence
from scrapy_ubi.protocol.view_change import point
from scrapy_ubi.protocol.work import Work

LISTS_APART = 0.5  # s between two lists of the hosts that are left


class SelfStatus:
    """What one agent says of itself in its beat, read from these parts of it."""

    def __init__(
        self,
        keeping: Keepers,
        handover: Handover,
        closing: DoneMarkDelivery,
        work: Work,
        inbound: Inbound,
        quiescence: Quiescence,
    ) -> None:
        self._me = keeping.me
        self._config = keeping.config
        self._keeping = keeping
        self._frontier = keeping.frontier
        self._group = keeping.group
        self._view_history = keeping.view_history
        self._outbox = keeping.outbox
        self._handover = handover
        self._closing = closing
        self._work = work
        self._inbound = inbound
        self._quiescence = quiescence
        self._listed: tuple[int, float, frozenset[str]] = (-1, 0.0, frozenset())  # view, until when (s), hosts

    @property
    def settled(self) -> bool:
        """Whether this agent has handed on all it holds under the present view, but for the pending hosts."""
        return self._handover.settled and self._brought

    @property
    def _brought(self) -> bool:
        """Whether all is handed on but for the pending hosts, however many these are."""
        if not self._group.sure or not self._handover.brought or self._outbox.orphans:
            return False
        return all(
            oldest is None or oldest > self._keeping.view_flush
            for oldest in (lane.oldest() for (_, kind), lane in self._outbox.lanes.items() if kind == STATE)
        )

    def passive(self, now: float, exhausted: bool) -> bool:
        """Whether nothing is left to do here (P6). `exhausted`: `start()` has nothing more."""
        return (
            exhausted
            and not self._group.leaving
            and not self._work.out
            and not self._closing
            and not len(self._outbox)
            and self._inbound.idle
            and self._group.lease.holds(now)
            and self.settled
            and self._view_history.released
            and self._group.losses.book.is_published
            and not self._frontier.waits(lambda state: self._keeping.keepers(state)[:1] == (self._me,))
            and not self._work.awaits_visits()
        )

    def may_go(self) -> bool:
        """Whether a leaving agent has handed on all it holds, and no agent counts on its copies any longer: all
        have published *settled* for the view without it.
        """
        quiet = self._handover.settled and not self._handover.pending and not self._closing and self._inbound.idle
        relieved = self._view_history.released or not self._keeping.view.members
        return self._group.leaving and quiet and relieved and not len(self._outbox) and not self._work.out

    def _knows_no_url(self) -> bool:
        """Whether nothing that this agent has tells of a URL, or it has told others."""
        return not (len(self._frontier) or len(self._outbox) or self._work.out or self._closing) and self._inbound.idle

    def beat(self, now: float, exhausted: bool, start_over: bool = False) -> Beat:
        """What this agent says of itself at this time (s). `start_over`: `start()` has come to an end, though the agent
        may wait for what comes from outside (else it is `exhausted`)."""
        group, view_history, view = self._group, self._view_history, self._keeping.view
        losses = group.losses
        flags = LEAVING if group.leaving else ""
        if passive := self.passive(now, exhausted):
            flags += PASSIVE
        over = start_over or (exhausted and not group.leaving)
        flags += BLANK if over and self._knows_no_url() else ""
        flags += "" if group.lease.holds(now) else FENCED
        flags += LOSSY if losses.lossy else ""
        if view_history.complete is None or (not view_history.complete.members and losses.base <= BEGUN):
            flags += NEW  # a view without members is that of a leaver, and tells of nothing
        settled = view.digest if self.settled else ""
        flags += MANY if not self._handover.settled and self._brought else ""
        pending = tuple(point(host) for host in self._handover.pending) if settled else ()
        if not settled and (few := self._few(now)) is not None:
            flags += FEW
            pending = few
        dead = tuple(incarnation for incarnation in group.watch.dead if incarnation != group.incarnation)
        return Beat(
            incarnation=group.incarnation,
            epoch=group.epoch,
            replicas=self._config.replicas,
            digest=view.digest,
            settled=settled,
            flags=flags,
            activity=self._quiescence.activity if passive else 0,
            pending=pending,
            dead=dead,
            carried=losses.carried,
            members=lives if len(lives := tuple(view.lives)) <= MOST_NAMED else (),
            era=losses.base,
            complete=losses.base_view,
            before=losses.before,
        )

    def _few(self, now: float) -> tuple[str, ...] | None:
        """The hosts of which something is still to be handed on, or pending, as a beat lists them; None where they are
        too many, or not known yet. What was listed a moment ago stands as long as it holds: each change is a new line
        for all to read.
        """
        handover, flush = self._handover, self._keeping.view_flush
        if not self._group.sure or not handover.is_near:
            return None
        view, until, listed = self._listed
        if view == self._keeping.view_no and now < until and handover.open.keys() | handover.pending.keys() <= listed:
            return tuple(map(point, sorted(listed)))
        most = self._config.most_pending
        hosts = {*handover.open, *handover.pending, *(host for _, host in self._outbox.orphans)}
        for (_, kind), lane in self._outbox.lanes.items():
            more = lane.hosts_until(flush, most) if kind == STATE and len(hosts) <= most else set[str]()
            if more is None:
                return None
            hosts |= more
        if len(hosts) > most:
            return None
        self._listed = self._keeping.view_no, now + LISTS_APART, frozenset(hosts)
        return tuple(map(point, sorted(hosts)))

    def is_clean(self, finished: bool) -> bool:
        """Whether a leaver leaves nothing behind: the crawl is over (`finished`), or others have all that it knows."""
        return finished or (self.may_go() and (bool(self._keeping.view.members) or not self._work.holds_undone()))

    def last_beat(self, before: Beat, finished: bool) -> Beat:
        """What a leaver says last, after this beat: that it has left and, where it could not hand on what it holds,
        that this may be lost. `finished`: the crawl is over.
        """
        clean = self.is_clean(finished)
        flags = LEFT + (LOSSY if self._group.losses.lossy or not clean else "") + (OVER if finished else "")
        flags += (RELIEVED if clean and not finished else "") + (NEW if NEW in before.flags else "")
        return replace(before, flags=flags, settled="", pending=())
