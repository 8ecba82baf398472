"""Pulses: what a beat that says nothing new writes, and how lines and pulses are brought together."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport import Transport, pulses, scripts
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.beat_connection import RedisLink
from scrapy_ubi.transport.contract import MEMORY, WATCHED
from scrapy_ubi.transport.pulses import CELL, WHOLE_EVERY, WIDTH, BeatLine, PulseBook, Wanted, Whole
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.signer import Signer
from tests.transport.exchanges import play
from tests.transport.worlds import RedisWorld, until

DIGEST = "00000000000000ff"
SIGNER = Signer("a secret of the tests", "bot:spider")
INTERVAL = 0.02  # s


def line(incarnation: str = "0123abcd", counter: int = 1, settled: str = "") -> bytes:
    return Beat(incarnation, 0, 200, DIGEST, settled).line(counter).encode()


# -- lines -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.booleans())
def test_a_pulse_says_the_counter_and_the_signature_of_a_line(version: int, counter: int, signed: bool) -> None:
    def text(number: int) -> bytes:
        said = line(counter=number).decode()
        return (SIGNER.text("beat", "a", "a", said) if signed else said).encode()

    former, now = BeatLine.from_text(text(version)), BeatLine.from_text(text(counter))
    assert now.says_as(former) and former.says_as(now)
    mark, number, of, seal = CELL.unpack(now.pulse(former.version))
    assert (mark, number, of) == (former.mark, counter, version)
    assert former.at(number, seal) == (text(counter) if counter > version else text(version))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (line(), line("76543210")),
        (line(), line(settled=DIGEST)),
        (line(), SIGNER.text("beat", "a", "a", line().decode()).encode()),
        (b"left", b"left"),
        (b"", b""),
        (b"beat 01", b"beat 02"),
        (b"beat 1234567890", b"beat 1234567891"),
    ],
)
def test_a_line_that_says_something_else_or_has_no_counter_is_written_whole(one: bytes, other: bytes) -> None:
    assert not BeatLine.from_text(other).says_as(BeatLine.from_text(one))


@given(st.binary(max_size=60))
def test_any_text_is_a_line_that_its_own_pulse_leaves_as_it_is(text: bytes) -> None:
    one = BeatLine.from_text(text)
    mark, counter, version, seal = CELL.unpack(one.pulse(one.version))
    assert (mark, version) == (one.mark, one.version)
    assert one.at(counter, seal) == text


# -- what one reader knows -------------------------------------------------------------------------------------------


def cells(*beats: tuple[bytes, int] | None) -> bytes:
    """A string of pulses: of these lines, with these counters."""
    found = [bytes(WIDTH) if one is None else _cell(*one) for one in beats]
    return b"".join(found)


def _cell(text: bytes, counter: int) -> bytes:
    one = BeatLine.from_text(text)
    return CELL.pack(one.mark, counter, one.version, b"")


A, B = line("aaaaaaaa"), line("bbbbbbbb")
SLOTS = {b"0": b"a", b"1": b"b"}


def book(*beats: tuple[bytes, int] | None) -> PulseBook:
    """One that knows of a and b."""
    found = PulseBook(1000)
    found.take_all(Whole(cells(*(beats or ((A, 1), (B, 1)))), {b"a": A, b"b": B}, SLOTS))
    return found


def test_what_beats_on_needs_no_line() -> None:
    known, now = book(), cells((A, 5), (B, 7))
    assert known.wanted(now) == Wanted({}, [])
    assert known.said(now) == {"a": line("aaaaaaaa", 5).decode(), "b": line("bbbbbbbb", 7).decode()}


def test_a_new_version_needs_its_line_and_another_process_its_name() -> None:
    new, other = line("aaaaaaaa", 4, DIGEST), line("cccccccc", 2)
    known, now = book(), cells((new, 5), (other, 3))
    assert known.wanted(now) == Wanted({0: "a"}, [1])
    known.learn_lines({0: "a"}, [new], now)
    known.learn_owners([1], [b"c"], now)
    assert known.wanted(now) == Wanted({1: "c"}, [])
    known.learn_lines({1: "c"}, [other], now)
    assert known.wanted(now) == Wanted({}, [])
    assert known.said(now) == {"a": line("aaaaaaaa", 5, DIGEST).decode(), "c": line("cccccccc", 3).decode()}


def test_a_line_that_is_newer_than_the_pulses_is_asked_for_again() -> None:
    newer, newest = line("aaaaaaaa", 4, DIGEST), line("aaaaaaaa", 6)
    known, then = book(), cells((newer, 5), (B, 1))
    known.learn_lines({0: "a"}, [newest], then)
    assert known.wanted(then) == Wanted({0: "a"}, [])
    assert known.wanted(cells((newest, 6), (B, 1))) == Wanted({}, [])


def test_a_slot_that_was_given_to_another_agent_keeps_no_dead_one_alive() -> None:
    """By the mark: the line of the former one stands as it was written."""
    whole = Whole(cells((B, 90), None), {b"a": A, b"b": B}, {b"0": b"a"})
    assert {name.decode(): found.said for name, found in whole.found().items()} == {"a": A, "b": B}
    assert PulseBook(1000).take_all(whole)[0] == {"a": A.decode(), "b": B.decode()}


@pytest.mark.parametrize("now", [b"", cells((A, 2)), cells((A, 2), None), b"x" * (WIDTH - 1)])
def test_where_pulses_are_gone_all_is_read_again(now: bytes) -> None:
    assert book().wanted(now) is None


def test_garbage_is_refused_once_and_counted() -> None:
    known = book()
    now = cells((A, 2), (B, 2), None) + b"\xff" * (2 * WIDTH) + b"odd"
    assert known.wanted(now) == Wanted({}, [3, 4])
    known.learn_owners([3, 4], [None, None], now)
    assert known.refused == 2
    assert known.wanted(now) == Wanted({}, [])
    assert set(known.said(now)) == {"a", "b"}
    known.take_all(Whole(now, {b"a": A, b"b": B}, {**SLOTS, b"-1": b"x", b"999999": b"x", b"one": b"x", b"3": b"y"}))
    assert known.refused == 2
    assert known.wanted(now) == Wanted({}, [])


def test_lines_that_are_gone_or_no_text_are_passed_over() -> None:
    known, now = book(), cells((line("aaaaaaaa", 4), 4), (line("bbbbbbbb", 4), 4))
    known.learn_lines({0: "a", 1: "b"}, [None, b"\xff"], now)
    assert known.wanted(now) == Wanted({}, [])
    assert known.said(now) == {}


def test_an_agent_has_one_slot_the_one_it_was_found_in_last() -> None:
    known, now = book(), cells((A, 2), (B, 2), (line("dddddddd", 3), 3))
    known.learn_owners([2], [b"a"], now)
    known.learn_lines({2: "a"}, [line("dddddddd", 3)], now)
    assert known.wanted(now) == Wanted({}, [])
    assert known.said(now) == {"a": line("dddddddd", 3).decode(), "b": line("bbbbbbbb", 2).decode()}


def test_all_is_read_at_first_in_small_groups_and_sometimes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PulseBook(1000).wants_all
    known = book()
    assert known.wants_all, "it is small"
    monkeypatch.setattr(pulses, "FEW", 1)
    for _ in range(WHOLE_EVERY - 1):
        assert not known.wants_all
        known.said(cells((A, 2), (B, 2)))
    assert known.wants_all


# -- one instant, whatever happens between the commands ---------------------------------------------------------------


class Model:
    """What a Redis holds of the beats, and when each agent said what. Between two commands of a reader the others go
    on: a line and its pulse are two steps."""

    def __init__(self, seed: int, keys: RedisKeys) -> None:
        self.random, self.keys, self.time = random.Random(seed), keys, 0
        self.pulses = bytearray()
        self.lines: dict[bytes, bytes] = {MEMORY.encode(): b"token"}
        self.slots: dict[bytes, bytes] = {}
        self.history: dict[
            str, list[tuple[int, int, str]]
        ] = {}  # agent -> (from, what it said before may be seen until)
        self.peers = [Peer(self, f"p{number}") for number in range(6)]

    def others(self) -> None:
        """Some steps of the others."""
        for _ in range(self.random.choice((0, 0, 1, 3))):
            self.time += 1
            self.random.choice(self.peers).step()

    def set_cell(self, slot: int, cell: bytes) -> None:
        self.pulses.extend(bytes(max(0, (slot + 1) * WIDTH - len(self.pulses))))
        self.pulses[slot * WIDTH : (slot + 1) * WIDTH] = cell

    def free(self, agent: str) -> int:
        mine = [int(slot) for slot, owner in self.slots.items() if owner == agent.encode()]
        slot = mine[0] if mine else next(number for number in range(99) if b"%d" % number not in self.slots)
        self.slots[b"%d" % slot] = agent.encode()
        return slot

    def do(self, command: tuple[Any, ...]) -> Any:
        self.others()
        name, key, *rest = command
        if name == "EVAL" and key == scripts.WHOLE:
            return [bytes(self.pulses), _flat(self.lines), _flat(self.slots)]
        if name == "EVAL" and key == scripts.BEAT:
            agent, text, _, _, cell, *_ = rest[4:]
            slot = self.free(agent)
            self.lines[agent.encode()] = text
            self.set_cell(slot, cell)
            return [b"token", slot]
        if name == "GETRANGE":
            return bytes(self.pulses)
        if name == "SETRANGE":
            self.set_cell(rest[0] // WIDTH, rest[1])
            return 0
        there = self.lines if key == self.keys.beats else self.slots
        if name == "HSET":
            there[rest[0].encode()] = rest[1]
            return 0
        found = [there.get(str(one if not isinstance(one, bytes) else one.decode()).encode()) for one in rest]
        return found if name == "HMGET" else found[0]


def _flat(fields: dict[bytes, bytes]) -> list[bytes]:
    return [text for pair in fields.items() for text in pair]


class Peer:
    """Another agent."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name
        self.counter, self.slot, self.own, self.half = 0, -1, None, None
        self.incarnation = ""

    own: BeatLine | None
    half: BeatLine | None

    def said(self, text: bytes) -> None:
        self.model.history.setdefault(self.name, []).append((self.model.time, 0, text.decode()))

    def step(self) -> None:
        model = self.model
        if self.half is not None:  # the line is written, now its pulse
            model.set_cell(self.slot, self.half.pulse(self.half.version))
            self.own, self.half = self.half, None
            self._seen()
            return
        self.counter += 1
        kind = model.random.random()
        if self.own is None or kind < 0.05:  # begins, as a new process
            self.incarnation, self.counter = f"{model.random.getrandbits(32):08x}", 1
            self.own = BeatLine.from_text(line(self.incarnation, 1))
            self.slot = model.free(self.name)
            model.lines[self.name.encode()] = self.own.text
            model.set_cell(self.slot, self.own.pulse(1))
            self.said(self.own.text)
            self._seen()
        elif kind < 0.3:  # says something new
            self.half = BeatLine.from_text(line(self.incarnation, self.counter, f"{model.random.getrandbits(64):016x}"))
            model.lines[self.name.encode()] = self.half.text
            self.said(self.half.text)
        elif kind < 0.33:  # is removed
            del model.lines[self.name.encode()], model.slots[b"%d" % self.slot]
            model.set_cell(self.slot, bytes(WIDTH))
            self.own = None
            self.said(b"")
            self._seen()
        else:
            text = self.own.at(self.counter, b"")
            model.set_cell(self.slot, BeatLine.from_text(text).pulse(self.own.version))
            self.said(text)
            self._seen()

    def _seen(self) -> None:
        """What was said before the last may not be seen from now on."""
        history = self.model.history[self.name]
        for number, (start, end, text) in enumerate(history[:-1]):
            if not end:
                history[number] = (start, self.model.time, text)


