"""A Scrapy project in a directory of its own, whose crawls and commands are real processes.

They are forked of one that has imported Scrapy (preloaded.py), or with `fresh=True` started as users start them.
Agents with a Redis do not wait before their first page (`UBI_START_WAIT = 0`): the Redis of a test forgets nothing.
"""

from __future__ import annotations

import json
import os
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import redis

from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.transport.contract import MEMORY
from tests.support import preloaded
from tests.support.preloaded import Running
from tests.support.server import Server
from tests.support.site import Site

LIMIT = 150.0  # s for one process, on a machine that does much else
SETTINGS = """
    BOT_NAME = "bot"
    SPIDER_MODULES = ["project.spiders"]
    ADDONS = {"scrapy_ubi.Addon": 500}
    TELNETCONSOLE_ENABLED = REMOTE_CONTROL_ENABLED = False
    LOG_LEVEL = "INFO"
    UBI_HEARTBEAT_INTERVAL = 0.2
    UBI_START_WAIT = 0
"""

SPIDER = """
    import asyncio, signal
    import scrapy
    from scrapy.linkextractors import LinkExtractor

    class Walk(scrapy.Spider):
        name = "walk"
        start_urls = ["http://h1.example/"]

        async def start(self):
            # SIGUSR1: this agent loses its right to all transfers under way, as when its lease ends.
            cancel = lambda: self.crawler.engine._slot.scheduler.gate.cancel()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, cancel)
            for url in self.start_urls:
                yield scrapy.Request(url, errback=self.failed)

        def parse(self, response):
            yield {"url": response.url, "body": len(response.body)}
            yield from response.follow_all(LinkExtractor().extract_links(response))

        def failed(self, failure):
            yield {"failed": repr(failure.value)}
"""


PLAIN = """
    import scrapy
    from scrapy.linkextractors import LinkExtractor

    class Plain(scrapy.Spider):
        name = "plain"
        start_urls = ["http://h1.example/"]

        def parse(self, response):
            yield {"url": response.url}
            yield from response.follow_all(LinkExtractor().extract_links(response))
"""


class Project:
    """A Scrapy project in a directory of its own."""

    def __init__(self, place: Path, proxy: str) -> None:
        self.place = place
        self.environment = {**os.environ, "http_proxy": proxy, "no_proxy": ""}
        spiders = place / "project" / "spiders"
        spiders.mkdir(parents=True)
        (place / "scrapy.cfg").write_text("[settings]\ndefault = project.settings\n")
        (place / "project" / "__init__.py").touch()
        (spiders / "__init__.py").touch()
        (place / "project" / "settings.py").write_text(textwrap.dedent(SETTINGS))
        (spiders / "walk.py").write_text(textwrap.dedent(SPIDER))
        (spiders / "plain.py").write_text(textwrap.dedent(PLAIN))

    def start(self, *arguments: str, fresh: bool = False) -> Running:
        """Start `scrapy` with these arguments."""
        return preloaded.start(arguments, cwd=self.place, env=self.environment, fresh=fresh)

    def start_script(self, script: str, *arguments: str, fresh: bool = False) -> Running:
        """Start Python with this script."""
        text = textwrap.dedent(script)
        return preloaded.start(arguments, cwd=self.place, env=self.environment, fresh=fresh, script=text)

    def run(self, *arguments: str, fresh: bool = False) -> tuple[int, str]:
        """Run `scrapy` to its end: exit status and output."""
        with self.start(*arguments, fresh=fresh) as process:
            output, _ = process.communicate(timeout=LIMIT)
        return process.wait(), output

    def items(self, name: str = "items.jsonl") -> list[Any]:
        return [json.loads(line) for line in (self.place / name).read_text().splitlines()]


def on_redis(url: str, agent: str) -> list[str]:
    return ["-s", f"UBI_REDIS_URL={url}", "-s", f"UBI_AGENT_ID={agent}", "-o", f"{agent}.jsonl"]


def read_until(process: Running, text: str) -> str:
    """What the process says, up to the line that has this text. One that does not come to it is killed."""
    assert process.stdout is not None
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    said = ""
    try:
        while text not in said:
            said += (line := process.stdout.readline())
            assert line, said
    finally:
        limit.cancel()
    return said


@contextmanager
def until_joined(site: Site, url: str, server: Server, number: int) -> Iterator[None]:
    """Start agents within this block. Until so many have joined, `url` has no answer: no crawl that needs it ends
    before all are there."""
    with site.hold(url) as held:
        yield
        until_there(server, number)
        held.release()


def until_there(server: Server, number: int) -> None:
    """Until so many agents have joined their crawls, and those of each see the same group."""
    end = time.monotonic() + LIMIT
    with server.client() as client:
        while (there := _joined(client)) < number:
            assert time.monotonic() < end, f"{there} agents of {number} have joined"
            time.sleep(0.05)


def _joined(client: redis.Redis) -> int:
    """Agents that have written a beat, and have not left, of all crawls whose agents see the same group."""
    found = 0
    for key in client.scan_iter("ubi:{*}:beats", count=1000):
        lines = cast("dict[bytes, bytes]", client.hgetall(key))
        beats = [Beat.parse(line.decode()) for name, line in lines.items() if name != MEMORY.encode()]
        views = [beat.digest for beat in beats if beat is not None and LEFT not in beat.flags]
        found += len(views) if len(set(views)) == 1 else 0
    return found
