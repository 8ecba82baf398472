"""What follows in an agent when people change its crawl: delays, limits, whether it fetches at all, whether it waits
for seeds, and whether pages are visited again.

Rules of this module:

* The order in which parts hear of it is here, and nowhere else. Of a change of settings they are told once for all.
* All of it runs in the event loop, and touches memory only.
* A paused crawl, or host, starts no load of a page; loads under way end, with what their pages load besides. What
  waits for its permit goes back to its queue.
"""

from __future__ import annotations

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.hosts.crawl_limits import CrawlLimits
from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_pace import HostPace
from scrapy_ubi.agent.hosts.policy import refuses_by
from scrapy_ubi.agent.mail.seed_inbox import SeedInbox
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.agent.work.engine_wakeup import EngineWakeup
from scrapy_ubi.agent.work.host_access import HostAccess


class Steered:
    """The parts of one node that people can steer, by `live`."""

    def __init__(
        self,
        live: RuntimeSettings,
        pace: HostPace,
        crawl: Crawl,
        limits: HostLimits,
        crawl_limits: CrawlLimits,
        access: HostAccess,
        waker: EngineWakeup,
        seeds: SeedInbox,
    ) -> None:
        self._seeds = seeds
        self._pace = pace
        self._crawl = crawl
        self._access = access
        self._waker = waker
        self._limits = limits
        self._crawl_limits = crawl_limits
        live.follow(self._follow)

    def _follow(self, live: RuntimeSettings) -> None:
        self._limits.follow(live.now, live.of_host)
        self._pace.follow(live, self._crawl.frontier)
        self._crawl.agent.discovery.refuses = refuses_by(self._limits)
        self._crawl_limits.follow(live.now)
        self._seeds.finishing = live.finish_asked
        self._crawl.agent.work.visits_ended = live.finish_asked or not self._crawl.recrawl.visits_again
        self._access.permits.pause(live.paused, live.paused_hosts)
        if live.begun:
            self._waker.arm()
