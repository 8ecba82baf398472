"""Redis and disk go and come at random: nothing leaves the post before it is durable, and all arrives in the end."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.protocol.agent import Effects
from scrapy_ubi.transport import Incoming, Outgoing
from tests.agent.office import HOST, SETTINGS, Office, letter, run
from tests.support.views import ordered
from tests.support.village import page

STEPS = (0.0, 0.01, SETTINGS.flush_interval, LONGEST_PAUSE, SETTINGS.lease_timeout + 1)  # s


class Disk(NoDisk):
    """Knows how much of what has `happened` is collected, and how much durable; a full one may refuse a flush, or the
    table of what is known."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.happened = self.durable = 0
        self.flush: int | None = None
        self.full = self.table_full = False

    @property
    def due(self) -> bool:
        return self.flush is not None

    def collect(self, changes: Any, facts: Any) -> None:
        assert self.flush is None
        self.happened += 1  # whatever it was
        self.flush = self.happened

    async def write(self) -> None:
        await asyncio.sleep(0)
        if self.flush is not None and self.durable < self.flush:
            if self.full:
                raise StoreFull("No room.")
            self.durable = self.flush

    def settle(self) -> None:
        if self.flush is not None and self.durable >= self.flush:
            if self.table_full:
                raise StoreFull("No room for the table.")
            self.flush = None


class Watched(Office):
    """An office in which it is seen what leaves when, and what comes twice."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk=disk)
        self.kept = disk
        self.drained = 0
        self.merged: dict[str, int] = {}
        self._drain, self._take, self._exchange = self.agent.drain, self.post._take, self.transport.exchange
        self.agent.drain = self.drain  # type: ignore[method-assign]
        self.post._take = self.take  # type: ignore[method-assign]
        self.transport.exchange = self.exchange  # type: ignore[method-assign]

    def drain(self, now: float) -> Effects:
        self.kept.happened += 1
        self.drained = self.kept.happened
        return self._drain(now)

    def take(self, incoming: Incoming, now: float) -> None:
        self.kept.happened += 1
        for number, _ in incoming.letters:
            assert number not in self.merged
            self.merged[number] = self.kept.happened
        self._take(incoming, now)

    async def exchange(self, out: Outgoing) -> Incoming:
        if out.letters or out.acks or out.control:
            assert self.kept.durable >= self.drained
        assert all(self.merged[number] <= self.kept.durable for number in out.consumed)
        return await self._exchange(out)

    async def turns(self, number: int, hurry: bool) -> None:
        for _ in range(number):
            self.post.collect(self.now)
            if self.post.may_send(self.now, hurry):
                self.agent.tick(self.now)
                self.post.send(self.now, lambda: "{}")
            for _ in range(12):
                await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_full_or_away_nothing_leaves_too_soon_and_all_arrives(seed: int) -> None:
    async def test() -> None:
        chance, disk = random.Random(seed), Disk()
        office = Watched(disk)
        hub, found, sent = office.hub, 0, 0
        await office.trip()
        office.join()
        host = ordered("b", "a")
        faults = [(hub, "down"), (hub, "full"), (disk, "full"), (disk, "table_full"), (office.agent.group, "shadowed")]
        for _ in range(60):
            what: Any
            what, name = chance.choice(faults)
            setattr(what, name, chance.random() < 0.5)
            hub.break_after = chance.choice([None, None, 0, 2, 5])
            if chance.random() < 0.3:
                found += 1
                office.agent.discovery.discover(host, page(host, found))
            if chance.random() < 0.3:
                sent += 1
                told = {"host": HOST, "discovered": [[f"{sent:016x}", f"http://{HOST}/{sent}", 0]]}
                office.put(letter([told], seq=str(sent)))
            office.now += chance.choice(STEPS)
            await office.turns(chance.randint(1, 3), chance.random() < 0.5)
        for what, name in faults:
            setattr(what, name, False)
        hub.break_after = None
        for _ in range(12):
            office.now += LONGEST_PAUSE
            await office.turns(3, hurry=False)
        post = office.post
        assert not (post.disk_full or post.full or post.away or post.busy or disk.due)
        assert not office.shelf.inbox["a"] and len(office.merged) == sent
        arrived = str(office.shelf.inbox["b"])
        assert all(f'"{page(host, number).url}"' in arrived for number in range(1, found + 1))

    run(test)
