"""What crawls the testbed, as settings: one method for all, and what makes each system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AGENT: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "UBI_CRAWL": "net",
    "UBI_HOST_DELAY": 0,
    "UBI_PRIVATE_HOSTS": "allow",
    "UBI_LEASE_TIMEOUT": 3,
    "UBI_FAILURE_TIMEOUT": 6,
}
SHORT = {**AGENT, "SPIDER_MODULES": "netcrawl.short", "UBI_FAST": False}
FAST = {**SHORT, "UBI_FAST": True}
PLAIN: dict[str, Any] = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}
REDIS = {
    **PLAIN,
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}


@dataclass(frozen=True, slots=True)
class System:
    """One way to crawl. `redis`: the setting that names a Redis; `concurrency`: CONCURRENT_REQUESTS, 0 where the
    system finds it by itself."""

    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 0
    spider: str = "walk"
    redis: str = ""
    crawlee: bool = False

    @property
    def is_ours(self) -> bool:
        return "ADDONS" in self.settings


def _all() -> dict[str, System]:
    found = {
        f"scrapy{at_once}": System(f"Scrapy, {at_once} at once", PLAIN, at_once) for at_once in (16, 64, 128, 250, 500)
    }
    for at_once in (64, 250):
        found[f"redis{at_once}"] = System(f"scrapy-redis, {at_once} at once", REDIS, at_once, redis="REDIS_URL")
        found[f"crawlee{at_once}"] = System(f"Crawlee, {at_once} at once", {}, at_once, crawlee=True)
    for name, label, settings, spider in (
        ("walk", "unmodified spider", AGENT, "walk"),
        ("short", "short path", SHORT, "short"),
        ("fast", "short path, UBI_FAST", FAST, "short"),
        ("selecting", "short path, UBI_FAST, response.css", FAST, "selecting"),
        ("walk_fast", "unmodified spider, UBI_FAST", {**AGENT, "UBI_FAST": True}, "walk"),
    ):
        found[name] = System(f"{label}, by itself", settings, 0, spider, "UBI_REDIS_URL")
        for at_once in (16, 64, 128, 250, 500):
            found[f"{name}{at_once}"] = System(
                f"{label}, {at_once} at once", settings, at_once, spider, "UBI_REDIS_URL"
            )
    return found


SYSTEMS = _all()
USUAL = ("scrapy16", "scrapy128", "scrapy500", "redis250", "crawlee250", "walk", "short", "fast")
