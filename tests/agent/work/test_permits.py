"""Permits: one load at a time of a host, by its owner, after its delay, of what is not done; those of others' hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from scrapy_ubi.agent.work.permits import PATIENCE, Permits
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import LEAVING, Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry
from tests.support.views import ordered

HOST = "h1.example"
LIMIT = 60.0  # s: what has not come by then never will
REPLICAS = 20


class Turnstile:
    """The permits of agent `a`, at a time that only a test moves. It is alone and may fetch, unless told otherwise."""

    def __init__(self, delay: float = 0.0) -> None:
        self.now = 100.0
        config = Config(replicas=REPLICAS, lease_timeout=10.0)
        self.agent = Agent("a", "5" * 8, config, MemoryFrontier(delay), lambda: "1" * 8, self.now)
        self.agent.sure()
        self.permits = Permits(self.agent, lambda: self.now)
        self.settle()

    def beat(self, **others: Beat) -> None:
        self.agent.group.lease.acknowledged(self.now)
        self.agent.read(self.now, self.now, {"a": self.agent.beat, **others})
        self.agent.tick(self.now)

    def settle(self) -> None:
        for _ in range(3):
            self.beat()

    def join(self, name: str = "b") -> None:
        """Another agent is seen; it has not settled yet."""
        self.beat(**{name: Beat("2" * 8, 0, REPLICAS, "0" * 16, counter=1)})

    async def waits(self, asking: asyncio.Future[bool]) -> bool:
        """Whether it still waits, after everything else had its turn."""
        await self.settled()
        return not asking.done()

    @staticmethod
    async def settled() -> None:
        """Let everything else have its turn."""
        for _ in range(5):
            await asyncio.sleep(0)

    def ask(self, host: str = HOST, foreign: bool = False) -> asyncio.Future[bool]:
        """For something that is in no queue."""
        return asyncio.ensure_future(self.permits.acquire(host, None, foreign=foreign))


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 5 * LIMIT))


async def soon(asking: asyncio.Future[bool]) -> bool:
    return await asyncio.wait_for(asking, LIMIT)


# -- given


def test_given_at_once_when_nothing_stands_against_it() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        assert await soon(gate.ask("h2.example")), "another host"

    run(test)


def test_one_at_a_time_whoever_asks() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.agent.discovery.discover(HOST, Entry(1, f"http://{HOST}/", 0))
        state, entry = gate.agent.work.next(gate.now) or (None, None)
        assert state is not None
        assert entry is not None
        assert await soon(gate.ask())
        robots, page = gate.ask(), asyncio.ensure_future(gate.permits.acquire(HOST, state, entry.key))
        assert await gate.waits(robots)
        assert await gate.waits(page)
        gate.permits.release(HOST)
        assert await soon(robots), "in the order they asked"
        assert await gate.waits(page)
        gate.permits.release(HOST)
        assert await soon(page)

    run(test)


def test_what_is_in_no_queue_counts_as_open_work_until_it_is_released() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        state = gate.agent.frontier.find(HOST)
        assert state is not None
        assert state.open_work == 1
        assert gate.permits.release(HOST)
        assert state.open_work == 0

    run(test)


def test_a_request_of_the_queue_counts_already() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.agent.discovery.discover(HOST, Entry(1, f"http://{HOST}/", 0))
        state, entry = gate.agent.work.next(gate.now) or (None, None)
        assert state is not None
        assert entry is not None
        assert await gate.permits.acquire(HOST, state, entry.key)
        assert state.open_work == 1
        assert gate.permits.release(HOST)
        assert state.open_work == 1

    run(test)


def test_releasing_what_is_not_held() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert not gate.permits.release(HOST)
        assert await soon(gate.ask())
        assert gate.permits.release(HOST)
        assert not gate.permits.release(HOST), "once"

    run(test)


# -- denied


def test_a_request_whose_host_was_put_off_for_long_goes_back_to_its_queue() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.agent.discovery.discover(HOST, Entry(1, f"http://{HOST}/", 0))
        state, entry = gate.agent.work.next(gate.now) or (None, None)
        assert state is not None
        assert entry is not None
        gate.agent.frontier.postpone(state, gate.now + PATIENCE)
        page = asyncio.ensure_future(gate.permits.acquire(HOST, state, entry.key))
        assert await gate.waits(page)
        gate.agent.frontier.postpone(state, gate.now + PATIENCE + 1)
        gate.permits.look_again()
        assert not await soon(page)
        robots = gate.ask()
        assert await gate.waits(robots), "what is in no queue has nowhere to go"
        robots.cancel()

    run(test)


def test_another_agents_host_is_denied() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.join("b")
        assert not await soon(gate.ask(ordered("b", "a")))

    run(test)


def test_a_host_that_is_lost_while_one_waits_is_denied() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        assert await soon(gate.ask(host))
        asking = gate.ask(host)
        assert await gate.waits(asking)
        gate.join("b")
        gate.permits.look_again()
        assert not await soon(asking)

    run(test)


def test_a_request_whose_page_was_done_elsewhere_while_it_waited_is_denied() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.agent.discovery.discover(HOST, Entry(1, f"http://{HOST}/", 0))
        state, entry = gate.agent.work.next(gate.now) or (None, None)
        assert state is not None
        assert entry is not None
        assert await soon(gate.ask())  # somebody else loads: the request has to wait
        asking = asyncio.ensure_future(gate.permits.acquire(HOST, state, entry.key))
        assert await gate.waits(asking)
        gate.agent.frontier.add_done(state, [entry.key])
        gate.permits.release(HOST)
        assert not await soon(asking)

    run(test)


def test_after_the_end_nothing_is_given() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        asking = gate.ask()
        assert await gate.waits(asking)
        gate.agent.accept_end(lossy=False)
        gate.permits.look_again()
        assert not await soon(asking)
        assert not await soon(gate.ask("h2.example"))

    run(test)


def test_when_closed_whatever_waits_is_denied() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        asking = [gate.ask() for _ in range(3)]
        assert await gate.waits(asking[0])
        gate.permits.close()
        assert [await soon(one) for one in asking] == [False] * 3
        assert not await soon(gate.ask("h2.example"))

    run(test)


# -- waited for


def test_a_fence_is_waited_out() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.now += 10.0
        asking = gate.ask()
        gate.permits.look_again()
        assert await gate.waits(asking)
        gate.now -= 1.0  # the beat was acknowledged after all
        gate.permits.look_again()
        assert await soon(asking)

    run(test)


def test_a_host_held_in_a_handoff_is_waited_for() -> None:
    async def test() -> None:
        gate = Turnstile()
        host = ordered("a", "b")
        gate.agent.view_history.forget()  # as a newcomer: it waits for everybody
        gate.join("b")
        asking = gate.ask(host)
        assert await gate.waits(asking)
        gate.agent.view_history.force()
        gate.permits.look_again()
        assert await soon(asking)

    run(test)


def test_who_loads_again_is_the_first_however_long_others_wait() -> None:
    """It keeps its place in Scrapy's downloader, where whoever had the permit might wait for it: for ever."""

    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        others = [gate.ask() for _ in range(2)]
        assert await gate.waits(others[0])
        gate.permits.release(HOST)
        gate.now += 10.0  # a fence
        again = asyncio.ensure_future(gate.permits.acquire(HOST, None, again=True))
        assert await gate.waits(again)
        gate.now -= 10.0
        others.append(gate.ask())  # it would have it at once
        assert await gate.waits(others[-1])
        gate.permits.look_again()
        assert await soon(again) and not any(each.done() for each in others)
        gate.permits.release(HOST)
        await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)

    run(test)


