"""Whether the crawl, now that it is over, has lost more than its copies: who was lost, and has not come back.

Rules of this module:

* Only where the crawl is lossy by the protocol's word is anything asked of Redis: what every agent publishes of the
  losses that it saw, and of the incarnations whose disk it has. So those who came later know as well.
* Who was lost is back when an agent has its disk and takes part until the end, or has left cleanly: its last words
  (beat or profile) are that it has handed on all it held.
* Who was missed at a restart is not, where an agent has counted that death: it was there.
* Of who is long gone the sum of their profiles tells (`summed_up`), an agent `*` that has handed on all it held.
* Where Redis does not answer, what this agent saw itself counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.finished_run import is_lossy
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.ground.untrusted.checks import object_or_nothing, texts_in
from scrapy_ubi.protocol.beat import LEFT, OVER, Beat
from scrapy_ubi.protocol.losses import LossBook, missing
from scrapy_ubi.transport import Transport, TransportError
from scrapy_ubi.transport.contract import SUMMED_UP

logger = logging.getLogger("scrapy_ubi")


class LostAgents:
    """Looks, for one agent, who is lost at the end: the `names`. `control` gives what the control hash said last."""

    def __init__(
        self, crawl: Crawl, io: IoThread, transport: Transport, control: Callable[[], Mapping[str, str]]
    ) -> None:
        self._crawl = crawl
        self._io = io
        self._transport = transport
        self._control = control
        self.names: tuple[str, ...] = ()

    async def find_lost(self) -> None:
        """The crawl is over: see who is lost."""
        agent = self._crawl.agent
        if self._crawl.was_over:  # it was said when this agent ended it
            return
        if not agent.lossy and not is_lossy(self._control()):
            return
        texts: Mapping[str, str] = {}
        lines: Mapping[str, str] = {}
        try:
            texts = await self._io.call(self._transport.profiles())
            lines = await self._io.call(self._transport.beats())
        except TransportError as error:
            logger.warning("It cannot be seen which agents are lost, beside those that this one has missed: %s", error)
        self.names = lost(agent.me, agent.group.losses.book, self._members(), texts, lines)
        self._crawl.tally.lost_agents = len(self.names)
        self._crawl.lost = self.names
        self._crawl.write_facts()

    def _members(self) -> set[str]:
        agent = self._crawl.agent
        return {agent.me, *agent.view.members}


def lost(
    me: str,
    book: LossBook,
    members: set[str],
    texts: Mapping[str, str],
    lines: Mapping[str, str],
) -> tuple[str, ...]:
    """Who is lost: `book` is that of `me`, `members` take part in the end; `texts` are the profiles and `lines`
    the beats that Redis has."""
    profiles = {name: object_or_nothing(text) for name, text in texts.items()}
    beats = {name: beat for name, line in lines.items() if (beat := Beat.parse(line)) is not None}
    ended = {name for name, beat in beats.items() if LEFT in beat.flags and OVER in beat.flags}
    relieved = {name for name, beat in beats.items() if beat.has_left_all}
    relieved |= {name for name, profile in profiles.items() if profile.get("handed_over") is True}
    relieved |= set(texts_in(profiles.get(SUMMED_UP, {}).get("relieved")))
    present = members | ended | relieved
    former = {name: _former(profile) for name, profile in profiles.items()}
    carried = {life for name, lives in former.items() if name in present for life in lives}
    carried |= {str(profiles[name].get("incarnation")) for name in present & profiles.keys()}
    carried |= {beats[name].incarnation for name in present & beats.keys()}
    # Who left like that, and whose name another has taken:
    carried |= {words.incarnation for beat in beats.values() for words in beat.before if words.beat.has_left_all}

    def back(name: str, incarnation: str) -> bool:
        if incarnation:
            return incarnation in carried
        return name in relieved or (name in present and bool(former.get(name)))

    books = [book, *(LossBook.read(profile) for name, profile in profiles.items() if name != me)]
    return missing(books, back)


def _former(profile: Mapping[str, Any]) -> list[str]:
    return texts_in(profile.get("former"))
