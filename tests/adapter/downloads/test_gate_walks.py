"""Random walks of many requests through the gate: whatever happens, a permit is held once and given back once."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadFailedError, IgnoreRequest
from scrapy.http import Response

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.scrapy_private import socket_gate
from tests.support.gated import World, turns

HOSTS = [f"h{number}.example" for number in range(1, 5)]
WALKS = 60  # of so many steps each
STEPS = 80


class Walk:
    """One world, its requests, and what happens to them by chance. `two` counts transfers of one host at once."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = World(foreign_downloads=random.choice(["polite", "allow", "refuse"]), host_failures=0)
        self.tasks: list[asyncio.Task[None]] = []
        self.transfers: dict[str, asyncio.Future[str]] = {}  # host -> how its transfer ends
        self.two = 0

    async def download(self, request: Request) -> Response:
        """A handler, by turns a good one, and one that makes an error of its own of whatever happens."""
        host = request.url.split("/")[2]
        flight = self.world.flights.get(request)
        held = flight is not None and flight.held
        self.two += held and host in self.transfers
        end = asyncio.get_running_loop().create_future()
        if held:
            self.transfers[host] = end
        right = socket_gate.may_write.get()
        try:
            if self.random.random() < 0.3:
                await asyncio.sleep(0)
            if right is not None and not right():
                raise OSError("no right to write")
            match await end if held else "response":
                case "broken" if isinstance(right, socket_gate.OneTransfer):
                    right.broken = True
                    raise DownloadFailedError("the connection was closed")
                case "error":
                    raise OSError("it failed")
            return Response(request.url)
        except asyncio.CancelledError:
            if self.random.random() < 0.3:
                raise OSError("it was cancelled") from None
            raise
        finally:
            if held:
                del self.transfers[host]

    def begin(self) -> None:
        """A page, or a file beside the queue, is to be downloaded."""
        host = self.random.choice(HOSTS)
        url = f"http://{host}/{len(self.tasks)}"
        visit: Any = self.world.node.visit(url, host) if self.random.random() < 0.5 else None
        self.tasks.append(asyncio.ensure_future(self.visit(Request(url), visit)))

    async def visit(self, request: Request, visit: Any) -> None:
        """As Scrapy has it; the wait is that for a place in its downloader."""
        gate = self.world.gate
        if visit is not None:
            self.world.flights.add(Flight(request, visit.host, visit))
        try:
            await gate.admit(request)
            for _ in range(self.random.randrange(3)):
                await asyncio.sleep(0)
            try:
                response = await gate.carry(request, self.download)
            except Exception as error:
                gate.failed(request, error)
                raise
            gate.responded(request, response)
        except (IgnoreRequest, OSError, DownloadFailedError):
            pass
        finally:
            flight = self.world.flights.remove(request)
            if flight is not None:
                gate.release(flight)

    def step(self) -> None:
        """Something happens."""
        node, gate, random = self.world.node, self.world.gate, self.random
        match random.randrange(12):
            case 0:
                node.change(fenced=True)
                gate.cancel()
            case 1 | 2:
                node.change(fenced=False)
            case 3:
                lost = set(random.sample(HOSTS, random.randrange(3)))
                node.change(lost=lost)
                gate.cancel(lost)
            case 4 if random.random() < 0.05:
                gate.close()
            case 5 if self.tasks and random.random() < 0.3:
                random.choice(self.tasks).cancel()
            case 6 | 7 | 8 if self.transfers:
                end = self.transfers[random.choice(list(self.transfers))]
                if not end.done():
                    end.set_result(random.choice(["response", "response", "error", "broken"]))
            case _:
                self.begin()

    def check(self) -> None:
        """A permit is held by the node where one flight holds it, and nowhere else."""
        held = [flight.host for flight in self.world.flights if flight.held]
        assert sorted(held) == sorted(self.world.node.held)
        assert not self.two

    async def end(self) -> None:
        """Let all that is under way end."""
        self.world.node.change(fenced=False, lost=set())
        while not all(task.done() for task in self.tasks):
            for end in self.transfers.values():
                if not end.done():
                    end.set_result("response")
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_permit_is_held_once_and_given_back_once(seed: int) -> None:
    print(f"seed {seed}")

    async def walk() -> None:
        one = Walk(Random(seed))
        for _ in range(STEPS):
            one.step()
            await turns(one.random.randrange(4))
            one.check()
        await asyncio.wait_for(one.end(), 30)
        for task in one.tasks:
            assert task.cancelled() or task.exception() is None
        assert not one.world.node.held and not len(one.world.flights)

    asyncio.run(walk())
