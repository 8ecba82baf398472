"""What becomes of URLs that were found, by `start()`, on pages, or by people: told the agent, as far as the crawl's
limits allow, and what follows from news.

Rules of this module:

* All of it touches memory only, and is called for every link: nothing here may cost more than it must.
* News may make a host ready, and mail due: the waker is told, once for all links of a page.
* What is taken in again was taken before: no limit of URLs known refuses it.
* What was no news has a reason (`Verdict`), found out afterwards, as most links were known before they come here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.agent.work.visits import Visit
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import Entry

Holds = Callable[[int, int, int], bool]


def knows_none(key: int, depth: int, priority: int) -> bool:
    """Whether a key is known, of a host that this agent has never met: no key is."""
    return False


def holders(agent: Agent) -> Callable[[str], Holds]:
    """A function that takes a host, and gives a second function: whether a key of that host, with its depth and
    priority, is known here. For the host of another agent: whether that agent was told of it.

    Both may be used until the view changes, or a host is met that was not known. For one link there is
    `Discovery.met`, which also looks at strays, and counts.
    """
    me, find, keeping = agent.me, agent.frontier.find, agent.keeping
    owner, told = keeping.ring.owner if keeping.view.members else None, agent.discovery.told

    def holder(host: str) -> Holds:
        if owner is not None and owner(host) != me:
            return told
        state = find(host)
        return knows_none if state is None else state.holds

    return holder


class Discoverer:
    """Finds for the agent that `crawl` has. `on_news` is called, some time after, when there were some."""

    def __init__(
        self,
        crawl: Crawl,
        crawl_limits: CrawlLimits,
        limits: HostLimits,
        waker: EngineWakeup,
        on_news: Callable[[], None],
    ) -> None:
        self._crawl = crawl
        self._crawl_limits = crawl_limits
        self._limits = limits
        self._waker = waker
        self._on_news = on_news

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        """Whether a URL that was found is known already, so that `discover` would add nothing; it is counted if so."""
        return self._crawl.agent.discovery.met(host, key, depth, priority)

    def discover(self, host: str, entry: Entry, seed: bool = False, page: Visit | None = None) -> Verdict:
        """A URL was found, by `start()` (`seed`) or on a page: FOUND, as far as is known here, KNOWN, LIMITED or
        TOO_LARGE.
        """
        if reason := self._crawl_limits.refuses_depth(entry.depth):
            self._limits.refuse(reason, host)
            return Verdict.LIMITED
        self._crawl.tally.strays += page is None and not seed
        if not self._crawl.agent.discovery.discover(host, entry, page.outlinks if page is not None else None):
            return self._why_no_news(host, entry)
        self._waker.soon(self._on_news)
        return Verdict.FOUND

    def _why_no_news(self, host: str, entry: Entry) -> Verdict:
        agent = self._crawl.agent
        if agent.discovery.too_large(host, entry):
            return Verdict.TOO_LARGE
        if self._limits.idle or not agent.keeping.owns(host):
            return Verdict.KNOWN
        state = agent.frontier.find(host)
        return Verdict.KNOWN if state is not None and state.is_known(entry.key) else Verdict.LIMITED

    def take_again(self, host: str, entry: Entry) -> bool:
        """A request that was taken before is to be fetched under another key (`RequestKeys.again`), whatever the
        crawl's limits. True when that was news.
        """
        self._crawl.tally.strays += 1
        news = self._crawl.agent.discovery.discover(host, entry)
        if news:
            self._waker.soon(self._on_news)
        return news

    def discover_all(self, host: str, entries: Sequence[Entry], page: Visit) -> Sequence[tuple[Entry, Verdict]]:
        """Take in all URLs that a page says of one host, with one depth. Return what was no news, and why."""
        if reason := self._crawl_limits.refuses_depth(entries[0].depth):
            for _ in entries:
                self._limits.refuse(reason, host)
            return [(entry, Verdict.LIMITED) for entry in entries]
        news = self._crawl.agent.discovery.discover_all(host, entries, page.outlinks)
        if news:
            self._waker.soon(self._on_news)
        if len(news) == len(entries):
            return ()
        told = set(map(id, news))
        return [(entry, self._why_no_news(host, entry)) for entry in entries if id(entry) not in told]