def test_who_would_load_again_and_does_not_lets_others_go() -> None:
    async def test() -> None:
        gate = Turnstile()
        gate.now += 10.0  # a fence
        again = asyncio.ensure_future(gate.permits.acquire(HOST, None, again=True))
        assert await gate.waits(again)
        other = gate.ask()
        gate.now -= 10.0
        assert await gate.waits(other)
        again.cancel()
        assert await soon(other)

    run(test)


def test_the_delay_is_waited_for_from_the_end_of_the_last_load() -> None:
    async def test() -> None:
        gate = Turnstile(delay=0.01)
        assert await soon(gate.ask())
        gate.now += 5.0
        gate.permits.release(HOST)
        asking = gate.ask()
        assert await gate.waits(asking)
        gate.now += 0.009
        gate.permits.look_again()
        assert await gate.waits(asking)
        gate.now += 0.001
        assert await soon(asking), "by itself, nobody has to say so"

    run(test)


def test_who_waits_for_a_long_delay_notices_that_all_is_closed() -> None:
    async def test() -> None:
        gate = Turnstile(delay=100_000.0)
        assert await soon(gate.ask())
        gate.permits.release(HOST)
        asking = gate.ask()
        assert await gate.waits(asking)
        gate.permits.close()
        assert not await soon(asking)

    run(test)


