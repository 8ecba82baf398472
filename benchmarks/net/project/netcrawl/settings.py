"""An ordinary project of a wide crawl: what the benchmark compares comes with `-s` on the command line."""

from __future__ import annotations

BOT_NAME = "netcrawl"
SPIDER_MODULES = ["netcrawl.spiders"]
ROBOTSTXT_OBEY = False
TELNETCONSOLE_ENABLED = False
COOKIES_ENABLED = False
LOG_LEVEL = "INFO"
DOWNLOAD_DELAY = 0
EXTENSIONS = {"netcrawl.loop_blocks.LoopBlocks": 0}
