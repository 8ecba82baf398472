"""The beating thread by itself, with a link that does what a test wants."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.transport import TransportDown
from scrapy_ubi.transport.heartbeat import QUIETLY, READS, BeatCallbacks, Heartbeat, next_turn
from tests.transport.worlds import until


class FakeLink:
    """Remembers lines; fails while `down`; waits while `hold` is set."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.down = False
        self.go = threading.Event()
        self.go.set()
        self.closed = False
        self.asked = 0

    def beat(self, line: str) -> dict[str, str]:
        self.asked += 1
        self.go.wait(20)
        if self.down:
            raise TransportDown("UBI_REDIS_URL: away.")
        self.lines.append(line)
        return {"me": line}

    def write(self, line: str) -> None:
        self.lines.append(line)

    def look(self) -> dict[str, str] | None:
        return None

    def close(self) -> None:
        self.closed = True


class Case:
    """A heartbeat with everything it needs."""

    def __init__(
        self,
        interval: float = 0.01,
        line: Callable[[], str] | None = None,
        mail_is_away: Callable[[], bool] = lambda: False,
    ) -> None:
        self.link, self.counts = FakeLink(), Counter[str]()
        self.acks: list[float] = []
        self.reads: list[Any] = []
        numbers = iter(range(1, 1_000_000))
        self.heart = Heartbeat(
            self.link,
            interval,
            BeatCallbacks(
                line or (lambda: str(next(numbers))),
                self.acks.append,
                lambda *read: self.reads.append(read),
                time.monotonic,
                lambda: False,
                mail_is_away=mail_is_away,
            ),
            self.counts,
        )
        self.heart.start()


@given(
    st.floats(0, 1e6),
    st.floats(1e-3, 1e3),
    st.floats(0, 1e6),
)
def test_next_turn_is_the_first_on_the_schedule_after_now(start: float, interval: float, elapsed: float) -> None:
    now = start + elapsed
    turn = next_turn(start, interval, now)
    slack = 1e-9 * (1 + now)
    assert now - slack < turn <= now + interval * (1 + 2e-6) + slack
    ticks = (turn - start) / interval
    assert abs(ticks - round(ticks)) < 1e-3


def test_schedule_does_not_drift_and_makes_up_for_nothing() -> None:
    assert next_turn(10.0, 1.0, 10.0) == 11.0
    assert next_turn(10.0, 1.0, 10.9) == 11.0
    assert next_turn(10.0, 1.0, 10.9999999) == 12.0  # the turn of 11, a little early
    assert next_turn(10.0, 1.0, 17.3) == 18.0  # turns 11 to 17 are gone


@pytest.mark.parametrize("interval", [0.0, -1.0, float("nan")])
def test_interval_must_be_positive(interval: float) -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match="more than 0"):
            Case(interval)

    asyncio.run(run())


def test_reads_of_a_busy_loop_are_bounded_and_the_oldest_go() -> None:
    async def run() -> None:
        case = Case(0.0005)
        await until(lambda: case.reads)
        end = time.monotonic() + 20
        while case.counts["reads_dropped"] < 5 and time.monotonic() < end:
            time.sleep(0.005)  # noqa: ASYNC251 - the loop is busy
        case.link.go.clear()
        before, dropped, acks = len(case.reads), case.counts["reads_dropped"], len(case.acks)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        late = [int(beats["me"]) for _, _, beats in case.reads[before:]]
        assert len(late) <= READS
        assert late == list(range(late[0], late[0] + len(late)))
        assert late[0] > before + dropped - 2
        assert acks > READS  # each was acknowledged at once all the same
        case.link.go.set()
        await case.heart.stop(None, 20)

    asyncio.run(run())


def test_server_away_is_asked_once_an_interval_whoever_is_in_a_hurry() -> None:
    async def run() -> None:
        case = Case(0.2)
        await until(lambda: case.acks)
        case.link.down = True
        case.heart.soon()
        await until(lambda: case.counts["beats_failed"])
        start, asked = time.monotonic(), case.link.asked
        while time.monotonic() < start + 0.7:
            case.heart.soon()
            await asyncio.sleep(0.002)
        turns = (time.monotonic() - start) / 0.2
        assert case.link.asked - asked <= turns + 1
        await case.heart.stop(None, 20)

    asyncio.run(run())


