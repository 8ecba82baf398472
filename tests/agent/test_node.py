"""Several nodes in one event loop, over the in-memory transport: whole crawls, agents that come and go."""

from __future__ import annotations

import asyncio
import json

import pytest

from scrapy_ubi.protocol.beat import LEFT
from scrapy_ubi.transport.contract import MEMORY
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, SETTINGS, Crawler, Log, crawl
from tests.agent.groups import HELD, SEEDS, ends, group, profile
from tests.transport.worlds import until

# -- whole crawls


@pytest.mark.parametrize("agents", [1, 3])
def test_nodes_fetch_every_page_once_and_all_end(agents: int) -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        await ends(*group(hub, log, agents))
        log.judge(SEEDS)

    crawl(run)


def test_seeds_of_one_agent_only_are_enough() -> None:
    async def run() -> None:
        hub, log, seeds = MemoryHub(), Log(), ["http://h0.example/1"]
        crawlers = [Crawler(hub, f"a{i}", log) for i in range(3)]
        await asyncio.gather(*(c.run(seeds if c is crawlers[0] else []) for c in crawlers))
        log.judge(seeds)

    crawl(run)


def test_without_seeds_it_is_over_at_once() -> None:
    async def run() -> None:
        log = Log()
        await ends(*group(MemoryHub(), log, 2, []))
        assert not log.fetched

    crawl(run)


def test_start_under_the_name_of_a_finished_crawl_begins_a_new_one() -> None:
    async def run() -> None:
        hub, seeds = MemoryHub(), ["http://h0.example/1"]
        for _ in range(2):
            log = Log()
            await Crawler(hub, "a", log).run(seeds)
            log.judge(seeds)

    crawl(run)


def test_at_the_end_everybody_has_said_so() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        await ends(*group(hub, log, 3))
        shelf = hub.shelf(SETTINGS.crawl)
        assert shelf.control[b"finished"].split(b" ")[0] == shelf.control[b"run"]
        assert all(LEFT.encode() in line.split()[5] for name, line in shelf.beats.items() if name != MEMORY.encode())
        profiles = [profile(hub, f"a{number}") for number in range(3)]
        assert [one["state"] for one in profiles] == ["finished"] * 3
        counters = [one["counters"] for one in profiles]
        assert sum(one["pages"] for one in counters) == sum(log.fetched.values())
        assert sum(one["unique"] for one in counters) == len(log.fetched)
        assert sum(one["done"] for one in counters) == len(log.fetched)
        assert all(one["queued"] == one["in_flight"] == one["outbox"] == 0 for one in counters)

    crawl(run)


def test_who_comes_after_the_end_leaves_the_counters_of_its_predecessor_as_they_are() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        await ends(*group(hub, log, 2))
        before = profile(hub, "a0")
        late, new = Crawler(hub, "a0", log), Crawler(hub, "new", log)
        for crawler in (late, new):
            crawler.started_earlier(LIMIT)  # it was still starting when the crawl ended
            crawler.start(SEEDS)
        await ends(late, new)
        assert profile(hub, "a0") == before and before["counters"]["pages"] > 0
        assert (profile(hub, "new")["state"], profile(hub, "new")["counters"]["pages"]) == ("finished", 0)
        log.judge(SEEDS)

    crawl(run)


@pytest.mark.parametrize("state", ["waiting", "left"])
def test_who_was_killed_as_the_crawl_ended_and_comes_again_took_part_until_the_end(state: str) -> None:
    """It counted as one who had left before: its pages did, its hosts not, so all that it had fetched was overlap."""

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        await ends(*group(hub, log, 2))
        before = profile(hub, "a0")
        hub.shelf(SETTINGS.crawl).agents[b"a0"] = json.dumps({**before, "state": state}).encode()
        late = Crawler(hub, "a0", log)
        late.started_earlier(LIMIT)  # it was still starting when the crawl ended
        late.start(SEEDS)
        await ends(late)
        assert profile(hub, "a0") == {**before, "state": "left" if state == "left" else "finished"}

    crawl(run)


def test_who_is_asked_to_leave_hears_it_once_and_only_in_an_incarnation_of_its_own() -> None:
    async def run() -> None:
        hub, log, asked = MemoryHub(), Log(HELD), []
        crawlers = group(hub, log, 2)
        first = crawlers[0]
        first.drain = lambda: (asked.append(1), first.stop())
        await asyncio.wait_for(log.held.wait(), LIMIT)
        control, exchanges = hub.shelf(SETTINGS.crawl).control, first.exchanges
        for word in (b"", b"0badcafe", b"\xff", crawlers[1].node.agent.incarnation.encode()):
            control[b"drain:a0"] = word
            trips = exchanges.exchange.control
            await until(lambda trips=trips: exchanges.exchange.control is not trips)
        assert not asked
        before = first.node.agent.incarnation
        first.node.agent._rejoin()
        assert first.node.agent.incarnation != before
        control[b"drain:a0"] = before.encode()
        await until(lambda: asked)
        log.go.set()
        await ends(*crawlers)
        assert asked == [1]
        assert first.node.status.state == "left"
        log.judge(SEEDS, most=2)  # what was under way when the first one was held dead is fetched again, maybe

    crawl(run)


# -- coming and going in the middle


def test_one_joins_in_the_middle() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 2)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        late = Crawler(hub, "late", log)
        late.start([])
        await until(lambda: all("late" in crawler.node.agent.view.members for crawler in crawlers))
        log.go.set()
        await ends(*crawlers, late)
        log.judge(SEEDS)
        assert profile(hub, "late")["counters"]["pages"] > 0

    crawl(run)


def test_one_leaves_in_the_middle_and_hands_over() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        crawlers[0].stop()
        await ends(crawlers[0])
        assert profile(hub, "a0")["state"] == "left"
        assert not crawlers[1].node.over
        log.go.set()
        await ends(*crawlers[1:])
        log.judge(SEEDS)
        assert not crawlers[1].node.agent.lossy

    crawl(run)


def test_the_last_one_leaves_and_tells_nobody_that_it_is_finished() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        (alone,) = group(hub, log, 1)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        alone.stop()
        await ends(alone)
        assert b"finished" not in hub.shelf(SETTINGS.crawl).control
        assert profile(hub, "a0")["state"] == "left"

    crawl(run)


def test_one_crashes_in_the_middle_and_the_others_end_the_crawl() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        await crawlers[0].crash()
        log.go.set()
        await ends(*crawlers[1:])
        log.judge(SEEDS, most=2)

    crawl(run)
