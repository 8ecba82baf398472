"""The pages for Prometheus and probes, as a web application mounts them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from redis import ConnectionError as RedisAway

from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.web.metrics_routes import add_routes
from tests.cli.monitor.test_crawl_metrics import agent, crawl, with_beat
from tests.support.prometheus import Recorded


class Reader:
    """Gives `status`, or raises what stands there; `reads` so far."""

    def __init__(self, status: CrawlStatus | Exception) -> None:
        self.status, self.reads = status, 0

    async def read(self) -> CrawlStatus:
        self.reads += 1
        if isinstance(self.status, Exception):
            raise self.status
        return self.status


def ask(reader: Reader, *paths: str, away: tuple[type[Exception], ...] = ()) -> list[tuple[int, str]]:
    """Status and body of each answer."""

    async def main() -> list[tuple[int, str]]:
        app = web.Application()
        add_routes(app, reader.read, lambda: "demo:web", away)
        async with TestClient(TestServer(app)) as client:
            answers = [await client.get(path) for path in paths]
            return [(answer.status, await answer.text()) for answer in answers]

    return asyncio.run(main())


def test_all_four_answer_from_one_look_at_redis() -> None:
    reader = Reader(crawl(agent("a1", metrics="m1:9410"), agent("a2")))
    metrics, found, live, ready, one = ask(reader, "/metrics", "/sd", "/live", "/ready", "/ready?agent=a2")
    assert len(Recorded(metrics[1]).of("ubi_pages_total")) == 2
    assert '"targets": ["m1:9410"]' in found[1]
    assert live == ready == one == (200, "ok\n")
    assert reader.reads == 1


def test_a_group_that_has_not_settled_is_not_ready() -> None:
    reader = Reader(crawl(agent("a1"), with_beat(agent("a2"), settled="")))
    assert ask(reader, "/ready", "/live") == [
        (503, "Not now: a2 has not handed over all it holds.\n"),
        (200, "ok\n"),
    ]


def test_a_redis_that_is_away_is_told_as_such() -> None:
    class Problem(Exception):
        pass

    cases: list[tuple[Exception, dict[str, Any]]] = [(RedisAway("away"), {}), (Problem(), {"away": (Problem,)})]
    for error, more in cases:
        metrics, found, ready = ask(Reader(error), "/metrics", "/sd", "/ready", **more)
        assert Recorded(metrics[1]).samples == [("ubi_redis_up", {"crawl": "demo:web"}, 0.0)]
        assert metrics[0] == 200 and found[0] == ready[0] == 503


def test_nothing_can_be_changed_here() -> None:
    async def main(check: Callable[[TestClient[Any, Any]], Awaitable[None]]) -> None:
        app = web.Application()
        add_routes(app, Reader(crawl()).read, str)
        async with TestClient(TestServer(app)) as client:
            await check(client)

    async def check(client: TestClient[Any, Any]) -> None:
        for path in ("/metrics", "/sd", "/live", "/ready"):
            assert [(await client.request(how, path)).status for how in ("POST", "PUT", "DELETE")] == [405] * 3

    asyncio.run(main(check))
