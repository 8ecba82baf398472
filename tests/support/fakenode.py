"""A node of one agent in memory, whose rights a test can take away: for what needs a fence at an exact moment.

`fenced`: no permit is given, those who ask wait. `lost`: hosts that another agent owns now. `grants` counts permits
given; `calls` is the record of what the adapters told the node. Hosts that are `lost` get foreign permits where those
will do.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from scrapy_ubi.agent.crawl.revisits import NoRecrawl
from scrapy_ubi.agent.hosts.foreign_hosts import ForeignHosts
from scrapy_ubi.agent.hosts.host_concurrency import SINGLE_PAGES
from scrapy_ubi.agent.profile.figures import Tally
from scrapy_ubi.agent.profile.merged_urls import MergedUrls
from scrapy_ubi.agent.report.timeline import Timeline
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.quiescence import CrawlEnd, Quiescence
from scrapy_ubi.settings import UbiSettings


class FakeVisit:
    def __init__(self, host: str, entry: Entry) -> None:
        self.host = host
        self.entry = entry
        self.state = SetState(host)
        self.before = self.again = None


class FakeHosts:
    """Notes of hosts that keep nothing but a record: `calls`. `why`: host -> why it is ended."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}
        self.counted = Counter[str]()
        self.calls: list[tuple[Any, ...]] = []

    def on_change(self, callback: Callable[[HostState], None]) -> None:
        """Nothing comes from elsewhere here."""

    def get(self, state: HostState, section: str) -> object | None:
        return None

    def read_end_reason(self, state: HostState) -> str:
        return self.why.get(state.host, "")

    def end(self, state: HostState, reason: str, whole: bool = False) -> None:
        self.why[state.host] = reason

    def delays(self, state: HostState) -> dict[str, float]:
        return {}

    def rests(self, state: HostState) -> bool:
        return False

    def asked_left(self, state: HostState) -> float:
        return 0.0

    def __getattr__(self, name: str) -> Callable[..., None]:
        def told(state: HostState, *args: Any, **named: Any) -> None:
            self.calls.append((name, state.host, *args, *named.values()))

        return told


