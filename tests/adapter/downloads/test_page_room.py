"""PageRoom: large pages wait for each other before they are unpacked, none for ever, and small ones not at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.downloads import page_room
from scrapy_ubi.adapter.downloads.page_room import PageRoom
from scrapy_ubi.adapter.requests.inflight import Flight, Flights

MEMORY = 64 << 10  # of which callbacks have 1 KiB, and 4 KiB may wait


class Pages:
    """Pages that are transferred at once; `arrived` has the paths of those that callbacks have got."""

    def __init__(self) -> None:
        self.flights, self.stats = Flights(), Counter[str]()
        self.excused = 0
        self.room = PageRoom(MEMORY, self.flights, lambda stat: self.stats.update([stat]), self._excuse)
        self.arrived: list[str] = []
        self.woken = 0
        self._under_way: dict[str, tuple[Flight, asyncio.Task[None]]] = {}
        self._carry = self.room.after(self._load, self._wake)

    def _excuse(self, more: int) -> None:
        self.excused += more

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
            self.room.answered(flight, response.replace(body=b"x" * (unpacked or size)))
            self.arrived.append(name)

        self._under_way[name] = flight, asyncio.get_running_loop().create_task(visited())
        await self.settle()

    async def go(self, name: str) -> None:
        """Scrapy lets go of a page."""
        flight, task = self._under_way.pop(name)
        task.cancel()
        await self.settle()
        self.flights.remove(flight.request)
        self.room.ended(flight)
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
        await pages.come("c", 100)
        assert pages.arrived == ["a"]
        await pages.go("a")
        assert pages.arrived == ["a", "b", "c"], "behind a large page one that is not small waits its turn"
        assert pages.stats["ubi/pages/waited"] == 2

    run(main)


def test_one_larger_than_all_the_room_gets_it_alone() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("huge", 5000)
        await pages.come("other", 100)
        assert pages.arrived == ["huge"]
        await pages.come("huge too", 5000)
        await pages.go("huge")
        assert pages.arrived == ["huge", "other"]
        await pages.go("other")
        assert pages.arrived == ["huge", "other", "huge too"]

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
            assert not pages.room.full()
        await pages.come("f", 1000)
        assert pages.room.full() and pages.stats["ubi/pages/full"] == 1
        await pages.go("a")
        assert not pages.room.full() and pages.woken == 1, "the engine is told that it may load again"

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
        assert not pages.room.full()
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
        assert pages.stats["ubi/pages/long"] == 1, "the room of one counts no more"
        assert pages.stats["ubi/pages/let_in"] == 1

    run(main)


def test_small_pages_do_not_wait_for_large_ones_and_have_a_bound_of_their_own() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("huge", 5000)
        await pages.come("large", 800)
        for number in range(4):
            await pages.come(f"small {number}", 64)
        assert pages.arrived == ["huge", *(f"small {number}" for number in range(4))]
        await pages.come("small 4", 64)
        assert pages.arrived[-1] == "small 3"
        await pages.go("small 0")
        assert pages.arrived[-1] == "small 4", "past the large one that waits longer"
        await pages.go("huge")
        assert pages.arrived[-1] == "large"

    run(main)


def test_a_callback_of_minutes_does_not_hold_up_other_large_pages_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_room, "PATIENCE", 0.01)

    async def main(pages: Pages) -> None:
        await pages.come("a million links", 5000)
        await pages.come("first", 800)
        async with asyncio.timeout(20):
            while "first" not in pages.arrived:
                await pages.come("small", 1)  # such come and go meanwhile
                await pages.go("small")
        monkeypatch.setattr(page_room, "PATIENCE", 30.0)
        await pages.go("first")
        for number in range(10):
            await pages.come(str(number), 800)
            assert pages.arrived[-1] == str(number)
            await pages.go(str(number))
        assert pages.stats["ubi/pages/long"] == 1 and not pages.stats["ubi/pages/let_in"]

    run(main)


def test_scrapys_own_bound_counts_small_pages_only() -> None:
    async def main(pages: Pages) -> None:
        await pages.come("huge", 5000)
        await pages.come("small", 60)
        await pages.come("packed", 5, unpacked=500)
        assert pages.excused == 5500
        await pages.go("small")
        await pages.go("packed")
        assert pages.excused == 5000
        await pages.go("huge")
        assert pages.excused == 0

    run(main)


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, 1, 30, 64, 65, 300, 1024, 3000]), st.booleans())))
def test_whatever_comes_and_goes_the_room_has_its_bounds_and_all_of_it_is_given_back(
    moves: list[tuple[int, int, bool]],
) -> None:
    async def main(pages: Pages) -> None:
        there: set[str] = set()
        for number, size, packed in moves:
            if (name := str(number)) in there:
                there.remove(name)
                await pages.go(name)
            else:
                there.add(name)
                await pages.come(name, size, unpacked=2 * size if packed else 0)
        pages.arrived.clear()
        for name in sorted(there):
            await pages.go(name)
        await pages.come("all the room", 1024)
        await pages.come("small", 64)
        assert pages.arrived[-2:] == ["all the room", "small"] and pages.excused == 1024
        await pages.go("small")
        await pages.go("all the room")
        assert pages.excused == 0 and not pages.room.full()

    run(main)


def test_memory_of_large_pages_is_given_back_not_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    monkeypatch.setattr(page_room, "LARGE", 100)
    monkeypatch.setattr(page_room, "GIVES_BACK", 0.3)
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
    assert given[1] - given[0] >= 0.3
