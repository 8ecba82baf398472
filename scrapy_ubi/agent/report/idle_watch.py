"""Says why nothing is fetched, whenever nothing is: in the log, and to who asks for it (profile, status, web page).

Rules of this module:

* `check_idle` comes once a second. After `QUIET` seconds without a page fetched or done the reason is looked for.
* The log hears of a reason when it is another one than before, and of one that lasts, or comes back, at most once a
  minute; each time that it is said it is silent for twice as long, up to `LONGEST`: a host with a long delay would fill
  the log else. That the agent fetches again is seen in the line of progress.
* An idle agent of a crawl with a single host says so once. Who has which hosts is in the profiles of the others, which
  are read for that once a minute at most, in the I/O thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from math import inf

from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import IdleReason, reason, sentence
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.ground.clock import unix

logger = logging.getLogger("scrapy_ubi")

QUIET = 5.0  # s without a page until people may ask why
LOGGED = 10.0  # s without a page until the log says why
PASSES = 2.0  # s: what ends so soon says nothing
AGAIN, LONGEST = 60.0, 600.0  # s between two lines of one reason
READ_EVERY = 60.0  # s between two looks at who has which hosts
# What holds for a moment between two reasons: between the end of a rest and the load that follows, say. It is one only
# where the next look finds it, too; likewise what ends within `PASSES` seconds.
PASSING = frozenset((kinds.READY, kinds.PERMITS, kinds.END))

Profiles = Callable[[], Awaitable[Mapping[str, str]]]


class IdleWatch:
    """Watches one agent. `marks` changes whenever something is fetched; `find_reason` gives the reason at a time;
    `profiles` reads what all agents have published."""

    def __init__(
        self,
        me: str,
        marks: Callable[[], object],
        find: Callable[[float], IdleReason | None],
        profiles: Profiles,
    ) -> None:
        self.me = me
        self._marks = marks
        self._find = find
        self._profiles = profiles
        self._mark: object = self  # as nothing that `marks` gives
        self._quiet_since = inf  # s
        self._said: dict[str, tuple[float, float]] = {}  # kind -> when it may be said again (s), and the step
        self._last = ""
        self._seen = ""  # the kind that the last look found
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._one_host: IdleReason | None = None
        self.reason: IdleReason | None = None  # why nothing is fetched; None while something is

    def check_idle(self, now: float) -> None:
        """Look again, at this time (s, the agent's clock)."""
        mark = self._marks()
        if mark != self._mark:
            self._mark = mark
            self._quiet_since = now
            self.reason = None
            return
        quiet = self.quiet(now)
        if quiet < QUIET:
            return
        found = self._find(now)
        if found is not None and found.kind == kinds.OTHERS:
            found = self._of_others(found, now)
        lasts = found is None or found.kind == self._seen or not _is_passing(found)
        self._seen = found.kind if found is not None else ""
        if not lasts and self.reason is not None:
            return
        self.reason = found
        if found is not None and lasts and quiet >= LOGGED:
            self._say(found, now)

    def quiet(self, now: float) -> float:
        """For how long nothing was fetched (s)."""
        return max(0.0, now - self._quiet_since)

    def is_over(self, now: float) -> bool:
        """Whether there is nothing left to explain."""
        return self._find(now) is None

    def _say(self, found: IdleReason, now: float) -> None:
        again, step = self._said.get(found.kind, (now, AGAIN))
        if now < again:
            return
        self._said[found.kind] = now + step, min(2 * step, LONGEST)
        if found.kind == kinds.ONE_HOST:
            if self._last == kinds.ONE_HOST:
                return
            self._said[found.kind] = float("inf"), step
        self._last = found.kind
        logger.info("%s", sentence(found, unix()))

    # -- a crawl of one host

    def _of_others(self, found: IdleReason, now: float) -> IdleReason:
        if self._reading is None and now - self._read_at >= READ_EVERY:
            self._read_at = now
            self._reading = asyncio.ensure_future(self._read(self._profiles))
        return self._one_host or found

    async def _read(self, profiles: Profiles) -> None:
        try:
            self._one_host = one_host(self.me, await profiles())
        finally:
            self._reading = None

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading


def _is_passing(found: IdleReason) -> bool:
    """Whether a reason may hold for a moment only."""
    return found.kind in PASSING or 0 < found.until <= unix() + PASSES


def one_host(me: str, profiles: Mapping[str, str]) -> IdleReason | None:
    """That the crawl has one host, another agent's, as these profiles say; None where it has not."""
    read = [read_profile(name, text.encode(errors="replace")) for name, text in profiles.items() if name != me]
    others = [one for one in read if isinstance(one, Profile) and one.state not in ("left", "finished")]
    owners = [one for one in others if one.count("hosts")]
    if len(owners) != 1 or owners[0].count("hosts") != 1 or owners[0].slowest is None:
        return None
    return reason(kinds.ONE_HOST, (owners[0].agent,), more=owners[0].slowest.host)