class ModelLink(RedisLink):
    """A link to a model."""

    def __init__(self, model: Model) -> None:
        super().__init__(address("redis://localhost"), model.keys, "me", 1.0, 1000, Counter())
        self.model = model

    def _run(self, commands: Any, full_is_an_error: bool = True, waits: bool = True) -> list[Any]:
        return [self.model.do(command) for command in commands]


@pytest.mark.parametrize("seed", range(60))
def test_a_read_is_of_one_instant_whatever_the_others_do_between_its_commands(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a moment at which each agent said what was read of it, and none that had said something is missing."""
    monkeypatch.setattr(pulses, "FEW", -1)
    model = Model(seed, RedisKeys("crawl"))
    link, last = ModelLink(model), dict[str, int]()
    for counter in range(1, 60):
        begun = model.time
        read = link.beat(line("99999999", counter).decode())
        assert read.pop("me") == line("99999999", counter).decode()
        read.pop(MEMORY)
        read.pop(WATCHED, None)
        since, until = begun, model.time + 1
        for name, history in model.history.items():
            seen = read.pop(name, "")
            spans = [(start, end or model.time + 1) for start, end, text in history if text == seen]
            spans = [span for span in spans if span[1] >= begun] or ([] if seen else [(0, history[0][0] + 1)])
            assert spans, f"seed {seed}: {name} is read as {seen!r}"
            start, end = spans[-1]
            if seen:
                assert start >= last.get(name, 0), f"seed {seed}: {name} goes back"
                last[name] = start
            since, until = max(since, start), min(until, end)
        assert since <= until, f"seed {seed}: there is no such moment"
        assert not read


# -- real servers ----------------------------------------------------------------------------------------------------


class Voice:
    """An agent that beats, and may say something else."""

    def __init__(self, transport: Transport, name: str, incarnation: str) -> None:
        self.transport, self.name, self.incarnation = transport, name, incarnation
        self.settled = ""
        self.reads: list[dict[str, str]] = []

    def start(self) -> None:
        def read(sent: float, received: float, beats: dict[str, str]) -> None:
            self.reads.append(beats)

        loop = asyncio.get_running_loop()
        self.transport.start_beating(self.name, INTERVAL, self.line, lambda sent: None, read, loop.time, lambda: False)

    def line(self, counter: int) -> str:
        return line(self.incarnation, counter, self.settled).decode()

    def of(self, name: str) -> Beat | None:
        """What was last read of an agent."""
        return Beat.parse(self.reads[-1].get(name, "")) if self.reads else None

    def _goes_on(self, name: str, counter: int) -> bool:
        beat = self.of(name)
        return beat is not None and beat.counter > counter

    async def hears(self, *others: Voice) -> None:
        """Until all of these beat on, twice."""
        for _ in range(2):
            reads = len(self.reads)
            before = {one.name: beat.counter for one in others if (beat := self.of(one.name)) is not None}
            for one in others:
                await until(partial(self._goes_on, one.name, before.get(one.name, 0)))
            await until(lambda: len(self.reads) > reads)  # noqa: B023 - it is over within the turn


Scene = Callable[[Voice, Voice, Any, RedisKeys], Any]


def together(world: RedisWorld, monkeypatch: pytest.MonkeyPatch, scene: Scene) -> Counter[str]:
    """Two agents, which read by pulses as those of a large group do; what was unusual to the first."""
    monkeypatch.setattr(pulses, "FEW", -1)
    counts: Counter[str] = Counter()

    async def both(a: Transport, b: Transport) -> None:
        one, other = Voice(a, "a", "aaaaaaaa"), Voice(b, "b", "bbbbbbbb")
        one.start()
        other.start()
        await one.hears(other)
        await other.hears(one)
        with world.server.client() as client:
            await scene(one, other, client, world.keys)
        counts.update(a.counts)

    play(world, both)
    return counts


def test_what_is_new_is_heard_by_who_reads_pulses(redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        assert client.strlen(keys.pulses) == 2 * WIDTH
        b.settled = DIGEST
        await until(lambda: (beat := a.of("b")) and beat.settled)
        b.incarnation = "cccccccc"
        await until(lambda: (beat := a.of("b")) and beat.incarnation == "cccccccc")
        await a.hears(b)
        await b.transport.stop_beating(line("cccccccc", 0).decode())
        await until(lambda: (beat := a.of("b")) and beat.counter == 0)

    assert not together(redis_world, monkeypatch, scene)


@pytest.mark.parametrize("lost", ["pulses", "slots", "beats", "all"])
def test_who_beats_is_heard_again_after_a_part_was_lost(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        before = a.reads[-1][MEMORY]
        client.flushall() if lost == "all" else client.delete(getattr(keys, lost))
        await a.hears(b)
        await b.hears(a)
        assert (a.reads[-1][MEMORY] == before) == (lost in ("pulses", "slots"))
        slots = client.hgetall(keys.slots)
        assert sorted(slots.values()) == [b"a", b"b"]

    together(redis_world, monkeypatch, scene)


def test_of_two_agents_with_one_slot_one_takes_another(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        mine = {agent: slot for slot, agent in client.hgetall(keys.slots).items()}
        client.hset(keys.slots, mine[b"b"], "a")
        client.hdel(keys.slots, mine[b"a"])
        await a.hears(b)
        await b.hears(a)
        assert len(set(client.hgetall(keys.slots).values())) == 2

    together(redis_world, monkeypatch, scene)


@pytest.mark.parametrize("garbage", [b"x" * 3 * WIDTH, b"\x00", b"\xff" * 100_000])
def test_garbage_in_place_of_the_pulses_silences_nobody(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch, garbage: bytes
) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        client.set(keys.pulses, garbage)
        await a.hears(b)
        await b.hears(a)

    counts = together(redis_world, monkeypatch, scene)
    assert (counts["garbage"] > 0) == (len(garbage) > 2 * WIDTH)


@pytest.mark.parametrize("what", ["pulses", "slots"])
def test_pulses_and_slots_of_a_wrong_type_are_set_aside(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        key = getattr(keys, what)
        with client.pipeline(transaction=True) as both:
            both.delete(key)
            both.rpush(key, "by hand")
            both.execute()
        await until(lambda: client.exists(f"{key}:aside"))
        await a.hears(b)
        await b.hears(a)

    together(redis_world, monkeypatch, scene)


def test_who_is_forgotten_leaves_its_slot_to_the_next_one_and_stays_dead(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        await b.transport.stop_beating(None)
        last = (await a.transport.beats())["b"]
        [slot] = [slot for slot, agent in client.hgetall(keys.slots).items() if agent == b"b"]
        await a.transport.forget({"b": line("bbbbbbbb", 10**8).decode()})
        assert (await a.transport.beats())["b"] == last, "it has said something else"
        await a.transport.forget({"b": last})
        assert (client.hexists(keys.beats, "b"), client.hexists(keys.slots, slot)) == (0, 0)
        client.hset(keys.beats, "b", last)  # as from a file of Redis's
        c = Voice(redis_world.transport("c"), "c", "cccccccc")
        await c.transport.open()
        c.start()
        await a.hears(c)
        assert client.hget(keys.slots, slot) == b"c"
        assert (await a.transport.beats())["b"] == last
        await c.transport.close()

    together(redis_world, monkeypatch, scene)


@pytest.mark.parametrize("moved", [False, True], ids=["in its slot", "in another slot"])
def test_a_former_process_in_a_file_of_redis_says_one_thing_only(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """Its last beat was a pulse. One that is told with another counter the next time would be taken for alive."""

    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        [mine] = [int(slot) for slot, agent in client.hgetall(keys.slots).items() if agent == b"a"]
        slot = mine + 5 * moved
        former = BeatLine.from_text(line("dddddddd", 3))
        with client.pipeline(transaction=True) as both:
            both.hset(keys.beats, "a", former.text)
            both.hdel(keys.slots, mine)
            both.hset(keys.slots, slot, "a")
            both.setrange(keys.pulses, slot * WIDTH, BeatLine.from_text(line("dddddddd", 90)).pulse(3))
            both.execute()
        reads = len(a.reads)
        await a.hears(b)
        own = [beat for read in a.reads[reads:] if (beat := Beat.parse(read["a"])) and beat.incarnation == "dddddddd"]
        assert [beat.counter for beat in own] == [90]
        assert client.hget(keys.beats, "a").startswith(b"aaaaaaaa")

    together(redis_world, monkeypatch, scene)


def test_who_finds_no_slot_beats_not(redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(a: Voice, b: Voice, client: Any, keys: RedisKeys) -> None:
        monkeypatch.setattr("scrapy_ubi.transport.beat_connection.MOST_SLOTS", 2)
        c = Voice(redis_world.transport("c"), "c", "cccccccc")
        await c.transport.open()
        c.start()
        await until(lambda: c.transport.counts["beats_failed"] > 1)
        assert not c.reads
        await a.hears(b)
        await c.transport.close()

    together(redis_world, monkeypatch, scene)
