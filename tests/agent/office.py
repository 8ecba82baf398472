"""An agent's post, at a time that only a test moves, and letters to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.crawl.disk_contract import Disk
from scrapy_ubi.agent.mail.disk_flush import DiskFlush
from scrapy_ubi.agent.mail.exchange import Exchange
from scrapy_ubi.agent.mail.inbox_check import InboxCheck, Judge
from scrapy_ubi.agent.mail.io_thread import IoThread
from scrapy_ubi.agent.mail.outage import LONGEST_PAUSE
from scrapy_ubi.agent.mail.run_state import RunState
from scrapy_ubi.agent.mail.seed_inbox import REFUSED, SeedInbox, SeedOutcome
from scrapy_ubi.agent.report.answers_under_way import Steps
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.report.query_inbox import QueryInbox
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.frontier.store import StoreFull
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.lane import Bounds
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Incoming, Outgoing
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.signed_transport import SignedTransport
from scrapy_ubi.transport.signer import Signer
from scrapy_ubi.urls.host_shards import NO_SHARDS, HostShards

CRAWL = "crawl"
LIMIT = 60.0  # s: what has not come by then never will
REPLICAS = 20
VIEW = "00000000000000ff"
SETTINGS = UbiSettings(crawl=CRAWL, max_letter_bytes=20_000, max_url_length=100)
HOST = "h.example"  # kept by `a`, alone


class FullDisk(NoDisk):
    """Refuses what is written while it is `full`, and counts the rest."""

    def __init__(self, full: bool = False) -> None:
        super().__init__(0.0)
        self.full, self.writes = full, 0

    async def write(self) -> None:
        if self.full:
            raise StoreFull("No room.")
        self.writes += 1


def letter(value: Any = (), **rest: str) -> dict[bytes, bytes]:
    """A letter from z, by hand."""
    fields = {
        "from": "z",
        "store": "0badcafe",
        "lane": "state",
        "seq": "1",
        "floor": "1",
        "n": "1",
        "view": VIEW,
        "enc": "json",
        "body": json.dumps(value),
        **rest,
    }
    return {name.encode(): text.encode() for name, text in fields.items()}


def found(*urls: str) -> list[dict[str, Any]]:
    return [{"host": HOST, "discovered": [[f"{number:016x}", url, 0] for number, url in enumerate(urls, 1)]}]


def inbox_check(
    agent: Agent, judge: Judge, longest_url: int, shards: HostShards = NO_SHARDS, seeds: SeedInbox | None = None
) -> InboxCheck:
    """One to which people put no questions; without `seeds` none can come."""
    queries = QueryInbox(agent.me, unasked, lambda: 0.0, lambda call: call())
    if seeds is None:
        seeds = SeedInbox(lambda number, fields: SeedOutcome(REFUSED), lambda: None)
        seeds.close()
    return InboxCheck(agent, judge, longest_url, queries, shards, seeds)


def unasked(question: Question) -> Steps:
    raise AssertionError(question)


class Office:
    """Agent `me` and its post, signed where there is a `secret`, at a time that only a test moves; the other end is the
    hub itself."""

    def __init__(
        self,
        control: dict[str, str] | None = None,
        judge: Callable[[str, Entry], str | None] | None = None,
        disk: Disk | None = None,
        on_flush: Callable[[], str] = lambda: "",
        seeds: SeedInbox | None = None,
        mail_slots: int = 1,
        hub: MemoryHub | None = None,
        me: str = "a",
        secret: str = "",
    ):
        self.now = 100.0
        self.hub = hub or MemoryHub()
        config = Config(replicas=REPLICAS, bounds=Bounds(8, 500, 3000, resend=1e6))
        self.disk = disk or NoDisk(0.0)
        self.agent = Agent(me, "5" * 8, config, self.disk.frontier, lambda: "1" * 8, self.now)
        self.agent.sure()
        self.agent.group.lease.acknowledged(self.now)
        settings = replace(SETTINGS, mail_slots=mail_slots)
        self.transport: Any = MemoryTransport(self.hub, me, CRAWL, SETTINGS.max_letter_bytes, mail_slots=mail_slots)
        if secret:
            self.transport = SignedTransport(self.transport, Signer(secret, CRAWL), me, CRAWL, 1.0)
        self.arrivals = 0
        self.post = Exchange(
            self.agent,
            self.transport,
            IoThread(own_thread=False),
            settings,
            RunState(self.agent, control or {}, str(self.disk.facts.get("run", "")), RuntimeSettings(SETTINGS)),
            inbox_check(self.agent, judge or (lambda host, entry: None), SETTINGS.max_url_length, seeds=seeds),
            DiskFlush(self.agent, self.disk, lambda run: None, on_flush),
            self._arrived,
        )

    def _arrived(self) -> None:
        self.arrivals += 1

    def join(self, *names: str) -> None:
        """Other agents are in the view; `b` where none is named."""
        beat = Beat("2" * 8, 0, REPLICAS, "0" * 16, counter=1)
        others = {name: replace(beat, incarnation=f"{at:08x}") for at, name in enumerate(names or ("b",), 0x22222222)}
        self.agent.read(self.now, self.now, {"a": self.agent.beat, **others})

    @property
    def shelf(self) -> Any:
        return self.hub.shelf(CRAWL)

    def put(self, fields: dict[bytes, bytes]) -> None:
        """A letter for `a`; of the run it is in, unless it says otherwise."""
        runs = self.post.run
        runs.run = runs.run or "5eed5eed"
        self.hub.append(CRAWL, "a", {b"run": runs.run.encode(), **fields} if b"from" in fields else fields)

    async def trip(self) -> None:
        """One exchange, whatever comes of it."""
        self.agent.tick(self.now)
        self.post.send(self.now, lambda: None)
        await self.arrival()

    async def arrival(self) -> None:
        while not self.post.collect(self.now):
            await asyncio.sleep(0)

    async def trips(self, number: int) -> None:
        for _ in range(number):
            self.now += LONGEST_PAUSE
            await self.trip()

    def links_to(self, agent: str) -> list[Any]:
        """The bodies of the discovery letters in an inbox."""
        inbox = self.shelf.inbox[agent].values()
        return [json.loads(fields[b"body"]) for fields in inbox if fields[b"lane"] == b"discovery"]

    @property
    def dead(self) -> list[dict[str, str]]:
        return [{n.decode(): v.decode() for n, v in one.items()} for one in self.shelf.dead["a"]]

    def answer(self, lane: str = "0badcafe/a/state") -> dict[str, Any] | None:
        text = self.shelf.acks["z"].get(lane.encode())
        return None if text is None else json.loads(text)

    def control(self, name: str) -> str | None:
        value = self.shelf.control.get(name.encode())
        return None if value is None else value.decode()

    def say(self, name: str, value: str) -> None:
        self.shelf.control[name.encode()] = value.encode()


def listen(office: Office) -> list[Outgoing]:
    """What all exchanges from now on give the transport."""
    exchange, given = office.transport.exchange, []

    async def heard(out: Outgoing) -> Incoming:
        given.append(out)
        return await exchange(out)

    office.transport.exchange = heard  # type: ignore[method-assign]
    return given


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), LIMIT))
