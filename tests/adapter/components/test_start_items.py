"""Items of start(): who has one, when it is kept, and what becomes of it where its holder goes."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import scrapy

from scrapy_ubi.adapter.components import start_items
from scrapy_ubi.adapter.components.start_items import StartItems
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.agent.mail import item_claims
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.mail.item_claims import Claims, ItemClaims
from scrapy_ubi.transport import shelf
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport

PATIENCE = 15.0  # s


@dataclasses.dataclass
class Book:
    title: str


class Page(scrapy.Item):
    url = scrapy.Field()


class Looks(MemoryTransport):
    """Counts what it is asked."""

    asked = 0

    async def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> dict[str, str]:
        self.asked += 1
        return await super().claim_items(claims)


class Rounds(ItemClaims):
    """Counts how often somebody looks, also at nothing."""

    rounds = 0

    async def settle_claims(self, claims: Claims) -> dict[str, str]:
        self.rounds += 1
        return await super().settle_claims(claims)


class One:
    """One agent. What it has yielded is through its pipelines at once, unless `busy`."""

    def __init__(self, of: Group, name: str) -> None:
        self.of, self.name = of, name
        self.busy, self.outlasts = False, True
        self.counts = Counter[str]()
        self.transport = Looks(of.hub, name, "crawl", 1000)
        self.claims = Rounds(IoThread(own_thread=False), self.transport)
        self.items = StartItems(
            self.claims,
            name,
            lambda: of.members,
            PATIENCE,
            lambda: self.outlasts,
            Notices(),
            self._count,
            lambda: of.now,
        )
        self.got: list[Any] = []

    def _count(self, stat: str) -> None:
        self.counts[stat] += 1

    async def start(self, *items: Any) -> list[Any]:
        """What this agent yields of what its start() does, before `rest`."""
        own = [item for item in items if await self.items.is_own(item)]
        self.take(own)
        return own

    def take(self, items: list[Any]) -> None:
        self.got += items
        for item in [] if self.busy else items:
            self.items.through(item, None)

    async def looks(self, number: int = 6) -> None:
        """Until it has looked so many times more."""
        until = self.claims.rounds + number
        while self.claims.rounds < until:
            await asyncio.sleep(0)

    async def rest(self) -> None:
        async for item in self.items.rest():
            self.take([item])


class Group:
    def __init__(self) -> None:
        self.hub = MemoryHub()
        self.members: set[str] = {"a", "b", "c"}
        self.now = 0.0
        self.agents: dict[str, One] = {}

    def __getitem__(self, name: str) -> One:
        """An agent; one that is not there begins."""
        return self.agents.setdefault(name, One(self, name))

    def words(self) -> set[str]:
        return {word.decode() for word in self.hub.shelf("crawl").start.values()}


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_items, "LOOK_EVERY", 0.001)
    monkeypatch.setattr(item_claims, "AGAIN", 0.001)


def play(scene: Callable[[Group], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await scene(Group())

    asyncio.run(run())


ITEMS = [
    {"n": 1},
    Book("one"),
    Page(url="http://h.example/"),
    {"n": 1},
    {"at": datetime.date(2026, 1, 1), "of": {"x", "y"}},
]


def test_each_comes_once_whichever_agents_yield_it() -> None:
    async def scene(group: Group) -> None:
        a, b = await asyncio.gather(group["a"].start(*ITEMS), group["b"].start(*reversed(ITEMS), {"n": 2}))
        assert sorted(map(repr, a + b)) == sorted(map(repr, [*ITEMS, {"n": 2}])), "alike ones as often as one agent has"
        await asyncio.gather(group["a"].rest(), group["b"].rest())
        assert {word.split()[0] for word in group.words()} == {"kept"}
        assert await group["c"].start(*ITEMS) == [], "who comes later has none"
        await group["c"].rest()
        assert group["c"].counts == {"ubi/start/items_elsewhere": len(ITEMS)}

    play(scene)


def test_what_differs_in_class_or_content_is_not_the_same() -> None:
    async def scene(group: Group) -> None:
        await group["a"].start({"title": "one"})
        others = [Book("one"), {"title": "One"}, {"title": "one", "n": None}, {"title": 1}]
        assert await group["b"].start(*others) == others

    play(scene)


def test_start_is_not_over_before_all_is_kept() -> None:
    async def scene(group: Group) -> None:
        group["a"].busy = True
        await group["a"].start({"n": 1})
        await group["b"].start({"n": 1})
        ends = [asyncio.ensure_future(group[name].rest()) for name in "ab"]
        await asyncio.gather(group["a"].looks(), group["b"].looks())
        assert group.words() == {"held a"} and not any(end.done() for end in ends)
        group["a"].outlasts = False
        group["a"].items.through({"n": 1}, None)
        await asyncio.gather(group["a"].looks(), group["b"].looks())
        assert group.words() == {"held a"}, "its feed is not flushed yet"
        group["a"].outlasts = True
        await asyncio.gather(*ends)
        assert group.words() == {"kept a"} and group["b"].got == []

    play(scene)


def test_items_of_pages_are_none_of_these() -> None:
    async def scene(group: Group) -> None:
        group["a"].busy = True
        await group["a"].start({"n": 1})
        group["a"].items.through({"n": 2}, scrapy.http.Response("http://h.example/"))
        rest = asyncio.ensure_future(group["a"].rest())
        await group["a"].looks()
        assert not rest.done()
        rest.cancel()

    play(scene)


def test_what_a_lost_agent_holds_one_of_the_others_yields() -> None:
    async def scene(group: Group) -> None:
        group["a"].busy = True
        await group["a"].start({"n": 1}, {"n": 2})
        for name in "bc":
            await group[name].start({"n": 1}, {"n": 2})
        group.members = {"b", "c"}
        ends = [asyncio.ensure_future(group[name].rest()) for name in "bc"]
        await asyncio.gather(group["b"].looks(), group["c"].looks())
        assert group.words() == {"held a"}, "it may only have been away"
        group.now += PATIENCE + 1
        await asyncio.gather(*ends)
        got = group["b"].got + group["c"].got
        assert sorted(map(repr, got)) == ["{'n': 1}", "{'n': 2}"]
        assert {word.split()[0] for word in group.words()} == {"kept"}
        assert await One(group, "a").start({"n": 1}, {"n": 2}) == [], "it comes back, and has them no more"

    play(scene)


def test_a_holder_that_is_back_in_time_keeps_it() -> None:
    async def scene(group: Group) -> None:
        group["a"].busy = True
        await group["a"].start({"n": 1})
        await group["b"].start({"n": 1})
        rest = asyncio.ensure_future(group["b"].rest())
        for members in ({"b"}, {"a", "b"}, {"b"}):
            group.members = members
            await group["b"].looks()
            group.now += PATIENCE - 1
        await group["b"].looks()
        assert group.words() == {"held a"}
        rest.cancel()

    play(scene)


def test_after_a_crash_its_holder_yields_it_again_unless_it_was_kept() -> None:
    async def scene(group: Group) -> None:
        await group["a"].start({"n": 1})
        await group["a"].rest()
        group["a"].busy = True
        await group["a"].start({"n": 2})
        after = One(group, "a")
        assert await after.start({"n": 1}, {"n": 2}) == [{"n": 2}]

    play(scene)


@pytest.mark.parametrize("outlasts", [True, False])
def test_who_leaves_says_what_is_kept(outlasts: bool) -> None:
    async def scene(group: Group) -> None:
        await group["a"].start({"n": 1})
        group["a"].outlasts = outlasts
        await group["a"].items.close()
        assert group.words() == {"kept a" if outlasts else "held a"}
        await group["a"].items.close()

    play(scene)


def test_while_redis_is_away_items_wait_and_who_leaves_does_not() -> None:
    async def scene(group: Group) -> None:
        await group["a"].start({"n": 0})
        group.hub.down = True
        begun = asyncio.ensure_future(group["a"].start({"n": 1}))
        asked = group["a"].transport.asked
        while group["a"].transport.asked < asked + 3:
            await asyncio.sleep(0)
        assert not begun.done()
        await group["a"].items.close()
        group.hub.down = False
        assert await begun == [{"n": 1}]

    play(scene)


def test_a_redis_that_has_forgotten_all_is_told_again() -> None:
    async def scene(group: Group) -> None:
        group["a"].busy = True
        await group["a"].start({"n": 1})
        await group["b"].start({"n": 1})
        group.hub.forget("crawl")
        await group["b"].rest()
        assert group.words() == {"kept b"} and group["b"].got == [{"n": 1}]

    play(scene)


def test_what_cannot_be_told_apart_comes_from_each_agent_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    odd: list[Any] = [{"of": object()}, {1: 2, "x": 3}, object()]

    async def scene(group: Group) -> None:
        for name in "ab":
            assert await group[name].start(*odd, {"n": 2}) == (odd if name == "b" else [*odd, {"n": 2}])
            await group[name].rest()

    with caplog.at_level(logging.INFO, "scrapy_ubi"):
        play(scene)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3 and said[0] == said[1]
    assert said[0].startswith("A dict of start() is no JSON, so nothing can tell whether other agents yield the same")
    assert "a dict of agent a stands for the one of this agent" in said[2]


def test_what_is_more_than_can_be_known_comes_from_each_agent_and_that_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (start_items, shelf):
        monkeypatch.setattr(module, "MOST_START_ITEMS", 2)

    async def scene(group: Group) -> None:
        assert await group["a"].start({"n": 1}, {"n": 2}, {"n": 3}) == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert await group["b"].start({"n": 2}, {"n": 2}, {"n": 2}, {"n": 4}) == [{"n": 2}, {"n": 4}]

    play(scene)
    said = [record.getMessage() for record in caplog.records if "items" in record.getMessage()]
    assert said == ["start() yields more than 2 items: further ones come from each agent. (Shown once.)"] * 2


def test_an_agent_alone_yields_all_and_waits_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    alone = StartItems(None, "a", set, PATIENCE, lambda: False, Notices(), lambda stat: None)

    async def scene(group: Group) -> None:
        assert [item for item in [*ITEMS, "odd"] if await alone.is_own(item)] == [*ITEMS, "odd"]
        assert [item async for item in alone.rest()] == []
        await alone.close()

    play(scene)
    assert not caplog.records
