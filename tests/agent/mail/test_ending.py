"""Hosts that are ended: what waits of them, and what is found later, fails with a reason; the others go on."""

from __future__ import annotations

import asyncio
import json

import pytest

from scrapy_ubi.agent.hosts import host_notes
from scrapy_ubi.agent.hosts.host_notes import lifted, read_blocked_reason
from scrapy_ubi.frontier.store import StoreError, StoreFull
from scrapy_ubi.protocol.host import HostState, Notes
from scrapy_ubi.protocol.notes import NOTHING
from scrapy_ubi.transport import Incoming, Outgoing
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl, entry, reachable

SEEDS = ["http://h0.example/1"]
ENDED = "h3.example"


class Ending(Crawler):
    """Ends a host as soon as so many pages of it were loaded; what fails is told."""

    def __init__(self, hub: MemoryHub, name: str, log: Log, after: int = 0) -> None:
        super().__init__(hub, name, log)
        self.after = after

    def state(self) -> HostState:
        state = self.node.frontier.find(ENDED)
        assert state is not None
        return state

    async def wait(self, pages: int) -> HostState:
        """Open the node; this host has so many pages that wait, and may be fetched."""
        await self.node.open()
        state, _ = self.node.frontier.add(ENDED, [entry(f"http://{ENDED}/{number}")[1] for number in range(pages)])
        async with asyncio.timeout(20):
            while not self.node.access.may_fetch(ENDED):
                await asyncio.sleep(0.01)
        return state

    def look(self) -> None:
        """End the host when it is time."""
        loaded = sum(ENDED in url for url in self.log.fetched)
        if loaded >= self.after and self.node.frontier.find(ENDED) is not None and self.node.agent.keeping.owns(ENDED):
            self.node.hosts.end_host(self.state(), "limit/test")


def test_what_waits_and_what_is_found_later_fails_and_the_others_are_not_touched() -> None:
    async def run() -> None:
        log = Log()
        one = Ending(MemoryHub(), "a", log, after=2)
        running = one.start(SEEDS)
        while not running.done():
            one.look()
            await asyncio.sleep(0)
        await running
        expected = reachable(SEEDS)
        of_it = {url for url in expected if ENDED in url}
        loaded = {url for url in log.fetched if ENDED in url}
        assert log.fetched.keys() - of_it == expected - of_it
        assert 2 <= len(loaded) <= 3, "one may have been under way"
        failed = {failure.entry.url for failure in one.node.frontier.failures()}
        assert failed == of_it - loaded
        assert one.node.counters()["failed"] == {"limit/test": len(failed)}
        assert one.given_up == ["limit/test"] * len(failed)
        assert one.node.counters()["done"] == len(expected)
        assert one.node.hosts.counted["ended/limit/test"] == 1

    crawl(run)


def test_the_end_of_a_host_is_known_to_its_heir() -> None:
    """The owner dies: who takes over fetches nothing of it."""

    async def run() -> None:
        hub, log = MemoryHub(), Log()
        group = [Ending(hub, f"a{number}", log) for number in range(3)]
        for one in group:
            one.node.start_exhausted = lambda: None  # type: ignore[method-assign]  # the crawl does not end before
            one.start([])
        async with asyncio.timeout(20):
            while not all(one.node.agent.view_history.complete is one.node.agent.view for one in group):
                await asyncio.sleep(0.01)
        owner = next(one for one in group if one.node.agent.keeping.owns(ENDED))
        others = [one for one in group if one is not owner]
        host, page = entry(f"http://{ENDED}/1")
        owner.node.frontier.add(host, ())
        owner.node.hosts.end_host(owner.state(), "limit/test")
        heirs = [one for one in others if one.name in owner.node.agent.keeping.keepers(owner.state())]
        async with asyncio.timeout(20):
            while not all(_ended(one) for one in heirs):
                await asyncio.sleep(0.01)
        await owner.crash()
        for one in others:
            one.node.discover(host, page)
            one.node.agent.end.start_exhausted = True
        await asyncio.gather(*(one.task for one in others))
        assert not log.fetched
        assert {failure.entry.url for one in others for failure in one.node.frontier.failures()} == {page.url}

    crawl(run)


def _ended(one: Ending) -> bool:
    state = one.node.frontier.find(ENDED)
    return state is not None and one.node.hosts.read_end_reason(state) == "limit/test"


def test_many_are_ended_a_slice_at_a_time() -> None:
    """The loop turns between two slices."""

    async def run() -> None:
        log = Log()
        one = Ending(MemoryHub(), "a", log)
        state = await one.wait(250)
        one.node.hosts.end_host(state, "limit/test")
        slices = []
        while state.waiting:
            before = state.waiting
            assert one.node.next_visit() is None
            slices.append(before - state.waiting)
            one.wake.clear()
            async with asyncio.timeout(20):
                while state.waiting and not one.wake.is_set():
                    await asyncio.sleep(0)
        assert slices == [100, 100, 50]
        await one.node.leave("test")

    crawl(run)


