"""Where an agent answers: what is asked for, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from scrapy_ubi.agent.metrics.endpoint import Endpoint, EndpointPages
from scrapy_ubi.errors import UbiSettingError

Asked = Callable[..., Awaitable[tuple[int, str]]]


class World:
    """An endpoint's side: `made` pages, why the agent is not alive or ready."""

    def __init__(self) -> None:
        self.now, self.made = 100.0, 0
        self.not_alive = self.not_ready = ""

    def text(self) -> str:
        self.made += 1
        return f"ubi_pages_total {self.made}\n"

    def run(self, ask: Callable[[Asked], Awaitable[None]], listen: str = "127.0.0.1:0") -> Endpoint:
        answers = EndpointPages(self.text, lambda: self.not_alive, lambda: self.not_ready)
        endpoint = Endpoint(listen, answers, lambda: self.now)

        async def main() -> None:
            await endpoint.listen()
            try:
                async with aiohttp.ClientSession() as client:

                    async def asked(path: str, method: str = "GET") -> tuple[int, str]:
                        async with client.request(method, f"http://{endpoint.address}{path}") as answer:
                            return answer.status, await answer.text()

                    await ask(asked)
            finally:
                await endpoint.close()

        asyncio.run(main())
        return endpoint


def test_metrics_are_made_at_most_once_a_second() -> None:
    world = World()

    async def ask(asked: Asked) -> None:
        assert [await asked("/metrics") for _ in range(3)] == [(200, "ubi_pages_total 1\n")] * 3
        world.now += 1.0
        assert await asked("/metrics") == (200, "ubi_pages_total 2\n")

    world.run(ask)


def test_probes_say_why_not() -> None:
    world = World()

    async def ask(asked: Asked) -> None:
        assert [await asked(path) for path in ("/live", "/ready")] == [(200, "ok\n")] * 2
        world.not_alive, world.not_ready = "the loop is late", "it is joining the group"
        assert await asked("/live") == (503, "Not now: the loop is late.\n")
        assert await asked("/ready") == (503, "Not now: it is joining the group.\n")

    world.run(ask)


def test_nothing_else_is_answered() -> None:
    async def ask(asked: Asked) -> None:
        assert [(await asked(path))[0] for path in ("/", "/metrics/", "/../etc/passwd", "/ready/x")] == [404] * 4
        for path in ("/metrics", "/live", "/ready"):
            assert [(await asked(path, method))[0] for method in ("POST", "PUT", "DELETE")] == [405] * 3

    World().run(ask)


def test_agents_of_one_machine_share_a_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def ask(asked: Asked) -> None:
            assert (await asked("/live"))[0] == 200

        endpoint = World().run(ask, f"127.0.0.1:{port}")
    host, _, found = endpoint.address.rpartition(":")
    assert host == "127.0.0.1" and port < int(found) < port + 100


def test_an_address_of_no_machine_here_is_refused_with_the_setting() -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_METRICS is 192\.0\.2\.1:9410, where this process cannot listen"):
        World().run(lambda asked: asyncio.sleep(0), "192.0.2.1:9410")


def test_who_listens_everywhere_is_told_by_the_name_of_the_machine() -> None:
    async def ask(asked: Asked) -> None:
        """Its name may lead nowhere from here."""

    assert World().run(ask, "0.0.0.0:0").address.rpartition(":")[0] == socket.gethostname()
