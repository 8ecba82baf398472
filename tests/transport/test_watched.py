"""For how long a data set is known to have lost nothing: what only a real server can do to it (decision 0119)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from scrapy_ubi.ground import clock
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import WATCHED_KEY
from scrapy_ubi.transport.watched import DENIED, EVICTS, NEW, UNTOLD, Watched, WatchedKey
from tests.support.server import Server
from tests.transport.exchanges import play
from tests.transport.test_conformance_beats import Heart
from tests.transport.worlds import TIMEOUT, RedisWorld, until

LONG = 1000.0  # s
USER, PASSWORD = "narrow", "of-this-test"


def heard(world: RedisWorld) -> Watched:
    """What the first read of an agent says that comes now."""
    found: list[Watched] = []

    async def scene(a: Transport, b: Transport) -> None:
        heart = Heart("b")
        heart.start(b)
        await until(lambda: heart.watched)
        found.append(heart.watched[0])

    play(world, scene)
    return found[0]


def age(server: Server, own: float = LONG, of_server: float = LONG) -> None:
    """Let the key have been written so many seconds ago, by the clock of who wrote it and by the server's."""
    with server.client() as client:
        run, replid, *_ = client.get(WATCHED_KEY).decode().split()
        seconds, _ = client.time()
        own_ms, server_ms = (clock.unix() - own) * 1000, (seconds - of_server) * 1000
        client.set(WATCHED_KEY, f"{run} {replid} {server_ms:.0f} {own_ms:.0f}")


def long_known(world: RedisWorld) -> None:
    assert heard(world) == Watched(0.0, NEW)
    age(world.server)
    assert heard(world).seconds == pytest.approx(LONG, abs=60)


def test_a_new_crawl_at_a_known_data_set_hears_of_it(redis_world: RedisWorld) -> None:
    long_known(redis_world)

    async def other() -> Watched:
        transport = RedisTransport(redis_world.url, "another", "c", timeout=TIMEOUT)
        await transport.open()
        heart = Heart("c")
        heart.start(transport)
        await until(lambda: heart.watched)
        await transport.close()
        return heart.watched[0]

    assert asyncio.run(other()).seconds > LONG - 1


def test_a_server_that_was_started_again_with_its_data_is_not_known(redis_world: RedisWorld) -> None:
    long_known(redis_world)
    server = redis_world.server
    try:
        with server.client() as client:
            client.save()
        server.kill()
        server.start()
        with server.client() as client:
            assert client.exists(WATCHED_KEY)
        assert heard(redis_world) == Watched(0.0, NEW)
    finally:
        server.forget_file()


def test_a_replica_that_took_over_is_not_known_though_it_has_the_key(redis_world: RedisWorld) -> None:
    long_known(redis_world)
    with redis_world.server.client() as client:
        before = client.get(WATCHED_KEY)
        client.replicaof("127.0.0.1", redis_world.server.port)
        client.replicaof("NO", "ONE")
        assert client.get(WATCHED_KEY) == before
    assert heard(redis_world) == Watched(0.0, NEW)


def test_one_clock_that_is_set_forward_says_nothing(redis_world: RedisWorld) -> None:
    heard(redis_world)
    for own, of_server in ((0.0, LONG), (LONG, 0.0)):
        age(redis_world.server, own, of_server)
        assert heard(redis_world).seconds < LONG / 2
    age(redis_world.server)
    assert heard(redis_world).seconds > LONG / 2


def test_a_key_of_the_future_or_of_anything_else_is_written_anew(redis_world: RedisWorld) -> None:
    heard(redis_world)
    for own, of_server in ((-LONG, LONG), (LONG, -LONG)):
        age(redis_world.server, own, of_server)
        assert heard(redis_world) == Watched(0.0, NEW)
        assert heard(redis_world) != Watched(0.0, NEW)
    with redis_world.server.client() as client:
        for spoil in (lambda: client.set(WATCHED_KEY, b"\xff x"), lambda: client.lpush(WATCHED_KEY, "x")):
            client.delete(WATCHED_KEY)
            spoil()
            assert heard(redis_world) == Watched(0.0, NEW)
            assert heard(redis_world) != Watched(0.0, NEW)


@pytest.mark.parametrize(("policy", "known"), [("allkeys-lru", False), ("volatile-lru", True), ("noeviction", True)])
def test_a_server_that_may_throw_any_key_away_counts_as_not_known(
    redis_world: RedisWorld, policy: str, known: bool
) -> None:
    long_known(redis_world)
    with redis_world.server.client() as client:
        client.config_set("maxmemory-policy", policy)
        try:
            said = heard(redis_world)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert (said.seconds > LONG / 2 and not said.why) if known else said == Watched(0.0, EVICTS)


@contextmanager
def narrow(world: RedisWorld, *rights: str) -> Iterator[RedisWorld]:
    """The world of a user with these rights."""
    with world.server.client() as client:
        try:
            client.execute_command("ACL", "SETUSER", USER, "on", f">{PASSWORD}", *rights)
        except redis.ResponseError:
            pytest.skip("this server has no such rights: a Redis before 7")
        try:
            yield RedisWorld(world.server, world.server.url.replace("//", f"//{USER}:{PASSWORD}@"))
        finally:
            client.execute_command("ACL", "DELUSER", USER)


def test_a_user_without_the_key_or_without_info_beats_all_the_same(redis_world: RedisWorld) -> None:
    long_known(redis_world)
    with narrow(redis_world, "~ubi:{bot:spider}*", "+@all") as world:
        assert heard(world) == Watched(0.0, DENIED)
    with narrow(redis_world, "~ubi:*", "+@all", "-info") as world:
        assert heard(world) == Watched(0.0, UNTOLD)
    with narrow(redis_world, "~ubi:*", "+@all") as world:
        assert heard(world).seconds > LONG / 2


def test_what_is_no_number_of_seconds_counts_as_nothing() -> None:
    for text in ("", "x", "nan", "-1 ", "inf", "1e99 "):
        assert Watched.of({"**": text}) == Watched(0.0, UNTOLD)
    assert Watched.of({}) == Watched(0.0, UNTOLD)
    assert Watched.of({"**": Watched(1.5, NEW).text}) == Watched(1.5, NEW)


def test_the_smaller_of_what_both_clocks_say_has_passed() -> None:
    for server, own in ((200.0, 1001.0), (101.0, 2000.0)):
        key = WatchedKey()
        assert key.ask("ids", 100.0, 1000.0).why == NEW
        assert key.ask("ids", server, own) == Watched(1.0)
