"""When an agent's mail is exchanged, out of turn and in it, and how much may wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from scrapy_ubi.agent.mail.exchange import Exchange
from scrapy_ubi.agent.mail.exchange_loop import ExchangeLoop
from scrapy_ubi.agent.report.publish import Publisher
from scrapy_ubi.protocol.beat import Beat
from tests.agent.crawler import LIMIT, SETTINGS
from tests.agent.parts import Part
from tests.support.views import ordered
from tests.support.village import page

MUCH = 5


class Counterpart:
    """Stands for the post: an exchange ends when a test says so, and it is time for one only in a hurry."""

    def __init__(self) -> None:
        self.full = self.disk_full = self.away = self.busy = False
        self.slots_away = 0
        self.told_at = 0.0
        self.published: bool | None = None
        self.counts_anew, self.anew = False, 0
        self.sent: list[float] = []
        self.under_way = self.ended = False

    def collect(self, now: float) -> bool:
        ended, self.ended = self.ended, False
        self.under_way = self.under_way and not ended
        return ended

    def count_anew(self) -> None:
        self.anew += 1

    def may_send(self, now: float, hurry: bool) -> bool:
        return hurry and not self.under_way

    def send(self, now: float, profile: Callable[[], str | None]) -> None:
        self.under_way = True
        self.sent.append(now)


class Turns(Part):
    """The exchanges of one agent. `heard`: the posts whose exchanges have ended."""

    def __init__(self) -> None:
        super().__init__()
        publishing = Publisher(self.crawl, lambda: "", self.clock)
        self.heard: list[Exchange] = []
        self.post = Counterpart()
        self.exchanges = ExchangeLoop(self.crawl, publishing, MUCH, self.heard.append, self.clock)

    def open(self) -> None:
        self.exchanges.attach(self.post)  # type: ignore[arg-type]

    def find(self, pages: int) -> None:
        """Links to a host of another agent."""
        agent = self.crawl.agent
        beat = Beat("2" * 8, 0, SETTINGS.replicas, "0" * 16, counter=1)
        agent.read(self.now, self.now, {"a": agent.beat, "b": beat})
        host = ordered("b", "a")
        for _ in range(pages):
            agent.discovery.discover(host, page(host, agent.counters.links))


def test_before_there_is_a_post_nothing_is_exchanged_and_nothing_stands_still() -> None:
    turns = Turns()
    turns.hold_lease()
    turns.find(MUCH)
    turns.exchanges.hurry = True
    turns.exchanges.turn(turns.now)
    exchanges = turns.exchanges
    assert not (exchanges.busy or exchanges.disk_full or exchanges.blocked or exchanges.choked)
    assert not exchanges.has_told(0.0)
    turns.open()
    exchanges.turn(turns.now)
    assert turns.post.sent == [turns.now], "there was cause to hurry, and still is"


def test_an_exchange_that_has_ended_is_told_of_and_the_next_begins_in_the_same_turn() -> None:
    turns = Turns()
    turns.hold_lease()
    turns.open()
    turns.exchanges.turn(turns.now)
    assert not turns.post.sent, "it is not time"
    turns.exchanges.hurry = True
    turns.exchanges.turn(turns.now)
    turns.exchanges.turn(turns.now)
    assert len(turns.post.sent) == 1, "cause to hurry is cause for one"
    assert not turns.heard
    turns.exchanges.hurry = True
    turns.exchanges.turn(turns.now)
    assert len(turns.post.sent) == 1, "one at a time"
    turns.post.ended = True
    turns.now += 1
    turns.exchanges.arrived()
    assert turns.heard == [turns.post]
    assert turns.post.sent == [turns.now - 1, turns.now]
    assert not turns.exchanges.hurry


def test_whoever_leaves_begins_an_exchange_and_waits_for_the_end_of_one_from_then_on() -> None:
    async def test() -> None:
        turns = Turns()
        turns.hold_lease()
        turns.open()
        exchanges = turns.exchanges
        exchanges.press(hurry=False)
        assert not turns.post.sent
        exchanges.press()
        assert len(turns.post.sent) == 1
        turns.post.ended = True
        exchanges.press(hurry=False)
        assert len(turns.heard) == 1
        await exchanges.wait()  # it ended in this very turn
        exchanges.press()
        waiting = asyncio.ensure_future(exchanges.wait())
        await asyncio.sleep(0)
        assert not waiting.done(), "the end of the one before does not count"
        turns.post.ended = True
        exchanges.arrived()
        await waiting
        assert len(turns.heard) == 2

    asyncio.run(asyncio.wait_for(test(), LIMIT))


@pytest.mark.parametrize(
    ("trouble", "waiting", "blocked", "choked"),
    [
        ("", MUCH, False, False),
        ("away", MUCH - 1, False, False),
        ("away", MUCH, False, True),
        ("full", MUCH - 1, True, False),
        ("full", MUCH, True, True),
        ("disk_full", 0, True, True),
    ],
)
def test_no_more_is_fetched_than_is_worth_fetching_twice(
    trouble: str, waiting: int, blocked: bool, choked: bool
) -> None:
    turns = Turns()
    turns.hold_lease()
    turns.open()
    turns.find(waiting)
    if trouble:
        setattr(turns.post, trouble, True)
    assert (turns.exchanges.blocked, turns.exchanges.choked) == (blocked, choked)
    assert turns.exchanges.disk_full == (trouble == "disk_full")


def test_what_was_new_at_a_time_has_left_with_a_profile_made_then_or_later() -> None:
    turns = Turns()
    turns.open()
    turns.post.told_at = turns.now
    assert turns.exchanges.has_told(turns.now)
    assert not turns.exchanges.has_told(turns.now + 1)


def test_much_that_may_leave_makes_an_agent_hurry_and_what_is_under_way_does_not() -> None:
    part = Part()
    agent, config = part.crawl.agent, part.crawl.agent.config
    exchanges = ExchangeLoop(
        part.crawl, Publisher(part.crawl, lambda: "", part.clock), MUCH, lambda post: None, part.clock
    )
    part.hold_lease()
    beat = Beat("2" * 8, 0, SETTINGS.replicas, "0" * 16, counter=1)
    agent.read(part.now, part.now, {"a": agent.beat, "b": beat})
    host = ordered("b", "a")

    def find(pages: int) -> bool:
        for _ in range(pages):
            agent.discovery.discover(host, page(host, agent.counters.links))
        exchanges.hurry = False
        exchanges.look_for_much()
        return exchanges.hurry

    assert not find(MUCH - 1)
    assert find(1)
    agent.drain(part.now)
    assert len(agent.outbox) == MUCH
    assert not find(MUCH - 1)
    for _ in range(config.bounds.window):
        find(1)
        agent.drain(part.now)
    assert not find(2 * MUCH), "the lane takes no more before something is acknowledged"
    agent.check_invariants()


def test_an_agent_that_was_summed_up_counts_from_nothing_until_its_profile_was_taken() -> None:
    turns = Turns()
    turns.hold_lease()
    turns.crawl.counts_anew = False  # as after a restart
    turns.crawl.tally.pages, turns.crawl.agent.counters.done = 7, 8
    turns.open()
    post, crawl = turns.post, turns.crawl
    seen = []
    for published in (None, False, False, True, True):
        post.ended, post.published = True, published
        turns.exchanges.turn(turns.now)
        seen.append((crawl.tally.pages, crawl.agent.counters.done, post.counts_anew))
        crawl.tally.pages += 1
    assert seen == [(7, 8, False), (0, 0, True), (1, 0, True), (2, 0, False), (3, 0, False)]
    assert post.anew == 2 and post.published is None
