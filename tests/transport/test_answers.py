"""Questions and answers of people: what the contract promises of them, for everything that carries mail."""

from __future__ import annotations

import pytest
import redis

from scrapy_ubi.transport import Outgoing, Transport
from scrapy_ubi.transport.contract import ANSWER
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.server import Server
from tests.transport.exchanges import play
from tests.transport.worlds import CRAWL, RedisWorld, World

ASKED = "0123456789abcdef"


def test_each_agent_answers_for_itself_and_may_say_it_again(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(replies={ASKED: '{"agent":"a"}'}))
        await b.exchange(Outgoing(replies={ASKED: '{"agent":"b"}', "f" * 16: "{}"}))
        await a.exchange(Outgoing(replies={ASKED: '{"agent":"a"}'}))
        assert world.answers(ASKED) == {b"a": b'{"agent":"a"}', b"b": b'{"agent":"b"}'}
        assert world.answers("f" * 16) == {b"b": b"{}"}

    play(world, scene)


def test_fields_of_the_control_hash_are_forgotten(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(control={"run": "1", f"ask:{ASKED}": "{}"}))
        assert (await b.exchange(Outgoing(forget_control=[f"ask:{ASKED}", "unknown"]))).control == {"run": "1"}
        assert (await a.exchange(Outgoing())).control == {"run": "1"}

    play(world, scene)


def test_in_redis_no_answer_stays_for_ever(server: Server) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(replies={ASKED: "{}"}))
        with server.client() as client:
            assert 0 < client.ttl(RedisKeys(CRAWL).answers(ASKED)) <= ANSWER

    play(RedisWorld(server), scene)


def test_answers_go_with_the_crawl(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.exchange(Outgoing(replies={ASKED: "{}"}))
        await b.clear()
        assert world.answers(ASKED) == {}

    play(world, scene)


def test_an_answer_that_cannot_be_written_is_lost_and_nothing_else(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.fill(True)
        await a.exchange(Outgoing(replies={ASKED: "{}"}))
        world.fill(False)
        assert world.answers(ASKED) == {}

    play(world, scene)


def test_a_server_that_lets_nobody_set_an_end_gets_no_answer(server: Server) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        with server.client() as client:
            try:
                client.execute_command("ACL", "SETUSER", "default", "-expire")
            except redis.ResponseError:
                pytest.skip("this server has no rights by command: a Redis before 6")
            try:
                await a.exchange(Outgoing(replies={ASKED: "{}"}))
            finally:
                client.execute_command("ACL", "SETUSER", "default", "+expire")
            assert not client.exists(RedisKeys(CRAWL).answers(ASKED))

    play(RedisWorld(server), scene)
