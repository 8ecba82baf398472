"""Seeds, URLs that come from outside: what the contract says of them, for everything that carries mail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from redis import Redis

from scrapy_ubi.transport import Incoming, Outgoing, Transport, TransportError, exchange_commands, shelf
from scrapy_ubi.transport import seed_scripts as scripts
from scrapy_ubi.transport.contract import HEAD, IN_HAND, SEEDED_FOR, EndOfCrawl, Outside, SeedAnswer
from scrapy_ubi.transport.seed_reader import SeedSource
from tests.transport.exchanges import play
from tests.transport.worlds import LIST, SEED_IDLE, RedisWorld, World

READ = Outgoing(read_seeds=100)
LIMIT = 60.0  # s


@pytest.fixture
def world(world: World) -> World:
    if isinstance(world, RedisWorld):
        world.source = SeedSource(LIST, SEED_IDLE)
    return world


@pytest.fixture
def redis_world(redis_world: RedisWorld) -> RedisWorld:
    redis_world.source = SeedSource(LIST, SEED_IDLE)
    return redis_world


def url(number: int) -> dict[bytes, bytes]:
    return {b"url": b"http://h.example/%d" % number}


def urls(incoming: Incoming) -> list[bytes]:
    return [fields[b"url"] for _, fields in incoming.seeds]


def numbers(incoming: Incoming) -> list[str]:
    return [number for number, _ in incoming.seeds]


def answered(ids: Sequence[str], said: str = "OK", **more: str) -> Outgoing:
    return Outgoing(seeds_answered=[SeedAnswer(one, said, **more) for one in ids], read_seeds=100)


def many(world: World, number: int) -> list[str]:
    """The ids of so many seeds, which are written now."""
    if not isinstance(world, RedisWorld):
        return [world.seed(url(one)) for one in range(number)]
    with world.server.client() as client:
        pipe = client.pipeline()
        for one in range(number):
            pipe.xadd(world.keys.seeds, dict(url(one)))
        return [written.decode() for written in pipe.execute()]


async def come(transport: Transport, wanted: int) -> list[str]:
    """The ids of so many seeds that are read, however long that takes."""
    found: list[str] = []
    end = time.monotonic() + LIMIT
    while len(found) < wanted:
        assert time.monotonic() < end, f"{len(found)} of {wanted} seeds have come"
        found += numbers(await transport.exchange(READ))
        await asyncio.sleep(0.01)  # a probe of the condition
    return found


def test_no_seeds_are_read_unless_asked_for(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.seed(url(1))
        assert not (await a.exchange(Outgoing())).seeds
        assert urls(await a.exchange(READ)) == [b"http://h.example/1"]

    play(world, scene)


def test_each_seed_goes_to_one_agent_once_and_in_order(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for number in range(7):
            world.seed(url(number))
        first = urls(await a.exchange(Outgoing(read_seeds=3)))
        rest = urls(await b.exchange(READ))
        assert first + rest == [url(number)[b"url"] for number in range(7)]
        assert not (await a.exchange(READ)).seeds
        assert not (await b.exchange(READ)).seeds
        assert world.seeds() == 7

    play(world, scene)


def test_answers_of_a_wrong_type_are_set_aside_and_the_seed_is_answered(redis_world: RedisWorld) -> None:
    world = redis_world

    async def scene(a: Transport, b: Transport) -> None:
        one = world.seed(url(1))
        assert numbers(await a.exchange(READ)) == [one]
        with world.server.client() as client:
            client.set(world.keys.seeded, "by hand")
        await a.exchange(answered([one]))
        assert (world.seeds(), [answer[b"said"] for answer in world.seeded()]) == (0, [b"OK"])

    play(world, scene)


def test_a_seed_that_is_answered_is_deleted_and_its_writer_can_read_why(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one, two = world.seed(url(1)), world.seed(url(2))
        assert numbers(await a.exchange(READ)) == [one, two]
        await a.exchange(answered([one], "REFUSED", why="a reason", name="mine", url="http://h.example/1"))
        assert world.seeds() == 1
        await a.exchange(answered([one], "KNOWN"))  # as after a lost reply
        said = {b"seed": one.encode(), b"said": b"REFUSED", b"why": b"a reason", b"id": b"mine", b"by": b"a"}
        assert world.seeded() == [{**said, b"url": b"http://h.example/1"}]
        await a.exchange(answered([two]))
        assert world.seeds() == 0
        assert [answer[b"said"] for answer in world.seeded()] == [b"REFUSED", b"OK"]

    play(world, scene)


def test_a_seed_can_be_handed_to_its_owner(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one, two = world.seed(url(1)), world.seed(url(2))
        await a.exchange(READ)
        assert not (await a.exchange(Outgoing(seeds_for=[(one, "b")], read_seeds=100))).seeds
        assert numbers(await b.exchange(READ)) == [one]
        await b.exchange(Outgoing(seeds_for=[(one, "a")]))
        assert numbers(await a.exchange(READ)) == [one], "views differ for a moment: it comes back"
        await a.exchange(answered([one, two]))
        assert world.seeds() == 0

    play(world, scene)


def test_seeds_of_an_agent_that_is_gone_are_claimed(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        ids = [world.seed(url(number)) for number in range(20)]
        assert numbers(await a.exchange(READ)) == ids
        await a.exchange(answered(ids[:3]))
        assert sorted(await come(b, 17)) == sorted(ids[3:])
        await b.exchange(answered(ids[3:]))
        assert world.seeds() == 0
        assert len(world.seeded()) == 20

    play(world, scene)


def test_seeds_of_an_agent_that_reads_on_are_its_own(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one = world.seed(url(1))
        await a.exchange(READ)
        end = time.monotonic() + 3 * SEED_IDLE
        while time.monotonic() < end:
            assert not (await a.exchange(READ)).seeds
            assert not (await b.exchange(READ)).seeds
            await asyncio.sleep(0.01)
        await a.exchange(answered([one]))
        assert world.seeds() == 0

    play(world, scene)


def test_an_agent_that_begins_again_finds_its_seeds_at_once(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        ids = [world.seed(url(number)) for number in range(12)]
        assert numbers(await a.exchange(READ)) == ids
        again = world.transport("a")
        await again.open()
        assert numbers(await again.exchange(READ)) == ids
        await again.close()

    play(world, scene)


def test_what_is_in_hand_is_bounded(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        ids = many(world, IN_HAND + 20)
        found: list[str] = []
        while news := numbers(await a.exchange(READ)):
            assert len(news) <= READ.read_seeds
            found += news
        assert found == ids[:IN_HAND]
        await a.exchange(Outgoing(seeds_answered=[SeedAnswer(one, "OK") for one in found]))
        assert numbers(await a.exchange(READ)) == ids[IN_HAND:]

    play(world, scene)


def test_an_oversized_seed_is_never_read_whole(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one = world.seed({b"url": b"x" * 20_000})
        world.seed(url(2))
        incoming = await a.exchange(READ)
        (number, fields), (_, second) = incoming.seeds
        assert (number, fields[b"oversized"], second) == (one, b"20003", url(2))
        assert fields[b"head"].startswith(b"url=xxx")
        assert len(fields[b"head"]) == HEAD

    play(world, scene, max_letter_bytes=10_000)


def test_seeds_are_lost_with_the_server_and_none_is_answered_then(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one = world.seed(url(1))
        await a.exchange(READ)
        world.flush()
        await a.exchange(answered([one]))
        assert (world.seeds(), world.seeded()) == (0, [])
        two = world.seed(url(2))
        assert numbers(await a.exchange(READ)) == [two]

    play(world, scene)


def test_a_new_run_finds_the_seeds_that_wait(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one = world.seed(url(1))
        await a.clear()
        assert numbers(await a.exchange(READ)) == [one]

    play(world, scene)


END = {"run": "r1", "memory": "m1"}
OVER = {"finished": "r1 a", "finished_at": "1.0"}


async def outside(transport: Transport) -> Outside:
    found = (await transport.exchange(Outgoing(look_outside=True))).outside
    assert found is not None
    return found


async def ends(transport: Transport, mark: str) -> bool:
    """Whether the crawl is over after this end was asked for."""
    control = (await transport.exchange(Outgoing(end=EndOfCrawl(mark, OVER)))).control
    return control is not None and control.get("finished") == "r1 a"


def test_the_end_is_written_where_no_seed_waits_and_none_has_come(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert await outside(a) == Outside(0, ""), "what may be forgotten unseen has no mark"
        await a.exchange(Outgoing(control=END))
        waiting, mark = await outside(a)
        assert not waiting and mark and await outside(b) == (0, mark)
        one = world.seed(url(1))
        assert await outside(a) == Outside(1, "")
        assert not await ends(a, mark), "one waits"
        assert numbers(await b.exchange(READ)) == [one]
        assert not await ends(a, mark), "it is taken, and not answered"
        await b.exchange(answered([one]))
        waiting, after = await outside(a)
        assert not waiting and after not in ("", mark)
        assert not await ends(a, mark), "one has come since, and is answered: who has taken it may have work by now"
        assert not await ends(a, "")
        assert await ends(a, after)
        assert await ends(b, "another"), "it is over already"

    play(world, scene)


def test_the_end_is_not_written_after_the_server_has_forgotten(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(control=END))
        _, mark = await outside(a)
        world.flush()
        assert not await ends(a, mark)
        await a.exchange(Outgoing(control={**END, "memory": "m2"}))
        assert not await ends(a, mark)
        assert await ends(a, (await outside(a)).mark)

    play(world, scene)


def test_what_is_listed_becomes_seeds(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        for number in range(5):
            world.push(b"http://h.example/%d" % number)
        incoming = await a.exchange(READ)
        assert [fields for _, fields in incoming.seeds] == [
            {b"listed": b"http://h.example/%d" % number} for number in range(5)
        ]
        assert world.seeds() == 5
        await a.exchange(answered(numbers(incoming)))
        assert world.seeds() == 0

    play(world, scene)


def test_a_long_list_stays_where_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exchange_commands, shelf):
        monkeypatch.setattr(module, "LIST_AHEAD", 5)

    async def scene(a: Transport, b: Transport) -> None:
        for _ in range(4):
            world.seed(url(0))
        for _ in range(3):
            world.push(b"http://h.example/")
        await a.exchange(READ)
        assert world.seeds() == 5

    play(world, scene)


def test_a_full_hand_is_still_the_own_one(world: World) -> None:
    """An agent that waits for others with all it can hold in hand reads no more, and is not taken for dead."""

    async def scene(a: Transport, b: Transport) -> None:
        ids = many(world, IN_HAND)
        assert await come(a, len(ids)) == ids
        end = time.monotonic() + 3 * SEED_IDLE
        while time.monotonic() < end:
            assert not (await a.exchange(READ)).seeds
            assert not (await b.exchange(READ)).seeds

    play(world, scene)


# -- of a Redis only -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["set", "zset"])
def test_sets_become_seeds_too(redis_world: RedisWorld, kind: str) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            if kind == "set":
                client.sadd(LIST, "u1", "u2", "u3")
            else:
                client.zadd(LIST, {"u1": 1, "u2": 7.5, "u3": 2})
        found = [fields[b"listed"] for _, fields in (await a.exchange(READ)).seeds]
        assert found == [b"u2", b"u3", b"u1"] if kind == "zset" else sorted(found) == [b"u1", b"u2", b"u3"]

    play(redis_world, scene)


def test_a_list_that_is_none_is_left_alone(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            client.set(LIST, "oops")
            assert not (await a.exchange(READ)).seeds
            assert client.get(LIST) == b"oops"

    play(redis_world, scene)


def test_answers_expire(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one = redis_world.seed(url(1))
        await a.exchange(READ)
        await a.exchange(answered([one]))
        with redis_world.server.client() as client:
            assert 0 < client.ttl(redis_world.keys.seeded) <= SEEDED_FOR

    play(redis_world, scene)


def test_idle_agents_make_no_keys(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            before = sorted(client.scan_iter("*"))
            for _ in range(50):
                await a.exchange(READ)
                await b.exchange(READ)
            assert sorted(client.scan_iter("*")) == before

    play(redis_world, scene)


def test_consumers_that_read_no_longer_are_forgotten(redis_world: RedisWorld) -> None:
    with redis_world.server.client() as client:
        keys = redis_world.keys
        redis_world.seed(url(1))
        run = client.register_script(scripts.READ)

        def read(agent: str, forget: int) -> Any:
            return run([keys.seeds], ["agents", agent, 10, 1000, 1000, HEAD, 60_000, forget])

        def consumers(client: Redis) -> list[bytes]:
            return sorted(one["name"] for one in client.xinfo_consumers(keys.seeds, "agents"))

        assert len(read("holds", 60_000)) == 1
        assert not read("idle", 60_000)
        assert not read("new", 60_000)
        assert consumers(client) == [b"holds", b"idle", b"new"]
        while b"idle" in consumers(client):  # a moment is enough
            read("new", 0)
        assert consumers(client) == [b"holds", b"new"], "what it holds is to be claimed first"


def test_a_key_of_another_type_is_put_aside(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            client.set(redis_world.keys.seeds, "oops")
            await a.exchange(READ)
            one = redis_world.seed(url(1))
            assert numbers(await a.exchange(READ)) == [one]
            assert client.get(redis_world.keys.seeds + ":aside") == b"oops"

    play(redis_world, scene)


def test_seeds_deleted_by_hand_are_passed_over(redis_world: RedisWorld) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        one, two = redis_world.seed(url(1)), redis_world.seed(url(2))
        with redis_world.server.client() as client:
            await a.exchange(Outgoing(read_seeds=1))
            client.xdel(redis_world.keys.seeds, one)
            again = redis_world.transport("a")
            await again.open()
            assert numbers(await again.exchange(READ)) == [two]
            assert client.xpending(redis_world.keys.seeds, "agents")["pending"] == 1
            await again.close()

    play(redis_world, scene)


def test_a_server_too_old_is_refused_in_one_sentence(redis_world: RedisWorld) -> None:
    """Before Redis 6.2 there is no XAUTOCLAIM."""

    async def scene() -> None:
        transport = redis_world.transport("a")
        with pytest.raises(TransportError, match=r"version 6\.2"):
            await transport.open()
        await transport.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripts, "READ", scripts.READ.replace("XAUTOCLAIM", "XNEVERWAS"))
        asyncio.run(scene())
