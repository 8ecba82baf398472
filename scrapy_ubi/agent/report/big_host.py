"""A crawl in which one host holds nearly all that waits, while its agents have little to do: said once, with the
settings that help.

Rules of this module:

* It is said by the host's owner, after `LOOKS` looks in a row at which at least `LEAST` requests waited here, `SHARE`
  of them of one host, and hardly any was in flight.
* Not where that is meant: of a host that may have several loads at once, or that is left alone between two for long.
* Looking is linear in the hosts held, so it comes with the counting of the profile, which is seldom where that is much.
"""

from __future__ import annotations

import logging

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.urls.host_shards import MARK

logger = logging.getLogger("scrapy_ubi")

LEAST = 1000  # requests that wait: less is done before anybody has read the sentence
SHARE = 0.9
IN_FLIGHT = 2  # of an agent that has little to do
LOOKS = 5  # some ten seconds
LONG = 1.0  # s; a host with a longer delay is slow as somebody wants it so


class BigHost:
    """Looks at what one agent has counted, until it has said its sentence."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._looks = 0  # in a row

    def check_hosts(self, queued: int, in_flight: int) -> None:
        """So many requests wait at this agent, of its own hosts, and so many are in flight."""
        if self._looks >= LOOKS:
            return
        state = self._biggest() if queued >= LEAST and in_flight <= IN_FLIGHT else None
        if state is None or state.waiting < SHARE * queued or self._is_meant(state):
            self._looks = 0
            return
        self._looks += 1
        if self._looks == LOOKS:
            self._say(state, queued)

    def _biggest(self) -> HostState | None:
        agent = self._crawl.agent
        own = (state for state in agent.frontier.states() if agent.keeping.keepers(state)[:1] == (agent.me,))
        return max(own, key=lambda state: state.waiting, default=None)

    def _is_meant(self, state: HostState) -> bool:
        several = MARK in state.host or self._crawl.settings.host_concurrency.for_host(state.host).most > 1
        return several or max(self._crawl.frontier.delay, state.pause) > LONG

    def _say(self, state: HostState, queued: int) -> None:
        logger.warning(
            "%s has %d of the %d requests that wait at this agent, and is loaded one page at a time, so that agents "
            "have little to do: UBI_HOST_CONCURRENCY = {%r: 8} allows more loads at once, where the site bears them, "
            "and UBI_HOST_SHARDS = {%r: 4} divides it among agents.",
            state.host,
            state.waiting,
            queued,
            state.host,
            state.host,
        )
