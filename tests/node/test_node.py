"""Several nodes in one event loop, over the in-memory transport: the crawl without Scrapy."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import re
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.node.group.retry_until import wait_briefly
from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown
from scrapy_ubi.transport.contract import MEMORY
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.node.crawler import LIMIT, SETTINGS, Crawler, Log, crawl, entry, reachable
from tests.transport.worlds import until

SEEDS = ["http://h0.example/1", "http://h5.example/2"]
HELD = 30  # pages after which the web stops answering, in tests that do something in the middle


async def ends(*crawlers: Crawler) -> None:
    """All of these end by themselves."""
    await asyncio.wait_for(asyncio.gather(*(crawler.task for crawler in crawlers)), LIMIT)


def group(hub: MemoryHub, log: Log, agents: int, seeds: list[str] = SEEDS) -> list[Crawler]:
    """So many crawlers, started with the same seeds."""
    crawlers = [Crawler(hub, f"a{number}", log) for number in range(agents)]
    for crawler in crawlers:
        crawler.start(seeds)
    return crawlers


def profile(hub: MemoryHub, name: str) -> dict[str, Any]:
    return json.loads(hub.shelf(SETTINGS.crawl).agents[name.encode()])


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
            crawler.node._join._started -= LIMIT  # it was still starting when the crawl ended
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
        late.node._join._started -= LIMIT  # it was still starting when the crawl ended
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
        control, exchanges = hub.shelf(SETTINGS.crawl).control, first.node._exchanges
        for word in (b"", b"0badcafe", b"\xff", crawlers[1].node.agent.incarnation.encode()):
            control[b"drain:a0"] = word
            trips = exchanges.exchange.control if exchanges.exchange else None
            await until(lambda trips=trips: exchanges.exchange is not None and exchanges.exchange.control is not trips)
        assert not asked
        before = first.node.agent.incarnation
        first.node.agent._rejoin()
        assert first.node.agent.incarnation != before
        control[b"drain:a0"] = before.encode()
        await until(lambda: asked)
        log.go.set()
        await ends(*crawlers)
        assert asked == [1]
        assert first.node.state == "left"
        log.judge(SEEDS, most=2)  # what was under way when the first one was held dead is fetched again, maybe

    crawl(run)


# -- refusals at the start


def test_second_process_with_one_identifier_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first, second = Crawler(hub, "a", log), Crawler(hub, "a", log)
        await first.node.open()
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID"):
            await second.node.open()
        await first.node.leave("test")

    crawl(run)


def test_agent_that_differs_in_partition_is_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        first = Crawler(hub, "a", log)
        second = Crawler(hub, "b", log, dataclasses.replace(SETTINGS, partition="domain"))
        await first.node.open()
        while not await second.node.transport.profiles():
            await asyncio.sleep(0)
        with pytest.raises(UbiRefused, match="UBI_PARTITION"):
            await second.node.open()
        await first.node.leave("test")

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


# -- Redis


def test_redis_is_away_for_a_while() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        await until(lambda: all(crawler.node.access.loads("h0.example") for crawler in crawlers))
        hub.down = True
        await until(lambda: all(crawler.node.state == "fenced" for crawler in crawlers))
        await until(lambda: all(crawler.cancels for crawler in crawlers) and not log.busy)  # loads are cancelled
        before = log.fetched.copy()
        log.go.set()
        accesses = [crawler.node.access for crawler in crawlers]
        assert not any(access.may_fetch("h0.example") or access.loads("h0.example") for access in accesses)
        hub.down = False
        await ends(*crawlers)
        assert not any(crawler.node.access.loads("h0.example") for crawler in crawlers)
        log.judge(SEEDS)
        assert before <= log.fetched
        assert [crawler.node.agent.counters.rejoins for crawler in crawlers] == [0, 0, 0]

    crawl(run)


@pytest.mark.parametrize("renumber", [False, True])
def test_redis_forgets_everything(renumber: bool) -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        hub.flush(renumber)
        log.go.set()
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(run)


def test_an_agent_that_beats_but_takes_no_mail_is_not_waited_for_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def away(out: object) -> Incoming:
        raise TransportDown("its mail does not get through")

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        settings = dataclasses.replace(SETTINGS, handoff_timeout=1.5, lease_timeout=LIMIT, failure_timeout=2 * LIMIT)
        deaf, able = (Crawler(hub, name, log, settings) for name in ("deaf", "able"))
        seeds = [f"http://h{host}.example/1" for host in range(8)]
        deaf.node.agent.sure()
        await deaf.node.open()  # and fetches nothing
        for url in seeds:
            deaf.node.discover(*entry(url))
        await until(lambda: deaf.node.agent.standing.settled)
        deaf.transport.exchange = away  # type: ignore[method-assign]
        able.start(seeds)
        await until(lambda: log.fetched)
        assert able.node.agent.counters.handoff_timeouts == 1
        deaf.task = asyncio.ensure_future(asyncio.sleep(0))
        await deaf.crash()
        await able.crash()

    crawl(run)
    # The deaf one may say so as well: of its own hosts, as it does not hear that the other has settled.
    said = next(record.getMessage() for record in caplog.records if "UBI_HANDOFF_TIMEOUT" in record.getMessage())
    assert re.match(r"[1-8] hosts of this agent were not handed over", said) and "twice" in said


@pytest.mark.parametrize("stray", [False, True])
def test_a_page_that_was_out_when_a_request_came_from_nowhere_has_no_redo(stray: bool) -> None:
    """That request may be the page's, and an heir would not find it in the redo."""

    async def run() -> None:
        crawler = Crawler(MemoryHub(), "a", Log())
        node = crawler.node
        ended: list[object] = []
        await node.open()
        await until(lambda: node.agent.group.sure)
        node.discover(*entry(SEEDS[0]), seed=True)
        visit = await until(node.next)
        node.discover(*entry(SEEDS[1]), page=visit)
        if stray:
            node.discover(*entry("http://h9.example/1"))
        with patch.object(node.agent, "ended", lambda *arguments: ended.extend(arguments[2:])):
            node.ended(visit)
        assert ended == [None if stray else [entry(SEEDS[1])]]
        await node.leave("test")

    crawl(run)


