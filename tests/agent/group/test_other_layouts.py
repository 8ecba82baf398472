"""Agents of another layout are refused, whichever of the two comes later, and found where they could not be refused."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from scrapy_ubi.agent.group import other_layouts
from scrapy_ubi.agent.group.other_layouts import LOOKS, NOTED, PAUSE, OtherLayouts, check_layouts
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.transport.contract import SUMMED_UP
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis_keys import LAYOUT, drain_field

OLDER, NEWER = LAYOUT - 1, LAYOUT + 1
TOKEN = "0123abcd"


def line(flags: str = "", incarnation: str = TOKEN) -> str:
    return Beat(incarnation, 0, 20, "0" * 16, flags=flags).line(1)


class Town:
    """Agent `a`, which sees to the group, and others that a test puts there."""

    def __init__(self) -> None:
        self.now, self.first = 100.0, True
        self.hub = MemoryHub()
        self.shelf = self.hub.shelf("crawl")
        self.transport = MemoryTransport(self.hub, "a")
        self.noted: list[str] = []
        self.lines: dict[str, str] = {"a": line()}
        io = IoThread(own_thread=False)
        own = {"spider_class": "p.Walk", "code": "0000000a"}
        self.others = OtherLayouts("a", "shop", io, self.transport, lambda now: self.first, self.noted.append, own)

    def publish(self, name: str, layout: object = None, **said: Any) -> None:
        profile = {"agent": name, "state": "crawling", "version": "0.0.7", "incarnation": TOKEN} | said
        text = json.dumps(profile if layout is None else profile | {"layout": layout})
        self.shelf.agents[name.encode()] = text.encode()

    async def look(self, times: int = 1) -> list[str]:
        for _ in range(times):
            self.now += PAUSE
            self.others.check_beats(self.lines, self.now)
            for _ in range(6):
                await asyncio.sleep(0)
        return self.noted

    @property
    def asked(self) -> dict[str, str]:
        return {name.decode(): text.decode() for name, text in self.shelf.control.items()}


def play(scene: Callable[[Town], Awaitable[None]]) -> None:
    async def test() -> None:
        await scene(Town())

    asyncio.run(test())


@pytest.mark.parametrize("layout", [None, OLDER, NEWER, "garbage"])
def test_it_is_said_once_and_an_older_one_is_asked_to_leave(layout: object, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(town: Town) -> None:
        town.publish("b", layout)
        town.publish("c", LAYOUT)
        town.lines |= {"b": line(), "c": line()}
        assert await town.look(3) == [NOTED]
        leaves = layout in (None, OLDER)
        assert town.asked == ({drain_field("b"): TOKEN} if leaves else {})
        (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        for told in ("Agent b of crawl shop", "0.0.7", f"here {LAYOUT}", "Stop the agents", "update all machines"):
            assert told in record.getMessage()
        assert ("asked to leave" in record.getMessage()) == leaves

    play(scene)


def test_other_code_of_the_same_spider_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(town: Town) -> None:
        town.publish("b", LAYOUT, spider_class="p.Walk", code="0000000b")
        town.publish("c", LAYOUT, spider_class="p.Walk", code="0000000a")
        town.publish("d", LAYOUT, spider_class="p.Other", code="0000000d")
        town.publish("e", LAYOUT, spider_class="p.Walk")
        town.lines |= {name: line() for name in "bcde"}
        await town.look(3)
        town.lines["b"] = line(incarnation="ffffffff")  # it was started again, as it was
        town.publish("b", LAYOUT, spider_class="p.Walk", code="0000000b", incarnation="ffffffff")
        await town.look(3)
        (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
        for told in ("Agent b of crawl shop", "(0000000b)", "agent a (0000000a)"):
            assert told in record.getMessage()

    play(scene)


def test_one_whose_beats_cannot_be_read_is_found_by_its_profile() -> None:
    async def scene(town: Town) -> None:
        town.publish("b", NEWER)
        town.lines["b"] = "3|some line of the future"
        assert await town.look() == [NOTED]

    play(scene)


def test_a_profile_that_comes_later_is_looked_for_and_another_process_once_more() -> None:
    async def scene(town: Town) -> None:
        town.lines["b"] = line()
        town.publish("b", LAYOUT, incarnation="ffffffff")  # of its predecessor
        assert await town.look(2) == []
        town.publish("b", OLDER)
        assert await town.look(2) == [NOTED]
        town.publish("b", OLDER, incarnation="ffffffff")
        town.lines["b"] = line(incarnation="ffffffff")
        assert await town.look(2) == [NOTED] * 2

    play(scene)


def test_who_has_no_profile_is_not_looked_for_without_end() -> None:
    async def scene(town: Town) -> None:
        asked = 0
        read = town.transport.profiles

        async def profiles() -> dict[str, str]:
            nonlocal asked
            asked += 1
            return await read()

        town.transport.profiles = profiles  # type: ignore[method-assign]
        town.lines |= {"b": line(), "gone": line(LEFT), "no name!": line()}
        await town.look(3 * LOOKS)
        assert asked == LOOKS

    play(scene)


def test_it_is_looked_for_by_one_agent_and_again_when_redis_is_back() -> None:
    async def scene(town: Town) -> None:
        town.publish("b", OLDER)
        town.lines["b"] = line()
        town.first = False
        assert await town.look(2 * LOOKS) == []
        town.first, town.hub.down = True, True
        assert await town.look(2) == []
        town.hub.down = False
        assert await town.look() == [NOTED]

    play(scene)


@pytest.mark.parametrize("layout", [None, OLDER, NEWER])
@pytest.mark.parametrize("odd", ["lives", "is silent", "has left", "was updated", "is summed up"])
def test_who_comes_is_refused_where_one_of_another_layout_publishes(
    layout: object, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beats are where this version does not look: no line of it is there."""
    monkeypatch.setattr(other_layouts, "PUBLISH", 0.02)

    async def scene(town: Town) -> None:
        name = SUMMED_UP if odd == "is summed up" else "b"
        town.publish(name, layout, updated=1, state="left" if odd == "has left" else "crawling")
        profiles = await town.transport.profiles()
        if odd != "is silent":
            now = LAYOUT if odd == "was updated" else layout
            town.publish(name, now, updated=2, state="left" if odd == "has left" else "crawling")
        check = check_layouts(town.transport, "shop", "a", profiles, LAYOUT)
        if odd != "lives":
            await check
            return
        with pytest.raises(UbiRefused, match="Agent b of crawl shop is of scrapy-ubi") as refusal:
            await check
        assert f"(layout {layout or 1}, this one {LAYOUT})" in str(refusal.value)

    play(scene)


