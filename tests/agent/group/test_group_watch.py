"""What is left in Redis of agents that are long gone is removed, by one of those who live."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count, pairwise

import pytest

from scrapy_ubi.agent.group import group_watch
from scrapy_ubi.agent.group.group_watch import MOST, TIMEOUTS, DeadAgents
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from tests.agent.parts import Part

COUNTERS = count(1)
STEP, PAUSE, LONG = 0.3, 1.2, 30.0  # s: the lease of the others' tests is short


@pytest.fixture(autouse=True)
def times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_watch, "PAUSE", PAUSE)
    monkeypatch.setattr(group_watch, "LONG", LONG)


def line(incarnation: str, counter: int = 1, flags: str = "") -> str:
    return Beat(incarnation, 0, 20, "0" * 16, flags=flags).line(counter)


class Yard:
    """Agent `a` in a crawl of which it reads all lines now and then; the others stand there and do not change."""

    def __init__(self, failure_timeout: float = 1.0) -> None:
        self.part = Part()
        self.hub = MemoryHub()
        self.shelf = self.hub.shelf("crawl")
        self.transport = MemoryTransport(self.hub, "a")
        self.burials = DeadAgents(self.part.crawl, IoThread(own_thread=False), self.transport, failure_timeout)

    def stand(self, name: str, text: str) -> None:
        self.shelf.beats[name.encode()] = text.encode()
        self.shelf.inbox[name]["1-0"] = {b"old": b"mail"}

    async def read(self, seconds: float = STEP) -> set[str]:
        """After so long all beats are read; whose are there then."""
        part, agent = self.part, self.part.crawl.agent
        part.now += seconds
        agent.group.lease.acknowledged(part.now)
        lines = {name.decode(): text.decode() for name, text in self.shelf.beats.items()}
        lines["a"] = replace(agent.beat, counter=next(COUNTERS)).line(next(COUNTERS))
        agent.read(part.now, part.now, {name: beat for name, text in lines.items() if (beat := Beat.parse(text))})
        agent.tick(part.now)
        self.burials.check_beats(lines, part.now)
        for _ in range(5):
            await asyncio.sleep(0)
        return {name.decode() for name in self.shelf.beats}

    async def wait(self, seconds: float = LONG) -> set[str]:
        end = self.part.now + seconds
        while self.part.now < end:
            await self.read()
        return {name.decode() for name in self.shelf.beats}


def test_lines_and_mail_of_those_who_are_gone_are_removed_after_long() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        yard.stand("left", line("11111111", flags=LEFT))
        yard.stand("dead", line("22222222"))
        assert await yard.wait(0.9 * LONG) == {"left", "dead"}
        assert await yard.wait(0.3 * LONG) == set()
        assert not any(yard.shelf.inbox[name] for name in ("left", "dead"))

    asyncio.run(test())


def test_whose_line_changes_stays_and_what_is_no_beat_is_left_alone() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        yard.stand("junk", "what is this")
        yard.stand("no name!", line("33333333"))
        for number in range(1, 30):
            yard.stand("back", line("11111111", counter=number))
            assert await yard.wait(PAUSE) == {"junk", "no name!", "back"}

    asyncio.run(test())


def test_long_failure_timeouts_count() -> None:
    async def test() -> None:
        yard = Yard(failure_timeout=2 * LONG / TIMEOUTS)
        yard.part.hold_lease()
        yard.stand("dead", line("22222222"))
        assert await yard.wait(1.9 * LONG) == {"dead"}
        assert await yard.wait(0.3 * LONG) == set()

    asyncio.run(test())


def test_it_is_done_only_in_peace() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        agent = yard.part.crawl.agent
        yard.stand("dead", line("22222222"))
        await yard.wait(2 * PAUSE)
        agent.group.claim.shadowed = True
        assert not yard.burials.is_mine(yard.part.now)
        agent.group.claim.shadowed = False
        assert yard.burials.is_mine(yard.part.now)
        yard.part.now += 2 * agent.config.lease_timeout
        assert not yard.burials.is_mine(yard.part.now), "fenced"

    asyncio.run(test())


@pytest.mark.parametrize(("other", "complete", "mine"), [("b", True, True), ("b", False, False), ("B", True, False)])
def test_it_is_the_first_of_a_complete_view_who_does_it(other: str, complete: bool, mine: bool) -> None:
    yard = Yard()
    yard.part.hold_lease()
    agent, now = yard.part.crawl.agent, yard.part.now
    agent.read(now, now, {"a": agent.beat, other: Beat("33333333", 0, 20, "0" * 16, counter=1)})
    assert agent.view.members.keys() == {"a", other} and agent.group.may_act(now)
    agent.view_history.complete = agent.view if complete else None
    assert yard.burials.is_mine(now) == mine


def test_it_is_looked_at_now_and_then_and_nothing_is_asked_while_redis_has_not_answered() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        asked: list[tuple[float, set[str]]] = []
        answer = asyncio.Event()

        async def forget(gone: dict[str, str]) -> None:
            asked.append((yard.part.now, set(gone)))
            await answer.wait()

        yard.transport.forget = forget  # type: ignore[method-assign, assignment]
        yard.stand("dead", line("22222222"))
        await yard.wait(LONG + 5 * PAUSE)
        assert [names for _, names in asked] == [{"dead"}]
        answer.set()
        await yard.wait(5 * PAUSE)
        times = [at for at, _ in asked]
        assert len(times) > 3
        assert all(later - earlier >= 0.99 * PAUSE for earlier, later in pairwise(times))

    asyncio.run(test())


def test_a_redis_that_is_away_is_asked_again() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        yard.stand("dead", line("22222222"))
        await yard.wait()
        yard.hub.down = True
        assert await yard.wait(2 * PAUSE) == {"dead"}
        yard.hub.down = False
        assert await yard.wait(2 * PAUSE) == set()

    asyncio.run(test())


def test_so_many_at_once() -> None:
    async def test() -> None:
        yard = Yard()
        yard.part.hold_lease()
        for number in range(MOST + 1):
            yard.stand(f"dead{number}", line(f"{number:08x}"))
        while len(left := await yard.read()) == MOST + 1:
            assert yard.part.now < 100 + 2 * LONG
        assert len(left) == 1
        assert await yard.wait(2 * PAUSE) == set()

    asyncio.run(test())
