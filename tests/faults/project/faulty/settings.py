"""A user's project with short times; each test adds the Redis and the seeds."""

from __future__ import annotations

BOT_NAME = "faulty"
SPIDER_MODULES = ["faulty.spiders"]
ADDONS = {"scrapy_ubi.Addon": 500}

ROBOTSTXT_OBEY = True
TELNETCONSOLE_ENABLED = REMOTE_CONTROL_ENABLED = False
LOG_LEVEL = "INFO"
RETRY_TIMES = 5

# A machine that is busy with other things must not lose a lease by it: shorter than usual, but not short.
UBI_CRAWL = "faulty"
UBI_MIXED_AGENTS = True  # in some tests only one of them is given seeds
UBI_HEARTBEAT_INTERVAL = 0.5
UBI_LEASE_TIMEOUT = 3.0
UBI_FAILURE_TIMEOUT = 5.0
