"""A server over a crawl that lies in memory, with agents that answer, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from scrapy.settings import Settings

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.transport.redis_keys import ASK
from scrapy_ubi.transport.shelf import Shelf
from scrapy_ubi.transport.wire_text import encode
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.security import Access
from scrapy_ubi.web.shelf_client import MEMORY_URL, connection
from scrapy_ubi.web.web_app import WebApp
from tests.cli.monitor.by_hand import CRAWL, beat, letter, profile

TOKEN = "a-token-for-the-tests"
JSON = {"Content-Type": "application/json"}
RIGHT = {**JSON, "Authorization": f"Bearer {TOKEN}"}

Answering = Callable[[str, Question], dict[str, Any] | None]


class Crawl:
    """A crawl of some agents on a shelf."""

    def __init__(self, agents: Iterable[str] = ("a1", "a2")) -> None:
        self.shelf = Shelf()
        self.asked: list[Question] = []
        for name in agents:
            self.agent(name)

    def agent(self, name: str, **changes: Any) -> None:
        """An agent that works, or whatever the changes of its profile say."""
        now = unix()
        said = profile(name, **{"updated": now, "started": now - 30, **changes})
        self.shelf.agents[encode(name)] = encode(json.dumps(said))
        self.shelf.beats[encode(name)] = encode(beat(name))

    def post(self, receiver: str, url: str) -> None:
        """A letter that waits."""
        fields = letter([{"host": "h1.example", "discovered": [["0" * 16, url, 2]]}])
        self.shelf.inbox[receiver]["5-0"] = {encode(name): encode(value) for name, value in fields.items()}

    async def answers(self, answering: Answering) -> None:
        """Be the agents, for ever."""
        seen: set[bytes] = set()
        while True:
            control = self.shelf.control
            for name in [name for name in control if name.startswith(ASK.encode()) and name not in seen]:
                seen.add(name)
                question = Question.parse(control[name].decode())
                self.asked.append(question)
                for agent in self.shelf.agents:
                    made = answering(agent.decode(), question)
                    if made is not None:
                        self.shelf.answers[name.decode().removeprefix(ASK)][agent] = encode(json.dumps(made))
            await asyncio.sleep(0.005)


def reader_of(crawl: Crawl, agent: str = "") -> CrawlReader:
    """A reader of this crawl, in the running loop."""
    memory = connection(lambda: crawl.shelf, CRAWL, asyncio.get_running_loop())
    return CrawlReader(Settings({"UBI_PARTITION": "host"}), CRAWL, MEMORY_URL, memory, agent=agent or None)


@asynccontextmanager
async def served(
    crawl: Crawl, access: Access | None = None, answering: Answering | None = None, agent: str = ""
) -> AsyncIterator[TestClient[Any, Any]]:
    """A client of a server."""
    reader = reader_of(crawl, agent)
    app = WebApp(reader, access if access is not None else Access("127.0.0.1", TOKEN))
    agents = asyncio.create_task(crawl.answers(answering)) if answering is not None else None
    try:
        async with TestClient(TestServer(app.application)) as client:
            client.app_of_ours = app  # type: ignore[attr-defined]
            yield client
    finally:
        reader.close()
        if agents is not None:
            agents.cancel()


def run(test: Callable[[TestClient[Any, Any]], Awaitable[None]], *options: Any, **more: Any) -> None:
    """Run a test with a client of a server."""

    async def body() -> None:
        async with served(*options, **more) as client:
            async with asyncio.timeout(60):
                await test(client)

    asyncio.run(body())
