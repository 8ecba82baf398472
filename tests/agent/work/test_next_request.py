"""Which request is next, where very many hosts may not be fetched here."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.work.next_request import NextRequest
from scrapy_ubi.frontier import workbench
from scrapy_ubi.protocol.host import Entry
from tests.agent.crawler import SETTINGS
from tests.agent.parts import Part

OTHERS = 45


class Choice(Part):
    """Counts how often it is asked for anew."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = 0
        notes = HostNotes(self.clock, self.clock)
        notes.work_for(self.crawl.agent, self.crawl.frontier)
        limits = HostLimits(SETTINGS, notes, self.clock, lambda what, host: None)
        self.choice = NextRequest(self.crawl, self.halt, notes, limits, lambda reason: None, self.arm)

    def arm(self) -> None:
        self.armed += 1


def test_a_flood_of_hosts_that_others_fetch_does_not_hide_an_own_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are passed over some at a time, and the engine asks again without waiting for anything."""
    monkeypatch.setattr(workbench, "LOOKED", 10)

    async def crawl() -> None:
        part = Choice()
        part.hold_lease()
        part.crawl.agent.work.may_fetch = lambda state, now: state.host == "own.example"  # type: ignore[method-assign]
        for number in range(OTHERS):
            part.crawl.frontier.add(f"h{number}.example", [Entry(number + 2, f"http://h{number}.example/", 0)])
        part.crawl.frontier.add("own.example", [Entry(1, "http://own.example/", 0)])
        asked, found = 0, None
        while found is None:
            assert part.armed == asked, "it is asked again"
            found = part.choice.find_next(part.now)
            asked += 1
            await asyncio.sleep(0)
        assert found[1].key == 1 and asked == 1 + OTHERS // 10
        part.crawl.frontier.look_again()
        assert part.choice.find_next(part.now) is None
        for _ in range(2 * OTHERS):
            part.choice.find_next(part.now)
            await asyncio.sleep(0)
        armed = part.armed
        assert part.choice.find_next(part.now) is None
        await asyncio.sleep(0)
        assert part.armed == armed, "all were looked at: it does not spin"

    asyncio.run(crawl())
