"""The crawl as one agent has it: whose lanes it goes on with."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.agent.crawl.finished_run import is_past
from scrapy_ubi.agent.profile.figures import fixed
from scrapy_ubi.agent.profile.origin import UNKNOWN, Origin
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import DISCOVERY
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.settings import UbiSettings
from tests.support.views import view

SETTINGS = UbiSettings(memory_mb=32)


async def lived(path: Path, name: str) -> str:
    """What the lane to b is called, and its next number, of an agent of that name that begins there, writes what it has
    found, and ends."""
    disk = await AgentDisk.open(path, SETTINGS, lambda: 1.0)
    try:
        crawl = Crawl(SETTINGS, name, disk, fixed(SETTINGS, name, "spider"), lambda incarnation: None, lambda: 1.0)
        outbox = crawl.agent.outbox
        lane = outbox.lane("b", DISCOVERY, view("b"))
        before = f"{lane.name} {lane.next_seq}"
        outbox.put("b", DISCOVERY, Record("h", 0, Entry(1, "http://h/", 0)), view("b"))
        assert list(outbox.post(0.0, "0" * 16))
        disk.collect(snapshot.changes(crawl.agent), crawl.facts("0badcafe"))
        await disk.write()
        disk.settle()
    finally:
        await disk.close()
    return before


def test_an_agent_goes_on_with_its_own_lanes_and_never_with_anothers(tmp_path: Path) -> None:
    """With a copy of another's directory, or under a new name, its letters were taken for ones that had come before,
    and the answers to them went to the other one.
    """

    async def test() -> None:
        first, again, other, then = [await lived(tmp_path, name) for name in ("a", "a", "c", "c")]
        store = first.split("/")[0]
        assert (first, again) == (f"{store}/b/discovery 1", f"{store}/b/discovery 2")
        anew = other.split("/")[0]
        assert anew != store
        assert (other, then) == (f"{anew}/b/discovery 1", f"{anew}/b/discovery 2")

    asyncio.run(test())


async def gone_on(path: Path, spider: str, origin: Origin = UNKNOWN, settings: UbiSettings = SETTINGS) -> None:
    """A crawl in that directory which a spider of that name begins, or goes on with, and leaves."""
    disk = await AgentDisk.open(path, SETTINGS, lambda: 1.0)
    try:
        own = fixed(settings, "a", spider, origin)
        crawl = Crawl(settings, "a", disk, own, lambda incarnation: None, lambda: 1.0)
        assert not await crawl.resume({})
        disk.collect(snapshot.changes(crawl.agent), crawl.facts("0badcafe"))
        await disk.write()
        disk.settle()
    finally:
        await disk.close()


def test_another_spider_than_that_which_began_the_crawl_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With one UBI_CRAWL for all spiders of a project it parsed what waited for the other one."""

    async def test() -> None:
        for spider in ("news", "news"):
            await gone_on(tmp_path, spider)
        assert "UBI_CRAWL" not in caplog.text
        await gone_on(tmp_path, "shop")

    asyncio.run(test())
    (record,) = [record for record in caplog.records if record.levelno > logging.INFO]
    for told in ("'news'", "'shop'", "UBI_CRAWL"):
        assert told in record.getMessage()


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (Origin("p.News", "02", {"site": "b"}), ("the arguments site=a", "the arguments site=b", "UBI_CRAWL")),
        (Origin("p.News"), ("the arguments site=a", "no arguments", "UBI_CRAWL")),
        (Origin("q.News", "01", {"site": "a"}), ("class p.News", "class q.News", "UBI_CRAWL")),
    ],
)
def test_what_was_begun_from_something_else_is_not_gone_on_with_but_by_a_setting(
    tmp_path: Path, now: Origin, told: tuple[str, ...]
) -> None:
    async def test() -> None:
        for _ in range(2):
            await gone_on(tmp_path, "news", Origin("p.News", "01", {"site": "a"}))
        with pytest.raises(UbiRefused) as refusal:
            await gone_on(tmp_path, "news", now)
        for word in (str(SETTINGS.dir), *told, "UBI_MIXED_AGENTS = True"):
            assert word in str(refusal.value)
        await gone_on(tmp_path, "news", now, replace(SETTINGS, mixed_agents=True))

    asyncio.run(test())


