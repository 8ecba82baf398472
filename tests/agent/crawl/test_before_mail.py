"""A node with a disk: no mail overtakes the disk, and what the node is told of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent import Node, NodeEvents, Start, build_node
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.agent.mail.outage import BETTER
from scrapy_ubi.frontier.flush import Flush
from scrapy_ubi.frontier.store import StoreDamaged, StoreError
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.agent.crawl.keeper import SETTINGS, choke, opened, raising, set_aside
from tests.agent.office import HOST, Office, found, letter, run
from tests.support.views import ordered
from tests.support.village import page

# -- the post with a disk


class Gate:
    """Holds the writes of a keeper until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        write = Flush.write

        def held(flush: Flush, store: Any) -> None:
            self.reached.set()
            assert self._open.wait(20)
            write(flush, store)

        monkeypatch.setattr(Flush, "write", held)

    def open(self) -> None:
        self._open.set()


def test_nothing_leaves_before_it_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        office = Office(disk=await opened(place))
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        office.agent.discovery.discover(host, page(host))
        gate = Gate(monkeypatch)
        office.now += 5
        office.agent.tick(office.now)
        office.post.send(office.now, lambda: None)
        while not gate.reached.is_set():
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert office.links_to("b") == [] and office.answer() is None
        assert len(office.shelf.inbox["a"]) == 1
        gate.open()
        await office.arrival()
        assert len(office.links_to("b")) == 1 and office.answer() == {"acked": [1]}
        assert len(office.shelf.inbox["a"]) == 0
        await office.disk.close()
        again = await opened(place)
        assert again.saved is not None and [one.host for one in again.saved.discovered] == [host]
        assert again.frontier.find(HOST) is not None
        await again.close()

    run(test)


@pytest.mark.parametrize("redis", ["well", "full", "away"])
def test_on_a_full_disk_letters_wait_where_they_are_whatever_redis_does(
    place: Path, redis: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        caplog.set_level(logging.INFO, "scrapy_ubi")
        keeper = await opened(place)
        office = Office(disk=keeper)
        office.join("b")
        host = ordered("b", "a")
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        office.agent.discovery.discover(host, page(host))
        choke(keeper, True)
        office.hub.full, office.hub.down = redis == "full", redis == "away"
        office.put(letter(found("http://h.example/1", "http://h.example/2"), seq="2"))
        await office.trips(3)
        assert office.post.disk_full
        assert keeper.frontier.unwritten is not None
        assert len(office.shelf.inbox["a"]) == 2, "what is merged is not durable"
        assert office.links_to("b") == [] and office.answer() is None
        choke(keeper, False)
        office.now += 5
        await office.trip()  # the flush from before, in which the second letter is not
        assert len(office.shelf.inbox["a"]) >= 1
        office.hub.full = office.hub.down = False
        await office.trips(4)
        assert not office.post.disk_full
        assert len(office.shelf.inbox["a"]) == 0, "all of them are deleted in the end"
        assert len(office.links_to("b")) == 1 and office.answer() == {"acked": [1, 2]}
        said = [record.message for record in caplog.records]
        assert any("is full" in one and "Nothing is fetched until then" in one for one in said)
        assert sum(one in BETTER.values() for one in said) == 1
        await keeper.close()
        again = await opened(place)
        state = again.frontier.find(HOST)
        assert state is not None and state.waiting == 2
        await again.close()

    run(test)


def test_no_letter_is_deleted_before_its_merge_is_durable(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails in between, in any order: what is in the store and what is in the inbox hold all of it."""

    async def test() -> None:
        keeper = await opened(place)
        office = Office(disk=keeper)
        await office.trips(2)
        troubles = [(full, redis) for full in (True, False) for redis in ("well", "full", "away")]
        for number, (full, redis) in enumerate([*troubles, *reversed(troubles), *troubles[::2]], 1):
            entry = [f"{number:016x}", f"http://h.example/{number}", 0]
            office.put(letter([{"host": HOST, "discovered": [entry]}], seq=str(number)))
            choke(keeper, full)
            office.hub.full, office.hub.down = redis == "full", redis == "away"
            await office.trips(2)
            written = {row[1] for row in keeper.frontier.store.scan(b"q", b"r", 1000)}
            for sent in range(1, number + 1):
                in_store = any(b"/%d" % sent in value for value in written)
                in_box = any(b'h.example/%d"' % sent in one[b"body"] for one in office.shelf.inbox["a"].values())
                assert in_store or in_box, (number, full, redis, sent)
        choke(keeper, False)
        office.hub.full = office.hub.down = False
        await office.trips(4)
        assert len(office.shelf.inbox["a"]) == 0
        await keeper.close()

    run(test)


def test_a_store_that_is_damaged_is_told_of(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        keeper = await opened(place)
        office = Office(disk=keeper)
        told: list[StoreError] = []
        keeper.trouble = told.append
        await office.trips(2)
        office.put(letter(found("http://h.example/1")))
        await office.trips(1)
        damage = StoreDamaged("000009.sst", "block checksum mismatch")
        monkeypatch.setattr(Flush, "write", raising(damage))
        await office.trips(1)
        assert told == [damage]
        assert len(office.shelf.inbox["a"]) == 1 and office.answer() is None
        await keeper.close()

    run(test)


# -- the node with a disk


def node_on(keeper: AgentDisk, said: list[str]) -> Node:
    transport = MemoryTransport(MemoryHub(), "a", SETTINGS.crawl, SETTINGS.max_letter_bytes)
    told = NodeEvents()
    told.fatal = said.append  # type: ignore[method-assign]
    return build_node(
        SETTINGS, transport, Start("a", "s"), lambda text: None, RequestKeys(SETTINGS), told, lambda: 100.0, keeper
    )


def test_the_disk_is_told_at_once_which_run_it_belongs_to(place: Path) -> None:
    """Of two agents that begin a crawl together, one has its name for the run replaced by the other's."""

    async def test() -> None:
        keeper = await opened(place)
        node = node_on(keeper, [])
        facts = node.crawl.facts
        first, again, other = facts("one"), facts("one"), facts("two")
        assert first is not None and first["run"] == "one" and first["finished"] is False
        assert again is None, "the counters are not written with every flush"
        assert other is not None and other["run"] == "two"
        await keeper.close()

    run(test)


def test_whose_disk_it_is_is_durable_before_anything_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its first flush, an agent left an empty directory, as if its disk were lost: it was missed."""

    class Killed(Exception):
        pass

    async def test() -> None:
        keeper = await opened(place)
        node = node_on(keeper, [])
        monkeypatch.setattr(MemoryTransport, "start_beating", raising(Killed()))
        with pytest.raises(Killed):
            await node.open()
        await keeper.close()
        again = await opened(place)
        assert again.saved is not None and again.facts["former"] == [node.crawl.agent.incarnation]
        await again.close()

    run(test)


def test_a_node_whose_disk_is_damaged_stops_with_one_sentence_and_sets_it_aside(disk: Path) -> None:
    async def test() -> None:
        keeper = await opened(disk)
        said: list[str] = []
        node_on(keeper, said)
        for _ in range(2):
            keeper.trouble(StoreDamaged("000009.sst", "block checksum mismatch"))
        assert said == ["000009.sst is damaged (block checksum mismatch). The agent stops."]
        await keeper.close()
        assert set_aside(disk).is_dir()

    run(test)
