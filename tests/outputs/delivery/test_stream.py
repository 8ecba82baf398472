"""The store `stream` and a real Redis: bounded, read by groups, given again where Redis has lost it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.frontier.store import StoreHeldBack
from scrapy_ubi.outputs.delivery import stream_store
from scrapy_ubi.outputs.delivery.stream_store import StreamStore
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.item_stream import FOLLOW, ItemStream, NoSuchGroup
from tests.outputs.delivery.agent import DeliveringAgent
from tests.support.memory_store import MemoryStore
from tests.support.server import Server

CRAWL = "shop"
KEY = "ubi:{shop}:items"


def ubi(server: Server | None) -> UbiSettings:
    return UbiSettings(redis_url=server.url if server is not None else None, crawl=CRAWL)


class Agent(DeliveringAgent):
    """One whose receiver is a stream of this Redis."""

    def __init__(self, place: Path, server: Server, rows: MemoryStore | None = None, **arguments: str) -> None:
        store = StreamStore({key: (value,) for key, value in arguments.items()}, Settings())
        store.longest_pause = 0.0
        store.connect(ubi(server))
        super().__init__(place, store, rows, CRAWL)

    def flush(self, *numbers: int) -> None:
        """End pages with these items first. Raises StoreHeldBack."""
        for number in numbers:
            self.page(f"p{number}", number)
        super().flush()


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_store, "EVERY", 0.0)


@pytest.fixture
def redis(one_server: Server) -> Iterator[Any]:
    one_server.flush()
    with one_server.client() as client:
        yield client


def names(client: Any) -> list[str]:
    return [fields[b"id"].decode() for _, fields in client.xrange(KEY)]


def read(client: Any, group: str, count: int = 1000) -> list[str]:
    """Read by this group, and acknowledge."""
    said = client.xreadgroup(group, "one", {KEY: ">"}, count=count)
    found = [entry for _, entries in said or () for entry in entries]
    for name, _ in found:
        client.xack(KEY, group, name)
    return [fields[b"id"].decode() for _, fields in found]


def test_an_entry_has_identity_run_and_item(tmp_path: Path, one_server: Server, redis: Any) -> None:
    agent = Agent(tmp_path, one_server)
    agent.flush(1, 2)
    (_, first), (_, second) = redis.xrange(KEY)
    assert (first[b"id"], first[b"run"], json.loads(first[b"item"])) == (b"p1-0", b"run", {"n": 1})
    assert second[b"id"] == b"p2-0"
    agent.end()


def test_a_full_stream_waits_for_its_slowest_group_and_says_which(
    tmp_path: Path, one_server: Server, redis: Any
) -> None:
    agent = Agent(tmp_path, one_server, length="10")
    with pytest.raises(StoreHeldBack, match=r"is full \(10 entries\): no consumer group reads it"):
        agent.flush(*range(12))
    for group in ("quick", "slow"):
        redis.xgroup_create(KEY, group, "0")
    assert len(read(redis, "quick")) == 10
    with pytest.raises(StoreHeldBack, match="the group 'slow' has not acknowledged them"):
        agent.flush()
    assert len(read(redis, "slow", 3)) == 3
    agent.flush()
    assert names(redis) == [f"p{number}-0" for number in range(redis.xlen(KEY) and 12 - redis.xlen(KEY), 12)]
    assert redis.xlen(KEY) <= 10 and read(redis, "slow")[0] == "p3-0"
    agent.end()


def test_bytes_are_bounded_as_well(tmp_path: Path, one_server: Server, redis: Any) -> None:
    agent = Agent(tmp_path, one_server, memory="60")
    agent.flush(1, 2, 3, 4, 5)
    with pytest.raises(StoreHeldBack, match="is full"):
        for number in range(6, 30):
            agent.flush(number)
    agent.end()


def test_what_was_not_acknowledged_is_given_again_where_redis_has_lost_it(
    tmp_path: Path, one_server: Server, redis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(tmp_path, one_server)
    agent.flush(1, 2)
    redis.xgroup_create(KEY, "g", "0")
    assert read(redis, "g") == ["p1-0", "p2-0"]
    agent.flush(3)
    agent.flush(4)
    with caplog.at_level(logging.WARNING):
        one_server.flush()
        assert agent.writer.changed  # though no page has come
        agent.flush()
        assert names(redis) == ["p3-0", "p4-0"]
        one_server.flush()
        agent.flush(5)
    assert names(redis) == ["p3-0", "p4-0", "p5-0"]
    assert caplog.text.count("Redis has lost the stream of items") == 2
    agent.end()


def test_so_it_is_after_a_restart_and_where_an_older_state_was_restored(
    tmp_path: Path, one_server: Server, redis: Any
) -> None:
    agent = Agent(tmp_path, one_server)
    agent.flush(1)
    old = redis.dump(KEY)
    agent.flush(2)
    agent.end()
    redis.delete(KEY)
    redis.restore(KEY, 0, old)
    again = Agent(tmp_path, one_server, agent.rows)
    again.flush()
    assert names(redis)[-1] == "p2-0"
    again.end()
    one_server.flush()
    third = Agent(tmp_path, one_server, agent.rows)
    third.end()  # it had nothing to do
    assert {*names(redis)} == {"p1-0", "p2-0"}


def test_a_redis_that_is_away_holds_the_flush_back(tmp_path: Path, one_server: Server, redis: Any) -> None:
    agent = Agent(tmp_path, one_server)
    one_server.kill()
    try:
        with pytest.raises(StoreHeldBack, match=r"The stream of items takes none.*connection refused"):
            agent.flush(1)
    finally:
        one_server.start()
    agent.flush()
    assert names(one_server.client()) == ["p1-0"]
    agent.end()


def test_followers_that_are_gone_hold_up_nobody(
    tmp_path: Path, one_server: Server, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path, one_server, length="5")
    stream = ItemStream(redis, CRAWL)
    stream.join_at(f"{FOLLOW}there", "0")
    stream.join_at(f"{FOLLOW}gone", "0")
    redis.hset("ubi:{shop}:followers", f"{FOLLOW}gone", "12.5")
    agent.flush(1, 2, 3, 4, 5)
    got = stream.read(f"{FOLLOW}there", 0.01)
    stream.acknowledge(f"{FOLLOW}there", [at for at, _ in got])
    agent.flush(6)
    assert [group["name"].decode() for group in redis.xinfo_groups(KEY)] == [f"{FOLLOW}there"]
    with pytest.raises(NoSuchGroup):
        stream.read(f"{FOLLOW}gone", 0.01)
    agent.end()


def test_a_pending_entry_is_not_taken_out(tmp_path: Path, one_server: Server, redis: Any) -> None:
    agent = Agent(tmp_path, one_server, length="4")
    agent.flush(1)
    redis.xgroup_create(KEY, "g", "0")
    redis.xreadgroup("g", "one", {KEY: ">"})
    agent.flush(2, 3, 4)
    read(redis, "g")
    with pytest.raises(StoreHeldBack, match="the group 'g' has not acknowledged"):
        agent.flush(5)
    assert names(redis)[0] == "p1-0"
    agent.end()


def test_without_a_redis_it_is_refused() -> None:
    with pytest.raises(
        UbiSettingError, match="UBI_STORES names 'stream', and UBI_REDIS_URL is not set: name the Redis"
    ):
        StreamStore({}, Settings()).connect(ubi(None))