def test_who_waits_for_a_long_delay_notices_that_the_host_is_lost() -> None:
    async def test() -> None:
        gate, host = Turnstile(delay=100_000.0), ordered("b", "a")
        assert await soon(gate.ask(host))
        gate.permits.release(host)
        asking = gate.ask(host)
        assert await gate.waits(asking)
        gate.join("b")
        gate.permits.look_again()
        assert not await soon(asking)

    run(test)


def test_whoever_gives_up_waiting_holds_nothing() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask())
        asking = gate.ask()
        assert await gate.waits(asking)
        asking.cancel()
        gate.permits.release(HOST)
        assert await soon(gate.ask())

    run(test)


# -- of another agent's host


def test_a_foreign_permit_is_given_where_it_will_do_and_one_at_a_time() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        gate.join("b")
        assert not await soon(gate.ask(host))
        assert await soon(gate.ask(host, foreign=True)) and gate.permits.is_foreign(host)
        state = gate.agent.frontier.find(host)
        assert state is None or state.open_work == 0, "the host's own pages are not concerned"
        second = gate.ask(host, foreign=True)
        assert await gate.waits(second)
        assert gate.permits.release(host) and not gate.permits.is_foreign(host)
        assert await soon(second)

    run(test)


def test_where_a_foreign_permit_will_do_an_own_host_has_its_own() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert await soon(gate.ask(foreign=True)) and not gate.permits.is_foreign(HOST)
        state = gate.agent.frontier.find(HOST)
        assert state is not None and state.open_work == 1

    run(test)


def test_a_foreign_permit_waits_for_the_lease() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        gate.join("b")
        gate.now += 10.0  # a fence
        asking = gate.ask(host, foreign=True)
        assert await gate.waits(asking)
        gate.now -= 10.0
        gate.permits.look_again()
        assert await soon(asking)

    run(test)


def test_the_delay_between_two_foreign_loads_is_that_of_this_agent() -> None:
    async def test() -> None:
        gate, host = Turnstile(delay=1.0), ordered("b", "a")
        gate.join("b")
        assert await soon(gate.ask(host, foreign=True)), "whatever others load there"
        gate.permits.foreign.want(host, "robots", 2.0)
        gate.permits.release(host)
        asking = gate.ask(host, foreign=True)
        gate.now += 1.9
        gate.permits.look_again()
        assert await gate.waits(asking)
        gate.now += 0.1
        gate.permits.look_again()
        assert await soon(asking)

    run(test)


def test_a_foreign_permit_knows_the_delay_that_a_copy_tells_and_takes_over_no_rest() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        gate.join("b")
        state, _ = gate.agent.frontier.add(host, ())
        state.pause = 5.0
        gate.agent.frontier.postpone(state, gate.now + 3.0)
        assert await soon(gate.ask(host, foreign=True)), "its pages rest at their owner"
        gate.permits.release(host)
        assert gate.permits.next_at(host) == gate.now + 5.0

    run(test)


def test_a_host_that_comes_here_during_a_foreign_load_waits_for_it_and_its_delay() -> None:
    async def test() -> None:
        gate, host = Turnstile(delay=1.0), ordered("b", "a")
        gate.join("b")
        assert await soon(gate.ask(host, foreign=True))
        gate.beat(b=Beat("2" * 8, 0, REPLICAS, "0" * 16, counter=2, flags=frozenset({LEAVING})))
        gate.settle()
        gate.agent.view_history.force()
        assert gate.agent.keeping.owns(host)
        gate.agent.discovery.discover(host, Entry(1, f"http://{host}/", 0))
        gate.now += 2.0
        state, entry = gate.agent.work.next(gate.now) or (None, None)
        assert state is not None
        assert entry is not None
        page = asyncio.ensure_future(gate.permits.acquire(host, state, entry.key))
        assert await gate.waits(page)
        gate.permits.release(host)
        assert await gate.waits(page)
        assert state.next_at == gate.now + 1.0, "the queue follows that"
        assert host not in gate.permits.foreign.met
        gate.now += 1.0
        gate.permits.look_again()
        assert await soon(page)
        gate.permits.release(host)

    run(test)


def test_a_load_whose_host_is_lost_goes_on_waiting_for_a_foreign_permit() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        assert await soon(gate.ask(host))
        media, page = gate.ask(host, foreign=True), gate.ask(host)
        assert await gate.waits(media)
        gate.join("b")
        gate.permits.look_again()
        assert await gate.waits(media), "the own load there has not ended"
        gate.permits.release(host)
        assert await soon(media) and gate.permits.is_foreign(host)
        assert not await soon(page)

    run(test)


