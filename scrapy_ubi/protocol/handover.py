"""Handover: after a change of view, every host's state goes to those who keep it now
(docs/explanation/protocol.md#view-change).

Rules of this module:

* The hosts held are gone through in slices, so that a change of view never blocks the loop for long.
* For every host that it answers for (`ViewHistory.answers_for`), or whose copy is *dirty*, an agent brings its state to
  the present keepers that may lack it: whole where a keeper surely has nothing, else by an *offer* (sizes and XOR of
  the key sets) that the keeper answers with *want* or not.
* Who leaves a host to those who have owned it *relies on* them. One that is outside the present view is leaving, and
  may be gone without a change of view: until it has handed on all it holds under this view, those who rely on it have
  not settled either, and when it is gone before they go through all hosts again. An agent that is leaving relies
  on no agent outside the view, or two would wait for each other.
* A leaver may have told one keeper only when it goes, and nobody else may have owned the host: who has learned of
  it from that one tells the others.
* Several offers and syncs of one host may be under way, one a keeper. A copy that gets dirty meanwhile is gone
  through again.
* When somebody leaves, hosts are brought only after a pause: agents are often stopped together, and what one of them
  would bring to another would be on its way back with the next start.
* A copy is dropped only by an agent outside the host's keepers, and only after the view is complete. The last to leave,
  who have fewer than t + 1 keepers to hand over to, drop nothing: t lost disks may be those of all keepers, and the
  last words of one that has crashed since are read as those of a living one. Where somebody who believes in another
  view has told of the host, that view may be the newer one and this agent a keeper in it: then not before the failure
  time-out has passed, within which that one's beats are seen, or it is dead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import ABROAD, HostState
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.records import Record, Sync, whole
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.view_change import Alive, ViewHistory

SLICE = 2000  # hosts gone through a tick: some milliseconds
MOST_PAUSES = 3  # that follow each other without a break: agents may leave one after the other
BROUGHT = 0  # the flush of records that bring known state: they are outlinks of no page


class Handover:
    """What is still to be brought to whom.

    `keepers(state)` gives owner and successors under the present view; `failure_timeout` (s) is how long somebody's
    beats may be missing before it is dead; `most_pending` how many hosts a beat lists.
    """

    def __init__(
        self,
        me: str,
        frontier: Frontier,
        outbox: Outbox,
        view_history: ViewHistory,
        keepers: Callable[[HostState], tuple[str, ...]],
        failure_timeout: float,
        most_pending: int,
        loads_end: Callable[[str, str], float],
    ) -> None:
        self.me = me
        self.frontier = frontier
        self.outbox = outbox
        self.view_history = view_history
        self.keepers = keepers
        self.todo: deque[str] = deque()
        self.to_drop: deque[str] = deque()
        self._later: deque[tuple[float, str]] = deque()  # to be dropped from that time on
        self.failure_timeout = failure_timeout
        self._most_pending = most_pending
        self._loads_end = loads_end
        self.now = 0.0
        self.again: set[str] = set()
        self.open: dict[str, dict[str, Sync | None]] = {}  # host -> keeper -> the sync, or None while only offered
        self.pending: dict[str, None] = {}
        self.relied_on: dict[str, str] = {}  # agent outside the view -> its incarnation
        # Such an agent and its incarnation -> hosts of which it is telling every keeper.
        self._telling: dict[tuple[str, str], set[str]] = {}
        self._paused_since = self._paused_until = -math.inf

    def rescan(self) -> None:
        """Go through all hosts: the view has changed, or one relied on is gone."""
        self.todo = deque(state.host for state in self.frontier.states())
        self.to_drop.clear()
        self._later.clear()
        self.again.clear()
        self.relied_on.clear()

    def pause(self, now: float, seconds: float) -> None:
        """Bring no hosts for so long from this time on (s)."""
        if now >= self._paused_until + seconds:
            self._paused_since = now
        self._paused_until = min(now + seconds, self._paused_since + MOST_PAUSES * seconds)

    def read(self, alive: Mapping[str, Beat]) -> None:
        """Take in the beats of everybody alive. Where one that was relied on, or was telling keepers, is gone, hosts
        are gone through again."""
        for agent, incarnation in list(self._telling):
            beat = alive.get(agent)
            if beat is None or beat.incarnation != incarnation:
                for state in filter(None, map(self.frontier.find, self._telling.pop((agent, incarnation)))):
                    self.mark_dirty(state)
            elif beat.has_brought(self.view_history.view.digest):
                del self._telling[agent, incarnation]
        for agent, incarnation in list(self.relied_on.items()):
            beat = alive.get(agent)
            if beat is None or beat.incarnation != incarnation:
                self.rescan()
                return
            if beat.has_brought(self.view_history.view.digest):
                del self.relied_on[agent]

    def tells(self, leaver: str, incarnation: str, state: HostState) -> None:
        """A leaver tells every keeper of this host. Should it go before it has, this agent does."""
        if incarnation:
            self._telling.setdefault((leaver, incarnation), set()).add(state.host)
        else:  # it has gone
            self.mark_dirty(state)

    def completed(self) -> None:
        """The view is complete: copies that are not needed may go."""
        self.to_drop = deque(state.host for state in self.frontier.states())

    def mark_dirty(self, state: HostState) -> None:
        """The copy of this host may hold what its owner lacks."""
        state.dirty = True
        if state.host not in self.again:
            self.again.add(state.host)
            self.todo.append(state.host)

    def stay(self, state: HostState) -> None:
        """Somebody who believes in another view counts on this copy, maybe."""
        state.stays_until = self.now + self.failure_timeout

    def work(self, alive: Alive, now: float) -> None:
        """Go through a slice of what is to be done, at this time (s)."""
        self.now = now
        for _ in range(min(SLICE, len(self._later))):
            if self._later[0][0] > now:
                break
            self._drop(self._later.popleft()[1])
        for _ in range(min(SLICE, len(self.todo)) if now >= self._paused_until else 0):
            host = self.todo.popleft()
            self.again.discard(host)
            state = self.frontier.find(host)
            if state is not None:
                self._bring(state, alive)
        for _ in range(min(SLICE, len(self.to_drop))):
            self._drop(self.to_drop.popleft())

    def _bring(self, state: HostState, alive: Alive) -> None:
        keepers = self.keepers(state)
        mine = keepers[:1] == (self.me,)
        if mine:
            self.pending.pop(state.host, None)
        elif state.open_work:
            self.pending[state.host] = None
        if not mine:
            state.abroad = ABROAD
        elif not self._was_mine(state.host):
            state.abroad = self.loaded_until(state.host)
        others = [keeper for keeper in keepers if keeper != self.me]
        for keeper in [keeper for keeper in self.open.get(state.host, ()) if keeper not in others]:
            self._cancel(state.host, keeper)
        if state.dirty or self.view_history.answers_for(state.host, alive) or not self._rely(state.host):
            for keeper in others:
                self._bring_to(state, keeper)
        if state.dirty and state.host not in self.open:
            state.dirty = False  # no other agent keeps it, or all have it

    def _rely(self, host: str) -> bool:
        """Rely on those who have owned this host, who are all alive, to bring it; False where that may not be."""
        view = self.view_history.view
        outside = {owner: life for owner, life in self.view_history.owners(host) if view.incarnation(owner) != life}
        if outside and self.me not in view.members:
            return False
        self.relied_on.update(outside)
        return True

    def loaded_until(self, host: str) -> float:
        """Until when those can have loaded of a host who may have fetched it before this agent: `ABROAD` unless all of
        them are dead, and known."""
        if self.view_history.complete is None:
            return ABROAD
        return max((self._loads_end(*former) for former in self.view_history.before_me(host)), default=ABROAD)

    def _was_mine(self, host: str) -> bool:
        views = [
            view
            for view in (self.view_history.complete, *self.view_history.entered)
            if view is not None and view.members
        ]
        return all(view.ring.owner(host) == self.me for view in views)

    def _bring_to(self, state: HostState, keeper: str) -> None:
        under_way = self.open.get(state.host, {})
        if keeper in under_way:
            if state.dirty and state.host not in self.again:
                self.again.add(state.host)  # once more when this one has ended
            return
        view = self.view_history.view
        has = None if state.dirty else self.view_history.has_copy(state.host, keeper, view.incarnation(keeper))
        if has:
            return
        if has is None:
            self.open.setdefault(state.host, {})[keeper] = None
            if state.notes.version:  # no part of the summary: they go along
                self.outbox.put(keeper, STATE, Record(state.host, BROUGHT, notes=state.notes), view)
            self.outbox.put(keeper, STATE, Record(state.host, BROUGHT, offer=state.summary()), view)
        else:
            self.want(state, keeper, view)

    def want(self, state: HostState, keeper: str, view: View) -> None:
        """Send the whole state of the host to this keeper."""
        sync = Sync(state.host, keeper, BROUGHT, whole(state, BROUGHT))
        self.open.setdefault(state.host, {})[keeper] = sync
        self.outbox.lane(keeper, STATE, view).put_sync(sync)

    def answered(self, keeper: str, record: Record, wanted: bool, view: View) -> None:
        """An offer was answered."""
        under_way = self.open.get(record.host, {})
        state = self.frontier.find(record.host)
        if keeper in under_way and under_way[keeper] is None:
            if wanted and state is not None:
                self.want(state, keeper, view)
            else:
                self._ended(record.host, keeper)

    def sweep(self, syncs: Iterable[Sync]) -> None:
        """Of these syncs, those that have ended are."""
        for sync in syncs:
            if sync.is_acknowledged and self.open.get(sync.host, {}).get(sync.receiver) is sync:
                self._ended(sync.host, sync.receiver)

    def _cancel(self, host: str, keeper: str) -> None:
        """A keeper that is none any more need not get it. A dirty copy stays dirty: others are to be told instead."""
        under_way = self.open[host]
        sync = under_way.pop(keeper)
        if sync is not None:
            self.outbox.cancel(sync)
        if not under_way:
            del self.open[host]

    def _ended(self, host: str, keeper: str) -> None:
        under_way = self.open[host]
        del under_way[keeper]
        if under_way:
            return
        del self.open[host]
        state = self.frontier.find(host)
        if state is None:
            return
        if host in self.again:
            self.todo.append(host)
        else:
            state.dirty = False
            if self.me not in self.keepers(state) and self.view_history.complete is self.view_history.view:
                self.to_drop.append(host)

    def gone(self, receivers: set[str]) -> None:
        """These receivers are gone, and the mail for them with them."""
        for host, under_way in list(self.open.items()):
            for keeper in [keeper for keeper in under_way if keeper in receivers]:
                del under_way[keeper]
            if not under_way:
                del self.open[host]

    def closed_work(self, state: HostState) -> None:
        """Something begun here for this host is settled; when it was the last, the host may be let go."""
        state.open_work -= 1
        if state.open_work:
            return
        self.pending.pop(state.host, None)
        if self.me not in self.keepers(state) and self.view_history.complete is self.view_history.view:
            self.to_drop.append(state.host)

    def busy(self, hosts: Iterable[str]) -> bool:
        """Whether one of these hosts is still to be gone through, or under way."""
        if self.todo:
            return True
        return bool(self.open) and any(host in self.open for host in hosts)

    @property
    def is_near(self) -> bool:
        """Whether all hosts were gone through, and only what is under way is left."""
        return not self.todo and not self.relied_on

    @property
    def brought(self) -> bool:
        """Whether everything is handed on, but for what the pending hosts wait for."""
        return self.is_near and not self.open

    @property
    def settled(self) -> bool:
        """Whether everything is handed on, as `brought` says, and pending hosts are few enough to be named."""
        return self.brought and len(self.pending) <= self._most_pending

    def _drop(self, host: str) -> None:
        state = self.frontier.find(host)
        if state is None or state.open_work or state.dirty or host in self.open or host in self.again:
            return
        keepers = self.keepers(state)
        if self.me in keepers or len(keepers) <= self.view_history.replication:  # the last to leave keep what they have
            return
        if state.stays_until > self.now:
            self._later.append((state.stays_until, host))
        else:
            self.frontier.drop(host)
