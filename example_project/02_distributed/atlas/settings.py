import os

BOT_NAME = "atlas"
SPIDER_MODULES = ["atlas.spiders"]
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"

# The demo web answers behind a proxy on this machine. A project that crawls the real web has no such line.
os.environ.setdefault("http_proxy", "http://127.0.0.1:8900")

ADDONS = {"scrapy_ubi.Addon": 500}
UBI_REDIS_URL = "redis://127.0.0.1:6390/0"

# Only because ../demo/servers.py has just started this Valkey for you: leave it out in a project of your own.
UBI_START_WAIT = 0
