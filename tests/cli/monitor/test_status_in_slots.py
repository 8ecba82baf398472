"""What people see of a crawl whose mail is in slots of a cluster, and what they forget of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from scrapy_ubi.cli.commands import reset
from scrapy_ubi.cli.commands.redis_connection import RedisConnection
from scrapy_ubi.cli.monitor.headline import remarks
from scrapy_ubi.cli.monitor.inbox_text import read_inbox
from scrapy_ubi.cli.monitor.status import read_status
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.redis_keys import RedisKeys, hash_slot
from tests.conftest import KINDS, no_server
from tests.support.redis_groups import Cluster

SLOTS, CRAWL = 3, "demo"
NAMES = ("a0", "a1", "a2")
KEYS = RedisKeys(CRAWL, SLOTS)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if not KINDS:
        no_server()
    cluster = Cluster(KINDS[0], masters=SLOTS, replicas=0, node_timeout=60_000).start()
    yield cluster
    cluster.stop()


def test_mail_is_counted_where_it_is_and_a_master_that_is_away_is_said(cluster: Cluster) -> None:
    at = address(cluster.url)
    client = client_of(at, 2.0)
    for number, name in enumerate(NAMES, 1):
        profile = {"agent": name, "mail_slots": SLOTS, "state": "crawling"}
        client.hset(KEYS.agents, name, json.dumps(profile, separators=(",", ":")))
        for _ in range(number):
            client.xadd(KEYS.inbox(name), {"from": "x", "body": "[]"})
        client.hset(KEYS.acks(name), "lane", "1")
        client.set(KEYS.memory(name), "token")
    status = read_status(client, CRAWL)
    assert {agent.name: agent.inbox for agent in status.agents} == {"a0": 1, "a1": 2, "a2": 3}
    assert (status.odd_keys, status.mail_away) == ((), ())
    assert read_inbox(client, RedisKeys(CRAWL, status.agents[2].mail_slots), "a2", 10).total == 3

    home = cluster.owner(KEYS.slot)
    name = next(one for one in NAMES if cluster.owner(hash_slot(KEYS.mail_tag(one))) is not home)
    away = cluster.owner(hash_slot(KEYS.mail_tag(name)))
    away.kill()
    status = read_status(client, CRAWL)
    assert name in status.mail_away
    assert {agent.name for agent in status.agents} == {*NAMES}
    assert any(name in line for line in remarks(status))
    away.start()
    cluster.wait_until_whole()

    to = RedisConnection(client, at, "UBI_REDIS_URL")
    left = [KEYS.memory(one).encode() for one in NAMES if one != name]  # that master has lost all
    assert {*left} <= {*reset.find_keys(to, CRAWL)}
    reset.delete_keys(to, CRAWL)
    assert [*reset.find_keys(to, CRAWL)] == []
    assert [*client.scan_iter("ubi:*")] == []
