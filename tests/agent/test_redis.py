"""Several nodes whose Redis is away, full, emptied, or holds garbage."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from unittest.mock import patch

import pytest

from scrapy_ubi.ground import clock
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.transport import Incoming, TransportDown
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import LIMIT, SETTINGS, Crawler, Log, crawl, entry, reachable
from tests.agent.groups import HELD, SEEDS, ends, group, profile
from tests.transport.worlds import until


def test_redis_is_away_for_a_while() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        await until(lambda: all(crawler.node.access.loads("h0.example") for crawler in crawlers))
        hub.down = True
        await until(lambda: all(crawler.node.status.state == "fenced" for crawler in crawlers))
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
        await until(lambda: deaf.node.agent.self_status.settled)
        deaf.transport.exchange = away  # type: ignore[method-assign]
        able.start(seeds)
        await until(lambda: log.fetched)
        assert able.node.agent.counters.handoff_timeouts == 1
        deaf.task = asyncio.ensure_future(asyncio.sleep(0))
        await deaf.crash()
        await able.crash()

    crawl(run)
    # The deaf one may say so as well: of its own hosts, as it does not hear that the other has settled.
    said = next(record.getMessage() for record in caplog.records if "were not handed over" in record.getMessage())
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
        visit = await until(node.next_visit)
        node.discover(*entry(SEEDS[1]), page=visit)
        if stray:
            node.discover(*entry("http://h9.example/1"))
        with patch.object(node.agent.work, "ended", lambda state, key, outlinks, row: ended.append(outlinks)):
            node.end_visit(visit)
        assert ended == [None if stray else [entry(SEEDS[1])]]
        await node.leave("test")

    crawl(run)


def test_redis_is_full_for_a_while() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 3)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        hub.full = True
        more = [f"http://h{host}.example/{page}" for host in range(8) for page in range(100, 103)]
        for number, crawler in enumerate(crawlers):  # so that each has mail: what is left may lie with two of them
            for url in more[number::3]:
                crawler.node.discover(*entry(url))
        log.go.set()
        await until(lambda: all(profile(hub, f"a{number}")["state"] == "blocked" for number in range(3)))
        await until(lambda: all(crawler.node.agent.group.lease.holds(clock.now()) for crawler in crawlers))
        hub.full = False
        await ends(*crawlers)
        log.judge(SEEDS + more)
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
        await until(lambda: all(crawler.node.status.state == "blocked" for crawler in crawlers))
        log.go.set()
        await until(lambda: not any(crawler.loads for crawler in crawlers))
        assert all(crawler.exchanges.choked and crawler.node.next_visit() is None for crawler in crawlers)
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
        await until(lambda: all(crawler.exchanges.choked for crawler in crawlers))
        await until(lambda: not any(crawler.loads for crawler in crawlers))
        assert all(crawler.node.agent.group.lease.holds(clock.now()) for crawler in crawlers)
        assert all(crawler.node.next_visit() is None for crawler in crawlers)
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
        read = crawlers[0].beats.read
        before = set(crawlers[0].node.agent.view.members)
        now = clock.now()
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
        assert there.node.next_visit() is None
        there.refused = None
        here.node.discover(host, Entry(78, f"http://{host}/2", 0, 0, '{"callback":"parse"}'))
        visit = await until(there.node.next_visit)
        assert visit.entry.request == '{"callback":"parse"}'
        for crawler in crawlers:
            await crawler.node.leave("test")

    crawl(run)


def test_another_process_under_ones_name_stops_this_one() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log(HELD)
        crawlers = group(hub, log, 2)
        await asyncio.wait_for(log.held.wait(), LIMIT)
        now = clock.now()
        crawlers[0].beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(8)})
        assert not log.fatal, "it may be of a former life"
        crawlers[0].beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(9)})
        (sentence,) = log.fatal
        assert "a0" in sentence
        assert "UBI_AGENT_ID" in sentence
        crawlers[0].beats.read(now, now, {"a0": Beat("ffffffff", 0, 200, "0" * 16).line(10)})
        assert len(log.fatal) == 1, "said once"
        hub.shelf(SETTINGS.crawl).beats[b"a0"] = b"another's"
        crawlers[0].stop()
        await ends(crawlers[0])
        log.go.set()
        await crawlers[1].crash()

    crawl(run)
