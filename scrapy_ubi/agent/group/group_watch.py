"""What one agent of a group does for all: it removes what is left of the gone, and says who should not be there.

It is the first of a complete view. So there is one as a rule, two at times, for a moment, and none while the group
changes: each of these tasks may be done twice, and may wait.

Who is long gone leaves nothing in Redis but a profile, at most, and of many of them one sum of their profiles: where
agents come and go under names of their own (machines that are rented by the hour), all would else read the beats and
profiles of all that ever were, each time.

Rules of this module:

* Gone are those who are not alive, and whose beat has not changed for `LONG`, and many failure time-outs, by the
  clock of who removes it. By then all have read that they left, or hold them dead, and have taken back what was on its
  way to them.
* One agent does it: the first of a complete view. A line that has changed meanwhile stays, with its mail.
* A process that was suspended for so long finds its line missing, writes it again, is told that it is dead, and
  joins again; its mail comes again, as after a start.
* Profiles of the last `KEPT` that went stay: `scrapy ubi report` counts what their agents did. Of more, the profiles of
  those who went first leave, and what they have counted is added to one sum (`summed_up`): of those whose beat line was
  removed, and whose profile has not changed since for as long as that takes. The transport looks once more, in the step
  in which it is done. Two that do it in parallel sum up nothing twice: the step names what it replaces.
* Who comes back after that finds no profile of its own, and counts from nothing (`Crawl.published`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.group.other_layouts import OtherLayouts
from scrapy_ubi.agent.mail.errand import Errand
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.agent.profile.summed_up import sum_of
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.contract import SUMMED_UP

LONG = 600.0  # s, at least
TIMEOUTS = 20  # failure time-outs, at least
PAUSE = 60.0  # s between two looks
MOST = 100  # agents whose keys are removed at once
KEPT = 1000  # profiles of agents that are gone
MOST_SUMMED = 200  # of them summed up at once

logger = logging.getLogger("scrapy_ubi")


def is_first(agent: Agent, now: float) -> bool:
    """Whether this agent is the one of its group that does what one has to do, at this time (s)."""
    calm = agent.view_history.complete is agent.view and agent.group.may_act(now) and not agent.group.claim.shadowed
    return calm and agent.me == min(agent.view.members, default="")


class DeadAgents:
    """Removes what is left of agents that are gone for `long` (s). `failure_timeout` in seconds."""

    def __init__(self, crawl: Crawl, io: IoThread, transport: Transport, failure_timeout: float) -> None:
        self._crawl = crawl
        self._transport = transport
        self.long = max(LONG, TIMEOUTS * failure_timeout)
        self._since: dict[str, tuple[str, float]] = {}  # who is not alive -> its line, and when it was seen first
        self._next = 0.0
        self._errand: Errand[None] = Errand(io)

    def check_beats(self, lines: Mapping[str, str], now: float) -> None:
        """Everybody's lines were read at this time (s)."""
        if now < self._next:
            return
        self._next = now + PAUSE
        alive = self._crawl.agent.group.watch.seen
        silent = {name: line for name, line in lines.items() if name not in alive and name != self._crawl.agent.me}
        before = self._since
        self._since = {
            name: before[name] if name in before and before[name][0] == line else (line, now)
            for name, line in silent.items()
            if NAME.fullmatch(name) and Beat.parse(line) is not None
        }
        gone = {name: line for name, (line, since) in self._since.items() if now - since > self.long}
        if gone and self.is_mine(now):
            self._errand.send(self._transport.forget(dict([*gone.items()][:MOST])))

    def is_mine(self, now: float) -> bool:
        """Whether it is this agent that removes them."""
        return not self._errand.is_under_way and is_first(self._crawl.agent, now)


class SummingUp:
    """Sums up, for agent `me`, who is long gone: for `long` seconds. `is_mine` says whether it is this agent that does
    it at that time."""

    def __init__(
        self, me: str, io: IoThread, transport: Transport, is_mine: Callable[[float], bool], long: float
    ) -> None:
        self._me = me
        self._transport = transport
        self._is_mine = is_mine
        self._long = long
        self._since: dict[str, tuple[int, float]] = {}  # agent that is gone -> its profile, and when it was seen first
        self._next = 0.0
        self._errand: Errand[None] = Errand(io)

    def check_profiles(self, lines: Collection[str], now: float) -> None:
        """These agents have lines at this time (s)."""
        if now < self._next or self._errand.is_under_way:
            return
        self._next = now + PAUSE
        if self._is_mine(now):
            self._errand.send(self._round({*lines, self._me}, now))
        else:
            self._since = {}

    async def _round(self, there: set[str], now: float) -> None:
        """Sum up who is long gone, where these are not. Runs in the I/O thread."""
        profiles = await self._transport.profiles()
        gone = {name: text for name, text in profiles.items() if name not in there and NAME.fullmatch(name)}
        chosen = self._chosen(gone, now)
        if not chosen:
            return
        before = profiles.get(SUMMED_UP)
        if await self._transport.sum_up(chosen, before, sum_of(before, chosen, profiles)):
            logger.info(
                "%d agents that have long gone are summed up: `scrapy ubi report` counts them together.", len(chosen)
            )

    def _chosen(self, gone: Mapping[str, str], now: float) -> dict[str, str]:
        """Whose profiles are to leave, oldest first."""
        if len(gone) <= KEPT:
            self._since = {}
            return {}
        before, seen = self._since, {name: hash(text) for name, text in gone.items()}
        self._since = {
            name: before[name] if name in before and before[name][0] == text else (text, now)
            for name, text in seen.items()
        }
        long = [name for name, (_, since) in self._since.items() if now - since > self._long]
        most = min(len(gone) - KEPT, MOST_SUMMED)
        return {name: gone[name] for name in sorted(long, key=lambda name: (_updated(name, gone[name]), name))[:most]}


def _updated(name: str, text: str) -> float:
    profile = read_profile(name, text.encode(errors="replace"))
    return profile.updated if isinstance(profile, Profile) else 0.0


class GroupWatch:
    """These tasks, for one agent."""

    def __init__(self, crawl: Crawl, io: IoThread, transport: Transport, settings: UbiSettings) -> None:
        def is_mine(now: float) -> bool:
            return is_first(crawl.agent, now)

        def note(what: str) -> None:
            crawl.tally.note(what)

        me = crawl.agent.me
        self._dead = DeadAgents(crawl, io, transport, settings.failure_timeout)
        self._summing_up = SummingUp(me, io, transport, is_mine, self._dead.long)
        self._others = OtherLayouts(me, settings.crawl, io, transport, is_mine, note, crawl.fixed)

    def check_beats(self, lines: Mapping[str, str], now: float) -> None:
        """Everybody's lines were read at this time (s)."""
        self._dead.check_beats(lines, now)
        self._summing_up.check_profiles(lines, now)
        self._others.check_beats(lines, now)
