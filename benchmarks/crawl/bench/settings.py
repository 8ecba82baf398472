"""An ordinary project: what the benchmark compares comes with `-s` on the command line."""

from __future__ import annotations

BOT_NAME = "bench"
SPIDER_MODULES = ["bench.spiders"]
ROBOTSTXT_OBEY = False
TELNETCONSOLE_ENABLED = False
COOKIES_ENABLED = False
LOG_LEVEL = "INFO"
DOWNLOAD_DELAY = 0
CONCURRENT_REQUESTS = 16
