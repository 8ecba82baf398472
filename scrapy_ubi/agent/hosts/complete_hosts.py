"""When a host is complete: nothing of it waits, nothing is under way, and nothing of what was done is unsettled.

Rules of this module:

* Its owner says so, where hosts have limits (UBI_HOST_LIMITS). Who owns it later does not say it again: it is noted
  with the host (section `complete`: when, in unix seconds), in the flush that what is told of it is written before. So
  it is told at least once; for one number of pages it has one identity.
* A link, a seed or a request that is queued once more opens it again: the note is taken back, and it is told once more
  when that is done. What fails only, as a limit has ended the host, opens nothing.
* It has to be so for `QUIET` seconds: of a host that others link to, a first page is often done before the next is
  known. Of more than `MOST_QUIET` hosts at once the others are told without that wait.
* Hosts are gone through a piece at each tick (`PIECE`), not page by page: what hosts cost is the same whatever they do,
  and it does not matter how the last page of one came to its end: by a load, by its dead owner, or by a limit.
* When the crawl has ended, all that are left are looked at at once: nobody looks later.
* A host is complete as far as its owner knows: a link to it may be on its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import COMPLETE, HostNotes
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.protocol.host import HostState

logger = logging.getLogger("scrapy_ubi")

PIECE = 1_000  # hosts looked at a tick, of which there are some a second: a millisecond
QUIET = 5.0  # s
MOST_QUIET = 100_000  # hosts
ALL = "all"  # why it is complete, where no limit and no failure has ended it
Figures = Mapping[str, object]


def is_complete(state: HostState) -> bool:
    """Whether nothing of a host that was begun is left to do, by the state that its owner has."""
    return not (state.waiting or state.out or state.open_work) and state.done_count > 0


class CompleteHosts:
    """Those of one agent. `told` is given the figures of each, once."""

    def __init__(
        self,
        crawl: Crawl,
        hosts: HostNotes,
        limits: HostLimits,
        note: Callable[[str, str], object],
        told: Callable[[Figures], object],
    ) -> None:
        self._crawl = crawl
        self._hosts = hosts
        self._limits = limits
        self._note = note
        self._told = told
        self._quiet: dict[str, float] = {}  # hosts that wait to be told of -> since when they are complete (s)
        self._round: Iterator[HostState] = iter(())
        self._over = False  # and all were looked at since

    def look(self, now: float) -> None:
        """Look at some more hosts."""
        if self._limits.idle:
            return
        if self._crawl.agent.end.finished:
            for state in () if self._over else self._crawl.frontier.states():
                self._look_at(state, now)
            self._over = True
            return
        left = PIECE
        for state in islice(self._round, PIECE):
            left -= 1
            self._look_at(state, now)
        if left:
            self._round = iter(self._crawl.frontier.states())

    def _look_at(self, state: HostState, now: float) -> None:
        complete = is_complete(state)
        if not complete:
            self._quiet.pop(state.host, None)
        if complete is self._is_told(state) or not state.done_count:
            return
        agent = self._crawl.agent
        if self._crawl.frontier.find(state.host) is not state or not agent.keeping.owns(state.host):
            return
        if not (agent.end.finished or agent.work.may_fetch(state, now)):
            return
        if complete:
            if agent.end.finished or self._is_quiet(state.host, now):
                self._complete(state)
        elif not self._hosts.read_end_reason(state) and (state.waiting or state.out):
            self._hosts.put(state, COMPLETE, None)
            self._note("reopened", state.host)
            logger.info("Host %s is open again: %d URLs wait.", state.host, state.waiting + len(state.out))

    def _is_told(self, state: HostState) -> bool:
        """Whether it is noted that the host is complete. What a site has named so, a cookie say, is in notes too."""
        return f'"{COMPLETE}"' in state.notes.text and self._hosts.get(state, COMPLETE) is not None

    def _is_quiet(self, host: str, now: float) -> bool:
        since = self._quiet.get(host)
        if since is None and len(self._quiet) < MOST_QUIET:
            self._quiet[host] = now
            return False
        return since is None or now - since >= QUIET

    def _complete(self, state: HostState) -> None:
        self._quiet.pop(state.host, None)
        reason = self._hosts.read_end_reason(state) or ALL
        figures = {
            "host": state.host,
            "complete": reason,
            "pages": self._hosts.loaded(state),
            "urls": state.done_count,
            "bytes": state.notes.total_spent,
            "when": int(unix()),
        }
        self._told(figures)
        self._hosts.put(state, COMPLETE, figures["when"])
        self._note(f"complete/{reason}", state.host)
        logger.info("Host %s is complete (%s): %d pages.", state.host, reason, figures["pages"])