def test_after_the_end_no_foreign_permit_is_given() -> None:
    async def test() -> None:
        gate, host = Turnstile(), ordered("b", "a")
        gate.join("b")
        gate.agent.accept_end(lossy=False)
        assert not await soon(gate.ask(host, foreign=True))

    run(test)


def test_a_release_wakes_one_of_those_who_wait() -> None:
    """A thousand loads of one host would else look a million times."""

    async def test() -> None:
        gate, looks = Turnstile(), 0
        assert await soon(gate.ask())
        elsewhere = [gate.ask("h2.example") for _ in range(2)]
        waiting = [gate.ask() for _ in range(50)]
        assert await gate.waits(waiting[0])
        owns = gate.agent.keeping.owns

        def counting(host: str) -> bool:
            nonlocal looks
            looks += 1
            return owns(host)

        gate.agent.keeping.owns = counting
        for number, asking in enumerate(waiting):
            gate.permits.release(HOST)
            assert await soon(asking)
            assert not any(later.done() for later in waiting[number + 1 :])
        assert looks < 10 * len(waiting)
        assert not elsewhere[1].done()
        elsewhere[1].cancel()

    run(test)


@pytest.mark.parametrize("seed", range(5))
def test_a_release_wakes_those_who_wait_for_its_host_alone(seed: int) -> None:
    """Whatever waits for whatever: else each release would cost one look of every load that waits anywhere."""
    random = Random(seed)

    async def test() -> None:
        gate, looked = Turnstile(), list[str]()
        hosts = [f"h{number}.example" for number in range(8)]
        held: set[str] = set()
        waiting: dict[str, list[asyncio.Future[bool]]] = {host: [] for host in hosts}
        owns = gate.agent.keeping.owns

        def noting(host: str) -> bool:
            looked.append(host)
            return owns(host)

        gate.agent.keeping.owns = noting
        for step in range(300):
            host = random.choice(hosts)
            if random.random() < 0.6:
                waiting[host].append(gate.ask(host))
            elif random.random() < 0.2 and waiting[host]:
                waiting[host].pop(random.randrange(len(waiting[host]))).cancel()
            elif host in held:
                held.remove(host)
                await gate.settled()
                looked.clear()
                assert gate.permits.release(host)
                await gate.settled()
                assert set(looked) <= {host} and len(looked) <= 3, f"seed {seed}, step {step}: {looked}"
            await gate.settled()
            for one, line in waiting.items():
                given = [asking for asking in line if asking.done()]
                assert len(given) <= (one not in held), f"seed {seed}, step {step}: {one} is held twice"
                for asking in given:
                    assert asking.result()
                    held.add(one)
                    line.remove(asking)
                assert one in held or not line, f"seed {seed}, step {step}: {one} is free, and others wait"
        for line in waiting.values():
            for asking in line:
                asking.cancel()

    run(test)


def test_what_is_taken_without_waiting() -> None:
    async def test() -> None:
        gate = Turnstile()
        assert gate.permits.try_acquire(HOST, None)
        assert gate.permits.try_acquire(HOST, None) is None
        asking = gate.ask()
        assert await gate.waits(asking)
        gate.permits.release(HOST)
        assert gate.permits.try_acquire(HOST, None) is None, "who stands in line comes first"
        assert await soon(asking)
        gate.permits.close()
        assert gate.permits.try_acquire("h2.example", None) is False

    run(test)


def test_what_bypasses_the_queue_waits_for_the_delay_of_a_host_whose_pages_rest_and_pages_are_denied() -> None:
    async def test() -> None:
        gate = Turnstile(delay=1.0)
        gate.permits._rests = lambda state: state.host == HOST
        state, _ = gate.agent.frontier.add(HOST, ())
        gate.agent.frontier.postpone(state, gate.now + 50.0)
        assert await soon(gate.ask())
        asking = gate.ask()
        gate.permits.release(HOST)
        assert await gate.waits(asking)
        assert not await soon(asyncio.ensure_future(gate.permits.acquire(HOST, state, 1))), "it waits in its queue"
        gate.now += 1.0
        gate.permits.look_again()
        assert await soon(asking)
        gate.permits.release(HOST)
        gate.permits.not_before(HOST, 3.0)  # as the host itself asks
        asking = gate.ask()
        gate.now += 2.0
        gate.permits.look_again()
        assert await gate.waits(asking)
        gate.now += 1.0
        gate.permits.look_again()
        assert await soon(asking)
        assert state.next_at > gate.now, "the rest of its pages is as it was"

    run(test)