def test_redis_is_full_for_a_while() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        hub.full = True
        log.go.set()
        await until(lambda: all(profile(hub, f"a{number}")["state"] == "blocked" for number in range(3)))
        await until(lambda: all(crawler.node.agent.lease.holds(crawler.node._clock()) for crawler in crawlers))
        hub.full = False
        await ends(*crawlers)
        log.judge(SEEDS)
        assert all(crawler.node.counters()["writes_refused"] for crawler in crawlers)
        assert not any(crawler.node.counters()["fences"] for crawler in crawlers), "a full Redis silences nobody"

    crawl(run)


def test_while_redis_is_full_an_agent_with_much_to_send_fetches_no_more() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        settings = dataclasses.replace(SETTINGS, flush_records=5)
        crawlers = [Crawler(hub, f"a{number}", log, settings) for number in range(2)]
        for crawler in crawlers:
            crawler.start(SEEDS)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        hub.full = True
        await until(lambda: all(crawler.node.state == "blocked" for crawler in crawlers))
        log.go.set()
        await until(lambda: not any(crawler.loads for crawler in crawlers))
        assert all(crawler.node._exchanges.choked and crawler.node.next() is None for crawler in crawlers)
        assert log.fetched.keys() < reachable(SEEDS)
        hub.full = False
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(run)


def test_while_redis_is_away_an_agent_with_much_to_send_fetches_no_more() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        settings = dataclasses.replace(SETTINGS, flush_records=5, lease_timeout=LIMIT, failure_timeout=2 * LIMIT)
        crawlers = [Crawler(hub, f"a{number}", log, settings) for number in range(2)]
        for crawler in crawlers:
            crawler.node.agent.sure()
            crawler.start(SEEDS)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        hub.down = True
        log.go.set()
        await until(lambda: all(crawler.node._exchanges.choked for crawler in crawlers))
        await until(lambda: not any(crawler.loads for crawler in crawlers))
        assert all(crawler.node.agent.lease.holds(crawler.node._clock()) for crawler in crawlers)
        assert all(crawler.node.next() is None for crawler in crawlers)
        assert log.fetched.keys() < reachable(SEEDS)
        hub.down = False
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(run)


