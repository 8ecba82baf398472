"""Who is long gone leaves nothing in Redis but a profile, at most: where agents come and go under names of their own
(machines that are rented by the hour), all would else read the beats of all that ever were, each time.

Rules of this module:

* Gone are those who are not alive, and whose beat has not changed for `LONG`, and many failure time-outs, by the
  clock of who removes it. By then all have read that they left, or hold them dead, and have taken back what was on its
  way to them.
* One agent does it: the first of a complete view. A line that has changed meanwhile stays, with its mail.
* A process that was suspended for so long finds its line missing, writes it again, is told that it is dead, and
  joins again; its mail comes again, as after a start.
* Profiles stay, of the last ones: `scrapy ubi report` counts what their agents did. Those before are summed up
  (`summing_up`).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport import Transport

LONG = 600.0  # s, at least
TIMEOUTS = 20  # failure time-outs, at least
PAUSE = 60.0  # s between two looks
MOST = 100  # agents whose keys are removed at once


def is_first(agent: Agent, now: float) -> bool:
    """Whether this agent is the one of its group that does what one has to do, at this time (s)."""
    calm = agent.tenure.complete is agent.view and agent.group.may_act(now) and not agent.group.shadowed
    return calm and agent.me == min(agent.view.members, default="")


class DeadAgents:
    """Removes what is left of agents that are gone for `long` (s). `failure_timeout` in seconds."""

    def __init__(self, crawl: Crawl, io: IoThread, transport: Transport, failure_timeout: float) -> None:
        self._crawl = crawl
        self._io = io
        self._transport = transport
        self.long = max(LONG, TIMEOUTS * failure_timeout)
        self._since: dict[
            str, tuple[str, float]
        ] = {}  # agent that is not alive -> its line, and when it was first seen
        self._next = 0.0
        self._under_way: Future[None] | None = None

    def check_beats(self, lines: Mapping[str, str], now: float) -> None:
        """Everybody's lines were read at this time (s)."""
        if now < self._next:
            return
        self._next = now + PAUSE
        alive = self._crawl.agent.watch.seen
        silent = {name: line for name, line in lines.items() if name not in alive and name != self._crawl.agent.me}
        before = self._since
        self._since = {
            name: before[name] if name in before and before[name][0] == line else (line, now)
            for name, line in silent.items()
            if NAME.fullmatch(name) and Beat.parse(line) is not None
        }
        gone = {name: line for name, (line, since) in self._since.items() if now - since > self.long}
        if gone and self.is_mine(now):
            self._under_way = self._io.send(self._transport.forget(dict([*gone.items()][:MOST])), self._done)

    def is_mine(self, now: float) -> bool:
        """Whether it is this agent that removes them."""
        return self._under_way is None and is_first(self._crawl.agent, now)

    def _done(self) -> None:
        """What Redis has not done is tried again with a later look."""
        if self._under_way is not None and self._under_way.done():
            self._under_way.exception()
            self._under_way = None
