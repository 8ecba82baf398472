"""No host is loaded from sooner than its delay allows, through a handoff and after a crash, by the web's own log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from time import monotonic

import pytest

from scrapy_ubi.agent import Visit
from scrapy_ubi.agent.hosts.host_notes import DELAY, HostNotes
from scrapy_ubi.agent.report.answers_under_way import whole
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Notes
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl, entry

SEEDS = ["http://h0.example/1"]
DELAYS = pytest.mark.parametrize(("of_all", "own"), [(0.1, 0.0), (0.0, 0.1)], ids=["of all hosts", "of a host"])


class Spans(Log):
    """Keeps begin and end of every load."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[str, list[tuple[float, float]]] = {}

    @contextmanager
    def load(self, host: str, url: str) -> Iterator[None]:
        began = monotonic()
        with super().load(host, url):
            yield
        self.spans.setdefault(host, []).append((began, monotonic()))

    def least(self) -> float:
        """The shortest time between two loads of one host."""
        return min(late[0] - early[1] for spans in self.spans.values() for early, late in pairwise(sorted(spans)))


class Polite(Crawler):
    """Each page says what delay its host wants, as `Manners` does."""

    def __init__(self, hub: MemoryHub, name: str, log: Log, settings: UbiSettings, own: float) -> None:
        super().__init__(hub, name, log, settings)
        self.own = own

    async def fetch(self, visit: Visit) -> None:
        self.node.hosts.set_delay(visit.state, "test", self.own)
        await super().fetch(visit)


@DELAYS
def test_the_delay_is_kept_through_a_handoff(of_all: float, own: float) -> None:
    async def run() -> None:
        hub, log, settings = MemoryHub(), Spans(), replace(SETTINGS, host_delay=of_all)
        group = [Polite(hub, f"a{number}", log, settings, own) for number in range(3)]
        for one in group[:2]:
            one.start(SEEDS if one is group[0] else [])
        await pages(log, 20)
        group[2].start([])
        await pages(log, 50)
        group[0].stop()
        await asyncio.gather(*(one.task for one in group))
        log.judge(SEEDS)
        assert log.least() >= 0.1

    crawl(run)


async def pages(log: Log, number: int) -> None:
    """Wait until so many were loaded."""
    async with asyncio.timeout(20):
        while len(log.fetched) < number:
            await asyncio.sleep(0.01)


def test_the_heir_of_an_owner_that_crashed_keeps_the_hosts_own_delay() -> None:
    """It is longer than the time after which the owner counts as dead."""

    async def run() -> None:
        hub, log, host = MemoryHub(), Spans(), "h1.example"
        group = [Polite(hub, f"a{number}", log, SETTINGS, own=2.0) for number in range(2)]
        for one in group:
            one.start([f"http://{host}/0", f"http://{host}/1"])
        async with asyncio.timeout(20):
            while host not in log.spans:
                await asyncio.sleep(0.01)
        owner = next(one for one in group if one.node.agent.keeping.owns(host))
        heir = next(one for one in group if one is not owner)
        async with asyncio.timeout(20):
            while not (state := heir.node.frontier.find(host)) or not state.pause or not state.waiting:
                await asyncio.sleep(0.01)
        await owner.crash()
        async with asyncio.timeout(20):
            while len(log.spans[host]) < 2:
                await asyncio.sleep(0.01)
        heir.stop()
        await heir.task
        (_, ended), (began, _) = sorted(log.spans[host])[:2]
        assert began - ended >= 2.0

    crawl(run)


def test_after_a_restart_a_host_is_left_alone_for_its_own_delay_first() -> None:
    """What was under way when the process was killed, nobody knows."""
    frontier = MemoryFrontier(1.0)
    slow, usual = (frontier.add(host, [entry(f"http://{host}/1")[1]])[0] for host in ("h1.example", "h2.example"))
    frontier.note(slow, Notes(1, canonical({DELAY: {"robots": 7.0}})))
    agent = Agent("a", "5" * 8, Config(), frontier, lambda: "1" * 8, 100.0)
    HostNotes(lambda: 100.0, lambda: 1e9).work_for(agent, frontier)
    assert slow.next_at == 107.0
    assert usual.next_at == 0.0, "the delay of all hosts is the disk's matter (node.keeper)"


def test_whoever_requeues_a_page_of_a_host_that_is_given_up_brings_the_host_back() -> None:
    async def run() -> None:
        log = Log()
        one = Crawler(MemoryHub(), "a", log)
        await one.node.open()
        host, page = entry("http://h3.example/1")
        state, _ = one.node.frontier.add(host, [page])
        one.node.hosts.end_host(state, "host/dead")
        async with asyncio.timeout(20):
            while state.waiting:
                assert one.node.next_visit() is None
                await asyncio.sleep(0.01)
        assert [failure.reason for failure in one.node.frontier.failures()] == ["host/dead"]
        answer = whole(one.node.answers.answer(Question("requeue", 0.0, reason="host/dead")))
        assert answer["requeued"] == 1
        assert [*one.node.frontier.failures()] == []
        visit = one.node.next_visit()
        assert visit is not None
        assert visit.entry.url == page.url
        one.node.end_visit(visit)
        await one.node.leave("test")

    crawl(run)
