"""A crawl's keys written by hand, as the agents would write them: for tests of what people see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import redis

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.redis_keys import RedisKeys

CRAWL = "demo:web"
VIEW = "00c0ffee00c0ffee"


def profile(agent: str, /, **changes: Any) -> dict[str, Any]:
    """A profile as an agent publishes it; `counters` are merged into the usual ones."""
    counters = {
        "pages": 100,
        "done": 100,
        "unique": 100,
        "known": 150,
        "queued": 40,
        "in_flight": 2,
        "hosts": 10,
        "hosts_held": 20,
        "outbox": 3,
        "forwarded": 250,
        "suppressed": 70,
        "received": 240,
        "refused": 1,
        "resent": 2,
        "dead_letters": 1,
        "replicated": 130,
        "letters_sent": 20,
        "bytes_sent": 40_000,
        "failed": {"http 404": 3},
        "links": 900,
        "seconds": 10.0,
        "pages_per_second": 9.5,
    }
    counters.update(changes.pop("counters", {}))
    return {
        "agent": agent,
        "incarnation": incarnation(agent),
        "capacity": 1.0,
        "replicas": 200,
        "partition": "host",
        "normaliser": "safe",
        "replication": 1,
        "seeds": True,
        "spider": "web",
        "host_name": "machine-1",
        "pid": 4711,
        "version": "0.1.0",
        "state": "crawling",
        "started": 1_700_000_000.0,
        "updated": 1_700_000_010.0,
        "counters": counters,
        **changes,
    }


def incarnation(agent: str) -> str:
    """An incarnation that follows from the name, so that tests can name it."""
    return agent.encode().hex().zfill(8)[-8:]


def beat(agent: str, **changes: Any) -> str:
    """A beat line of that agent."""
    beat = Beat(**{"incarnation": incarnation(agent), "epoch": 0, "replicas": 200, "digest": VIEW, **changes})
    return beat.line(beat.counter)


def letter(body: Any, **changes: str) -> dict[str, str]:
    """The fields of an inbox entry with this body."""
    text = body if isinstance(body, str) else json.dumps(body)
    fields = {"from": "a2", "store": "0badcafe", "lane": "discovery", "seq": "17", "floor": "17", "n": "2"}
    return fields | {"view": VIEW, "enc": "json", "body": text} | changes


class CrawlByHand:
    """Writes one crawl into a Redis."""

    def __init__(self, client: redis.Redis, crawl: str = CRAWL) -> None:
        self.client = client
        self.crawl = crawl
        self.keys = RedisKeys(crawl)

    def now(self) -> float:
        seconds, micros = self.client.time()
        return float(seconds + micros / 1e6)

    def agent(self, name: str, profile_changes: Mapping[str, Any] | None = None, **beat_changes: Any) -> None:
        """An agent that works: a fresh profile and a beat."""
        fresh = {"updated": self.now(), "started": self.now() - 30} | dict(profile_changes or {})
        self.client.hset(self.keys.agents, name, json.dumps(profile(name, **fresh)))
        self.client.hset(self.keys.beats, name, beat(name, **beat_changes))

    def post(self, receiver: str, fields: Mapping[Any, Any]) -> None:
        self.client.xadd(self.keys.inbox(receiver), dict(fields))

    def refuse(self, agent: str, **fields: str) -> None:
        self.client.xadd(self.keys.dead(agent), dict(fields))

    def finish(self) -> None:
        self.client.hset(self.keys.control, mapping={"run": "77", "finished": "77 a1"})
