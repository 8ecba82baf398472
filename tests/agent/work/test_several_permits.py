"""Permits of a host with several loads at once: at most n, of all kinds together, with the delay between starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from scrapy_ubi.agent.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.agent.work.permits import SeveralPermits
from scrapy_ubi.frontier.host_loads import HostLoads
from scrapy_ubi.protocol.host import Entry, HostState
from tests.agent.work.test_permits import HOST, Turnstile, run, soon


class Wide(Turnstile):
    """A turnstile that lets `limit` loads of each host through at once."""

    def __init__(self, limit: int, delay: float = 0.0) -> None:
        super().__init__(delay)
        self.limit = limit
        self.permits = SeveralPermits(
            self.agent,
            lambda: self.now,
            ForeignHosts(lambda: self.now),
            lambda state: False,
            lambda host: self.limit,
        )
        self.agent.frontier.loads = HostLoads(lambda host: self.limit)  # type: ignore[attr-defined]

    def queue(self, count: int, host: str = HOST) -> list[tuple[HostState, Entry]]:
        """Requests of the queue, handed out as far as they may be."""
        for key in range(1, count + 1):
            self.agent.discovery.discover(host, Entry(key, f"http://{host}/{key}", 0))
        return [*iter(lambda: self.agent.work.next(self.now), None)]

    def ask_for(self, found: tuple[HostState, Entry]) -> asyncio.Future[bool]:
        state, entry = found
        return asyncio.ensure_future(self.permits.acquire(state.host, state, entry.key))


def test_as_many_at_once_as_are_allowed_whoever_asks() -> None:
    async def test() -> None:
        gate = Wide(3)
        pages = gate.queue(5)
        assert len(pages) == 3, "the queue hands out no more, either"
        assert await soon(gate.ask()), "a robots.txt"
        assert await soon(gate.ask_for(pages[0]))
        assert await soon(gate.ask())
        late = [gate.ask_for(pages[1]), gate.ask()]
        assert await gate.waits(late[0])
        assert await gate.waits(late[1])
        gate.permits.release(HOST, of_page=True)
        assert await soon(late[0]), "in the order they asked"
        assert await gate.waits(late[1])
        gate.permits.release(HOST)
        assert await soon(late[1])
        assert gate.permits.count_held(HOST) == 3

    run(test)


def test_each_is_given_back_as_what_it_was() -> None:
    async def test() -> None:
        gate = Wide(3)
        [page, *_] = gate.queue(1)
        assert await soon(gate.ask())
        assert await soon(gate.ask_for(page))
        assert await soon(gate.ask())
        state = page[0]
        assert state.open_work == 3
        assert gate.permits.release(HOST, of_page=True)
        assert state.open_work == 3, "that of the queue ends with its page"
        assert gate.permits.release(HOST)
        assert gate.permits.release(HOST)
        assert state.open_work == 1
        assert not gate.permits.release(HOST)

    run(test)


def test_the_delay_is_that_between_two_starts() -> None:
    async def test() -> None:
        gate = Wide(3, delay=1.0)
        assert len(gate.queue(5)) == 1, "the next one has its turn after the delay"
        assert await soon(gate.ask())
        again = gate.ask()
        assert await gate.waits(again)
        gate.permits.release(HOST)
        assert await gate.waits(again), "the end of a load changes nothing"
        gate.now += 1.0
        gate.permits.look_again()
        assert await soon(again)

    run(test)


def test_a_load_that_has_taken_longer_than_the_delay_is_followed_at_once() -> None:
    async def test() -> None:
        gate = Wide(2, delay=1.0)
        assert await soon(gate.ask())
        gate.now += 5.0
        gate.permits.release(HOST)
        assert await soon(gate.ask())

    run(test)


def test_a_host_that_is_put_off_has_none_whatever_it_could_have() -> None:
    async def test() -> None:
        gate = Wide(4)
        assert await soon(gate.ask())
        state = gate.agent.frontier.find(HOST)
        assert state is not None
        gate.agent.frontier.postpone(state, gate.now + 30.0)
        asking = gate.ask()
        assert await gate.waits(asking)
        gate.now += 30.0
        gate.settle()
        gate.permits.look_again()
        assert await soon(asking)

    run(test)


def test_where_the_number_falls_loads_end_first() -> None:
    async def test() -> None:
        gate = Wide(4)
        for _ in range(4):
            assert await soon(gate.ask())
        gate.limit = 2
        asking = gate.ask()
        for _ in range(2):
            assert await gate.waits(asking)
            gate.permits.release(HOST)
        assert await gate.waits(asking)
        gate.permits.release(HOST)
        assert await soon(asking)
        assert gate.permits.count_held(HOST) == 2

    run(test)


def test_a_foreign_permit_is_one_beside_no_other() -> None:
    async def test() -> None:
        gate = Wide(4)
        gate.join()
        theirs = next(f"f{n}.example" for n in range(99) if not gate.agent.keeping.owns(f"f{n}.example"))
        assert await soon(gate.ask(theirs, foreign=True))
        second = gate.ask(theirs, foreign=True)
        assert await gate.waits(second), "another agent counts there"
        gate.permits.release(theirs)
        assert await soon(second)

    run(test)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_never_more_at_once_under_any_order_of_events(limit: int) -> None:
    async def test() -> None:
        gate, random, held, asking = Wide(limit), Random(limit), 0, list[asyncio.Future[bool]]()
        events: list[Callable[[], None]] = [
            lambda: asking.append(gate.ask()),
            gate.permits.look_again,
            lambda: asking and random.choice(asking).cancel(),  # type: ignore[func-returns-value,return-value]
        ]
        for _ in range(400):
            if held and random.random() < 0.4:
                gate.permits.release(HOST)
                held -= 1
            random.choice(events)()
            await gate.settled()
            held += sum(one.done() and not one.cancelled() and one.result() for one in asking)
            asking = [one for one in asking if not one.done()]
            assert held == gate.permits.count_held(HOST) <= limit
            assert held == limit or not asking, "a permit that is free is given"
        for one in asking:
            one.cancel()

    run(test)
