"""What carries mail, each with the same handles for a test: break it, look into it, put garbage in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.seed_reader import SeedSource
from tests.support.server import Server

CRAWL = "bot:spider"
LIST = "{bot:spider}:start_urls"  # in the crawl's slot of a cluster
SEED_IDLE = 0.3  # s
TIMEOUT = 2.0  # s; of transports under test


async def until(condition: Callable[[], Any], limit: float = 20.0) -> Any:
    """Let the loop turn until `condition()` holds; its value. Fails after `limit` seconds."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, "what the test waits for did not come"
        await asyncio.sleep(0.005)  # a probe of the condition
    return value


class World(Protocol):
    """Where agents of one test meet, with their mail in so many slots; `apart`: not by one round trip with the rest."""

    mail_slots: int
    apart: bool

    def transport(self, agent: str, **limits: int) -> Transport: ...

    def put(self, agent: str, fields: Mapping[bytes, bytes]) -> str:
        """An entry into an inbox, by a stranger; its id."""

    def set_field(self, what: str, name: bytes, value: bytes) -> None:
        """A field of `beats`, `agents`, `control` or `acks:<agent>`, by a stranger."""

    def inbox(self, agent: str) -> int:
        """Entries in an inbox."""

    def dead(self, agent: str) -> list[dict[bytes, bytes]]: ...

    def answers(self, question: str) -> dict[bytes, bytes]: ...

    def seed(self, fields: Mapping[bytes, bytes]) -> str:
        """A seed from outside; its id."""

    def push(self, text: bytes) -> None:
        """Into the list that becomes seeds."""

    def seeds(self) -> int:
        """Seeds that wait for an answer."""

    def seeded(self) -> list[dict[bytes, bytes]]:
        """Answers to seeds."""

    def flush(self, renumber: bool = False) -> None:
        """All is lost; with `renumber` new ids are smaller than the old ones."""

    def fill(self, full: bool) -> None:
        """Refuse writes that need memory, or take them again."""

    def cut(self, down: bool) -> None:
        """Make the server unreachable, or reachable."""


class MemoryWorld:
    """Agents around a MemoryHub."""

    def __init__(self, mail_slots: int = 1) -> None:
        self.hub = MemoryHub()
        self.mail_slots, self.apart = mail_slots, False

    def transport(self, agent: str, **limits: int) -> Transport:
        return MemoryTransport(self.hub, agent, CRAWL, seed_idle=SEED_IDLE, mail_slots=self.mail_slots, **limits)

    def seed(self, fields: Mapping[bytes, bytes]) -> str:
        return self.hub.shelf(CRAWL).seeds.append(fields)

    def push(self, text: bytes) -> None:
        self.hub.shelf(CRAWL).seeds.listed.append(text)

    def seeds(self) -> int:
        return len(self.hub.shelf(CRAWL).seeds.waiting)

    def seeded(self) -> list[dict[bytes, bytes]]:
        return list(self.hub.shelf(CRAWL).seeds.answers)

    def put(self, agent: str, fields: Mapping[bytes, bytes]) -> str:
        return self.hub.append(CRAWL, agent, fields)

    def set_field(self, what: str, name: bytes, value: bytes) -> None:
        shelf = self.hub.shelf(CRAWL)
        kind, _, agent = what.partition(":")
        (shelf.acks[agent] if kind == "acks" else getattr(shelf, kind))[name] = value

    def inbox(self, agent: str) -> int:
        return len(self.hub.shelf(CRAWL).inbox[agent])

    def dead(self, agent: str) -> list[dict[bytes, bytes]]:
        return list(self.hub.shelf(CRAWL).dead[agent])

    def answers(self, question: str) -> dict[bytes, bytes]:
        return dict(self.hub.shelf(CRAWL).answers[question])

    def flush(self, renumber: bool = False) -> None:
        self.hub.flush(renumber)

    def fill(self, full: bool) -> None:
        self.hub.full = full

    def cut(self, down: bool) -> None:
        self.hub.down = down


class RedisWorld:
    """Agents around a real server."""

    def __init__(self, server: Server, url: str = "", mail_slots: int = 1) -> None:
        self.server, self.keys, self.mail_slots = server, RedisKeys(CRAWL, mail_slots), mail_slots
        self.apart = False
        self.url = url or server.url  # what agents are given
        self.settled: Callable[[], object] = lambda: None  # waits until a server that was started again serves
        self.timeout = TIMEOUT
        self.source: SeedSource | None = None  # where the transports read seeds
        self._number: int | None = None  # ids of strangers' entries once the clock of the server is "behind"

    def transport(self, agent: str, **limits: int) -> Transport:
        return RedisTransport(
            self.url, CRAWL, agent, timeout=self.timeout, seeds=self.source, mail_slots=self.mail_slots, **limits
        )

    def seed(self, fields: Mapping[bytes, bytes]) -> str:
        with self.server.client() as client:
            return client.xadd(self.keys.seeds, dict(fields)).decode()

    def push(self, text: bytes) -> None:
        with self.server.client() as client:
            client.rpush(LIST, text)

    def seeds(self) -> int:
        with self.server.client() as client:
            return client.xlen(self.keys.seeds)

    def seeded(self) -> list[dict[bytes, bytes]]:
        with self.server.client() as client:
            return [fields for _, fields in client.xrange(self.keys.seeded)]

    def put(self, agent: str, fields: Mapping[bytes, bytes]) -> str:
        number = "*"
        if self._number is not None:
            self._number += 1
            number = f"{self._number}-0"
        with self.server.client() as client:
            return client.xadd(self.keys.inbox(agent), dict(fields), id=number).decode()

    def set_field(self, what: str, name: bytes, value: bytes) -> None:
        kind, _, agent = what.partition(":")
        key = self.keys.acks(agent) if kind == "acks" else getattr(self.keys, kind)
        with self.server.client() as client:
            client.hset(key, name, value)

    def inbox(self, agent: str) -> int:
        with self.server.client() as client:
            return client.xlen(self.keys.inbox(agent))

    def dead(self, agent: str) -> list[dict[bytes, bytes]]:
        with self.server.client() as client:
            return [fields for _, fields in client.xrange(self.keys.dead(agent))]

    def answers(self, question: str) -> dict[bytes, bytes]:
        with self.server.client() as client:
            return dict(client.hgetall(RedisKeys(CRAWL).answers(question)))

    def flush(self, renumber: bool = False) -> None:
        self.server.flush()
        if renumber:  # as on a machine whose clock is behind
            self._number = 0

    def fill(self, full: bool) -> None:
        with self.server.client() as client:
            client.config_set("maxmemory", "1" if full else "0")

    def cut(self, down: bool) -> None:
        if down:
            self.server.kill()
        else:
            self.server.start()
            self.settled()
