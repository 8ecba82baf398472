"""Why an agent fetches nothing: each reason by a real node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import IdleReason
from scrapy_ubi.agent.report.why_idle import WhyIdle
from scrapy_ubi.ground import clock
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.settings.crawl_caps import CrawlCaps
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl, entry
from tests.agent.groups import Alone
from tests.transport.worlds import until

URL = "http://h0.example/1"


def why(one: Crawler, held: tuple[bool, IdleReason | None] = (False, None)) -> IdleReason | None:
    node = one.node
    return WhyIdle(node.status, node.hosts, node.crawl.settings, node.seeds, lambda: held).find_reason(clock.now())


def alone(*urls: str, **settings: Any) -> Callable[[Callable[[Alone], Awaitable[None]]], None]:
    """Run a test with one agent that is ready and knows these pages."""

    def run(body: Callable[[Alone], Awaitable[None]]) -> None:
        async def whole() -> None:
            one = Alone(**settings)
            await one.ready(*urls)
            await body(one)
            await one.node.leave("test")

        crawl(whole)

    return run


def kind(one: Crawler) -> str:
    found = why(one)
    assert found is not None
    return found.kind


def test_a_host_that_has_its_delay() -> None:
    @alone(URL, "http://h0.example/2", host_delay=7.0)
    async def _(one: Alone) -> None:
        visit = one.node.next_visit()
        assert visit is not None
        one.node.end_visit(visit)
        found = why(one)
        assert found is not None
        assert (found.kind, found.names, found.more) == (kinds.DELAY, ("h0.example",), "7 s")
        assert 0 < found.until - unix() <= 7.1


@pytest.mark.parametrize("word", ["retry-after", "health", "robots"])
def test_a_host_that_is_left_alone_and_why(word: str) -> None:
    @alone(URL)
    async def _(one: Alone) -> None:
        state = one.node.hosts.find("h0.example")
        assert state is not None
        one.node.hosts.postpone(state, 600.0, word)
        found = why(one)
        assert found is not None
        assert (found.kind, found.more, found.names) == (kinds.RESTS, word, ("h0.example",))
        assert 590 < found.until - unix() < 610


def test_a_crawl_delay_of_robots_txt() -> None:
    @alone(URL, "http://h0.example/2")
    async def _(one: Alone) -> None:
        state = one.node.hosts.find("h0.example")
        assert state is not None
        one.node.hosts.set_delay(state, "robots", 30.0)
        visit = one.node.next_visit()
        assert visit is not None
        one.node.end_visit(visit)
        assert kind(one) == kinds.CRAWL_DELAY


def test_what_scrapy_has_under_way_counts_where_no_host_waits_or_all_places_are_taken() -> None:
    @alone(URL)
    async def _(one: Alone) -> None:
        loads = IdleReason(kinds.LOADS, ("h0.example",))
        full = why(one, (True, loads))
        assert full == loads
        assert one.node.next_visit() is not None
        assert why(one, (False, loads)) == loads


def test_people_have_paused_it() -> None:
    @alone(URL)
    async def _(one: Alone) -> None:
        one.node.live.paused = True
        assert kind(one) == kinds.PAUSED


def test_a_limit_of_the_crawl_is_reached() -> None:
    @alone(URL, crawl_limits=CrawlCaps(pages=1))
    async def _(one: Alone) -> None:
        visit = one.node.next_visit()
        assert visit is not None
        one.node.end_visit(visit)
        assert kind(one) == kinds.LIMIT


def test_start_has_not_ended_or_all_have_to_agree() -> None:
    @alone()
    async def _(one: Alone) -> None:
        assert kind(one) == kinds.START
        one.node.agent.end.start_exhausted = True
        found = why(one)
        assert found is None or found.kind == kinds.END


def test_a_start_wait() -> None:
    @alone(URL)
    async def _(one: Alone) -> None:
        one.node.agent.group.sure = False
        found = why(one)
        assert found is not None
        assert found.kind == kinds.START_WAIT
        assert found.until and not found.names
        one.node.agent.group.expected = ("a1", "a2")
        found = why(one)
        assert found is not None
        assert "a1, a2 took part before" in kinds.sentence(found, 0.0)


def test_a_wait_as_at_a_start_after_a_fence_in_which_redis_has_forgotten() -> None:
    @alone(URL)
    async def _(one: Alone) -> None:
        lease = one.node.agent.group.lease
        lease.sent = clock.now()
        lease.gaps += 1
        found = why(one)
        assert found is not None and found.kind == kinds.UNSEEN
        one.node.agent.group.sure = False
        found = why(one)
        assert found is not None and found.kind == kinds.START_WAIT


def test_an_agent_alone_is_never_called_fenced_and_says_that_redis_does_not_answer() -> None:
    @alone(URL, redis_url="redis://127.0.0.1:1")
    async def _(one: Alone) -> None:
        one.node.agent.group.lease.sent = clock.now() - 10 * SETTINGS.lease_timeout
        assert one.node.status.state == "waiting"
        assert kind(one) == kinds.REDIS_AWAY


def test_hosts_that_are_handed_over_name_whom_they_wait_for_and_an_agent_that_is_cut_off_is_fenced() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        one, two = Crawler(hub, "a1", log), Crawler(hub, "a2", log)
        await asyncio.gather(one.node.open(), two.node.open())
        node = one.node
        await until(lambda: len(node.agent.view.members) == 2 and node.agent.view_history.complete is node.agent.view)
        urls = [f"http://h{number}.example/1" for number in range(8)]
        for url in urls:
            node.discover(*entry(url))
        assert any(state.waiting for state in node.frontier.states())
        view_history = node.agent.view_history
        view_history.complete, view_history.released, view_history.forced = None, False, False
        found = why(one)
        assert found is not None
        assert found.kind == kinds.HANDOVER
        assert found.until > unix()
        node.agent.group.lease.sent = clock.now() - 10 * SETTINGS.lease_timeout
        fenced = why(one)
        assert fenced is not None
        assert (fenced.kind, node.status.state) == (kinds.FENCED, "fenced")
        await asyncio.gather(one.node.leave("test"), two.node.leave("test"))

    crawl(run)
