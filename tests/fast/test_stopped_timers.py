"""Timers that were stopped do not stay: shown with Twisted's own reactor, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc
from twisted.internet import asyncioreactor
asyncioreactor.install()
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from twisted.internet import reactor
from twisted.internet.base import DelayedCall
from scrapy_ubi.fast import stopped_timers

stopped_timers.EVERY = 0.01
crawler = Crawler(Spider, {})
timers = stopped_timers.StoppedTimers.from_crawler(crawler)

def held():
    return sum(type(each) is DelayedCall for each in gc.get_objects())

def opened(looks=0):
    if not looks:
        crawler.signals.send_catch_log(signals.spider_opened)
        for _ in range(1000):
            reactor.callLater(180, print).cancel()
    elif held() < 100 or looks > 500:
        print(held() < 100)
        crawler.signals.send_catch_log(signals.spider_closed)
        crawler.signals.send_catch_log(signals.spider_closed)
        assert not timers.calls.running
        return reactor.stop()
    asyncio_loop.call_later(0.01, opened, looks + 1)

asyncio_loop = reactor._asyncioEventloop
asyncio_loop.call_soon(opened)
reactor.run()
"""


def test_what_was_stopped_is_let_go_long_before_its_time() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert said.stdout == "True\n", said.stderr
