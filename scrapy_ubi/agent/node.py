"""The node: one running agent. What the Scrapy adapters talk to.

`build_node` puts it together; each part has its idea, and its rules, in a module of its own. Rules of this module:

* `met`, `discover`, `next_visit`, `end_visit`, `retry`, `put_back`, the permits (`access`) touch memory only. The
  mail's I/O has a thread of its own (`IoThread`); calls of the loop take what has come, and give what is due (`turn`).
* Parts that last as long as the node work for another crawl once one begins again (`Crawl.follow`).
"""

from __future__ import annotations

from typing import Any

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.host_concurrency import SinglePages
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.ip_politeness import IpPoliteness
from scrapy_ubi.agent.hosts.learned_forms import LearnedForms
from scrapy_ubi.agent.hosts.rated_hosts import NoRates
from scrapy_ubi.agent.lifecycle import Lifecycle
from scrapy_ubi.agent.mail.item_claims import ItemClaims
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.report.live_answers import LiveAnswers
from scrapy_ubi.agent.report.recorder import Recorder
from scrapy_ubi.agent.report.status import Status
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.discover import Discoverer
from scrapy_ubi.agent.work.handout import Handout
from scrapy_ubi.agent.work.host_access import HostAccess
from scrapy_ubi.agent.work.iterations import Iterations
from scrapy_ubi.agent.work.visits import Visit
from scrapy_ubi.protocol.host import Entry


class Node:
    """One agent of a crawl, running in this event loop.

    `hosts`, `limits`: what it knows of its hosts; `addresses`, `learner`, `iterations`: None where the settings want
    none; `concurrency`, `rates`: that do nothing then. `access` gives permits, also for hosts of other agents,
    `handout` requests. `status` says how it stands, `live` what people have changed."""

    def __init__(
        self,
        crawl: Crawl,
        lifecycle: Lifecycle,
        hosts: HostNotes,
        limits: HostLimits,
        addresses: IpPoliteness | None,
        concurrency: SinglePages,
        rates: NoRates,
        learner: LearnedForms | None,
        iterations: Iterations | None,
        discoverer: Discoverer,
        access: HostAccess,
        handout: Handout,
        live: RuntimeSettings,
        seeds: SeedInbox,
        item_claims: ItemClaims,
        status: Status,
        recorder: Recorder,
        answers: LiveAnswers,
    ) -> None:
        self.crawl = crawl
        self.lifecycle = lifecycle
        self.hosts = hosts
        self.limits = limits
        self.addresses = addresses
        self.concurrency = concurrency
        self.rates = rates
        self.learner = learner
        self.iterations = iterations
        self.met = discoverer.met  # called for every link: not by one more method
        self.discover = discoverer.discover
        self.discover_all = discoverer.discover_all
        self.access = access
        self.handout = handout
        self.live = live
        self.seeds = seeds
        self.item_claims = item_claims
        self.status = status
        self.recorder = recorder
        self.answers = answers
        crawl.follow(self._follow)

    def _follow(self) -> None:
        """Work for the agent that the crawl has now."""
        self.agent = self.crawl.agent
        self.frontier = self.crawl.frontier
        self.joins = self.crawl.tally.joins  # what lossy steps of the normal form have joined

    async def open(self) -> None:
        """Join the group. Raises UbiError with one sentence when refused, TransportError when Redis cannot be used."""
        await self.lifecycle.open()

    async def leave(self, reason: str) -> None:
        """Leave: say that the crawl is over, or hand everything over first, for at most `UBI_LEAVE_TIMEOUT`."""
        await self.lifecycle.leave(reason)

    @property
    def over(self) -> bool:
        """Whether the crawl is over everywhere."""
        return self.agent.end.finished

    # -- visits

    def next_visit(self) -> Visit | None:
        """Return the next request to fetch; None when none may be fetched now, even though some may be pending."""
        return self.handout.next_visit()

    def retry(self, visit: Visit, entry: Entry) -> None:
        """Let the same key be fetched again, as `entry`, when this visit has ended."""
        visit.again = entry

    def end_visit(
        self, visit: Visit, failed: str | None = None, fetched: bool = True, status: int = 0, content: int | None = None
    ) -> None:
        """Hear that the visit is over: its callback's whole output was taken, or it `failed` after all retries.
        `status` is that of the response, 0 where there was none; `content` what the learned forms compare pages by."""
        self.handout.end_visit(visit, failed, fetched, status, content)

    def put_back(self, visit: Visit) -> None:
        """Let the request of a visit wait again that was not made (fence, lost host, shutdown)."""
        self.handout.put_back(visit)

    # -- for people

    def note(self, what: str, host: str = "") -> None:
        """Note something that happened at this host, for the report."""
        self.crawl.tally.note(what, host)

    def counters(self) -> dict[str, Any]:
        """Return all counters of this agent, as published for people."""
        return self.crawl.counters()
