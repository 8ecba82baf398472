"""The settings of a crawl without a project, as Scrapy reads a project's: `SCRAPY_SETTINGS_MODULE` names this module.

What the rules and options of a crawl say is set over these (`crawl_settings`), and `-s` over all.
"""

from __future__ import annotations

BOT_NAME = "scrapy-ubi"
SPIDER_MODULES = ["scrapy_ubi.cli.patterns.pages_spider"]
ADDONS = {"scrapy_ubi.Addon": 500}
ROBOTSTXT_OBEY = True
FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
UBI_STORES = ["items"]
UBI_NOFOLLOW = True
DOWNLOAD_TIMEOUT = 60
DOWNLOAD_MAXSIZE = 32 << 20  # bytes: what is larger is no page
UBI_MAX_BODY = 4 << 20  # bytes of HTML
UBI_DELAY_FACTOR = 1.0  # a site is left alone for as long as it took to answer
# A person waits for the end: a site that cannot be reached is given up after seconds, not minutes.
UBI_ROBOTS_GIVE_UP = 30.0
