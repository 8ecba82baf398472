"""The contract of contract.py, promise by promise: beats, for everything that carries mail."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from scrapy_ubi.transport import (
    Outgoing,
    Transport,
    TransportFull,
)
from scrapy_ubi.transport.contract import MEMORY, WATCHED
from scrapy_ubi.transport.heartbeat import PATIENCE
from scrapy_ubi.transport.watched import NEW, Watched
from tests.transport.exchanges import letter, play
from tests.transport.worlds import World, until

# -- beats -----------------------------------------------------------------------------------------------------------


INTERVAL = 0.02  # s


class Heart:
    """Callbacks of start_beating that remember."""

    def __init__(self, agent: str = "a") -> None:
        self.agent = agent
        self.acks: list[float] = []
        self.reads: list[tuple[float, float, dict[str, str]]] = []
        self.memories: list[str] = []
        self.watched: list[Watched] = []  # what was said of it
        self.stalled = False
        self.apart = 0.0
        self.clock = time.monotonic

    def start(self, transport: Transport, interval: float = INTERVAL) -> None:
        transport.start_beating(
            self.agent,
            interval,
            lambda counter: f"beat {counter}",
            self.acks.append,
            self._read,
            lambda: self.clock(),
            lambda: self.stalled,
            lambda: self.apart,
        )

    def _read(self, sent: float, received: float, beats: dict[str, str]) -> None:
        self.memories.append(beats.pop(MEMORY))
        if WATCHED in beats:
            self.watched.append(Watched.of(beats))
            del beats[WATCHED]
        self.reads.append((sent, received, beats))

    def reads_say(self, line: str) -> bool:
        """Whether this stood in the place of the own line at the last read."""
        return self.reads[-1][2][self.agent] == line

    def reads_since(self, moment: float) -> int:
        """How many were begun after that."""
        return sum(sent > moment for sent, _, _ in self.reads)

    def counters(self) -> list[int]:
        return [int(beats[self.agent].split()[1]) for _, _, beats in self.reads]


def test_reads_that_shall_be_apart_are_and_beats_are_written_all_the_same(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.apart = 0.06
        heart.start(a, 0.02)
        await until(lambda: len(heart.reads) >= 5)
        times = [sent for sent, _, _ in heart.reads]
        assert all(later - sooner >= 0.06 - 0.01 for sooner, later in pairwise(times))
        assert heart.counters()[0] == 1  # the first beat reads: who comes wants to know who is there
        assert len(heart.acks) > len(heart.reads)
        heart.apart = 1000.0
        begun = len(heart.acks)
        await until(lambda: len(heart.acks) > begun + 3)  # a beat that was under way may still have read
        reads, before = len(heart.reads), await b.beats()
        acks = len(heart.acks)
        a.beat_now()
        await until(lambda: len(heart.acks) > acks + 1)
        assert (await b.beats())["a"] != before["a"]
        assert len(heart.reads) == reads
        await a.stop_beating("gone")
        assert (await b.beats())["a"] == "gone"

    play(world, scene)


def test_beats_are_written_read_and_told_in_order(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await b.claim("b", None, "hello")
        heart = Heart()
        heart.start(a)
        await until(lambda: len(heart.reads) >= 5)
        await a.stop_beating(None)
        reads, acks = list(heart.reads), list(heart.acks)
        assert heart.counters() == sorted(heart.counters())
        assert heart.counters()[:3] == [1, 2, 3]
        assert all(beats["b"] == "hello" for _, _, beats in reads)
        assert all(sent <= received for sent, received, _ in reads)
        assert [sent for sent, _, _ in reads] == sorted(sent for sent, _, _ in reads)
        assert {sent for sent, _, _ in reads} <= set(acks)
        seen = await b.beats()
        await asyncio.sleep(0)
        assert (len(heart.reads), len(heart.acks)) == (len(reads), len(acks))  # nothing after the stop
        assert await b.beats() == seen

    play(world, scene)


def test_first_read_says_for_how_long_the_data_set_is_known_until_all_is_lost(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        first, second = Heart(), Heart("b")
        first.start(a)
        await until(lambda: len(first.reads) >= 5)
        assert first.watched == [Watched(0.0, NEW)]  # asked once
        second.start(b)
        await until(lambda: len(second.reads) >= 3)
        (known,) = second.watched
        # Read after the key was written, and before now.
        assert 0 < known.seconds < second.reads[-1][0] - first.reads[0][0] and not known.why
        world.flush()
        await until(lambda: len(first.watched) > 1 and len(second.watched) > 1)
        assert min(one.watched[-1].seconds for one in (first, second)) == 0
        assert max(one.watched[-1].seconds for one in (first, second)) < 5.0

    play(world, scene)


def test_what_a_stranger_says_of_the_data_set_is_not_heard(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.set_field("beats", WATCHED.encode(), b"99999 ")
        heart = Heart()
        heart.start(a)
        await until(lambda: len(heart.reads) >= 3)
        assert heart.watched == [Watched(0.0, NEW)]

    play(world, scene)


def test_last_line_comes_last(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a, 0.001)
        await until(lambda: len(heart.reads) >= 3)
        await a.stop_beating("left")
        assert (await b.beats())["a"] == "left"
        await a.stop_beating("ignored")  # it does not beat any more
        assert (await b.beats())["a"] == "left"
        heart.start(a)
        with pytest.raises(RuntimeError, match="already"):
            heart.start(a)
        count = len(heart.reads)
        await until(lambda: len(heart.reads) > count)
        assert heart.counters() == sorted(set(heart.counters()))  # the counter goes on over a new start

    play(world, scene)


def test_beat_now_does_not_wait_for_the_interval(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        a.beat_now()  # not beating: harmless
        heart = Heart()
        heart.start(a, interval=8.0)
        for wanted in range(1, 4):
            await until(lambda n=wanted: len(heart.reads) >= n, limit=7.0)  # sooner than the next turn
            a.beat_now()
        await until(lambda: len(heart.reads) >= 4, limit=7.0)

    play(world, scene)


def test_stalled_agent_neither_beats_nor_reads(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.stalled = True
        heart.start(a)
        await until(lambda: a.counts["beats_stalled"] >= 3)
        assert (heart.reads, heart.acks, await b.beats()) == ([], [], {})
        heart.stalled = False
        await until(lambda: heart.reads)
        assert heart.counters()[0] == 1

    play(world, scene)


class Silent(Heart):
    """One whose clock stands still, but for silences."""

    now = 0.0

    async def after_a_silence(self, a: Transport, b: Transport, line: str = "") -> int:
        """Beat, and after a silence again, in which `line` has come in the place of the own one; how many reads there
        were before it ended."""
        self.clock = lambda: self.now
        self.start(a)
        await until(lambda: len(self.reads) >= 2)
        self.stalled, stalled = True, a.counts["beats_stalled"]
        await until(lambda: a.counts["beats_stalled"] > stalled + 1 and len(self.acks) == len(self.reads))
        if line:
            assert await b.claim("a", (await b.beats())["a"], line)
        self.now += 10.0
        self.stalled, reads = False, len(self.reads)
        return reads


def test_after_a_silence_the_line_of_who_came_meanwhile_stays_and_is_read(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Silent()
        reads = await heart.after_a_silence(a, b, "another 0")
        for number in range(3):
            await until(partial(heart.reads_say, f"another {number}"))
            assert await b.claim("a", f"another {number}", f"another {number + 1}"), "it stays"
        assert len(heart.acks) == reads

    play(world, scene)


def test_after_a_silence_a_line_that_no_next_one_follows_is_written_over(world: World) -> None:
    """It is from long ago: the server came back from its file."""

    async def scene(a: Transport, b: Transport) -> None:
        heart = Silent()
        await heart.after_a_silence(a, b, "another 0")
        await until(partial(heart.reads_say, "another 0"))
        looks = len(heart.reads)
        heart.now += 0.6 * PATIENCE * INTERVAL
        await until(lambda: len(heart.reads) > looks + 1)
        assert heart.reads_say("another 0")
        heart.now += 0.6 * PATIENCE * INTERVAL
        await until(lambda: heart.reads[-1][2]["a"].startswith("beat"))

    play(world, scene)


@pytest.mark.parametrize("line", ["", "beat 0"], ids=["the last one", "an older one"])
def test_after_a_silence_a_line_of_the_same_process_is_no_reason_to_wait(world: World, line: str) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Silent()
        reads = await heart.after_a_silence(a, b, line)
        await until(lambda: len(heart.reads) > reads)
        assert len(heart.acks) > reads and heart.counters()[reads] > 0

    play(world, scene)


def test_a_line_that_another_wrote_between_two_beats_is_read(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: len(heart.reads) >= 2)
        while not await b.claim("a", (await b.beats())["a"], "another 0"):
            pass
        await until(lambda: 0 in heart.counters())
        await until(lambda: heart.counters()[-1] > 0)  # its own is there again

    play(world, scene)


def test_beats_outlive_an_outage_and_are_not_acknowledged_in_it(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: heart.reads)
        world.cut(True)
        failed = a.counts["beats_failed"]
        await until(lambda: a.counts["beats_failed"] >= failed + 3)
        reads, acks = len(heart.reads), len(heart.acks)
        await until(lambda: a.counts["beats_failed"] >= failed + 5)
        assert (len(heart.reads), len(heart.acks)) == (reads, acks)
        world.cut(False)
        await until(lambda: len(heart.reads) >= reads + 2)
        assert heart.counters() == sorted(set(heart.counters()))
        assert "a" in await b.beats()

    play(world, scene)


def test_full_server_does_not_silence_the_agents(world: World) -> None:
    """Beats and profiles take the place of former ones, so they need no memory to speak of."""

    async def scene(a: Transport, b: Transport) -> None:
        await b.claim("b", None, "hello")
        heart = Heart()
        heart.start(a)
        await until(lambda: heart.reads)
        world.fill(True)
        count = len(heart.reads)
        await until(lambda: len(heart.reads) >= count + 3)
        assert set(heart.reads[-1][2]) == {"a", "b"}
        with pytest.raises(TransportFull):
            await a.exchange(Outgoing(dead_letters=[letter(1)], profile='{"state":"blocked"}'))
        assert await b.profiles() == {"a": '{"state":"blocked"}'}
        await a.stop_beating("last")
        assert await b.beats() == {"a": "last", "b": "hello"}
        assert a.counts["beats_failed"] == 0

    play(world, scene)


def test_token_is_another_when_everything_was_forgotten(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart, other = Heart(), Heart("b")
        heart.start(a)
        other.start(b)
        for flushes in range(3):
            now = time.monotonic()  # reads that were begun before the flush may still be handed over
            await until(lambda since=now: heart.reads_since(since) >= 3 and other.reads_since(since) >= 3)
            assert len(set(heart.memories)) == flushes + 1
            assert set(await a.beats()) == {"a", "b"}
            world.flush()

    play(world, scene)


def test_garbage_among_the_beats_is_skipped_and_deleted(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.set_field("beats", b"\xff", b"\xff")
        heart = Heart()
        heart.start(a)
        await until(lambda: len(heart.reads) >= 3)
        assert all(set(beats) == {"a"} for _, _, beats in heart.reads)
        assert a.counts["garbage"] == 1

    play(world, scene)


def test_callback_that_raises_does_not_end_the_beats(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        seen: list[Any] = []

        def on_read(*read: Any) -> None:
            seen.append(read)
            raise RuntimeError("a mistake of the caller")

        a.start_beating("a", 0.01, str, lambda sent: None, on_read, time.monotonic, lambda: False)
        await until(lambda: len(seen) >= 3)

    play(world, scene)


def test_all_beats_are_read_at_one_instant(world: World) -> None:
    """Two fields written together are never seen apart, however many others there are and whoever writes meanwhile."""

    async def scene(a: Transport, b: Transport) -> None:
        for number in range(300):
            world.set_field("beats", b"agent%d" % number, b"x" * 60)
        heart = Heart()
        heart.start(a, 0.005)
        last = 0
        while len(heart.reads) < 20:
            # a's own beats go up one by one; b writes after having seen, so b's value never runs ahead of a's
            mine = int((await b.beats()).get("a", "beat 0").split()[1])
            assert mine >= last
            last = mine
            world.set_field("beats", b"b", str(mine).encode())
        for _, _, beats in heart.reads:
            if "b" in beats:
                assert int(beats["b"]) <= int(beats["a"].split()[1])
            assert len(beats) >= 301

    play(world, scene)
