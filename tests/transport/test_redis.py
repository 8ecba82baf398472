"""What only a real server can do to a transport: die, hang, fill up, be flushed, hold keys of strangers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis

from scrapy_ubi.ground import clock
from scrapy_ubi.transport import Outgoing, Transport, TransportDown
from scrapy_ubi.transport.contract import HEAD
from scrapy_ubi.transport.packed_letters import packed
from scrapy_ubi.transport.pulses import CELL, WIDTH
from scrapy_ubi.transport.redis import RedisTransport
from tests.transport.exchanges import ids, letter, play, seqs
from tests.transport.test_conformance_beats import Heart
from tests.transport.worlds import CRAWL, TIMEOUT, RedisWorld, until

LAST = 2**64 - 1


def test_killed_and_restarted_empty_server_is_simply_empty(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await a.exchange(Outgoing(letters=[("b", letter(1)), ("b", letter(2))]))
        first = await b.exchange(Outgoing())
        await until(lambda: heart.reads)
        redis_world.server.restart_empty()
        redis_world.flush(renumber=True)
        redis_world.put("b", {b"seq": b"3"})  # id 1-0, smaller than those in hand
        incoming = await _again(lambda: b.exchange(Outgoing(consumed=ids(first)[:1])))
        assert seqs(incoming) == [3]
        count = len(heart.reads)
        await until(lambda: len(heart.reads) > count)
        assert "b" in await _again(a.beats)

    play(redis_world, scene)


def test_token_is_another_on_another_server(redis_world: RedisWorld) -> None:
    """One that has lost the last moments: killed and restarted from its file, or a replica that took over."""
    server = redis_world.server

    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: len(heart.reads) >= 3)
        with server.client() as client:
            client.save()
        server.restart_empty()
        await until(lambda: len(set(heart.memories)) == 2)
        assert len({memory.split()[0] for memory in heart.memories}) == 1, "the file holds the token"
        with server.client() as client:
            client.replicaof("127.0.0.1", server.port)
            client.replicaof("NO", "ONE")
            _hang_up(client)
        await until(lambda: len(set(heart.memories)) == 3)

    try:
        play(redis_world, scene)
    finally:
        server.forget_file()


@pytest.mark.parametrize("told", [True, False])
def test_token_is_another_on_another_connection_only_where_the_server_does_not_say_who_it_is(
    redis_world: RedisWorld, told: bool
) -> None:
    """Connections are cut all the time where a proxy stands between: nobody would ever be sure, or be found dead."""

    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: len(heart.reads) >= 3)
        with redis_world.server.client() as client:
            for _ in range(3):
                reads, before = len(heart.reads), _connects(client)
                _hang_up(client)
                await until(lambda: _connects(client) > before)  # noqa: B023 - it is over within the turn
                await until(lambda: len(heart.reads) > reads + 1)  # noqa: B023
        assert len(set(heart.memories)) == (1 if told else 4)

    with redis_world.server.client() as client:
        try:
            client.execute_command("ACL", "SETUSER", "default", "+info" if told else "-info")
        except redis.ResponseError:
            pytest.skip("this server has no rights by command: a Redis before 6")
        try:
            play(redis_world, scene)
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+@all")


@pytest.mark.parametrize(
    ("memory", "policy", "said"),
    [("1gb", "allkeys-lru", 1), ("1gb", "noeviction", 0), ("1gb", "volatile-ttl", 0), ("0", "allkeys-lru", 0)],
)
def test_a_server_that_would_throw_letters_away_is_named_once(
    redis_world: RedisWorld, memory: str, policy: str, said: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: heart.reads)
        with redis_world.server.client() as client:
            before = _connects(client)
            _hang_up(client)
            await until(lambda: _connects(client) > before)
            reads = len(heart.reads)
            await until(lambda: len(heart.reads) > reads)

    with redis_world.server.client() as client:
        usual = {name: client.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
        try:
            client.config_set("maxmemory", memory)
            client.config_set("maxmemory-policy", policy)
            play(redis_world, scene)
        finally:
            for name, value in usual.items():
                client.config_set(name, value)
    warnings = [text for text in caplog.messages if "maxmemory-policy" in text]
    assert len(warnings) == said
    assert all("allkeys-lru" in text and redis_world.server.url in text for text in warnings)


def test_a_user_who_may_not_ask_for_info_is_told_the_remedy_once(
    redis_world: RedisWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: heart.reads)

    with redis_world.server.client() as client:
        try:
            client.execute_command("ACL", "SETUSER", "default", "-info")
            play(redis_world, scene)
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+@all")
    warnings = [text for text in caplog.messages if "INFO" in text]
    assert len(warnings) == 1
    assert "ACL SETUSER <user> +info" in warnings[0] and redis_world.server.url in warnings[0]


def _hang_up(client: redis.Redis) -> None:
    """The server closes everybody's connections but this one."""
    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def _connects(client: redis.Redis) -> int:
    """The number of the newest connection of a beating thread."""
    return max((int(one["id"]) for one in client.client_list() if one["name"].endswith(":beat")), default=0)


