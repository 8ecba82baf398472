"""Items as server-sent events: from a place, with gaps and losses said, holding up nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from scrapy.settings import Settings

from scrapy_ubi.transport.item_stream import ItemStream
from scrapy_ubi.web import item_events
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.security import Access
from scrapy_ubi.web.web_app import WebApp
from tests.support.server import Server
from tests.web.served import Crawl, run

CRAWL = "shop:walk"
Client = TestClient[Any, Any]


@pytest.fixture
def stream(one_server: Server) -> Iterator[ItemStream]:
    one_server.flush()
    with one_server.client() as client:
        yield ItemStream(client, CRAWL)


def give(stream: ItemStream, *names: str) -> str:
    return stream.append([(name, json.dumps({"of": name, "text": "<b>\n"}).encode()) for name in names], "r").last


@asynccontextmanager
async def served(url: str, access: Access | None = None) -> AsyncIterator[tuple[Client, WebApp]]:
    reader = CrawlReader(Settings({"UBI_REDIS_URL": url}), CRAWL)
    app = WebApp(reader, access or Access("127.0.0.1", ""))
    async with TestClient(TestServer(app.application)) as client:
        yield client, app
    reader.close()


def with_client(url: str, test: Callable[[Client, WebApp], Awaitable[None]], access: Access | None = None) -> None:
    async def body() -> None:
        async with asyncio.timeout(60), served(url, access) as (client, app):
            await test(client, app)

    asyncio.run(body())


async def event(response: Any) -> dict[str, str]:
    """The next one."""
    found: dict[str, str] = {}
    while (line := (await response.content.readline()).decode().rstrip("\n")) or not found.get("event"):
        name, _, value = line.partition(": ")
        found[name] = value
    return found


def test_items_come_with_their_places(one_server: Server, stream: ItemStream) -> None:
    async def test(client: Client, app: WebApp) -> None:
        first = give(stream, "a-0")
        async with client.get("/api/follow?from=start") as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            got = await event(response)
            assert (got["event"], got["id"]) == ("item", first)
            assert json.loads(got["data"])["item"] == {"of": "a-0", "text": "<b>\n"}
            give(stream, "b-0")
            assert json.loads((await event(response))["data"])["id"] == "b-0"
        async with client.get("/api/follow", headers={"Last-Event-ID": first}) as response:
            assert json.loads((await event(response))["data"])["id"] == "b-0"

    with_client(one_server.url, test)


def test_gaps_and_losses_are_events(one_server: Server, stream: ItemStream) -> None:
    async def test(client: Client, app: WebApp) -> None:
        first = give(stream, "a-0")
        give(stream, "b-0", "c-0")
        stream.take_out(2, (1 << 62, 0))
        async with client.get(f"/api/follow?from={first}") as response:
            assert (await event(response))["event"] == "gap"
            assert json.loads((await event(response))["data"])["id"] == "c-0"
            one_server.flush()
            assert (await event(response))["event"] == "lost"
            give(stream, "d-0")
            assert json.loads((await event(response))["data"])["id"] == "d-0"

    with_client(one_server.url, test)


def test_viewers_are_few_and_hold_up_nobody(
    one_server: Server, stream: ItemStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_events, "MOST_VIEWERS", 1)

    async def test(client: Client, app: WebApp) -> None:
        give(stream, "a-0")
        async with client.get("/api/follow?from=start") as response:
            await event(response)
            assert app.items.viewers == 1 and not stream.groups()
            async with client.get("/api/follow") as busy:
                assert busy.status == 503 and (await busy.json())["error"]["kind"] == "busy"
            app.items.close()
            assert not await response.content.read()
        assert app.items.viewers == 0

    with_client(one_server.url, test)


def test_what_may_not_be_is_refused(one_server: Server, stream: ItemStream) -> None:
    async def test(client: Client, app: WebApp) -> None:
        for query, headers in (("?from=x", {}), ("?from=-1", {}), ("?to=3", {}), ("", {"Last-Event-ID": "x"})):
            async with client.get(f"/api/follow{query}", headers=headers) as response:
                assert response.status == 400
        async with client.post("/api/follow") as response:
            assert response.status == 405
        async with client.head("/api/follow") as response:
            assert response.status == 200

    with_client(one_server.url, test)


def test_where_reading_needs_the_token_this_does(one_server: Server, stream: ItemStream) -> None:
    async def test(client: Client, app: WebApp) -> None:
        async with client.get("/api/follow") as response:
            assert response.status == 401
        async with client.get("/api/follow?from=start", headers={"Authorization": "Bearer secret"}) as response:
            assert response.status == 200

    with_client(one_server.url, test, Access("0.0.0.0", "secret"))


def test_without_redis_there_is_none() -> None:
    async def test(client: Client) -> None:
        async with client.get("/api/follow") as response:
            assert response.status == 409

    run(test, Crawl(), agent="a1")
