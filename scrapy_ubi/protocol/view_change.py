"""Who may fetch a host, and from when: the rules of a view change that keep one fetcher a host, whatever number of
loads it may have at once (docs/explanation/protocol.md#view-change, P2).

A view is *complete*, for an agent, when one read shows that everybody alive (the leaving included) has published
*settled* for it and no beat lists a pending host. An owner fetches a host

* *at once*, when in the last view that was complete for it, and in every view it entered since, it was the owner, or
  one of the `t` successors with no agent before it in that host's order still alive: its copy is whole and no
  living agent can be fetching;
* otherwise from the moment it has read that everybody alive has published *settled* for the present view, unless
  somebody lists the host as pending;
* otherwise from the moment it has read that everybody alive has published either that or, with a list of all hosts that
  it has still to hand on (`FEW`), that these are few, unless one of the others lists the host: one host that is large,
  or a line that is long, does not hold up all others. What the owner has itself to tell of it, it knows;
* otherwise, where somebody alive has not published *settled* when the handoff time-out has passed, from then on. A host
  that is listed waits however long that takes: who lists it is alive, and may be loading one of its pages.

"Every view it entered since" is more than a complete view asks: having published *settled* for a view, an agent has
given the others the right to think it complete, though it has not seen that itself (decision 0003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scrapy_ubi.protocol.beat import FEW, Beat
from scrapy_ubi.protocol.ring import point as ring_point
from scrapy_ubi.protocol.view import View

MOST_ENTERED = 16  # views remembered since the last complete one; beyond it nothing is fetched at once


def point(host: str) -> str:
    """The name by which beats list a host: its ring point, 16 hex digits."""
    return f"{ring_point(host):016x}"


Alive = Callable[[str, str], bool]


class ViewHistory:
    """What an agent knows of the views it has been in. `entered` ends with `view`, the present one."""

    view: View

    def __init__(self, me: str, replication: int) -> None:
        self.me = me
        self.replication = replication
        self.complete: View | None = None
        self.entered: list[View] = []
        self.released = False  # everybody has settled in the present view, but for the hosts listed
        self.copied = False  # everybody has handed on all, whatever is pending
        self.agreed = False  # everybody has published the present view, so all know how many there are
        self.forced = False  # the handoff time-out has passed, and not everybody had settled
        self.listed: frozenset[str] = frozenset()
        self.few: frozenset[str] | None = None  # hosts that somebody has still to hand on, once all have listed theirs
        self.theirs: frozenset[str] = frozenset()  # those of them that another agent has listed
        self.since = 0.0

    def forget(self) -> None:
        """A new incarnation has been in no view."""
        self.complete = None
        del self.entered[:-1]
        self.released = self.copied = self.agreed = self.forced = False
        self.few = None

    def doubt(self, view: View) -> None:
        """Members of this view whom the last complete one did not have may have fetched while neither knew of the
        other: nothing is fetched at once.
        """
        known = self.complete
        if known is not None and any(known.incarnation(a) != m.incarnation for a, m in view.members.items()):
            self.complete = None
            del self.entered[:-1]

    def enter(self, view: View, now: float) -> None:
        """The agent believes in another view from now on (s)."""
        if len(self.entered) >= MOST_ENTERED:
            self.complete = None
            del self.entered[:-1]
        self.view = view
        self.entered.append(view)
        self.released = self.copied = self.agreed = self.forced = False
        self.listed, self.few, self.since = frozenset(), None, now

    def read(self, beats: Mapping[str, Beat]) -> bool:
        """Take in the beats of everybody alive, the own included, of one read; True when more may be fetched than
        before.
        """
        digest = self.view.digest
        self.agreed = self.agreed or all(beat.digest == digest for beat in beats.values())
        self.copied = self.copied or all(beat.has_brought(digest) for beat in beats.values())
        if not all(beat.settled == digest and beat.digest == digest for beat in beats.values()):
            return self._read_few(beats)
        listed = frozenset(host for beat in beats.values() for host in beat.pending)
        before = (self.released, self.listed, self.complete)
        self.listed = listed & self.listed if self.released else listed if self.few is None else listed & self.few
        self.released = True
        if not self.listed and self.complete is not self.view:
            self.complete = self.view
            self.entered = [self.view]
        return before != (self.released, self.listed, self.complete)

    def _read_few(self, beats: Mapping[str, Beat]) -> bool:
        """Whether these beats, of whose agents not all have settled, let more hosts be fetched."""
        digest, before = self.view.digest, self.few
        if self.released or not all(
            beat.digest == digest and (beat.settled == digest or FEW in beat.flags) for beat in beats.values()
        ):
            return False
        theirs = frozenset(host for agent, beat in beats.items() if agent != self.me for host in beat.pending)
        few = theirs.union(beats[self.me].pending) if self.me in beats else theirs
        was = (before, self.theirs)
        self.few, self.theirs = (few, theirs) if before is None else (few & before, theirs & self.theirs)
        return (self.few, self.theirs) != was

    def is_brought(self, host: str) -> bool:
        """Whether all have said, not settled yet, which hosts they have still to hand on, and the others not this one:
        what its owner has itself to tell of it, it knows."""
        return self.few is not None and point(host) not in self.theirs

    @property
    def waits(self) -> bool:
        """Whether hosts wait for somebody to settle."""
        return not self.forced and not self.released

    def force(self) -> None:
        """The handoff time-out has passed: fetch without agreement. No copy is counted on for that."""
        self.forced = True

    def may_fetch(self, host: str, alive: Alive) -> bool:
        """Whether the owner of this host may fetch it now, as far as views are concerned."""
        if self.released:
            if not self.listed or point(host) not in self.listed:
                return True
        elif self.forced or self.is_brought(host):
            return True
        return self._has_been_heir(host, alive)

    def is_overdue(self, host: str, alive: Alive) -> bool:
        """Whether the owner of this host would have to wait for it, had the handoff time-out not passed."""
        if self.released and (not self.listed or point(host) not in self.listed):
            return False
        return not self._has_been_heir(host, alive)

    def _has_been_heir(self, host: str, alive: Alive) -> bool:
        """Whether this agent was the heir in the last complete view and in every one since."""
        return self.complete is not None and all(
            self._heir(view, host, alive) for view in (self.complete, *self.entered) if view is not None
        )

    def _heir(self, view: View, host: str, alive: Alive) -> bool:
        """Whether in that view this agent owned the host, or comes next to those who are gone."""
        if self.me not in view.members:
            return False
        for agent in view.ring.order(host, self.replication + 1):
            if agent == self.me:
                return True
            if alive(agent, view.incarnation(agent)):
                return False
        return False

    @property
    def enough(self) -> bool:
        """Whether what was acknowledged lately has as many copies as it can have: everybody has handed on all under the
        present view, or none of the views since the last complete one had too few members.

        It is not asked that every agent has few pending hosts: they wait for this, and would wait without end.
        """
        if self.released or self.copied:
            return True
        sizes = [len(view.members) for view in (self.complete, *self.entered) if view is not None]
        return self.complete is not None and min(sizes) >= min(self.replication + 1, max(sizes))

    @property
    def few_unheard(self) -> bool:
        """Whether there are too few members for all copies, and somebody who lives may not know that yet: it would take
        an acknowledgement for one that stands for all.
        """
        return 0 < len(self.view.members) <= self.replication and not self.agreed

    def owners(self, host: str) -> Iterator[tuple[str, str]]:
        """Who has owned the host, and so may know more of it than others: in the last complete view, and in every view
        entered since, the present one included; agent and incarnation.
        """
        for view in (self.complete, *self.entered):
            if view is not None and view.members:
                owner = view.ring.owner(host)
                yield owner, view.incarnation(owner)

    def before_me(self, host: str) -> Iterator[tuple[str, str]]:
        """Who may have fetched the host before this agent did: in each of these views who owned it, and who came next
        to one that was gone."""
        for view in (self.complete, *self.entered):
            for agent in self._keepers(view, host) if view is not None else ():
                if agent == self.me:
                    break
                yield agent, view.incarnation(agent) if view is not None else ""

    def is_former(self, agent: str, digest: str) -> bool:
        """Whether what this member of the present view wrote in the view with that digest may be of a former life of
        its: its present incarnation was not there or, where that view is not known here, another one was in any view
        since one was complete.
        """
        life = self.view.incarnation(agent)
        views = [view for view in (self.complete, *self.entered) if view is not None]
        there = [view for view in views if view.digest == digest]
        if there:
            return there[0].incarnation(agent) != life
        return any(view.incarnation(agent) not in ("", life) for view in views)

    def answers_for(self, host: str, alive: Alive) -> bool:
        """Whether it is this agent's part to bring the host's state to new keepers.

        Those who owned it do that while they live; so it is this agent's part where it is one of them, and where one of
        them is gone, for what that one had learned may be nowhere else but here.
        """
        if self.complete is None or not self.complete.members:
            return True
        return any(owner == self.me or not alive(owner, incarnation) for owner, incarnation in self.owners(host))

    def has_copy(self, host: str, keeper: str, incarnation: str) -> bool | None:
        """What a keeper of the host in the present view surely has: True all that this agent has, False nothing, None
        unknown.
        """
        views = [view for view in (self.complete, *self.entered[:-1]) if view is not None]
        if self.complete is None:
            return None
        kept = [keeper in self._keepers(view, host) and view.incarnation(keeper) == incarnation for view in views]
        if all(kept) and all(self._keepers(view, host)[:1] == (self.me,) for view in views):
            return True
        return None if any(kept) else False

    def _keepers(self, view: View, host: str) -> tuple[str, ...]:
        return view.ring.order(host, self.replication + 1) if view.members else ()