def test_garbage_in_the_inbox_goes_to_the_dead_letters_and_the_crawl_goes_on() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 2)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        header = {b"from": b"z", b"store": b"0bad", b"lane": b"discovery", b"enc": b"json", b"view": b"0" * 16}
        for number, body in enumerate(
            [
                b"\x80\x04pickle",
                b"{}",
                b'[{"host":"h0.example","discovered":[["%s","file:///etc/passwd",0]]}]' % (b"0" * 16),
                b'[{"host":"h0.example","discovered":[["%s","http://elsewhere.example/",0]]}]' % (b"0" * 16),
            ],
            1,
        ):
            seq = str(number).encode()
            hub.append(SETTINGS.crawl, "a0", header | {b"seq": seq, b"floor": seq, b"body": body})
        log.go.set()
        await ends(*crawlers)
        log.judge(SEEDS)
        reasons = [one[b"reason"].decode() for one in hub.shelf(SETTINGS.crawl).dead["a0"]]
        assert len(reasons) == 4
        assert "does not belong to host 'h0.example'" in reasons[3]
        assert profile(hub, "a0")["counters"]["dead_letters"] == 4

    crawl(run)


def test_garbage_among_the_beats_is_nobody() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 2)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        good = Beat("0123abcd", 0, 200, "0" * 16)
        for name, line in {
            b"two words": good.line(1),
            b"a/slash": good.line(1),
            b"x" * 65: good.line(1),
            b"": good.line(1),
            b"no-beat": "garbage",
            b"no-replicas": dataclasses.replace(good, replicas=0).line(1),
            b"other-digits": good.line(1).replace(" 200 ", " ٢٠٠ "),
        }.items():
            hub.shelf(SETTINGS.crawl).beats[name] = line.encode()
        read = crawlers[0].node._beats.read
        before = set(crawlers[0].node.agent.view.members)
        now = crawlers[0].node._clock()
        read(now, now, await crawlers[0].transport.beats())
        assert set(crawlers[0].node.agent.view.members) == before == {"a0", "a1"}
        log.go.set()
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(run)


def test_letters_that_the_spider_cannot_take_are_refused() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        here, there = crawlers = [Crawler(hub, f"a{number}", log) for number in range(2)]
        for crawler in crawlers:
            await crawler.node.open()
        await until(lambda: all(len(crawler.node.agent.view.members) == 2 for crawler in crawlers))
        there.refused = "no callback of this name"
        host = next(h for n in range(99) if there.node.agent.keeping.owns(h := f"x{n}.example"))
        here.node.discover(host, Entry(77, f"http://{host}/", 0, 0, '{"callback":"system"}'))
        dead = hub.shelf(SETTINGS.crawl).dead["a1"]
        await until(lambda: dead)
        assert dead[0][b"reason"] == b"no callback of this name"
        await until(lambda: not len(here.node.agent.outbox))
        assert there.node.next() is None
        there.refused = None
        here.node.discover(host, Entry(78, f"http://{host}/2", 0, 0, '{"callback":"parse"}'))
        visit = await until(there.node.next)
        assert visit.entry.request == '{"callback":"parse"}'
        for crawler in crawlers:
            await crawler.node.leave("test")

    crawl(run)


def test_another_process_under_ones_name_stops_this_one() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 2)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        node = crawlers[0].node
        now = node._clock()
        node._beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(8)})
        assert not log.fatal, "it may be of a former life"
        node._beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(9)})
        (sentence,) = log.fatal
        assert "a0" in sentence
        assert "UBI_AGENT_ID" in sentence
        node._beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(10)})
        assert len(log.fatal) == 1, "said once"
        hub.shelf(SETTINGS.crawl).beats[b"a0"] = b"another's"
        crawlers[0].stop()
        await ends(crawlers[0])
        log.go.set()
        await crawlers[1].crash()

    crawl(run)


# -- visits


