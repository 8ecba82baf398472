"""Profiles of agents that are long gone are summed up, by one of those who live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from scrapy_ubi.agent.group import group_watch
from scrapy_ubi.agent.group.group_watch import SummingUp
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.profile.summed_up import SummedUp, read_sum
from scrapy_ubi.transport import Outgoing
from scrapy_ubi.transport.contract import SUMMED_UP
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.server import Server
from tests.transport.worlds import until

KEPT, MOST, PAUSE, LONG = 3, 2, 60.0, 600.0


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_watch, "KEPT", KEPT)
    monkeypatch.setattr(group_watch, "MOST_SUMMED", MOST)


class Yard:
    """Agent `a`, which is the first of the group as long as `first`, and profiles of others."""

    def __init__(self) -> None:
        self.now, self.first = 0.0, True
        self.hub = MemoryHub()
        self.shelf = self.hub.shelf("crawl")
        self.transport = MemoryTransport(self.hub, "a")
        self.summing_up = SummingUp("a", IoThread(own_thread=False), self.transport, lambda now: self.first, LONG)
        self.publish("a")

    def publish(self, name: str, pages: int = 1, updated: float = 0.0) -> None:
        text = json.dumps({"agent": name, "state": "left", "updated": updated, "counters": {"pages": pages}})
        self.shelf.agents[name.encode()] = text.encode()

    async def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += PAUSE
            self.summing_up.check_profiles([name.decode() for name in self.shelf.beats], self.now)
            for _ in range(5):
                await asyncio.sleep(0)

    @property
    def names(self) -> set[str]:
        return {name.decode() for name in self.shelf.agents}

    @property
    def sum(self) -> SummedUp:
        found = read_sum(self.shelf.agents[SUMMED_UP.encode()])
        assert isinstance(found, SummedUp)
        return found


def play(scene: Callable[[Yard], Awaitable[None]]) -> None:
    async def test() -> None:
        await scene(Yard())

    asyncio.run(test())


def test_the_last_that_went_stay_and_the_others_are_summed_up_after_long() -> None:
    async def scene(yard: Yard) -> None:
        for number in range(KEPT + MOST + 1):
            yard.publish(f"gone{number}", pages=10**number, updated=100.0 - number)
        await yard.wait(0.9 * LONG)
        assert len(yard.names) == KEPT + MOST + 2
        await yard.wait(0.3 * LONG + PAUSE)
        assert yard.names == {"a", SUMMED_UP, *(f"gone{number}" for number in range(KEPT))}
        assert (yard.sum.agents, yard.sum.profile.count("pages")) == (3, 111000)

    play(scene)


def test_few_stay_for_ever() -> None:
    async def scene(yard: Yard) -> None:
        for number in range(KEPT):
            yard.publish(f"gone{number}")
        await yard.wait(3 * LONG)
        assert len(yard.names) == KEPT + 1 and SUMMED_UP not in yard.names

    play(scene)


def test_who_beats_or_publishes_and_whose_name_is_none_stays() -> None:
    async def scene(yard: Yard) -> None:
        for number in range(KEPT + 1):
            yard.publish(f"gone{number}", updated=10.0)
        for name in ("beats", "publishes", "no name!"):
            yard.publish(name)
        yard.shelf.beats[b"beats"] = b"line"
        for turn in range(30):
            yard.publish("publishes", pages=turn)
            await yard.wait(PAUSE)
        assert {"beats", "publishes", "no name!"} < yard.names and yard.sum.agents == 2

    play(scene)


def test_only_the_first_of_the_group_does_it_and_begins_to_wait_when_it_is() -> None:
    async def scene(yard: Yard) -> None:
        for number in range(KEPT + 1):
            yard.publish(f"gone{number}")
        await yard.wait(0.9 * LONG)
        yard.first = False
        await yard.wait(LONG)
        yard.first = True
        await yard.wait(0.9 * LONG)
        assert SUMMED_UP not in yard.names
        await yard.wait(0.3 * LONG)
        assert yard.sum.agents == 1

    play(scene)


def test_two_that_do_it_at_once_count_nobody_twice() -> None:
    async def scene(yard: Yard) -> None:
        other = SummingUp("a", IoThread(own_thread=False), MemoryTransport(yard.hub, "b"), lambda now: True, LONG)
        for number in range(KEPT + 5):
            yard.publish(f"gone{number}", pages=10**number, updated=float(number))
        for _ in range(30):
            other.check_profiles([], yard.now + PAUSE)
            await yard.wait(PAUSE)
        assert (yard.sum.agents, yard.sum.profile.count("pages")) == (5, 11111)

    play(scene)


def test_a_redis_that_is_away_is_asked_again() -> None:
    async def scene(yard: Yard) -> None:
        for number in range(KEPT + 1):
            yard.publish(f"gone{number}")
        await yard.wait(LONG)
        yard.hub.down = True
        await yard.wait(2 * PAUSE)
        yard.hub.down = False
        assert SUMMED_UP not in yard.names
        await yard.wait(2 * PAUSE)
        assert yard.sum.agents == 1

    play(scene)


def test_two_at_once_with_a_real_server_and_one_that_comes_back(server: Server) -> None:
    keys = RedisKeys("crawl")

    async def test() -> None:
        transports = [RedisTransport(server.url, "crawl", name) for name in ("a", "b", "gone1")]
        for one in transports:
            await one.open()
        io = IoThread(own_thread=False)
        both = [SummingUp("a", io, one, lambda now: True, LONG) for one in transports[:2]]
        with server.client() as client:
            for number in range(KEPT + 5):
                said = {"agent": f"gone{number}", "state": "left", "updated": number, "counters": {"pages": 10**number}}
                client.hset(keys.agents, f"gone{number}", json.dumps(said))
            others = asyncio.all_tasks()
            for turn in range(1, 30):
                for one in both:
                    one.check_profiles([], turn * PAUSE)
                await until(lambda: asyncio.all_tasks() <= others)
            found = read_sum(client.hget(keys.agents, SUMMED_UP))
            left = {name.decode() for name in client.hkeys(keys.agents)}
        assert isinstance(found, SummedUp) and (found.agents, found.profile.count("pages")) == (5, 11111)
        assert left == {SUMMED_UP, *(f"gone{number}" for number in range(5, KEPT + 5))}
        back = transports[2]
        assert (await back.exchange(Outgoing(profile="{}"))).published is False
        assert (await back.exchange(Outgoing(profile="{}", counts_anew=True))).published is True
        for one in transports:
            await one.close()

    asyncio.run(test())
