"""PageRoom: large pages wait for each other before they are unpacked, none for ever, and small ones not at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.downloads import page_room
from scrapy_ubi.downloads.page_room import PageRoom
from scrapy_ubi.requests.inflight import Flight, Flights

MEMORY = 64 << 10  # of which callbacks have 1 KiB, and 4 KiB may wait


class Pages:
    """Pages that are transferred at once; `arrived` has the paths of those that callbacks have got."""

    def __init__(self) -> None:
        self.flights, self.stats = Flights(), Counter[str]()
        self.room = PageRoom(MEMORY, self.flights, lambda stat: self.stats.update([stat]))
        self.arrived: list[str] = []
        self.woken = 0
        self._under_way: dict[str, tuple[Flight, asyncio.Task[None]]] = {}
        self._carry = self.room.after(self._load, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def _load(self, request: Request, download: Callable[[Request], Awaitable[Response]]) -> Response:
        return await download(request)

    async def come(self, name: str, size: int, unpacked: int = 0, visit: Any = True) -> None:
        """A page of so many bytes has been transferred."""
        request = Request(f"http://h.example/{name}")
        page = SimpleNamespace(entry=SimpleNamespace(key=hash(name))) if visit else None
        flight = self.flights.add(Flight(request, "h.example", page))  # type: ignore[arg-type]
        headers = {"Content-Encoding": "br"} if unpacked else {}
        response = Response(request.url, body=b"x" * size, headers=headers)

        async def download(request: Request) -> Response:
            return response

        async def visited() -> None:
            await self._carry(request, download)
            self.room.unpacked(flight, response.replace(body=b"x" * (unpacked or size)))
            self.arrived.append(name)

        self._under_way[name] = flight, asyncio.get_running_loop().create_task(visited())
        await self.settle()

    async def go(self, name: str) -> None:
        """Scrapy lets go of a page."""
        flight, task = self._under_way.pop(name)
        task.cancel()
        await self.settle()
        self.flights.remove(flight.request)
        self.room.left(flight)
        await self.settle()

    @staticmethod
    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def run(main: Callable[[Pages], Awaitable[None]]) -> None:
    async def made() -> None:
        await asyncio.wait_for(_of(main), 30)

    asyncio.run(made())


async def _of(main: Callable[[Pages], Awaitable[None]]) -> None:
    await main(Pages())


def test_pages_that_fit_go_to_their_callbacks_at_once() -> None:
    async def main(pages: Pages) -> None:
        for number in range(10):
            await pages.come(str(number), 100)
        assert len(pages.arrived) == 10 and not pages.stats

    run(main)


def test_where_there_is_no_room_they_wait_first_come_first_served() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("a", 800)
        await pages.come("b", 800)
        await pages.come("small", 10)
        assert pages.arrived == ["a"]
        await pages.go("a")
        assert pages.arrived == ["a", "b", "small"], "behind a large page a small one waits its turn"
        assert pages.stats["ubi/pages/waited"] == 2

    run(main)


def test_one_larger_than_all_the_room_gets_it_alone() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("huge", 5000)
        await pages.come("small", 1)
        assert pages.arrived == ["huge"]
        await pages.come("huge too", 5000)
        await pages.go("huge")
        assert pages.arrived == ["huge", "small"]
        await pages.go("small")
        assert pages.arrived == ["huge", "small", "huge too"]

    run(main)


def test_a_compressed_page_counts_for_what_it_will_be_and_then_for_what_it_is() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("a", 100, unpacked=150)
        await pages.come("b", 100, unpacked=150)
        assert pages.arrived == ["a", "b"], "taken for 800 bytes until it was unpacked"
        for number in range(5):
            await pages.come(str(number), 50, unpacked=150)
        assert len(pages.arrived) >= 5

    run(main)


def test_nothing_more_is_loaded_while_too_much_waits() -> None:
    async def main(pages: Pages) -> None:
        for name in "abcde":
            await pages.come(name, 1000)
            assert not pages.room.full
        await pages.come("f", 1000)
        assert pages.room.full and pages.stats["ubi/pages/full"] == 1
        await pages.go("a")
        assert not pages.room.full and pages.woken == 1, "the engine is told that it may load again"

    run(main)


def test_what_is_no_page_of_the_queue_never_waits() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("a", 1000)
        await pages.come("robots.txt", 1000, visit=None)
        assert pages.arrived == ["a", "robots.txt"]

    run(main)


def test_who_is_cancelled_leaves_the_queue_and_gives_its_room_back() -> None:
    async def main(pages: Pages) -> None:
        for name in "abcdefg":
            await pages.come(name, 1000)
        for name in "fb":
            await pages.go(name)
        assert not pages.room.full
        await pages.go("a")
        assert pages.arrived == ["a", "c"]
        for name in "cdeg":
            await pages.go(name)
        assert pages.arrived == list("acdeg")
        await pages.come("z", 1000)
        assert pages.arrived[-1] == "z"

    run(main)


def test_callbacks_that_wait_for_each_others_pages_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_room, "PATIENCE", 0.01)

    async def main(pages: Pages) -> None:
        for name in "abc":
            await pages.come(name, 1000)
        while len(pages.arrived) < 3:
            await asyncio.sleep(0.005)
        assert pages.stats["ubi/pages/let_in"] == 2

    run(main)


def test_memory_of_large_pages_is_given_back_not_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    monkeypatch.setattr(page_room, "LARGE", 100)
    monkeypatch.setattr(page_room, "GIVES_BACK", 0.02)
    monkeypatch.setattr(page_room, "give_back", lambda: given.append(asyncio.get_running_loop().time()))

    async def pages() -> None:
        loaded = Pages()
        for number in range(6):
            await loaded.come(f"{number}", 50 if number == 5 else 150)
            await loaded.go(f"{number}")
        assert not given
        async with asyncio.timeout(20):
            while not given:
                await asyncio.sleep(0.001)
        await loaded.come("later", 150)
        await loaded.go("later")
        async with asyncio.timeout(20):
            while len(given) < 2:
                await asyncio.sleep(0.001)

    asyncio.run(pages())
    assert given[1] - given[0] >= 0.02
