"""What the parts of a node are tried on: the crawl of agent `a`, in memory, at a time that only a test moves."""

from __future__ import annotations

from scrapy_ubi.agent.crawl.crawl import Crawl
from scrapy_ubi.agent.crawl.disk import NoDisk
from scrapy_ubi.agent.crawl.fatal import Fatal
from scrapy_ubi.agent.profile import figures
from tests.agent.crawler import SETTINGS


class Part:
    """`told`: why the agent stopped."""

    def __init__(self, delay: float = 0.0) -> None:
        self.now = 100.0
        self.told: list[str] = []
        disk = NoDisk(delay)
        self.halt = Fatal(disk, self.told.append)
        fixed = figures.fixed(SETTINGS, "a", "spider")
        self.crawl = Crawl(SETTINGS, "a", disk, fixed, lambda incarnation: None, self.clock)

    def clock(self) -> float:
        return self.now

    def hold_lease(self) -> None:
        """It is alone, and its beat was just taken."""
        agent = self.crawl.agent
        agent.sure()
        agent.group.lease.acknowledged(self.now)
        agent.read(self.now, self.now, {"a": agent.beat})
        agent.tick(self.now)
        assert agent.group.lease.holds(self.now)
