"""Profiles of agents that are long gone are summed up: where agents come and go under names of their own, `scrapy ubi
report`, and all who read what everybody has published, would else read more each day.

Rules of this module:

* The last `KEPT` that went are still told of each by itself. Of more, the profiles of those who went first leave, and
  what they have counted is added to one sum (`summed_up`).
* Gone is whose beat line was removed (`dead_agents`), and whose profile has not changed since for as long as that
  takes, by the clock of who sums up. The transport looks once more, in the step in which it is done.
* One agent does it, as it removes lines. Two that do it at once sum up nothing twice: the step names what it replaces.
* Who comes back after that finds no profile of its own, and counts from nothing (`Crawl.published`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.agent.profile.summed_up import sum_of
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.transport import Transport, TransportError
from scrapy_ubi.transport.contract import SUMMED_UP

KEPT = 1000  # profiles of agents that are gone
MOST = 200  # summed up at once
PAUSE = 60.0  # s between two looks

logger = logging.getLogger("scrapy_ubi")


class SummingUp:
    """Sums up, for agent `me`, who is long gone: for `long` seconds. `is_mine` says whether it is this agent that does
    it at that time."""

    def __init__(
        self, me: str, io: IoThread, transport: Transport, is_mine: Callable[[float], bool], long: float
    ) -> None:
        self._me = me
        self._io = io
        self._transport = transport
        self._is_mine = is_mine
        self._long = long
        self._since: dict[str, tuple[int, float]] = {}  # agent that is gone -> its profile, and when it was seen first
        self._next = 0.0
        self._under_way: Future[None] | None = None

    def check_profiles(self, lines: Collection[str], now: float) -> None:
        """These agents have lines at this time (s)."""
        if now < self._next or self._under_way is not None:
            return
        self._next = now + PAUSE
        if self._is_mine(now):
            self._under_way = self._io.send(self._round({*lines, self._me}, now), self._done)
        else:
            self._since = {}

    def _done(self) -> None:
        """What Redis has not done is tried again with a later look."""
        if self._under_way is not None and self._under_way.done():
            error, self._under_way = self._under_way.exception(), None
            if error is not None and not isinstance(error, TransportError):
                raise error

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
        most = min(len(gone) - KEPT, MOST)
        return {name: gone[name] for name in sorted(long, key=lambda name: (_updated(name, gone[name]), name))[:most]}


def _updated(name: str, text: str) -> float:
    profile = read_profile(name, text.encode(errors="replace"))
    return profile.updated if isinstance(profile, Profile) else 0.0