class FakeNode:
    """What scrapy_ubi.agent.Node is to the adapters."""

    def __init__(self) -> None:
        # The same object in place of these parts.
        self.access = self.crawl = self.status = self.lifecycle = self.ticker = self
        self.fenced = False
        self.times_ahead = 0
        self.lost: set[str] = set()
        self.closed = False
        self.wake: Callable[[], None] = lambda: None
        self.out = 0
        self.grants: Counter[str] = Counter()
        self.put_off: set[str] = set()
        self.waiters: Counter[str] = Counter()  # by host
        self.again: list[str] = []  # hosts whose permit was asked for once more, before all others
        self.joins = MergedUrls()
        self.learner = None
        self.tally = Tally(0.0)
        self.state = "crawling"
        self.recorder = SimpleNamespace(timeline=Timeline())
        self.seeds = SimpleNamespace(serves=False, counts=Counter())
        self.item_claims = None
        self.concurrency = SINGLE_PAGES
        self.recrawl = NoRecrawl()
        self.published: dict[str, str] = {}
        self.lost_agents: tuple[str, ...] = ()
        self.calls: list[tuple[Any, ...]] = []
        self.live = RuntimeSettings(UbiSettings())
        self.agent = SimpleNamespace(end=CrawlEnd(Quiescence()))
        self.hosts = FakeHosts()
        self.addresses = None
        self.frontier = MemoryFrontier()
        self.held: set[str] = set()
        self.abroad: set[str] = set()  # of these, hosts held by a foreign permit
        self.foreign = ForeignHosts(lambda: self.now)
        self.now = 0.0
        self.pages: dict[str, FakeVisit | None] = {}  # URL -> the page it was found on, as far as is known
        self._known: set[int] = set()
        self.queue: deque[FakeVisit] = deque()  # what waits to be handed out
        self._again: dict[FakeVisit, Entry] = {}
        self._changed = asyncio.Event()

    def visit(self, url: str, host: str = "h1.example", key: int = 1) -> FakeVisit:
        """A visit as if it had been handed out."""
        return FakeVisit(host, Entry(key, url, 0))

    def change(self, *, fenced: bool | None = None, lost: set[str] | None = None) -> None:
        """Give or take rights; who waits for a permit looks again."""
        self.fenced = self.fenced if fenced is None else fenced
        self.lost = self.lost if lost is None else lost
        self._changed.set()
        self._changed = asyncio.Event()

    async def open(self) -> None:
        self.calls.append(("open",))

    async def leave(self, reason: str) -> None:
        self.closed = True
        self.calls.append(("leave", reason))

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        return key in self._known

    def discover(self, host: str, entry: Entry, seed: bool = False, page: FakeVisit | None = None) -> Verdict:
        if entry.key in self._known:
            return Verdict.KNOWN
        self._known.add(entry.key)
        self.calls.append(("discover", host, entry, seed))
        self.pages[entry.url] = page
        self.queue.append(FakeVisit(host, entry))
        return Verdict.FOUND

    def next_visit(self) -> FakeVisit | None:
        if not self.queue:
            return None
        self.out += 1
        return self.queue.popleft()

    @property
    def over(self) -> bool:
        return self.agent.end.start_exhausted and not self.queue and not self.out

    def pending(self) -> bool:
        return bool(self.queue)

    @property
    def waiting(self) -> int:
        return len(self.queue)

    def retry(self, visit: FakeVisit, entry: Entry) -> None:
        self.calls.append(("retry", visit, entry))
        self._again[visit] = entry

    def end_visit(
        self,
        visit: FakeVisit,
        failed: str | None = None,
        fetched: bool = True,
        status: int = 0,
        content: int | None = None,
    ) -> None:
        self.out -= 1
        self.calls.append(("ended", visit.entry.url, failed, fetched))
        if visit in self._again:
            self.queue.append(FakeVisit(visit.host, self._again.pop(visit)))
        self.wake()

    def put_back(self, visit: FakeVisit) -> None:
        self.out -= 1
        self.calls.append(("put_back", visit.entry.url))
        self.queue.append(FakeVisit(visit.host, visit.entry))
        self.wake()

    def permit_now(self, host: str, visit: FakeVisit | None, foreign: bool = False) -> bool | None:
        if (host in self.lost and not foreign) or self.closed or (foreign and self.over):
            return False
        if self.fenced or host in self.held or self.waiters[host]:
            return None
        self._grant(host)
        return True

    async def permit(self, host: str, visit: FakeVisit | None, again: bool = False, foreign: bool = False) -> bool:
        if again:
            self.again.append(host)
        self.waiters[host] += 1
        try:
            while True:
                if (host in self.lost and not foreign) or self.closed or (foreign and self.over):
                    return False
                if not self.fenced and host not in self.held:
                    self._grant(host)
                    return True
                await self._changed.wait()
        finally:
            self.waiters[host] -= 1

    def _grant(self, host: str) -> None:
        self.held.add(host)
        self.abroad |= {host} & self.lost
        self.grants[host] += 1

    def release(self, host: str, visit: FakeVisit | None = None, again: bool = False) -> None:
        self.held.remove(host)  # a second release is a bug of the adapters
        self.abroad.discard(host)
        self.change()

    def not_before(self, host: str, seconds: float) -> None:
        self.calls.append(("not_before", host, seconds))

    def may_fetch(self, host: str) -> bool:
        return not self.fenced and host not in self.lost

    def may_load(self, host: str) -> bool:
        return not self.fenced if host in self.abroad else self.may_fetch(host)

    def is_own(self, host: str) -> bool:
        return host not in self.lost

    def is_foreign(self, host: str) -> bool:
        return host in self.abroad

    def loads(self, host: str) -> bool:
        return not self.fenced and not self.closed and host not in self.put_off

    def start_exhausted(self) -> None:
        self.agent.end.start_exhausted = True

    @property
    def limits(self) -> Any:
        return SimpleNamespace(idle=True, counted={}, passed=lambda state: self.calls.append(("passed", state.host)))

    def note(self, what: str, host: str = "") -> None:
        self.calls.append(("note", what, host))

    others = ("a2",)

    def late(self) -> float:
        return 0.0

    def counters(self) -> dict[str, Any]:
        return {}
