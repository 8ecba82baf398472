import os

BOT_NAME = "broad"
SPIDER_MODULES = ["broad.spiders"]
ADDONS = {"scrapy_ubi.Addon": 500}
UBI_REDIS_URL = "redis://127.0.0.1:6390/0"

# Whose crawler it is, and a page that explains it to webmasters: the first rule of a broad crawl.
UBI_BOT_PAGE = "https://example.org/bot.html"
ROBOTSTXT_OBEY = True

# Seconds between two requests to one host, kept by the whole cluster. On the real web: 1 or more.
UBI_HOST_DELAY = 0.05

# Many hosts at once make it fast, as each of them has one request at a time.
CONCURRENT_REQUESTS = 64
REACTOR_THREADPOOL_MAXSIZE = 20

# A broad crawl can do without the slow, the huge and the personal.
COOKIES_ENABLED = False
DOWNLOAD_TIMEOUT = 30
DOWNLOAD_MAXSIZE = 10_000_000
DOWNLOAD_WARNSIZE = 0
RETRY_TIMES = 2
URLLENGTH_LIMIT = 2_000

LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False

# The demo web answers behind a proxy on this machine. A project that crawls the real web has no such line.
os.environ.setdefault("http_proxy", "http://127.0.0.1:8900")
