"""Every request that a host sees keeps the delay from the end of the one before, those that are sent again included.

With Scrapy's handler on aiohttp and with ours in this process, and with the one on Twisted in a process of its own.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.support import preloaded
from tests.support.crawls import crawl
from tests.support.resetting import Resetting

DELAY = 0.15
PAGES = 6
LIMIT = 150


class Pages(Spider):
    """Some pages of one host."""

    name = "pages"
    base = ""

    async def start(self) -> Any:
        for number in range(PAGES):
            yield Request(f"{self.base}/{number}")

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


def breaks(path: str, number: int) -> bool:
    """Page 1 is cut off at its first two requests, page 3 at the first."""
    return number <= {"/1": 2, "/3": 1}.get(path, 0)


SETTINGS = {"UBI_HOST_DELAY": DELAY, "RETRY_TIMES": 2, "ROBOTSTXT_OBEY": True}

TWISTED = """
    import json, sys
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    class Pages(Spider):
        name = "pages"

        async def start(self):
            for number in range(int(sys.argv[2])):
                yield Request(f"{sys.argv[1]}/{number}")

        def parse(self, response):
            pass

    process = CrawlerProcess({**json.loads(sys.argv[3]), "ADDONS": {"scrapy_ubi.Addon": 500}, "LOG_LEVEL": "ERROR"})
    crawler = process.create_crawler(Pages)
    process.crawl(crawler)
    process.start()
    print(json.dumps({name: crawler.stats.get_value(name, 0) for name in sys.argv[4:]}))
"""
COUNTED = ("ubi/guard/repeated", "retry/count", "response_received_count")


def on_twisted(url: str, place: str) -> dict[str, int]:
    """The stats of a crawl with Twisted's reactor."""
    settings = json.dumps({**SETTINGS, "UBI_DIR": place, "TELNETCONSOLE_ENABLED": False})
    arguments = [url, str(PAGES), settings, *COUNTED]
    script = textwrap.dedent(TWISTED)
    done = preloaded.run(arguments, cwd=Path(place), env=os.environ, timeout=LIMIT, script=script)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def seen(host: Resetting) -> Counter[str]:
    """How often each path was asked for; the delay was kept between all of them."""
    assert min(host.gaps()) >= DELAY, [round(gap, 3) for gap in host.gaps()]
    return Counter(host.paths())


@pytest.mark.parametrize("fast", [False, True], ids=["aiohttp", "ours"])
def test_a_request_is_sent_again_only_after_the_delay(fast: bool) -> None:
    with Resetting(breaks) as host:
        (one,) = crawl(Pages, settings={**SETTINGS, "UBI_FAST": fast}, base=host.url)
    assert one.reason == "finished" and len(one.items) == PAGES
    assert seen(host) == {"/robots.txt": 1, "/0": 1, "/1": 3, "/2": 1, "/3": 2, "/4": 1, "/5": 1}
    assert one.stats["ubi/guard/repeated"] == 2, "what a kept connection has lost is no failure"
    assert one.stats["retry/count"] == 1


@pytest.mark.processes
def test_scrapys_own_handler_sends_it_again_after_the_delay(tmp_path: Any) -> None:
    with Resetting(breaks) as host:
        counts = on_twisted(host.url, str(tmp_path))
    assert seen(host) == {"/robots.txt": 1, "/0": 1, "/1": 3, "/2": 1, "/3": 2, "/4": 1, "/5": 1}
    assert counts == {"ubi/guard/repeated": 2, "retry/count": 1, "response_received_count": PAGES + 1}


def test_a_robots_txt_that_is_cut_off_is_asked_for_after_growing_pauses() -> None:
    with Resetting(lambda path, number: path == "/robots.txt") as host:
        (one,) = crawl(Pages, settings={**SETTINGS, "UBI_ROBOTS_GIVE_UP": 7}, base=host.url)
    assert one.stats["ubi/failed/robots/unreachable"] == PAGES
    assert host.paths() == ["/robots.txt"] * 4
    assert all(gap >= pause for gap, pause in zip(host.gaps(), (2, 4, 0.5), strict=True)), host.gaps()