class Alone(Crawler):
    """One node, and the test in the place of the engine."""

    def __init__(self, **settings: Any) -> None:
        self.hub = MemoryHub()
        super().__init__(self.hub, "a", Log(), dataclasses.replace(SETTINGS, **settings))

    async def ready(self, *urls: str) -> None:
        """It may fetch, and these pages are found."""
        await self.node.open()
        for url in urls:
            assert self.node.discover(*entry(url))
        await until(lambda: self.node.agent.tenure.complete is not None)


def test_a_visit_ends_once() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next()
        assert visit is not None
        assert visit.entry.url == "http://h0.example/1"
        alone.node.ended(visit)
        alone.node.ended(visit)
        alone.node.put_back(visit)
        assert alone.node.next() is None
        counters = alone.node.counters()
        assert (counters["pages"], counters["done"], counters["in_flight"], counters["queued"]) == (1, 1, 0, 0)
        await alone.node.leave("test")

    crawl(run)


def test_an_exchange_that_the_end_cuts_off_is_no_absence_of_redis(caplog: pytest.LogCaptureFixture) -> None:
    """Where a round trip takes longer than the flush interval there is always one under way."""

    async def run() -> None:
        alone = Alone()
        closed, cut_off, under_way = asyncio.Event(), [], [0]
        exchange, close = alone.transport.exchange, alone.transport.close

        async def slowly(out: Outgoing) -> Incoming:
            under_way[0] += 1
            try:
                await wait_briefly(closed, 3 * SETTINGS.flush_interval)
                if closed.is_set():
                    raise TransportDown("the transport is closed")
                return await exchange(out)
            finally:
                under_way[0] -= 1

        async def closing() -> None:
            cut_off.append(under_way[0])
            closed.set()
            await until(lambda: not under_way[0])
            await close()

        with patch.multiple(alone.transport, exchange=slowly, close=closing):
            await alone.ready("http://h0.example/1")
            await alone.node.leave("test")
        assert cut_off == [1]

    crawl(run)
    assert "away" not in caplog.text


def test_a_page_that_was_not_fetched_is_done_and_no_page() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1", "http://h1.example/1", "http://h2.example/1")
        for reason, fetched in ((None, True), ("timeout", False), ("http/404", True)):
            visit = alone.node.next()
            assert visit is not None
            alone.node.ended(visit, reason, fetched)
        counters = alone.node.counters()
        assert (counters["pages"], counters["done"]) == (2, 3)
        assert counters["failed"] == {"timeout": 1, "http/404": 1}
        await alone.node.leave("test")

    crawl(run)


def test_a_retry_is_fetched_again_under_the_same_key() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next()
        assert visit is not None
        alone.node.retry(visit, visit.entry._replace(priority=-1, request='{"meta":{"retry_times":1}}'))
        assert alone.node.next() is None, "not before the visit has ended"
        alone.node.ended(visit)
        assert alone.node.counters()["done"] == 0
        again = alone.node.next()
        assert again is not None
        assert again.entry.key == visit.entry.key
        assert again.entry.request == '{"meta":{"retry_times":1}}'
        alone.node.ended(again)
        assert alone.node.next() is None
        counters = alone.node.counters()
        assert (counters["pages"], counters["done"], counters["unique"]) == (2, 1, 1)
        await alone.node.leave("test")

    crawl(run)


def test_put_back_waits_again() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next()
        assert visit is not None
        assert not alone.node.pending() and alone.node.waiting == 0
        alone.node.put_back(visit)
        assert alone.node.pending() and alone.node.waiting == 1
        again = alone.node.next()
        assert again is not None
        assert again is not visit
        assert again.entry == visit.entry
        await alone.node.leave("test")
        assert alone.node.counters()["in_flight"] == 0, "whoever leaves puts back"

    crawl(run)


def test_the_engine_is_woken_when_a_host_is_ready() -> None:
    async def run() -> None:
        alone = Alone(host_delay=0.05)
        await alone.ready("http://h0.example/1", "http://h0.example/2")
        first = alone.node.next()
        assert first is not None
        assert await alone.node.access.permit(first.host, first)
        alone.node.access.release(first.host, first)
        freed = alone.node._clock()
        alone.node.ended(first)
        alone.wake.clear()
        assert alone.node.next() is None
        await asyncio.wait_for(alone.wake.wait(), LIMIT)
        second = await until(alone.node.next)
        assert alone.node._clock() >= freed + 0.05
        alone.node.ended(second)
        await alone.node.leave("test")

    crawl(run)