def test_what_a_disk_has_of_the_present_run_is_past_only_where_that_ended_without_losses() -> None:
    """Where others ended it after losses, this disk has what they had lost: it was emptied."""
    control = {"run": "r1", "finished": "r1 b"}
    assert is_past(control, "r1") and not is_past(control, "r2")
    assert not is_past(control | {"finished": "r1 b lossy"}, "r1")
    assert is_past({"run": "r2", "past": "r0 r1"}, "r1")


@pytest.mark.parametrize("over", [False, True])
def test_a_disk_that_has_seen_the_end_of_its_run_has_no_more_of_it(tmp_path: Path, over: bool) -> None:
    """A copy that was to be dropped still waited there, of a host that others had fetched: where the run had ended
    after losses, the next start was to go on with it, emptied the directory as finished, and fetched nothing.
    """

    async def test() -> None:
        disk = await AgentDisk.open(tmp_path, SETTINGS, lambda: 1.0)
        try:
            crawl = Crawl(SETTINGS, "a", disk, fixed(SETTINGS, "a", "spider"), lambda incarnation: None, lambda: 1.0)
            crawl.frontier.add("h", [Entry(1, "http://h/", 0)])
            crawl.agent.end.finished = over
            disk.collect(snapshot.changes(crawl.agent), crawl.facts("r1"))
            await disk.write()
            disk.settle()
        finally:
            await disk.close()
        disk = await AgentDisk.open(tmp_path, SETTINGS, lambda: 1.0)
        try:
            crawl = Crawl(SETTINGS, "a", disk, fixed(SETTINGS, "a", "spider"), lambda incarnation: None, lambda: 1.0)
            assert crawl.has_work("r1") is not over
            assert not crawl.has_work("r2")
        finally:
            await disk.close()

    asyncio.run(test())


@pytest.mark.parametrize("left", [False, True])
def test_outputs_of_a_run_that_ended_meanwhile_are_kept_by_who_was_killed_not_by_who_had_left(
    tmp_path: Path, left: bool
) -> None:
    """Who comes back after the end, and was killed before it, ends that run as the others did (P9)."""

    async def opened() -> tuple[AgentDisk, Crawl]:
        writer = Writer(tmp_path, "crawl", "a", 1 << 20)
        disk = await AgentDisk.open(tmp_path, SETTINGS, lambda: 1.0, [writer])
        own = fixed(SETTINGS, "a", "spider")
        return disk, Crawl(SETTINGS, "a", disk, own, lambda incarnation: None, lambda: 1.0)

    async def test() -> None:
        disk, crawl = await opened()
        crawl.handed_over = left
        disk.collect(snapshot.changes(crawl.agent), crawl.facts("r1"))
        await disk.write()
        await disk.close()
        disk, crawl = await opened()
        try:
            assert crawl.keeps("r1") is not left and not crawl.keeps("r2")
        finally:
            await disk.close()

    asyncio.run(test())


def test_what_was_summed_up_is_not_counted_again_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        pages = []
        for turn in range(3):
            disk = await AgentDisk.open(tmp_path, SETTINGS, lambda: 1.0)
            try:
                crawl = Crawl(SETTINGS, "a", disk, fixed(SETTINGS, "a", "s"), lambda incarnation: None, lambda: 1.0)
                pages.append(
                    (crawl.tally.pages, crawl.tally.failed["x"], crawl.agent.counters.links, crawl.counts_anew)
                )
                crawl.tally.pages += 5
                crawl.agent.counters.links += 5
                crawl.fail("h", Entry(1, "http://h/", 0), "x")
                for _ in range(2):
                    disk.collect(snapshot.changes(crawl.agent), crawl.facts("0badcafe"))
                    await disk.write()
                    disk.settle()
                    if turn == 1:
                        crawl.published(False)
            finally:
                await disk.close()
        assert pages == [(0, 0, 0, True), (5, 1, 5, False), (0, 0, 0, False)]

    asyncio.run(test())
