"""Limits of hosts, judged page by page; and of whole crawls without Scrapy, also across a handoff and a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.hosts.host_limits import MOST_WATCHED, SECTION, HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.policy import host_policy
from scrapy_ubi.agent.keys import REQUEUED, UNJOINED, again_nonce
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.protocol.received import Delta, Received
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl
from tests.agent.limited import limited

HOST = "h1.example"
EPOCH = 1_800_000_000.0
KEYS = RequestKeys(UbiSettings())


class House:
    """Agent `a`, alone, with limits, at a time that only a test moves. Pages are loaded in no time."""

    def __init__(self, frontier: MemoryFrontier | None = None, **limits: Any) -> None:
        self.now = 100.0
        self.noted: Counter[str] = Counter()
        self.hosts = HostNotes(lambda: self.now, self.wall)
        self.limits = HostLimits(UbiSettings(**limited(**limits)), self.hosts, self.wall, self._note)
        self.frontier, policy = frontier or MemoryFrontier(), host_policy(self.hosts, self.limits, None)
        self.agent = Agent("a", "5" * 8, Config(), self.frontier, lambda: "1" * 8, self.now, policy)
        self.agent.group.lease.acknowledged(self.now)
        self.agent.sure()
        self.hosts.work_for(self.agent, self.frontier)

    def wall(self) -> float:
        return EPOCH + self.now

    def _note(self, what: str, host: str) -> None:
        assert host == HOST
        self.noted[what] += 1

    @property
    def state(self) -> HostState:
        return self.agent.frontier.add(HOST, ())[0]

    def find(self, *numbers: int, depth: int = 0) -> int:
        """Pages with these numbers are found; how many were taken."""
        return sum(self.agent.discovery.discover(HOST, Entry(1 + n, f"http://{HOST}/{n}", depth)) for n in numbers)

    def turn(self, find: tuple[int, ...] = (), depth: int = 0) -> str | None:
        """The next page has its turn: '' when it is loaded (and finds these), else why it is not. None: no more."""
        found = self.agent.frontier.pop(self.now, lambda state: True)
        if found is None:
            return None
        state, page = found
        self.agent.work.out += 1
        state.open_work += 1
        reason = self.hosts.read_end_reason(state) or self.limits.reason(state, page)
        if not reason:
            self.find(*find, depth=depth)
        self.agent.work.freed(state, self.now)
        self.agent.work.ended(state, page.key)
        return reason

    def turns(self) -> list[str]:
        """Why each page that waits is not loaded."""
        reasons = []
        while (reason := self.turn()) is not None:
            reasons.append(reason)
        return reasons


def test_without_limits_nothing_is_looked_at() -> None:
    house = House()
    house.find(*range(50))
    assert house.turns() == [""] * 50
    assert house.limits.idle and not house.state.notes.text and not house.noted


def test_pages() -> None:
    house = House(pages=3)
    house.find(*range(5))
    assert house.turns() == ["", "", "", "limit/host_pages", "limit/host_pages"]
    assert house.noted == {"ended/limit/host_pages": 1}
    assert house.hosts.counted["ended/limit/host_pages"] == 1
    assert house.find(7) == 0, "of a host that a limit has ended no new URL is taken"
    assert house.limits.counted == {"host_pages": 1}
    assert house.noted["refused/limit/host_pages"] == 1


def test_a_limit_that_is_just_met_ends_nothing() -> None:
    house = House(pages=3, known=3, iterations=3)
    house.find(*range(3))
    assert house.turns() == ["", "", ""]
    assert not house.noted


def test_known_urls() -> None:
    house = House(known=3)
    assert house.find(*range(5)) == 3
    assert house.find(1, 2) == 0, "known ones are no new ones"
    assert house.limits.refused == 2
    assert house.turns() == ["", "", ""]


def test_known_urls_that_others_send_are_not_taken_either() -> None:
    house = House(known=3)
    house.find(0)
    entries = tuple(Entry(1 + n, f"http://{HOST}/{n}", 1) for n in range(9))
    house.agent.inbound.receive(Received("z", "z/a/discovery", DISCOVERY, 1, 1, "", (Delta(HOST, entries),)))
    assert house.state.known <= 9
    house.agent.inbound.receive(Received("z", "z/a/discovery", DISCOVERY, 2, 1, "", (Delta(HOST, _more()),)))
    assert house.turns().count("") == 3, "what came in one letter may be more than is loaded"
    assert house.noted["refused/limit/host_known"] >= 5


def test_what_is_taken_in_again_is_no_new_url() -> None:
    house = House(known=3)
    house.find(*range(5))
    assert house.turns() == ["", "", ""]
    for why in (REQUEUED, UNJOINED):
        again = KEYS.again(page := Entry(1, f"http://{HOST}/0", 0), again_nonce(why, page))
        assert again is not None and house.agent.discovery.discover(HOST, again)
        assert house.turns() == [""]
    unknown = KEYS.again(page := Entry(99, f"http://{HOST}/99", 0), again_nonce(REQUEUED, page))
    assert unknown is not None and not house.agent.discovery.discover(HOST, unknown)
    assert not house.noted["ended/limit/host_known"]


@pytest.mark.parametrize(("why", "taken"), [(REQUEUED, 1), (UNJOINED, 0)])
@pytest.mark.parametrize("kind", [DISCOVERY, STATE])
def test_a_request_that_another_agent_requeues_lifts_its_host(kind: str, why: str, taken: int) -> None:
    """The agent with the record of its failure may keep nothing of the host any more."""
    house = House(pages=2)
    house.find(*range(3))
    assert house.turns() == ["", "", "limit/host_pages"]
    house = House(house.frontier, pages=4)
    again = KEYS.again(page := Entry(3, f"http://{HOST}/2", 0), again_nonce(why, page))
    assert again is not None
    house.agent.inbound.receive(Received("z", f"z/a/{kind}", kind, 1, 1, "", (Delta(HOST, (again,)),)))
    assert house.turns().count("") == taken
    house.hosts.end_host(house.state, "host/dead")
    house.agent.inbound.receive(Received("z", f"y/a/{kind}", kind, 1, 1, "", (Delta(HOST, (again,)),)))
    assert house.hosts.read_end_reason(house.state) or not taken, "mail that comes again says nothing new"


def _more() -> tuple[Entry, ...]:
    return tuple(Entry(100 + n, f"http://{HOST}/more{n}", 1) for n in range(5))


def test_depth_counts_from_the_first_page_of_the_host() -> None:
    house = House(depth=2)
    house.find(0, depth=7)
    assert house.turn(find=(1,), depth=8) == ""
    assert house.turn(find=(2, 3), depth=9) == ""
    assert house.find(4, depth=10) == 0
    assert house.find(5, depth=9) == 1
    assert house.limits.counted == {"host_depth": 1}
    assert house.turns() == ["", "", ""]


def test_pages_that_are_too_deep_and_were_taken_before_fail_alone() -> None:
    house = House(depth=1)
    for number, depth in enumerate((5, 6, 7, 9)):
        house.find(number, depth=depth)
    assert house.turns() == ["", "", "limit/host_depth", "limit/host_depth"]
    assert not house.noted, "the host is not ended"


def test_a_page_nearer_to_the_seeds_moves_the_first_depth() -> None:
    house = House(depth=1)
    house.find(0, depth=5)
    assert house.turn() == ""
    house.find(1, depth=2)
    assert house.turn() == ""
    assert house.find(2, depth=5) == 0


def test_seconds_count_from_the_first_load() -> None:
    house = House(seconds=60.0)
    house.find(*range(4))
    assert house.turn() == ""
    house.now += 59.0
    assert house.turn() == ""
    house.now += 2.0
    assert house.turns() == ["limit/host_seconds"] * 2


def test_iterations_are_so_many_pages() -> None:
    house = House(iterations=2, host_load_take=3)
    house.find(*range(8))
    assert house.turns() == [""] * 6 + ["limit/host_iterations"] * 2


def test_iterations_without_new_urls() -> None:
    house = House(stable=2, host_load_take=2)
    house.find(*range(10))
    assert house.turn(find=(20,)) == ""
    assert house.turn() == ""  # the first iteration found one
    assert [house.turn() for _ in range(4)] == [""] * 4  # two that did not
    assert house.turn() == "limit/host_stable"
    assert house.noted == {"ended/limit/host_stable": 1}


def test_a_new_url_makes_iterations_count_anew() -> None:
    house = House(stable=2, host_load_take=1)
    house.find(*range(10))
    assert [house.turn(find=find) for find in ((), (20,), (), (21,), (), ())] == [""] * 6
    assert house.turn() == "limit/host_stable"


def test_what_is_counted_goes_on_with_another_agent() -> None:
    """As after a handoff or a restart: only state and notes are left."""
    limits = {"stable": 3, "seconds": 60.0, "depth": 2}
    first = House(**limits)
    first.find(*range(9), depth=4)
    assert [first.turn() for _ in range(3)] == [""] * 3
    second = House(first.frontier, **limits)
    assert second.find(30, depth=7) == 0
    second.now += 30.0
    assert second.turn() == ""
    assert second.turn() == "limit/host_stable"
    third = House(**limits)
    third.find(*range(9))
    third.turn()
    fourth = House(third.frontier, **limits)
    fourth.now += 61.0
    assert fourth.turn() == "limit/host_seconds"


@pytest.mark.parametrize("limit", ["pages", "iterations"])
def test_what_failed_by_a_limit_does_not_count_when_the_host_is_lifted(limit: str) -> None:
    """`scrapy ubi requeue` lifts it, and takes what has failed in again, under other keys."""
    house = House(**{limit: 3})
    house.find(*range(9))
    assert house.turns().count("") == 3
    for more in (1, 2):
        house = House(house.frontier, **{limit: 3 + 2 * more})
        house.hosts.lift(HOST)
        house.find(*range(10 * more, 10 * more + 6))
        assert house.turns().count("") == 2


def test_what_failed_as_its_host_was_given_up_does_not_count_either() -> None:
    house = House(pages=4)
    house.find(*range(9))
    house.turn()
    house.hosts.end_host(house.state, "host/dead")
    assert set(house.turns()) == {"host/dead"}
    house.hosts.lift(HOST)
    house.find(*range(20, 30))
    assert 3 <= house.turns().count("") <= 4, "the page whose load failed last counts or not"


@pytest.mark.parametrize(("limit", "most"), [("pages", 3), ("iterations", 3)])
def test_what_is_done_without_a_load_counts_for_no_limit(limit: str, most: int) -> None:
    """A link to the page of a seed, say."""
    house = House(**{limit: most})
    house.find(*range(9))
    for _ in range(2):
        house.turn()
        house.limits.passed(house.state)
    assert house.turns().count("") == most


def test_without_limits_nothing_is_noted_of_it() -> None:
    house = House()
    house.find(1, 2)
    house.turn()
    house.limits.passed(house.state)
    assert not house.state.notes.text


@pytest.mark.parametrize("passed", [None, "x", -1, 99, True])
def test_whatever_another_agent_says_was_passed(passed: object) -> None:
    house = House(pages=3)
    house.find(*range(9))
    house.hosts.put(house.state, "passed", passed)
    assert house.turns().count("") == 3


@pytest.mark.parametrize(
    "value", [None, 7, "x", [], [1, 2], ["a", None, -1], [True, 1.5, 2**60], [None, None, None], {"begun": 1}]
)
def test_whatever_another_agent_has_noted(value: object) -> None:
    house = House(stable=5, seconds=60.0, depth=2)
    house.find(*range(3))
    house.hosts.put(house.state, SECTION, value)
    assert house.turns() == [""] * 3
    assert house.hosts.get(house.state, SECTION) == [int(house.wall()), 0, 2]


def test_notes_are_written_when_they_change_only() -> None:
    house = House(seconds=60.0, depth=3)
    house.find(*range(20))
    house.turns()
    assert house.state.notes.version == 1


def test_hosts_watched_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.agent.hosts.host_limits.MOST_WATCHED", 2)
    assert MOST_WATCHED > 2
    house = House(stable=2)
    for number in range(9):
        page = Entry(number + 1, f"http://h{number}.example/", 0)
        house.agent.discovery.discover(f"h{number}.example", page)
    house.turns()
    assert house.limits.watched <= 2


# -- whole crawls: 8 hosts of 20 pages that link to each other

SEEDS = ["http://h0.example/1"]


def by_host(log: Log) -> Counter[str]:
    counts: Counter[str] = Counter()
    for url, times in log.fetched.items():
        counts[url.split("/")[2]] += times
    return counts


def run(
    agents: int, during: Callable[[list[Crawler], Log], Any] | None = None, **limits: Any
) -> tuple[Log, list[Crawler]]:
    """A crawl of so many agents."""
    log = Log()
    group: list[Crawler] = []

    async def main() -> None:
        hub = MemoryHub()
        group.extend(
            Crawler(hub, f"a{number}", log, replace(SETTINGS, **limited(**limits))) for number in range(agents)
        )
        tasks = [one.start(SEEDS if one is group[0] else []) for one in group]
        if during is not None:
            await during(group, log)
        await asyncio.gather(*tasks, return_exceptions=True)

    crawl(main)
    return log, group


@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize("limits", [{"pages": 4}, {"iterations": 2, "host_load_take": 2}])
def test_no_host_gives_more_pages_than_that(agents: int, limits: dict[str, int]) -> None:
    log, group = run(agents, **limits)
    assert max(by_host(log).values()) == 4
    assert all(one.node.over for one in group)
    failed = sum((Counter(one.node.counters()["failed"]) for one in group), Counter())
    assert list(failed) == [f"limit/host_{next(iter(limits))}"]


@pytest.mark.parametrize("agents", [1, 3])
def test_no_host_is_known_by_more_urls_than_that_in_a_crawl(agents: int) -> None:
    log, group = run(agents, known=5)
    assert max(by_host(log).values()) == 5
    assert sum(one.node.limits.refused for one in group) > 0


def test_pages_of_a_host_are_counted_across_a_leave_and_a_crash() -> None:
    async def during(group: list[Crawler], log: Log) -> None:
        async with asyncio.timeout(20):
            while sum(log.fetched.values()) < 15:
                await asyncio.sleep(0.005)
        group[0].stop()
        await group[0].task
        await group[1].crash()

    log, _ = run(4, during, pages=6)
    counts = by_host(log)
    assert set(counts) == {f"h{number}.example" for number in range(8)}
    assert min(counts.values()) == 6
    # What was in flight at the crash, or done and not told yet, is fetched again.
    assert max(counts.values()) <= 12
