"""Agents of a version that beats in another way. Who comes refuses to join them (`check_layouts`), whichever of the two
is the older one. They are also found by those who live (`OtherLayouts`): one of a version before there was a layout
does not know that it should refuse, and two that start at one moment do not see each other.

Rules of this module:

* Who comes into the beats is looked up among the profiles, by one agent, whether or not its line can be read: a profile
  says its layout in every version (`redis_keys.LAYOUT`).
* Each is said once, as an error, and counted (`noted`). One of an older layout is asked to leave, as by `scrapy ubi
  drain`, which it understands. Of two layouts it is the older one that goes, so they do not ask each other.
* A profile comes a little later than the beat: so it is looked for `LOOKS` times.
* Agents of the first versions write into keys of other names, so that they are in no beats that are read here. Their
  profiles are looked at as well: one that changes between two looks is of an agent that lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from scrapy_ubi.agent.mail.errand import Errand
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.figures import PUBLISH
from scrapy_ubi.agent.profile.origin import other_code
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.ground.untrusted.checks import NAME, object_or_nothing
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.transport import Outgoing, Transport
from scrapy_ubi.transport.contract import SUMMED_UP
from scrapy_ubi.transport.redis_keys import LAYOUT, drain_field

REFUSED = (
    "Agent {agent} of crawl {crawl} is of scrapy-ubi {version} (layout {layout}, this one {own}), which beats in "
    "another way: stop the agents of that crawl, update all machines, and start them again (they go on with what is on "
    "their disks)."
)
OTHER = (
    "Agent %s of crawl %s is of scrapy-ubi %s, which beats in another way (layout %s, here %d): the two do not hear "
    "each other, and fetch the same pages.%s Stop the agents of that crawl, update all machines, and start them again "
    "(they go on with what is on their disks)."
)
GONE = ("left", "finished")  # states of who has gone in order
OTHER_CODE = (
    "Agent %s of crawl %s runs the spider from other code (%s) than this agent %s (%s): pages are parsed by either. "
    "Where that is not meant, bring both machines to one version. (Shown once.)"
)
LEAVES = " It is asked to leave."
NOTED = "group/other_layout"
LOOKS = 6  # times that an agent's profile is looked for
PAUSE = 5.0  # s between two looks
MOST = 10_000  # agents that are remembered
MOST_CODES = 20  # warnings of other code

logger = logging.getLogger("scrapy_ubi")


def other_layout(name: str, profile: Mapping[str, Any], crawl: str, own: object) -> str:
    """That the agent with this profile is of another layout than `own`, as a sentence; '' where it is not."""
    if not profile or profile.get("layout", 1) == own:
        return ""
    version, layout = (
        plain(str(profile.get(field, default)), 40) for field, default in (("version", "?"), ("layout", 1))
    )
    return REFUSED.format(agent=name, crawl=crawl, version=version, layout=layout, own=own)


async def check_layouts(transport: Transport, crawl: str, agent: str, profiles: Mapping[str, str], own: object) -> None:
    """Raise UbiRefused when an agent of another layout lives, whose beats may be where this one does not look: its
    profile changes. `profiles` were read a moment ago."""

    def odd(texts: Mapping[str, str]) -> dict[str, str]:
        found = {name: object_or_nothing(text) for name, text in texts.items() if name not in (agent, SUMMED_UP)}
        there = {name: one for name, one in found.items() if one.get("state") not in GONE}
        return {name: why for name, one in there.items() if (why := other_layout(name, one, crawl, own))}

    former = await transport.former_profiles()
    if not odd(profiles) and not _read_all(former):
        return
    await asyncio.sleep(3 * PUBLISH)
    for name, refusal in odd(now := await transport.profiles()).items():
        if now[name] != profiles.get(name):
            raise UbiRefused(refusal)
    for name, profile in _read_all(now := await transport.former_profiles()).items():
        if now[name] != former.get(name):
            raise UbiRefused(other_layout(name, profile | {"layout": 1}, crawl, own))


class Other(NamedTuple):
    """An agent of another layout, as its profile says."""

    name: str
    incarnation: str
    version: str
    layout: object

    @property
    def is_older(self) -> bool:
        """Whether it is the one that is to leave."""
        return isinstance(self.layout, int) and self.layout < LAYOUT


class OtherLayouts:
    """Looks, for agent `me`, for agents of another layout; `is_mine` says whether it is this agent that does so at that
    time, `note` counts one; and, by its `own` profile, for agents with other code of the same spider."""

    def __init__(
        self,
        me: str,
        crawl: str,
        io: IoThread,
        transport: Transport,
        is_mine: Callable[[float], bool],
        note: Callable[[str], None],
        own: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._own = own
        self._codes: dict[tuple[str, str], None] = {}  # agents and digests that were told of
        self._me = me
        self._crawl = crawl
        self._transport = transport
        self._is_mine = is_mine
        self._note = note
        self._looks: dict[tuple[str, str], int] = {}  # agent and process -> looks that are left
        self._former: dict[str, str] = {}  # agents of former keys -> their profiles, as last read
        self._told: set[tuple[str, str]] = set()  # those of them that were found, with their processes
        self._next = 0.0
        self._errand = Errand(io, self._found)

    def check_beats(self, lines: Mapping[str, str], now: float) -> None:
        """Everybody's lines were read at this time (s)."""
        if now < self._next or self._errand.is_under_way:
            return
        here = dict.fromkeys(who for name, line in lines.items() if (who := self._who(name, line)) is not None)
        left = {who: self._looks.get(who, LOOKS) for who in here}
        unknown = {name: process for (name, process), looks in left.items() if looks > 0}
        if not self._is_mine(now):
            return
        self._next = now + PAUSE
        self._looks = {who: max(0, looks - 1) for who, looks in [*left.items()][:MOST]}
        self._errand.send(self._round(unknown))

    def _who(self, name: str, line: str) -> tuple[str, str] | None:
        """The agent, and its process where the line says that; None for those that need no look."""
        beat = Beat.parse(line)
        if name == self._me or not NAME.fullmatch(name) or (beat is not None and LEFT in beat.flags):
            return None
        return name, beat.incarnation if beat is not None else ""

    def _found(self, others: Iterable[Other]) -> None:
        for other in others:
            leaves = LEAVES if other.is_older else ""
            layout = plain(str(other.layout), 20)
            logger.error(OTHER, other.name, self._crawl, plain(other.version, 40), layout, LAYOUT, leaves)
            self._note(NOTED)

    async def _round(self, unknown: Mapping[str, str]) -> list[Other]:
        """Which of these are of another layout. Runs in the I/O thread."""
        former = await self._look_at_former()
        if not unknown:
            return former
        profiles = await self._transport.profiles()
        found = [(name, process, object_or_nothing(profiles.get(name, ""))) for name, process in unknown.items()]
        known = [(name, one) for name, process, one in found if one and process in ("", one.get("incarnation"))]
        self._looks |= {(name, unknown[name]): 0 for name, _ in known}
        self._tell_codes(dict(known))
        others = [
            Other(name, str(one.get("incarnation", "")), str(one.get("version", "?")), one.get("layout", 1))
            for name, one in known
            if one.get("layout", 1) != LAYOUT and one.get("state") not in GONE
        ]
        leave = {drain_field(one.name): one.incarnation for one in others if one.is_older}
        if leave:
            out = Outgoing(control=leave, read_inbox=False, read_acks=False, read_control=False)
            await self._transport.exchange(out)
        return [*former, *others]

    async def _look_at_former(self) -> list[Other]:
        """Agents that write into former keys, and were not found before. They are asked to leave."""
        before, self._former = self._former, await self._transport.former_profiles()
        others: list[Other] = []
        for name, one in _read_all(self._former).items():
            other = Other(name, str(one.get("incarnation", "")), str(one.get("version", "?")), 1)
            who = name, other.incarnation
            if (
                name in before
                and before[name] != self._former[name]
                and who not in self._told
                and len(self._told) < MOST
            ):
                self._told.add(who)
                others.append(other)
        if others:
            await self._transport.tell_former({drain_field(one.name): one.incarnation for one in others})
        return others

    def _tell_codes(self, profiles: Mapping[str, Mapping[str, Any]]) -> None:
        """Say whose spider is of other code than this agent's, each once."""
        for name, profile in profiles.items():
            codes = other_code(profile, self._own)
            if codes is None or (name, codes[0]) in self._codes or profile.get("state") in GONE:
                continue
            if len(self._codes) >= MOST_CODES:
                return
            self._codes[name, codes[0]] = None
            logger.warning(OTHER_CODE, name, self._crawl, codes[0], self._me, codes[1])


def _read_all(former: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The profiles of former keys, without those of agents that have gone."""
    found = {name: object_or_nothing(text) for name, text in former.items() if NAME.fullmatch(name)}
    return {name: one for name, one in found.items() if one and one.get("state") not in GONE}