def test_a_beat_that_says_the_same_is_its_pulse_and_the_first_brings_token_and_slot(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: len(heart.reads) >= 5)
        await b.stop_beating(None)
        with redis_world.server.client() as client:
            stats = client.info("commandstats")
        calls = {name: stats[f"cmdstat_{name}"]["calls"] for name in ("hsetnx", "hset", "hmget", "setrange")}
        beats = len(heart.acks)
        opens = 2  # each tries every command
        assert calls == {"hsetnx": 1, "hset": opens + 2, "hmget": beats - 1, "setrange": opens + beats}
        assert all(heart.memories)

    with redis_world.server.client() as client:
        client.config_resetstat()
    play(redis_world, scene)


async def _again(call: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat as the node does: the first call after a death may find the old connection."""
    for _ in range(5):
        try:
            return await call()
        except TransportDown:
            await asyncio.sleep(0.01)
    return await call()


def test_forgotten_scripts_are_no_trouble(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for turn in range(3):
            assert await a.claim("a", None if turn == 0 else str(turn - 1), str(turn))
            await a.exchange(Outgoing(letters=[("b", letter(turn))]))
            with redis_world.server.client() as client:
                client.script_flush()
            assert seqs(await b.exchange(Outgoing())) == [turn]

    play(redis_world, scene)


def test_one_exchange_is_one_round_trip(redis_world: RedisWorld) -> None:
    """Counted at the server: all commands of an exchange are read from the socket in one piece."""

    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing())
        with redis_world.server.client() as client:
            if "total_reads_processed" not in client.info("stats"):
                pytest.skip("this server does not count reads: a Redis before 6")
            before = client.info("stats")["total_reads_processed"]
            client.info("stats")  # costs one read itself
            own = client.info("stats")["total_reads_processed"] - before
            out = Outgoing(
                letters=[("b", letter(n)) for n in range(20)],
                acks={("b", str(n)): "x" for n in range(20)},
                consumed=["1-1"],
                forget_acks=["x"],
                dead_letters=[{"reason": "r"}],
                profile="{}",
                control={"run": "1"},
            )
            await a.exchange(out)
            assert client.info("stats")["total_reads_processed"] - before - own <= 2  # this INFO, and the exchange

    play(redis_world, scene)


def test_over_a_long_line_letters_are_packed_and_time_outs_longer(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_ubi.transport.redis.FAR", 0.0)
    text = {**letter(1), "body": "http://h.example/" * 1000}

    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(letters=[("b", text), ("b", letter(2))]))
        with redis_world.server.client() as client:
            (_, first), (_, second) = client.xrange(f"ubi:{{{CRAWL}}}:b:inbox")  # type: ignore[misc]
        assert set(first) == {b"from", b"z"} and len(first[b"z"]) < 1000
        assert b"z" not in second, "a short one is not worth it"
        incoming = await b.exchange(Outgoing())
        assert [dict(fields) for _, fields in incoming.letters] == [
            {name.encode(): value.encode() for name, value in fields.items()} for fields in (text, letter(2))
        ]
        assert 0 < a.line.round_trip < a.line.timeout

    play(redis_world, scene)


@pytest.mark.parametrize(("seconds", "waits"), [(0.001, 3.0), (0.15, 4.5), (0.2, 6.0), (5.0, 6.0)])
def test_the_time_out_follows_from_the_round_trip_within_its_bounds(seconds: float, waits: float) -> None:
    transport = RedisTransport("redis://127.0.0.1:1/0", "c", "a", timeout=3.0, longest_timeout=6.0)
    with contextlib.suppress(TransportDown):
        asyncio.run(transport.open())
    transport._server.round_trip.took(seconds)
    assert transport.line.timeout == pytest.approx(waits)


def test_refused_beat_tells_nothing(redis_world: RedisWorld) -> None:
    """Who cannot write its beat must not judge others on theirs: they cannot write either."""

    async def scene(a: Transport, b: Transport) -> None:
        await b.claim("b", None, "hello")
        with redis_world.server.client() as client:
            client.config_set("min-replicas-to-write", 1)
            try:
                heart = Heart()
                heart.start(a)
                await until(lambda: a.counts["beats_failed"] >= 3)
                assert (heart.reads, heart.acks) == ([], [])
            finally:
                client.config_set("min-replicas-to-write", 0)
        await until(lambda: heart.reads and heart.acks)

    play(redis_world, scene)


def test_who_is_told_that_the_server_is_a_replica_now_connects_anew(redis_world: RedisWorld) -> None:
    """The name of the server may lead to the new primary."""

    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(control={"run": "1"}))
        with redis_world.server.client() as client:
            connected = client.info("stats")["total_connections_received"]
            await a.exchange(Outgoing(control={"run": "2"}))
            assert client.info("stats")["total_connections_received"] == connected
            client.replicaof("127.0.0.1", 1)
            try:
                with pytest.raises(TransportDown, match="read-only replica"):
                    await a.exchange(Outgoing(control={"run": "3"}))
            finally:
                client.replicaof("no", "one")
            assert (await a.exchange(Outgoing(control={"run": "4"}))).control == {"run": "4"}
            assert client.info("stats")["total_connections_received"] == connected + 1

    play(redis_world, scene)


# -- garbage ---------------------------------------------------------------------------------------------------------


def test_entry_of_50_megabytes_costs_little_and_hides_nothing(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            client.xadd(redis_world.keys.inbox("b"), {"from": "mallory", "body": b"\x80" * 50_000_000})
            await a.exchange(Outgoing(letters=[("b", letter(1))]))
            sent = client.info("stats")["total_net_output_bytes"]
            incoming = await b.exchange(Outgoing())
            ((number, cut),) = incoming.letters
            assert (cut[b"oversized"], cut[b"from"]) == (b"50000015", b"mallory")
            assert len(cut[b"head"]) == HEAD
            assert seqs(await b.exchange(Outgoing())) == [1]  # one huge entry an exchange, the next in the next
            for _ in range(3):  # in hand: not sent again
                assert (await b.exchange(Outgoing())).letters == []
            assert client.info("stats")["total_net_output_bytes"] - sent < 100_000
            await b.exchange(Outgoing(consumed=[number]))
            assert client.xlen(redis_world.keys.inbox("b")) == 1

    play(redis_world, scene)


@pytest.mark.parametrize("value", ["text", "other"])
def test_keys_of_a_wrong_type_are_renamed_and_nothing_stops(redis_world: RedisWorld, value: str) -> None:
    keys = redis_world.keys
    names = [keys.beats, keys.agents, keys.control, keys.dead("a")]
    names += [key for agent in "ab" for key in (keys.inbox(agent), keys.acks(agent))]

    async def scene(a: Transport, b: Transport) -> None:
        out = Outgoing(
            letters=[("b", letter(1))],
            acks={("b", "lane"): "[1]"},
            consumed=["1-1"],
            forget_acks=["x"],
            dead_letters=[{"reason": "r"}],
            profile="{}",
            control={"run": "1"},
        )
        with redis_world.server.client() as client:
            for name in names:
                if value == "text":
                    client.set(name, "by hand")
                else:
                    client.rpush(name, "by", "hand")
        assert await b.claim("b", None, "line")
        incoming = await a.exchange(out)
        assert (seqs(incoming), incoming.acks, incoming.control) == ([], {}, {"run": "1"})
        incoming = await b.exchange(Outgoing())
        assert (seqs(incoming), incoming.acks) == ([1], {"lane": "[1]"})
        assert (await a.beats(), await a.profiles()) == ({"b": "line"}, {"a": "{}"})
        assert a.counts["set_aside"] + b.counts["set_aside"] == len(names)
        with redis_world.server.client() as client:
            for name in names:
                assert client.type(name + ":aside") == (b"string" if value == "text" else b"list")

    play(redis_world, scene)


@pytest.mark.parametrize("what", ["beats", "slots", "pulses"])
@pytest.mark.parametrize("ask", ["beats", "claim", "forget"])
def test_any_key_of_beats_of_a_wrong_type_is_set_aside_before_the_first_beat(
    redis_world: RedisWorld, ask: str, what: str
) -> None:
    """An agent that starts looks at all three by one script, and says that it does not know which one is spoilt."""
    key = getattr(redis_world.keys, what)

    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            client.xadd(key, {"by": "hand"})
        if ask == "claim":
            assert await a.claim("z", None, "line")
        elif ask == "forget":
            await a.forget({"z": "line"})
        else:
            assert await a.beats() == {}
        with redis_world.server.client() as client:
            assert client.type(f"{key}:aside") == b"stream"
        assert a.counts["set_aside"] == 1

    play(redis_world, scene)


def test_beats_of_a_wrong_type_do_not_stop_the_heart(redis_world: RedisWorld, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: heart.reads)
        with redis_world.server.client() as client:
            client.delete(redis_world.keys.beats)  # may lose a race against the next beat, so:
            while True:
                client.set(redis_world.keys.beats, "by hand")
                if a.counts["set_aside"] or client.type(redis_world.keys.beats) == b"string":
                    break
        await until(lambda: a.counts["set_aside"])
        count = len(heart.reads)
        await until(lambda: len(heart.reads) > count)

    play(redis_world, scene)
    assert f"{redis_world.keys.beats}:aside now" in caplog.text


def test_the_servers_time_goes_on_while_the_machine_sleeps(
    redis_world: RedisWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        before, clock_now = a.now(), clock.now
        monkeypatch.setattr(clock, "now", lambda: clock_now() + 3600)
        assert 3600 <= a.now() - before < 3700

    play(redis_world, scene)


def test_inbox_whose_ids_are_used_up_is_put_aside(redis_world: RedisWorld) -> None:
    """After XADD with the highest id nothing can be appended, even when that entry is deleted."""

    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            client.xadd(redis_world.keys.inbox("b"), {"x": "y"}, id=f"{LAST}-{LAST}")
        first = await b.exchange(Outgoing())
        assert ids(first) == [f"{LAST}-{LAST}"]
        await b.exchange(Outgoing(consumed=ids(first)))
        await a.exchange(Outgoing(letters=[("b", letter(1))]))
        assert seqs(await b.exchange(Outgoing())) == [1]
        assert a.counts["set_aside"] <= 1  # a Redis 5 goes on all the same

    play(redis_world, scene)


def test_ids_written_by_hand_are_all_read(redis_world: RedisWorld) -> None:
    numbers = [
        "0-1",
        "5-9",
        "5-10",
        "5-99",
        f"5-{LAST}",
        "6-0",
        "9-0",
        "10-0",
        f"{2**53}-{2**53}",
        f"{2**53}-{2**53 + 1}",
    ]
    numbers += [f"{LAST}-0", f"{LAST}-{LAST - 1}", f"{LAST}-{LAST}"]

    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            for number in numbers:
                client.xadd(redis_world.keys.inbox("b"), {"x": number}, id=number)
        got: list[str] = []
        while more := ids(await b.exchange(Outgoing())):
            got += more
        assert got == numbers
        await b.exchange(Outgoing(consumed=got))
        assert redis_world.inbox("b") == 0

    play(redis_world, scene, max_letters=3)


def test_crawls_with_names_that_begin_alike_are_apart(redis_world: RedisWorld) -> None:
    async def run() -> None:
        names = ("bot", "bot:spider", "bot:spider:x", "b*t")
        all_of_them = [RedisTransport(redis_world.server.url, name, "a", timeout=TIMEOUT) for name in names]
        for one in all_of_them:
            await one.open()
            await one.claim("a", None, "line")
            await one.exchange(Outgoing(letters=[("a", letter(1)), ("ghost", letter(1))]))
        assert await all_of_them[0].clear()
        assert await all_of_them[3].clear()
        left = [await one.beats() for one in all_of_them]
        assert left == [{}, {"a": "line"}, {"a": "line"}, {}]
        with redis_world.server.client() as client:
            assert client.keys("ubi:{bot}:*") == []
            assert len(client.keys("ubi:{bot:spider}:*:inbox")) == 2
        for one in all_of_them:
            await one.close()

    asyncio.run(run())


# -- hanging, slow and dying servers ---------------------------------------------------------------------------------


def test_hanging_server_ends_a_call_within_the_time_out(redis_world: RedisWorld) -> None:
    redis_world.timeout = 0.5

    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing())
        redis_world.server.pause()
        calls = (a.exchange(Outgoing(letters=[("b", letter(1))])), a.beats(), a.claim("a", None, "x"))
        for call in calls:
            with pytest.raises(TransportDown, match="did not answer"):
                await asyncio.wait_for(call, 5 * TIMEOUT)  # far longer than promised: this is no test of speed
        redis_world.server.resume()
        await a.exchange(Outgoing())
        assert (await _again(a.beats)).keys() <= {"a"}  # the claim may have been applied late

    play(redis_world, scene)


@contextlib.contextmanager
def answers_bounded(world: RedisWorld) -> Iterator[None]:
    """The server hangs up on who is sent more than 600 kB at once."""

    def bound(size: int) -> None:
        with world.server.client() as client:
            client.config_set("client-output-buffer-limit", f"normal {size} 0 0")

    bound(600_000)
    try:
        yield
    finally:
        bound(0)


def test_mail_that_cannot_come_at_once_comes_in_parts(redis_world: RedisWorld) -> None:
    """A server that hangs up on who is sent too much, as a line too slow for it within the time-out."""

    async def scene(a: Transport, b: Transport) -> None:
        for turn in range(20):
            await a.exchange(Outgoing(letters=[("b", {**letter(turn), "body": "x" * 100_000})]))
        came: list[int] = []
        ids: list[str] = []
        with answers_bounded(redis_world):
            for _ in range(40):
                with contextlib.suppress(TransportDown):
                    incoming = await b.exchange(Outgoing(consumed=ids))
                    ids = [one for one, _ in incoming.letters]
                    came += seqs(incoming)
        assert came == list(range(20))
        assert (await b.exchange(Outgoing(consumed=ids))).letters == []

    play(redis_world, scene)


def test_packed_letters_that_are_large_when_they_are_opened_come_in_parts(redis_world: RedisWorld) -> None:
    """A few kilobytes may hold megabytes: what one exchange brings has a bound after it was opened, too."""

    async def scene(a: Transport, b: Transport) -> None:
        for number in range(12):
            redis_world.put("b", packed({"from": "a", "seq": str(number), "body": "x" * 60_000}))
        came: list[int] = []
        while len(came) < 12:
            incoming = await b.exchange(Outgoing())
            assert 1 <= len(incoming.letters) <= 5 if len(came) < 10 else incoming.letters
            came += seqs(incoming)
            await b.exchange(Outgoing(consumed=[one for one, _ in incoming.letters], read_inbox=False))
        assert came == list(range(12))

    play(redis_world, scene, max_letter_bytes=100_000, max_read_bytes=80_000)


def test_exchanges_of_little_do_not_say_that_the_line_carries_much(redis_world: RedisWorld) -> None:
    """After each pause in the mail as much was asked for at once as before, in vain."""

    async def scene(a: Transport, b: Transport) -> None:
        with answers_bounded(redis_world):
            for flood in range(2):
                for turn in range(20):
                    await a.exchange(Outgoing(letters=[("b", {**letter(turn), "body": "x" * 100_000})]))
                came, failed = 0, []
                while came < 20:
                    try:
                        incoming = await b.exchange(Outgoing())
                    except TransportDown:
                        failed.append(came)
                        continue
                    came += len(incoming.letters)
                    await b.exchange(Outgoing(consumed=[one for one, _ in incoming.letters], read_inbox=False))
                assert failed.count(0) < 2 or not flood
                for _ in range(10):
                    await b.exchange(Outgoing())

    play(redis_world, scene)


def test_cancelled_exchange_leaves_no_reply_behind_for_the_next(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for turn in range(20):
            call = asyncio.ensure_future(
                a.exchange(Outgoing(letters=[("b", letter(turn))], control={"turn": str(turn)}))
            )
            for _ in range(turn % 7):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            assert isinstance(await a.beats(), dict)
            incoming = await a.exchange(Outgoing(control={"now": str(turn)}))
            assert incoming.control["now"] == str(turn)

    play(redis_world, scene)


def test_stop_ends_soon_though_the_server_hangs(redis_world: RedisWorld) -> None:
    redis_world.timeout = 0.5

    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: heart.reads)
        redis_world.server.pause()
        failed = a.counts["beats_failed"]
        await until(lambda: a.counts["beats_failed"] > failed)
        await asyncio.wait_for(a.stop_beating("left"), 10 * TIMEOUT)
        redis_world.server.resume()

    play(redis_world, scene)


def test_calls_before_open_and_after_close(redis_world: RedisWorld) -> None:
    async def run() -> None:
        transport = redis_world.transport("a")
        with pytest.raises(RuntimeError, match="open"):
            await transport.exchange(Outgoing())
        await transport.close()
        await transport.open()
        await transport.close()
        await transport.close()
        with pytest.raises(TransportDown, match="closed"):
            await transport.exchange(Outgoing())

    asyncio.run(run())


# -- the beating thread ----------------------------------------------------------------------------------------------


def test_beats_go_on_while_a_callback_blocks_the_loop(redis_world: RedisWorld) -> None:
    """The callback itself waits until the server has seen five more beats: that is the block, however long it takes."""

    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: heart.reads)
        reads = len(heart.reads)
        with redis_world.server.client() as client:

            def counter() -> int:
                return CELL.unpack(client.getrange(redis_world.keys.pulses, 0, WIDTH - 1))[1]

            before, acks, end = counter(), len(heart.acks), time.monotonic() + 20
            while counter() < before + 5 and time.monotonic() < end:
                time.sleep(0.01)  # noqa: ASYNC251 - this is the callback that blocks
            assert counter() >= before + 5
        assert len(heart.acks) >= acks + 4  # the lease is renewed meanwhile
        assert len(heart.reads) == reads  # the loop has not turned
        await until(lambda: len(heart.reads) >= reads + 4)  # then it gets them, in order
        assert heart.counters() == sorted(set(heart.counters()))

    play(redis_world, scene)


def test_heart_has_one_connection_of_its_own(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart()
        heart.start(a)
        await until(lambda: len(heart.reads) >= 3)
        with redis_world.server.client() as client:
            names = sorted(one["name"] for one in client.client_list() if one["name"])
        assert names == [f"ubi:{CRAWL}:a", f"ubi:{CRAWL}:a:beat", f"ubi:{CRAWL}:b"]

    play(redis_world, scene)


@pytest.mark.parametrize("beats", [True, False])
def test_the_connection_of_the_heart_may_be_made_before_it_beats(redis_world: RedisWorld, beats: bool) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:

            def connections() -> list[int]:
                return [int(one["id"]) for one in client.client_list() if one["name"].endswith(":beat")]

            await a.prepare_beats()
            await a.prepare_beats()
            (made,) = await until(connections)
            if beats:
                heart = Heart()
                heart.start(a)
                await until(lambda: len(heart.reads) >= 2)
                assert connections() == [made]
            await a.close()
            await until(lambda: not connections())

    play(redis_world, scene)