# -- the first versions, whose keys had no hash tags


def former(updated: int, **said: Any) -> bytes:
    """A profile as they wrote it."""
    profile = {"agent": "o", "version": "0.1.0", "incarnation": TOKEN, "state": "crawling", "updated": updated}
    return json.dumps(profile | said).encode()


def test_a_living_group_with_former_keys_is_found_and_asked_to_leave(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(town: Town) -> None:
        for number in range(4):
            town.shelf.former_agents[b"o"] = former(number)
            await town.look()
        assert town.noted == [NOTED], "once"
        assert town.shelf.former_control == {drain_field("o").encode(): TOKEN.encode()} and not town.asked
        (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        assert "Agent o of crawl shop" in record.getMessage() and "asked to leave" in record.getMessage()

    play(scene)


@pytest.mark.parametrize("said", [{}, {"state": "left"}, {"state": "finished"}])
def test_what_former_agents_have_left_there_disturbs_nobody(said: dict[str, Any]) -> None:
    async def scene(town: Town) -> None:
        for number in range(4):
            town.shelf.former_agents[b"o"] = former(number if said else 0, **said)
            town.shelf.former_agents[b"x"] = b"garbage"
            await town.look()
        assert town.noted == [] and not town.shelf.former_control
        await check_layouts(town.transport, "shop", "a", {}, LAYOUT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(other_layouts, "PUBLISH", 0.01)
        play(scene)


@pytest.mark.parametrize("name", ["o", "a"])
def test_who_comes_to_a_living_group_with_former_keys_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under any name: it is another agent, whose name is the same maybe."""
    monkeypatch.setattr(other_layouts, "PUBLISH", 0.02)

    async def scene(town: Town) -> None:
        town.shelf.former_agents[name.encode()] = former(1)
        check = asyncio.ensure_future(check_layouts(town.transport, "shop", "a", {}, LAYOUT))
        await asyncio.sleep(0.01)
        town.shelf.former_agents[name.encode()] = former(2)
        with pytest.raises(UbiRefused, match=rf"Agent {name} of crawl shop is of scrapy-ubi 0.1.0 \(layout 1, "):
            await check

    play(scene)
