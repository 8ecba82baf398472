"""How far Redis is, and what follows from that for this agent's mail.

Rules of this module:

* What follows is this agent's own matter: how long its mail waits for an answer, when a letter is sent again, how many
  are under way. What all agents must have alike, lease and failure time-out, is never derived from it: agents far from
  Redis and near to it are of one group.
* The log says what was derived, once for each distance.
"""

from __future__ import annotations

import logging
import math

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.transport import Line, Transport

logger = logging.getLogger("scrapy_ubi")

TOLD_FROM = 0.01  # s of a round trip: what follows from less is not worth a line
LOOKS = 16  # exchanges before anything is said: the first round trips of a process take longer
ANOTHER = 1.5  # times as far, or as near, is another distance
LEAST_EASY, EASY = 0.5, 6  # s; an exchange that took less than this part of the time-out may send twice as many letters
FAR_PART = 300_000  # characters of letters in one exchange: a second or two, where 1 % of packets are lost
SHORT_LEASE = 20  # round trips: in a shorter lease not two heartbeats may be lost
FAR = (
    "Redis is %.0f ms away: mail waits up to %.1f s for its answer, a letter is sent again after %.1f s, and up to %d "
    "letters to an agent are under way. UBI_LEASE_TIMEOUT (%g s) and UBI_FAILURE_TIMEOUT (%g s) stay as they are set."
)
TOO_SHORT = (
    "UBI_LEASE_TIMEOUT = %g s is short for a Redis that is %.0f ms away: two heartbeats that are lost on the way end "
    "it, and nothing is fetched until the next one. A UBI_FAILURE_TIMEOUT of %.0f s (alike for all agents) leaves room."
)


class LineWatch:
    """Watches the line of `transport` for `agent`. `round_trip` (s) is what was applied last; `easy` (s) is how long an
    exchange may take after which the next one may send twice as many letters; `part`: characters of letters that one
    sends."""

    def __init__(self, agent: Agent, transport: Transport) -> None:
        self._agent = agent
        self._transport = transport
        self._looks = 0
        self._said = 0.0
        self.round_trip = 0.0
        self.easy = LEAST_EASY
        self.part = math.inf

    def look(self) -> None:
        """An exchange begins."""
        line = self._transport.line
        if _differs(line.round_trip, self.round_trip):
            self.round_trip = line.round_trip
            self._agent.stretch(line.round_trip)
        self.easy = max(LEAST_EASY, line.timeout / EASY)
        self.part = FAR_PART if line.round_trip >= TOLD_FROM else math.inf
        self._looks += 1
        if self._looks >= LOOKS and self.round_trip >= TOLD_FROM and _differs(self.round_trip, self._said):
            self._said = self.round_trip
            self._say(line)

    def _say(self, line: Line) -> None:
        config, bounds, away = self._agent.config, self._agent.outbox.bounds, 1000 * self.round_trip
        lease, failure = config.lease_timeout, config.failure_timeout
        logger.info(FAR, away, line.timeout, bounds.resend, bounds.window, lease, failure)
        if lease < SHORT_LEASE * self.round_trip:
            logger.warning(TOO_SHORT, lease, away, SHORT_LEASE * self.round_trip * failure / lease)


def _differs(now: float, before: float) -> bool:
    """Whether that is another distance, and not the same one measured again."""
    return not before / ANOTHER - 1e-3 < now < before * ANOTHER + 1e-3
