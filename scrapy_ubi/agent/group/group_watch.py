"""What one agent of a group does for all: it removes what is left of the gone, and says who should not be there.

It is the first of a complete view. So there is one as a rule, two at times, for a moment, and none while the group
changes: each of these tasks may be done twice, and may wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.group.dead_agents import DeadAgents, SummingUp, is_first
from scrapy_ubi.agent.group.other_layouts import OtherLayouts
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport


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
