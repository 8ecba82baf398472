"""The visits of one node, with the test in the place of Scrapy's engine."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest

from scrapy_ubi.agent.waits import wait_briefly
from scrapy_ubi.ground import clock
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport import Incoming, Outgoing, TransportDown
from tests.agent.crawler import LIMIT, SETTINGS, crawl, entry
from tests.agent.groups import Alone, profile
from tests.transport.worlds import until


def test_a_visit_ends_once() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next_visit()
        assert visit is not None
        assert visit.entry.url == "http://h0.example/1"
        alone.node.end_visit(visit)
        alone.node.end_visit(visit)
        alone.node.put_back(visit)
        assert alone.node.next_visit() is None
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
            visit = alone.node.next_visit()
            assert visit is not None
            alone.node.end_visit(visit, reason, fetched)
        counters = alone.node.counters()
        assert (counters["pages"], counters["done"]) == (2, 3)
        assert counters["failed"] == {"timeout": 1, "http/404": 1}
        await alone.node.leave("test")

    crawl(run)


def test_a_retry_is_fetched_again_under_the_same_key() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next_visit()
        assert visit is not None
        alone.node.retry(visit, visit.entry._replace(priority=-1, request='{"meta":{"retry_times":1}}'))
        assert alone.node.next_visit() is None, "not before the visit has ended"
        alone.node.end_visit(visit)
        assert alone.node.counters()["done"] == 0
        again = alone.node.next_visit()
        assert again is not None
        assert again.entry.key == visit.entry.key
        assert again.entry.request == '{"meta":{"retry_times":1}}'
        alone.node.end_visit(again)
        assert alone.node.next_visit() is None
        counters = alone.node.counters()
        assert (counters["pages"], counters["done"], counters["unique"]) == (2, 1, 1)
        await alone.node.leave("test")

    crawl(run)


def test_put_back_waits_again() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next_visit()
        assert visit is not None
        assert not alone.node.status.pending() and alone.node.status.waiting == 0
        alone.node.put_back(visit)
        assert alone.node.status.pending() and alone.node.status.waiting == 1
        again = alone.node.next_visit()
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
        first = alone.node.next_visit()
        assert first is not None
        assert await alone.node.access.permit(first.host, first)
        alone.node.access.release(first.host, first)
        freed = clock.now()
        alone.node.end_visit(first)
        alone.wake.clear()
        assert alone.node.next_visit() is None
        await asyncio.wait_for(alone.wake.wait(), LIMIT)
        second = await until(alone.node.next_visit)
        assert clock.now() >= freed + 0.05
        alone.node.end_visit(second)
        await alone.node.leave("test")

    crawl(run)


def test_a_host_of_which_nothing_was_loaded_is_not_kept_waiting() -> None:
    async def run() -> None:
        alone = Alone(host_delay=LIMIT)
        await alone.ready("http://h0.example/1", "http://h0.example/2", "http://h0.example/3")
        for number in (1, 2):  # robots.txt forbids them, say
            visit = alone.node.next_visit()
            assert visit is not None and visit.entry.url.endswith(str(number))
            alone.node.end_visit(visit, failed="robots", fetched=False)
        visit = alone.node.next_visit()
        assert visit is not None and await alone.node.access.permit(visit.host, visit)
        alone.node.access.release(visit.host, visit)
        alone.node.end_visit(visit, failed="exception/TimeoutError", fetched=False)
        assert visit.state.next_at >= clock.now() + LIMIT / 2, "a load that failed was one"
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
        visit = alone.node.next_visit()
        assert visit is not None
        assert await alone.node.access.permit("h0.example", None), "its robots.txt comes first"
        page = asyncio.ensure_future(alone.node.access.permit("h0.example", visit))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not page.done()
        alone.node.access.release("h0.example")
        assert await asyncio.wait_for(page, LIMIT)
        alone.node.access.release("h0.example", visit)
        alone.node.end_visit(visit)
        await alone.node.leave("test")

    crawl(run)


def test_states_of_a_node_in_words() -> None:
    async def run() -> None:
        alone = Alone()
        assert alone.node.status.state == "joining"
        await alone.ready()
        assert alone.node.status.state == "waiting"
        alone.node.discover(*entry("http://h0.example/1"))
        assert alone.node.status.state == "crawling"
        visit = alone.node.next_visit()
        assert visit is not None
        assert alone.node.status.state == "crawling"
        alone.node.end_visit(visit)
        assert alone.node.status.state == "waiting"
        alone.hub.down = True
        await until(lambda: not alone.node.status.holds_lease)
        assert alone.node.status.state == "waiting", "alone there is no agent that it could be fenced from"
        alone.hub.down = False
        await until(lambda: alone.node.status.holds_lease)
        await alone.node.leave("test")
        assert alone.node.status.state == "left"

    crawl(run)


def test_what_a_node_counts_is_published() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        await until(lambda: alone.hub.shelf(SETTINGS.crawl).agents)
        told = profile(alone.hub, "a")
        assert told["agent"] == "a"
        assert told["incarnation"] == alone.node.agent.incarnation
        # The estimate names the slowest host only once there is one to name: at the profile, or by now.
        estimated = {"slowest"}
        assert told["counters"].keys() - estimated == alone.node.counters().keys() - estimated
        await alone.node.leave("test")
        told = profile(alone.hub, "a")
        assert told["state"] == "left"
        assert told["counters"]["pages_per_second"] == 0.0

    crawl(run)


def test_every_incarnation_is_noted_before_it_is_used() -> None:
    async def run() -> None:
        alone = Alone()
        await alone.ready()
        noted = alone.incarnations
        noted.clear()
        former = alone.node.agent.incarnation
        now = clock.now()
        named = Beat("0123abcd", 0, 200, "0" * 16, dead=(former,)).line(1)
        alone.beats.read(now, now, {"b": named, "a": alone.beats.line(1)})
        assert noted == [alone.node.agent.incarnation]
        assert noted != [former]
        await alone.node.leave("test")

    crawl(run)
