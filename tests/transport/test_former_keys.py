"""The keys of the first versions, as they were: read with a real server, and written to."""

from __future__ import annotations

from scrapy_ubi.transport import Transport
from tests.transport.conftest import RedisWorld
from tests.transport.exchanges import play
from tests.transport.worlds import CRAWL


def test_former_keys_are_read_and_written_as_they_were(redis_world: RedisWorld) -> None:
    agents, control = f"ubi:{CRAWL}:agents", f"ubi:{CRAWL}:control"

    async def scene(a: Transport, b: Transport) -> None:
        with redis_world.server.client() as client:
            assert await a.former_profiles() == {}
            client.hset(agents, "o1", '{"agent": "o1"}')
            assert await a.former_profiles() == {"o1": '{"agent": "o1"}'}
            await a.tell_former({"drain:o1": "0123abcd"})
            assert client.hgetall(control) == {b"drain:o1": b"0123abcd"}
            client.delete(agents)
            client.set(agents, "no hash")
            assert await a.former_profiles() == {}, "not ours to mend"
            assert client.get(agents) == b"no hash"

    play(redis_world, scene)
