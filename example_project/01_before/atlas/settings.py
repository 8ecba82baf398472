import os

BOT_NAME = "atlas"
SPIDER_MODULES = ["atlas.spiders"]
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"

# The demo web answers behind a proxy on this machine. A project that crawls the real web has no such line.
os.environ.setdefault("http_proxy", "http://127.0.0.1:8900")