def test_a_host_of_which_nothing_was_loaded_is_not_kept_waiting() -> None:
    async def run() -> None:
        alone = Alone(host_delay=LIMIT)
        await alone.ready("http://h0.example/1", "http://h0.example/2", "http://h0.example/3")
        for number in (1, 2):  # robots.txt forbids them, say
            visit = alone.node.next()
            assert visit is not None and visit.entry.url.endswith(str(number))
            alone.node.ended(visit, failed="robots", fetched=False)
        visit = alone.node.next()
        assert visit is not None and await alone.node.access.permit(visit.host, visit)
        alone.node.access.release(visit.host, visit)
        alone.node.ended(visit, failed="exception/TimeoutError", fetched=False)
        assert visit.state.next_at >= alone.node._clock() + LIMIT / 2, "a load that failed was one"
        await alone.node.leave("test")

    crawl(run)


def test_from_a_host_that_was_put_off_for_long_nothing_loads_soon() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1", "http://h1.example/1")
        for host, seconds in (("h0.example", 600.0), ("h1.example", 1.0)):
            state = alone.node.frontier.find(host)
            assert state is not None and alone.node.access.loads(host)
            alone.node.hosts.postpone(state, seconds, "retry-after")
        assert [alone.node.access.loads(f"h{number}.example") for number in range(3)] == [False, True, True]
        await alone.node.leave("test")
        assert not alone.node.access.loads("h1.example")

    crawl(run)


def test_a_host_is_fetched_one_at_a_time_also_by_what_is_in_no_queue() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next()
        assert visit is not None
        assert await alone.node.access.permit("h0.example", None), "its robots.txt comes first"
        page = asyncio.ensure_future(alone.node.access.permit("h0.example", visit))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not page.done()
        alone.node.access.release("h0.example")
        assert await asyncio.wait_for(page, LIMIT)
        alone.node.access.release("h0.example", visit)
        alone.node.ended(visit)
        await alone.node.leave("test")

    crawl(run)


def test_states_of_a_node_in_words() -> None:
    async def run() -> None:
        alone = Alone()
        assert alone.node.state == "joining"
        await alone.ready()
        assert alone.node.state == "waiting"
        alone.node.discover(*entry("http://h0.example/1"))
        assert alone.node.state == "crawling"
        visit = alone.node.next()
        assert visit is not None
        assert alone.node.state == "crawling"
        alone.node.ended(visit)
        assert alone.node.state == "waiting"
        alone.hub.down = True
        await until(lambda: alone.node.state == "fenced")
        alone.hub.down = False
        await until(lambda: alone.node.state == "waiting")
        await alone.node.leave("test")
        assert alone.node.state == "left"

    crawl(run)


def test_what_a_node_counts_is_published() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        await until(lambda: alone.hub.shelf(SETTINGS.crawl).agents)
        told = profile(alone.hub, "a")
        assert told["agent"] == "a"
        assert told["incarnation"] == alone.node.agent.incarnation
        assert told["counters"].keys() == alone.node.counters().keys()
        await alone.node.leave("test")
        told = profile(alone.hub, "a")
        assert told["state"] == "left"
        assert told["counters"]["pages_per_second"] == 0.0

    crawl(run)


def test_every_incarnation_is_noted_before_it_is_used() -> None:
    async def run() -> None:
        noted: list[str] = []
        alone = Alone()
        alone.node._crawl._on_incarnation = noted.append
        await alone.ready()
        former = alone.node.agent.incarnation
        now = alone.node._clock()
        named = Beat("0123abcd", 0, 200, "0" * 16, dead=(former,)).line(1)
        alone.node._beats.read(now, now, {"b": named, "a": alone.node._beats.line(1)})
        assert noted == [alone.node.agent.incarnation]
        assert noted != [former]
        await alone.node.leave("test")

    crawl(run)
