"""What all agents publish is read now and then, where a limit of the crawl asks for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.agent.group.limit_watch import LimitWatch
from scrapy_ubi.agent.hosts.crawl_limits import AT_ONCE, PAGES, CrawlLimits
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.figures import PUBLISH
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.crawl_caps import CrawlCaps
from scrapy_ubi.transport import TransportDown
from tests.agent.parts import Part
from tests.cli.monitor.by_hand import profile


class Published:
    """A transport of which only what others publish is read; None: it is away. `reads`: how often."""

    def __init__(self) -> None:
        self.pages: int | None = 0
        self.reads = 0

    async def profiles(self) -> dict[str, str]:
        self.reads += 1
        if self.pages is None:
            raise TransportDown("away")
        return {"b": json.dumps(profile("b", counters={"pages": self.pages}))}


class Watched(Part):
    """`stopped`: for which limits."""

    def __init__(self, most: int, free: int = 0) -> None:
        super().__init__()
        self.stopped: list[str] = []
        caps = CrawlCaps(pages=most, free=free)
        self.limits = CrawlLimits(UbiSettings(crawl_limits=caps), "a", lambda name, _: self.stopped.append(name))
        self.published: Any = Published()
        self.watch = LimitWatch(self.limits, self.crawl, IoThread(own_thread=False), self.published)

    async def look(self) -> None:
        """Look, and take in what is read, after a while."""
        self.now += PUBLISH
        self.watch.check_limits(self.now)
        for _ in range(5):
            await asyncio.sleep(0)


def test_nothing_is_read_without_a_limit_or_before_the_agent_has_begun() -> None:
    async def run() -> None:
        free, waiting = Watched(0), Watched(10)
        free.limits.begun = True
        for one in (free, waiting):
            await one.look()
        assert free.published.reads == waiting.published.reads == 0

    asyncio.run(run())


def test_a_limit_that_all_have_reached_together_stops_this_one() -> None:
    async def run() -> None:
        one = Watched(10)
        one.limits.begun = True
        one.crawl.tally.pages = 4
        one.published.pages = 5
        await one.look()
        await one.look()
        assert not one.stopped
        one.published.pages = 6
        await one.look()
        await one.look()
        assert one.stopped == [PAGES]

    asyncio.run(run())


def test_it_reads_as_often_as_profiles_are_published() -> None:
    async def run() -> None:
        one = Watched(10)
        one.limits.begun = True
        await one.look()
        one.watch.check_limits(one.now)
        assert one.published.reads == 1

    asyncio.run(run())


def test_it_reads_seldomer_the_more_profiles_there_are() -> None:
    """All agents read all profiles: together that grows with the square."""

    async def run() -> None:
        one = Watched(1_000_000)
        one.limits.begun = True
        many = {f"a{number}": "{}" for number in range(10 * AT_ONCE)}

        async def profiles() -> dict[str, str]:
            one.published.reads += 1
            return many

        one.published.profiles = profiles
        for _ in range(20):
            await one.look()
        assert one.published.reads == 2

    asyncio.run(run())


def test_where_nothing_can_be_read_the_last_numbers_hold() -> None:
    async def run() -> None:
        one = Watched(10)
        one.limits.begun = True
        one.published.pages = 9
        await one.look()
        one.published.pages = None
        await one.look()
        assert not one.stopped
        one.crawl.tally.pages = 1
        await one.look()
        assert one.stopped == [PAGES]

    asyncio.run(run())


def test_a_redis_that_takes_longer_than_profiles_do_is_heard_all_the_same() -> None:
    """Each read began before the last one had ended, and took its place: none was ever heard, and they piled up."""

    async def run() -> None:
        one = Watched(10)
        one.limits.begun = True
        one.published.pages = 10
        answers = [asyncio.Event() for _ in range(3)]
        read, under_way = one.published.profiles, 0

        async def slow() -> dict[str, str]:
            nonlocal under_way
            under_way += 1
            assert under_way == 1
            await answers[one.published.reads].wait()
            under_way -= 1
            profiles: dict[str, str] = await read()
            return profiles

        one.published.profiles = slow
        for answer in answers:
            await one.look()
            await one.look()
            answer.set()
            await one.look()
        assert one.stopped == [PAGES]
        assert one.published.reads == len(answers)

    asyncio.run(run())


def test_an_agent_pauses_while_its_disk_has_less_room_than_wanted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on by itself when there is room, or when nobody wants that any more."""
    room = [5 * 10**9]
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=room[-1]))

    async def run() -> None:
        one = Watched(0, free=4 * 10**9)
        one.crawl.disk.history = Path()
        one.limits.begun = True

        async def is_low(wanted: bool) -> None:
            async with asyncio.timeout(20):
                while one.limits.low_disk is not wanted:
                    await one.look()
                    await asyncio.sleep(0.001)

        for free, low in ((10**9, True), (5 * 10**9, False), (10**9, True)):
            room.append(free)
            await is_low(low)
        assert not one.stopped and not one.limits.over
        one.limits.follow(UbiSettings())
        await is_low(False)

    caplog.set_level("INFO")
    asyncio.run(run())
    assert caplog.text.count("has 1.00 GB free, less than the 4.00 GB of UBI_CRAWL_LIMITS") == 2
    assert caplog.text.count("room again") == 1
