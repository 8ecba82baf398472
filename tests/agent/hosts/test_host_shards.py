"""HostShards of a host at one agent: delays, rests, limits, and what comes under a name that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrapy_ubi.agent.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import DELAY, HostNotes
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.report.queries import Question, Source, answer
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.host_shards import NO_SHARDS, HostShards
from tests.agent.limited import limited
from tests.agent.office import Office, found, inbox_check, letter
from tests.frontier.frontiers import DictKind, reopened
from tests.support.memory_store import MemoryStore

SHARDS = HostShards({"shop.example": 4})
SHARD = "shop.example#2"
EPOCH = 1_800_000_000.0


class House:
    """Agent `a`, alone, with a host in four shards."""

    def __init__(
        self, delay: float = 0.0, frontier: Frontier | None = None, shards: HostShards = SHARDS, **limits: Any
    ):
        self.now = 100.0
        self.hosts = HostNotes(lambda: self.now, lambda: self.now + EPOCH, shards)
        self.frontier = MemoryFrontier(delay) if frontier is None else frontier
        self.agent = Agent("a", "5" * 8, Config(), self.frontier, lambda: "1" * 8, self.now)
        self.agent.group.lease.acknowledged(self.now)
        self.agent.sure()
        self.hosts.work_for(self.agent, self.frontier)
        chosen = UbiSettings(host_shards=shards, **limits)
        self.limits = HostLimits(chosen, self.hosts, lambda: self.now + EPOCH, lambda what, host: None)

    def state(self, host: str = SHARD) -> HostState:
        return self.frontier.add(host, ())[0]


def on_disk(delay: float) -> Frontier:
    return reopened(MemoryStore(), DictKind(), delay)


@pytest.mark.parametrize("make", [MemoryFrontier, on_disk], ids=["memory", "disk"])
def test_a_shard_has_the_delay_as_many_times_as_there_are_shards_from_its_first_load_on(
    make: Callable[[float], Frontier],
) -> None:
    house = House(frontier=make(0.5))
    assert house.state().pause == 2.0
    assert house.state("other.example").pause == 0.0


def test_first_loads_of_shards_are_put_off_by_their_place() -> None:
    house = House(delay=0.5)
    begins = [house.state(f"shop.example#{number}").next_at for number in (1, 2, 3)]
    assert begins == [house.now + 0.5, house.now + 1.0, house.now + 1.5]
    assert house.state("shop.example#0").next_at <= house.now


def test_a_wish_of_the_host_is_noted_as_it_is_and_waited_for_as_many_times_as_long() -> None:
    house = House(delay=0.5)
    state = house.state()
    house.hosts.set_delay(state, "robots", 3.0)
    assert house.hosts.get(state, DELAY) == {"robots": 3.0}
    assert state.pause == 12.0
    house.hosts.set_delay(state, "robots", 0.0)
    assert state.pause == 2.0


def test_a_host_that_is_fast_has_its_delay_in_each_shard() -> None:
    house = House(delay=0.5, shards=HostShards({"shop.example": 4}, frozenset({"shop.example"})))
    house.hosts.set_delay(house.state(), "robots", 3.0)
    assert house.state().pause == 3.0


def test_what_follows_for_one_shard_follows_for_all_that_are_here() -> None:
    house = House()
    states = [house.state(f"shop.example#{number}") for number in (0, 3)]
    other = house.state("other.example")
    house.hosts.postpone(states[1], 60.0, "retry-after")
    assert [state.next_at for state in states] == [house.now + 60.0] * 2
    assert other.next_at <= house.now
    house.hosts.end_host(states[0], "limit/host_pages")
    assert [house.hosts.read_end_reason(state) for state in states] == ["limit/host_pages", ""]
    house.hosts.end_host(states[0], "host/dead", whole=True)
    house.hosts.end_host(states[1], "host/dead", whole=True)
    assert [house.hosts.read_end_reason(state) for state in states] == ["limit/host_pages", "host/dead"]
    assert not house.hosts.read_end_reason(other)


def test_the_pages_of_all_shards_are_the_limit() -> None:
    house = House(**limited(pages=6))
    loaded = 0
    for number in range(4):
        state = house.frontier.add(f"shop.example#{number}", [Entry(n, f"http://x/{n}", 0) for n in range(1, 6)])[0]
        for _ in range(5):
            popped = house.frontier.pop(1e9, lambda one: True)
            assert popped is not None and popped[0] is state
            loaded += not house.hosts.read_end_reason(state) and not house.limits.reason(*popped)
            house.frontier.finish(state, popped[1].key)
            house.frontier.free(state, 0.0)
    assert loaded == 6


def test_loads_from_another_agents_shard_keep_the_longer_delay_too() -> None:
    foreign = ForeignHosts(lambda: 100.0, SHARDS)
    foreign.load_ended(SHARD)
    foreign.want(SHARD, "robots", 2.0)
    assert foreign.next_at(SHARD, 0.0) == 108.0
    foreign.load_ended("other.example")
    foreign.want("other.example", "robots", 2.0)
    assert foreign.next_at("other.example", 0.0) == 102.0


@pytest.mark.parametrize("shards", [NO_SHARDS, SHARDS], ids=["whole", "cut"])
@pytest.mark.parametrize("host", ["shop.example#4", "shop.example#x", "other.example#0"])
def test_a_letter_about_no_shard_is_set_aside_whole(host: str, shards: HostShards) -> None:
    office = Office()
    check = inbox_check(office.agent, lambda host, entry: None, 2000, shards=shards)
    assert check.receive(letter([{"host": host, "done": [f"{7:016x}"]}], run="r"), "r")
    assert check.set_aside == 1
    assert host in check.dead_letters()[0]["reason"]
    assert office.agent.frontier.find(host) is None


def test_a_letter_about_the_whole_of_a_host_that_is_cut_is_set_aside_too() -> None:
    office = Office()
    check = inbox_check(office.agent, lambda host, entry: None, 2000, shards=SHARDS)
    check.receive(letter([{"host": "shop.example", "done": [f"{7:016x}"]}], run="r"), "r")
    assert check.set_aside == 1
    check.receive(letter(found("http://h1.example/"), run="r"), "r")
    assert check.set_aside == 1


def test_reports_name_the_host_and_count_it_once() -> None:
    tally = figures.Tally(0.0)
    tally.fail("http/404", SHARD)
    tally.note("truncated", "shop.example#1")
    assert tally.failed_at.published() == {"http/404": {"shop.example": 1}}
    assert tally.noted_at.published() == {"truncated": {"shop.example": 1}}
    house = House()
    for number in range(4):
        house.frontier.add(f"shop.example#{number}", [Entry(number + 1, f"http://shop.example/{number}", 0)])
    house.state("other.example")
    counted = figures.counters(house.agent, tally, 1.0)
    assert counted["hosts"] == 2 and counted["queued"] == 4


def test_failures_of_a_host_are_those_of_its_shards() -> None:
    frontier = on_disk(0.0)
    for number in range(4):
        entry = Entry(number + 1, f"http://shop.example/{number}", 0)
        state, _ = frontier.add(f"shop.example#{number}", [entry])
        frontier.fail(Failure(state.host, entry, "http/404", 1.0))

    def failed(host: str) -> int:
        source = Source("a", frontier, 0.0, lambda _: "", lambda _: False, lambda _: "", lambda *_: "", lambda _: True)
        return int(answer(Question("failed", 0.0, host=host), source)["total"])

    assert (failed("shop.example"), failed("shop.example#3"), failed("other.example")) == (4, 1, 0)