def test_a_host_that_is_left_alone_ends_without_waiting_for_its_time() -> None:
    async def run() -> None:
        log = Log()
        one = Ending(MemoryHub(), "a", log)
        state = await one.wait(1)
        one.node.hosts.postpone(state, 3600, "test")
        assert one.node.next_visit() is None
        assert state.waiting
        one.node.hosts.end_host(state, "limit/test")
        one.node.agent.end.start_exhausted = True
        async with asyncio.timeout(20):
            while not one.node.over:
                assert one.node.next_visit() is None
                one.wake.clear()
                await one.wake.wait()
        assert [failure.reason for failure in one.node.frontier.failures()] == ["limit/test"]
        await one.node.leave("test")

    crawl(run)


def test_a_lifted_host_is_fetched_again() -> None:
    async def run() -> None:
        log = Log()
        one = Ending(MemoryHub(), "a", log)
        state = await one.wait(1)
        one.node.hosts.end_host(state, "limit/test")
        assert one.node.hosts.blocked_reason(state) == "ended"
        one.node.hosts.lift(ENDED)
        one.node.hosts.lift("unknown.example")
        assert one.node.hosts.blocked_reason(state) == ""
        visit = one.node.next_visit()
        assert visit is not None
        one.node.end_visit(visit)
        await one.node.leave("test")

    crawl(run)


def test_what_is_said_of_a_host_may_be_nonsense() -> None:
    assert read_blocked_reason({}, 0.0) == read_blocked_reason({host_notes.UNTIL: [5.0, "x"]}, 9.0) == ""
    assert read_blocked_reason({host_notes.UNTIL: [5.0, "retry-after"]}, 1.0) == "retry-after"
    for nonsense in (None, 7, "", [], ["x", "y"], [float("inf"), "y"], "a b", "x" * 65, {"a": 1}):
        assert read_blocked_reason({host_notes.UNTIL: nonsense, host_notes.END: nonsense}, 0.0) == ""
    assert read_blocked_reason({host_notes.UNTIL: [5.0, 5]}, 1.0) == "?"
    assert read_blocked_reason({host_notes.END: "host/dead", host_notes.UNTIL: [5.0, "x"]}, 1.0) == "ended"


def test_a_host_on_a_disk_is_lifted_in_its_notes() -> None:
    assert lifted(NOTHING, 9) == NOTHING
    assert lifted(Notes(3, '{"a":1}'), 9) == Notes(3, '{"a":1}')
    for nonsense in ("", ',"loaded":"x"', ',"loaded":-1', ',"loaded":10', ',"loaded":9'):
        assert lifted(Notes(3, f'{{"a":1,"end":"host/dead"{nonsense}}}'), 9) == Notes(4, '{"a":1}')
    assert lifted(Notes(3, '{"a":1,"end":"host/dead","loaded":2}'), 9) == Notes(4, '{"a":1,"passed":7}')


def test_who_leaves_with_a_full_disk_says_that_and_not_that_redis_did_something(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full() -> None:
        raise StoreFull("The disk is full.")

    async def run() -> None:
        one = Ending(MemoryHub(), "a", Log())
        await one.wait(1)
        monkeypatch.setattr(one.disk, "write", full)
        await one.node.leave("shutdown")

    asyncio.run(run())
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert any(sentence.startswith("What this agent did last could not be written") for sentence in said)
    assert not any("Redis" in sentence for sentence in said)


def test_who_leaves_as_its_disk_has_room_again_tells_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited for the disk leaves first, and is of before: it is not the last."""
    hub, is_full = MemoryHub(), True

    async def write() -> None:
        if is_full:
            raise StoreFull("The disk is full.")

    async def run() -> None:
        nonlocal is_full
        one = Ending(hub, "a", Log())
        await one.wait(1)
        monkeypatch.setattr(one.disk, "write", write)
        async with asyncio.timeout(20):
            while not one.exchanges.disk_full:
                await asyncio.sleep(0)
            leave = asyncio.ensure_future(one.node.leave("shutdown"))
            while one.node.status.state != "left":
                await asyncio.sleep(0)
            is_full = False
            await leave

    asyncio.run(run())
    assert json.loads(hub.shelf("test").agents[b"a"])["state"] == "left"


def test_who_leaves_where_redis_is_slow_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        one = Ending(MemoryHub(), "a", Log())
        await one.wait(1)
        exchange = one.transport.exchange

        async def slow(out: Outgoing) -> Incoming:
            await asyncio.sleep(3 * SETTINGS.flush_interval)
            return await exchange(out)

        one.transport.exchange = slow  # type: ignore[method-assign]
        await one.node.leave("shutdown")

    asyncio.run(run())
    assert not [record.message for record in caplog.records if record.levelname == "WARNING"]


def test_who_leaves_as_its_disk_breaks_does_not_wait_for_redis(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()

    async def broken() -> None:
        raise StoreError("The disk is broken.")

    async def run() -> None:
        one = Ending(MemoryHub(), "a", log)
        await one.wait(1)
        leave = asyncio.ensure_future(one.node.leave("shutdown"))
        async with asyncio.timeout(20):
            while one.node.status.state != "left":
                await asyncio.sleep(0)
            monkeypatch.setattr(one.disk, "write", broken)
            await leave

    asyncio.run(run())
    assert log.fatal == ["The disk is broken. The agent stops."]
    assert not [record.message for record in caplog.records if "Redis" in record.message]
