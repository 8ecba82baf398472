"""What happened to an agent and its group, told from how they stand: who joined, left or died, when all had settled, a
pause, the end.

Rules of this module:

* Nothing tells it: `find_events` comes once a second, and compares identities where it can, so a second without news
  costs nearly nothing.
* Each agent says what it has seen; where several are put together, the same from several is taken for one.
* A newcomer meets the others one by one, and none of them has joined then: they count as joined from the first view on
  that all had settled for.
"""

from __future__ import annotations

from collections.abc import Iterator

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.report.timeline import Event
from scrapy_ubi.agent.steering.live_entries import PAUSE, field_of
from scrapy_ubi.protocol.view import Member, View

PAUSE_FIELD = field_of(PAUSE)


class EventWatch:
    """Watches the agent of this crawl, from its join on."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._view: View | None = None
        self._settled: View | None = None
        self._paused = self._fenced = self._blocked = self._finished = False

    def find_events(self, now: float, at: int, blocked: bool) -> Iterator[Event]:
        """What is new at this time: by the agent's clock (s), and in unix seconds."""
        agent, crawl = self._crawl.agent, self._crawl
        if (view := agent.view) is not self._view:
            yield from self._members(self._view, view, at)
            self._view = view
        if agent.view_history.complete is view is not self._settled and view.members:
            self._settled = view
            number = len(view.members)
            yield Event(at, "settled", "", f"{number} agent{'' if number == 1 else 's'}")
        others = len(view.members) > 1  # alone an agent is cut off from no other
        if (fenced := not agent.lease.holds(now)) != self._fenced and (others or self._fenced):
            self._fenced = fenced
            yield Event(at, "fenced" if fenced else "unfenced", agent.me)
        if blocked != self._blocked:
            self._blocked = blocked
            yield Event(at, "blocked" if blocked else "unblocked", agent.me)
        entry = crawl.live.entries.get(PAUSE_FIELD)
        if (paused := entry is not None and entry.stands) != self._paused:
            self._paused = paused
            yield Event(at, "paused" if paused else "resumed", "", f"by {entry.who}" if entry is not None else "")
        if agent.finished and not self._finished:
            self._finished = True
            yield Event(at, "finished")

    def _members(self, before: View | None, view: View, at: int) -> Iterator[Event]:
        """Who has come, gone, or come again, between two views; of the first one, this agent alone."""
        me, old = self._crawl.agent.me, before.members if before is not None else {}
        if before is None:
            yield Event(at, "joined", me, "again" if self._crawl.former else "")
            old = view.members
        for name in sorted(old.keys() | view.members.keys()):
            was, now = old.get(name), view.members.get(name)
            if name != me and view.incarnation(name) != (was.incarnation if was is not None else ""):
                yield from self._member(name, was, now, at)

    def _member(self, name: str, was: Member | None, now: Member | None, at: int) -> Iterator[Event]:
        """Another agent has gone, has come, or both."""
        if was is not None:
            died = now is not None or was.incarnation in self._crawl.agent.group.watch.dead
            yield Event(at, "dead" if died else "left", name)
        if now is not None and self._settled is not None:
            yield Event(at, "joined", name, "again" if was is not None else "")
