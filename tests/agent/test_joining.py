"""Nodes that join: refusals at the start, and a Redis that goes away at any step."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from typing import Any

import pytest

from scrapy_ubi.agent.group import other_layouts
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.protocol.beat import LEFT, LOSSY, Beat
from scrapy_ubi.transport import TransportDown
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis_keys import LAYOUT
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl
from tests.agent.groups import SEEDS, ends


def test_second_process_with_one_identifier_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first, second = Crawler(hub, "a", log), Crawler(hub, "a", log)
        await first.node.open()
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)


@pytest.mark.parametrize("taken", [True, False], ids=["a name that was taken", "a new name"])
def test_who_takes_a_name_takes_over_what_was_published_of_the_lost(taken: bool) -> None:
    """Its directory is empty, and nobody else may know."""

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        shelf = hub.shelf(SETTINGS.crawl)
        shelf.control[b"run"] = b"r1"
        if taken:
            shelf.beats[b"a"] = Beat("0123abcd", 0, 200, "00000000000000ff", flags=LEFT + LOSSY).line(1).encode()
        shelf.agents[b"a"] = b'{"losses": [[0, ["b", "0000000b"]]]}'
        node = Crawler(hub, "a", log).node
        await node.open()
        assert bool(node.agent.group.losses.book.losses) == taken
        await node.leave("test")

    crawl(run)


def test_agent_that_differs_in_partition_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first = Crawler(hub, "a", log)
        second = Crawler(hub, "b", log, dataclasses.replace(SETTINGS, partition="domain"))
        await first.node.open()
        while not await second.node.lifecycle.transport.profiles():
            await asyncio.sleep(0)
        with pytest.raises(UbiRefused, match="UBI_PARTITION"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)


@pytest.mark.parametrize("theirs", [LAYOUT - 1, LAYOUT + 1])
@pytest.mark.parametrize("heard", [True, False], ids=["its beats are read", "its beats are elsewhere"])
def test_agent_of_another_layout_is_refused_be_it_older_or_newer(
    theirs: int, heard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_layouts, "PUBLISH", 1.0)

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        with monkeypatch.context() as patch:
            patch.setattr(figures, "LAYOUT", theirs)
            first = Crawler(hub, "a", log)
        second = Crawler(hub, "b", log)
        await first.node.open()
        while not await second.node.lifecycle.transport.profiles():
            await asyncio.sleep(0)
        if not heard:
            second.node.lifecycle.transport.beats = no_beats  # type: ignore[method-assign]
        with pytest.raises(UbiRefused, match=f"layout {theirs}, this one {LAYOUT}"):
            await second.node.open()
        await first.node.leave("test")

    async def no_beats() -> dict[str, str]:
        return {}

    crawl(run)


def test_a_redis_that_goes_away_while_joining() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        crawler = Crawler(hub, "a", log)
        opened = crawler.transport.open

        async def open_and_lose() -> None:
            await opened()
            hub.down = True

        crawler.transport.open = open_and_lose  # type: ignore[method-assign]
        with pytest.raises(TransportDown):
            await crawler.node.open()
        await crawler.node.leave("test")

    crawl(run)


STEPS = 12  # more than an agent asks Redis for while it joins


@pytest.mark.parametrize("lost", [False, True], ids=["not_done", "done_but_not_said"])
@pytest.mark.parametrize("at", range(STEPS))
@pytest.mark.parametrize("before", ["", "mail", "finished"])
def test_a_redis_that_goes_away_for_a_moment_at_any_step_of_joining(at: int, lost: bool, before: str) -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        for number in range(70 if before == "mail" else 0):  # for a predecessor, more than one exchange reads
            hub.append(SETTINGS.crawl, "a", {b"old": str(number).encode()})
        if before == "finished":
            hub.shelf(SETTINGS.crawl).control.update({b"run": b"r1", b"finished": b"r1 a"})
        crawler = Crawler(hub, "a", log)
        fail_once(hub, crawler.transport, at, lost)
        crawler.start(SEEDS)
        await ends(crawler)
        log.judge(SEEDS)
        assert not hub.shelf(SETTINGS.crawl).inbox["a"]
        if before == "finished":
            assert hub.shelf(SETTINGS.crawl).control[b"past"] == b"r1"

    crawl(run)


def fail_once(hub: MemoryHub, transport: MemoryTransport, at: int, lost: bool) -> None:
    """The call of that number (from 0) finds Redis away: before it has done anything, or when that is done (`lost`)."""
    calls = itertools.count()
    for name in ("open", "exchange", "beats", "profiles", "claim", "clear"):
        ask = getattr(transport, name)

        async def call(*given: Any, name: str = name, ask: Any = ask) -> Any:
            failing = next(calls) == at
            if failing and not lost:
                raise TransportDown("away")
            if failing and name == "exchange":
                hub.break_after = 1_000_000  # it loses the reply by itself
            result = await ask(*given)
            if failing:
                raise TransportDown("away")
            return result

        setattr(transport, name, call)


def test_who_joins_slowly_takes_the_run_that_others_have_named_meanwhile() -> None:
    """It would name another one, and all others would say that Redis has forgotten everything."""

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        crawler = Crawler(hub, "a", log)
        claim, control = crawler.transport.claim, hub.shelf(SETTINGS.crawl).control

        async def slow(*given: Any) -> bool:
            control.update({b"run": b"0badcafe", b"memory": b"theirs"})
            return await claim(*given)

        crawler.transport.claim = slow  # type: ignore[method-assign]
        crawler.start(SEEDS)
        await ends(crawler)
        log.judge(SEEDS)
        assert control[b"run"] == b"0badcafe" and control[b"memory"] == b"theirs"

    crawl(run)


def test_one_that_never_joined_leaves_without_a_word() -> None:
    async def run() -> None:
        hub = MemoryHub()
        hub.down = True
        crawler = Crawler(hub, "a", Log())
        with pytest.raises(TransportDown):
            await crawler.node.open()
        await crawler.node.leave("test")
        hub.down = False
        assert not hub.shelf(SETTINGS.crawl).beats

    crawl(run)


def test_agent_that_does_not_serve_as_the_others_do_is_refused() -> None:
    """It would own hosts whose seeds it does not take."""

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first = Crawler(hub, "a", log, dataclasses.replace(SETTINGS, serve=True))
        second = Crawler(hub, "b", log)
        await first.node.open()
        while not await second.node.lifecycle.transport.profiles():
            await asyncio.sleep(0)
        with pytest.raises(UbiRefused, match="UBI_SERVE"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)
