"""What the benchmarks that crawl compare, as settings: one method for all of them, and what makes each system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CRAWL = "bench"
SEEDS = 100
METHOD: dict[str, Any] = {"CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32}
AGENT: dict[str, Any] = {
    "UBI_CRAWL": CRAWL,
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "UBI_HOST_DELAY": 0,
    # The first page waits for a lease, which nobody needs to watch sixty times; nothing else depends on these here.
    "UBI_LEASE_TIMEOUT": 3,
    "UBI_FAILURE_TIMEOUT": 6,
}
SHORT: dict[str, Any] = {"SPIDER_MODULES": "bench.short", "UBI_FAST": False}
FAST: dict[str, Any] = {**SHORT, "UBI_FAST": True}
SCRAPY_REDIS: dict[str, Any] = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,  # else the first process to end empties the queue of all
}
BREADTH_FIRST: dict[str, Any] = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}


@dataclass(frozen=True)
class System:
    """How many processes of which spider, with which settings.

    `redis`: the setting that names the server. `jobdir`: with a JOBDIR. `apart`: each crawls for itself.
    """

    processes: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    redis: str = ""
    spider: str = "walk"
    jobdir: bool = False
    apart: bool = False

    @property
    def is_ours(self) -> bool:
        return "ADDONS" in self.settings

    @property
    def crawls(self) -> int:
        """How many crawls its processes are, with pages of their own."""
        return self.processes if self.apart else 1


PEERS = {
    "scrapy": System(1, {**METHOD, **BREADTH_FIRST}),
    "jobdir": System(1, {**METHOD, **BREADTH_FIRST}, jobdir=True),
    "redis1": System(1, {**METHOD, **BREADTH_FIRST, **SCRAPY_REDIS}, "REDIS_URL"),
    "redis2": System(2, {**METHOD, **BREADTH_FIRST, **SCRAPY_REDIS}, "REDIS_URL"),
    "walk1": System(1, {**METHOD, **AGENT}, "UBI_REDIS_URL"),
    "walk2": System(2, {**METHOD, **AGENT}, "UBI_REDIS_URL"),
    "walk4": System(4, {**METHOD, **AGENT}, "UBI_REDIS_URL"),
    "short1": System(1, {**METHOD, **AGENT, **SHORT}, "UBI_REDIS_URL", "short"),
    "short2": System(2, {**METHOD, **AGENT, **SHORT}, "UBI_REDIS_URL", "short"),
    "short4": System(4, {**METHOD, **AGENT, **SHORT}, "UBI_REDIS_URL", "short"),
    "fast1": System(1, {**METHOD, **AGENT, **FAST}, "UBI_REDIS_URL", "short"),
    "fast2": System(2, {**METHOD, **AGENT, **FAST}, "UBI_REDIS_URL", "short"),
    "fast4": System(4, {**METHOD, **AGENT, **FAST}, "UBI_REDIS_URL", "short"),
    "fast4t0": System(4, {**METHOD, **AGENT, **FAST, "UBI_REPLICATION": 0}, "UBI_REDIS_URL", "short"),
    "walk4apart": System(4, {**METHOD, **AGENT}, "UBI_REDIS_URL", apart=True),
    "short4apart": System(4, {**METHOD, **AGENT, **SHORT}, "UBI_REDIS_URL", "short", apart=True),
    "fast4apart": System(4, {**METHOD, **AGENT, **FAST}, "UBI_REDIS_URL", "short", apart=True),
}
LABELS = {
    "scrapy": "Scrapy",
    "jobdir": "Scrapy, JOBDIR",
    "redis1": "scrapy-redis, 1 process",
    "redis2": "scrapy-redis, 2 processes",
    "walk1": "unmodified, 1 agent",
    "walk2": "unmodified, 2 agents",
    "walk4": "unmodified, 4 agents",
    "short1": "short path, 1 agent",
    "short2": "short path, 2 agents",
    "short4": "short path, 4 agents",
    "fast1": "short, UBI_FAST, 1 agent",
    "fast2": "short, UBI_FAST, 2 agents",
    "fast4": "short, UBI_FAST, 4 agents",
    "fast4t0": "short, UBI_FAST, 4, t=0",
    "walk4apart": "unmodified, 4 crawls",
    "short4apart": "short path, 4 crawls",
    "fast4apart": "short, UBI_FAST, 4 crawls",
}