def test_beats_out_of_turn_are_bounded() -> None:
    async def run() -> None:
        case = Case(0.5)
        start = time.monotonic()
        while len(case.acks) < 10:
            case.heart.soon()
            await asyncio.sleep(0.001)
        took = time.monotonic() - start
        assert took >= 8 * 0.5 / 20  # nine pauses of a twentieth at least, one may be cut short by a regular turn
        await case.heart.stop(None, 20)

    asyncio.run(run())


def test_stop_waits_for_the_beat_under_way_and_writes_the_last_line_after_it() -> None:
    async def run() -> None:
        case = Case()
        await until(lambda: case.link.lines)
        case.link.go.clear()
        asked = case.link.asked
        await until(lambda: case.link.asked > asked)
        stopping = asyncio.ensure_future(case.heart.stop("left", 20))
        await asyncio.sleep(0)
        assert not stopping.done()
        case.link.go.set()
        await stopping
        assert case.link.lines[-1] == "left"
        assert case.link.closed

    asyncio.run(run())


def test_stop_gives_up_on_a_link_that_hangs() -> None:
    async def run() -> None:
        case = Case()
        case.link.go.clear()
        asked = case.link.asked
        await until(lambda: case.link.asked > asked)
        await case.heart.stop("left", 0.05)
        assert case.heart.alive
        reads = len(case.reads)
        case.link.go.set()
        await until(lambda: not case.heart.alive)
        await asyncio.sleep(0)
        assert len(case.reads) == reads  # nothing is told after the stop

    asyncio.run(run())


def test_heart_ends_with_its_event_loop() -> None:
    """A loop closed without a stop: the agent is gone, and its beats with it."""
    cases: list[Case] = []

    async def run() -> None:
        cases.append(Case())
        await until(lambda: cases[0].reads)

    asyncio.run(run())
    end = time.monotonic() + 20
    while cases[0].heart.alive and time.monotonic() < end:
        time.sleep(0.005)
    assert not cases[0].heart.alive
    assert cases[0].link.closed


def test_mistake_in_a_callback_is_logged_once_and_does_not_end_the_heart(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        good = threading.Event()

        def line() -> str:
            if not good.is_set():
                raise KeyError("a mistake")
            return "fine"

        case = Case(line=line)
        await until(lambda: case.counts["beats_failed"] >= 3)
        good.set()
        await until(lambda: case.reads)
        await case.heart.stop(None, 20)

    with caplog.at_level("INFO"):
        asyncio.run(run())
    assert [one.levelname for one in caplog.records if one.name.endswith("heartbeat")] == ["WARNING", "INFO"]
    assert "KeyError" in caplog.text


@pytest.mark.parametrize("mail_is_away, said", [(True, []), (False, ["WARNING", "INFO"])], ids=["told", "untold"])
def test_a_server_that_is_away_is_told_of_by_the_mail_or_else_by_the_heart(
    caplog: pytest.LogCaptureFixture, mail_is_away: bool, said: list[str]
) -> None:
    async def run() -> None:
        case = Case(mail_is_away=lambda: mail_is_away)
        await until(lambda: case.acks)
        case.link.down = True
        await until(lambda: case.counts["beats_failed"] > 2 * QUIETLY)
        case.link.down = False
        acks = len(case.acks)
        await until(lambda: len(case.acks) > acks)
        await case.heart.stop(None, 20)

    with caplog.at_level("INFO"):
        asyncio.run(run())
    assert [one.levelname for one in caplog.records if one.name.endswith("heartbeat")] == said


def test_a_server_that_is_away_for_a_moment_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        case = Case(0.2)
        await until(lambda: case.acks)
        case.link.down = True
        await until(lambda: case.counts["beats_failed"])
        case.link.down = False
        acks = len(case.acks)
        await until(lambda: len(case.acks) > acks)
        await case.heart.stop(None, 20)
        assert case.counts["beats_failed"] <= QUIETLY

    with caplog.at_level("INFO"):
        asyncio.run(run())
    assert not [one for one in caplog.records if one.name.endswith("heartbeat")]
