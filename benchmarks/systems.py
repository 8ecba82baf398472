"""What the benchmarks that crawl compare, as settings: one method for all of them, and what makes each system."""

from __future__ import annotations

from typing import Any

SEEDS = 100
METHOD: dict[str, Any] = {"BENCH_SEEDS": SEEDS, "CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32}
AGENT: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "UBI_HOST_DELAY": 0,
    # The first page waits for a lease, which nobody needs to watch sixty times; nothing else depends on these here.
    "UBI_LEASE_TIMEOUT": 3,
    "UBI_FAILURE_TIMEOUT": 6,
}
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
