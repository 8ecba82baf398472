"""When mail is exchanged, and what of an exchange is read.

Rules of this module:

* What would be fetched again were the agent killed is told the others soon. What they wait for is hurried only where it
  may matter to them: who has plenty to fetch, like most of a group that crawls at full pelt, sends and reads less
  often, so as to spare Redis and itself, and where it is quick, reads less often than it sends.
* Where an exchange has read as many letters as one may, more wait: the next one begins at once, and reads. Else the
  inbox of an agent of many grows, until all who write to it have as much under way as they may (decision 0165).
* Among many, an agent tells of as many pages at once as there are agents: a few at a time, each would be a letter of
  its own, to another agent.
* The control hash is looked at twice a second, not in every exchange: what it says may come that much later. Who was
  absent for as long as a lease lasts, or may live a second time, looks there before anything is sent.
"""

from __future__ import annotations

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.transport.contract import MOST_READ

CONTROL = 0.5  # s between two looks at the control hash
EAGER = 4  # an answer waits for this part of the flush interval, where the machine is quick
BUSY = 4  # and for so many times as long as the last exchange took, where it is not; for an interval at most
PLENTY = 8  # requests handed out: an agent with so many waits for no other
ENOUGH = 24  # pages done that such an agent tells the others of before its time; in a larger group one for each agent
SELDOM = 2  # else it sends, and it reads its mail, only once in so many flush intervals
IDLE = 1.0  # s between two exchanges of an agent that can neither fetch nor answer yet


class Timing:
    """The pace of one agent's mail. `interval`: between two flushes (s); `lease_timeout`: an absence (s). `sent`: when
    the last exchange began, 0.0 before the first one; `due`: when the next one is to begin as a rule (s); `absent`: the
    control hash must be looked at before anything is sent.
    """

    def __init__(self, agent: Agent, interval: float, lease_timeout: float) -> None:
        self._agent = agent
        self._interval = interval
        self._lease_timeout = lease_timeout
        self.absent = False
        self._looked = 0.0  # when what the control hash says was asked for last (s)
        self.sent = self.due = 0.0
        self.eager = False  # letters came, and want an answer
        self._more_wait = False  # as many came as one exchange reads
        self._done = 0  # pages done when the last exchange began
        self._spared = 0.0  # how much sooner than usual (s) an eager one is
        self._read_due = 0.0  # when to read the mail again (s), with plenty to fetch
        self._control_due = 0.0  # and the control hash

    def is_time(self, now: float) -> bool:
        """Whether it is time (s) for another exchange, with no cause to hurry."""
        if self._more_wait:
            return True
        if self._is_idle():
            return now >= max(self.due, self.sent + IDLE)
        # What has come in wants an answer, and others wait for it: not at once, for what follows is gathered, but soon.
        # Who has plenty to fetch lets them wait, but not with what would be fetched again were it killed.
        if not self._has_plenty():
            waits = self.eager or (self._agent.leaving and len(self._agent.outbox))
            return now >= self.due - (self._spared if waits else 0.0)
        if self._agent.counters.done - self._done >= max(ENOUGH, len(self._agent.view.members)):
            return now >= self.due - self._spared
        return now >= self.due + (SELDOM - 1) * self._interval

    def _is_idle(self) -> bool:
        """Whether this agent can neither fetch nor answer yet (`Membership.sure`), and has nothing new to say."""
        agent = self._agent
        can = agent.group.sure or agent.leaving or agent.end.finished
        return not can and not any(lane.waiting for lane in agent.outbox.lanes.values())

    def _has_plenty(self) -> bool:
        """Whether this agent has plenty to fetch, and no agent joins, leaves or hands over."""
        agent = self._agent
        return agent.work.out >= PLENTY and agent.view_history.complete is agent.view and not agent.leaving

    def check_absence(self, now: float) -> None:
        """An exchange is about to begin: see whether the agent was absent."""
        if self.sent:
            self.absent = self._agent.group.claim.shadowed or now - self._looked > self._lease_timeout

    def wait(self, now: float) -> None:
        """The next exchange is an interval from now."""
        self.due = now + self._interval

    def begun(self, now: float) -> None:
        """An exchange begins."""
        if not self.sent:
            self._looked = now
        self.wait(now)
        self.sent = now
        self.eager = self._more_wait = False
        self._done = self._agent.counters.done

    def end_exchange(self, now: float, round_trip: float = 0.0) -> None:
        """It has ended; so much of it (s) was the way to Redis and back, which costs nobody anything. Agents that share
        a core would otherwise spend it on mail: each letter of one makes another one eager."""
        self._spared = max(0.0, self._interval - max(self._interval / EAGER, (now - self.sent - round_trip) * BUSY))

    def came(self, letters: int, refused: int) -> None:
        """So many letters came with the last exchange, and so many were refused by the transport."""
        self.eager = letters > 0
        self._more_wait = letters + refused >= MOST_READ
        if self._more_wait:
            self._read_due = 0.0

    def reads(self, now: float, anyway: bool) -> bool:
        """Whether the exchange that begins now reads the mail; `anyway`: it has cause to."""
        reads = anyway or now >= self._read_due or not self._has_plenty()
        if reads:
            self._read_due = now + SELDOM * self._interval * 0.9  # a turn of the loop is never quite in time
        return reads

    def looks(self, now: float) -> bool:
        """Whether it is time to look at the control hash."""
        return now >= self._control_due

    def look_soon(self) -> None:
        """The next exchange is to look there."""
        self._control_due = 0.0

    def looked(self, now: float) -> None:
        """What the control hash says was read. What was asked for before an absence may have waited for its end."""
        self._control_due = now + CONTROL
        self._looked = now if self.absent else self.sent
