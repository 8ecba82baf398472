"""The page over a real crawl: three agents and a Redis, one of them killed, and what a person does about it."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from scrapy_ubi.cli.monitor.status import server_time
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.web.live_stream import EVERY
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, read_until, until_there
from tests.support.server import Server
from tests.support.site import Site
from tests.web.browser.conftest import Tab

pytestmark = [pytest.mark.browser, pytest.mark.processes]

KEYS = RedisKeys("bot:served")
SPIDER = """
    import scrapy

    class Served(scrapy.Spider):
        name = "served"

        def parse(self, response):
            yield {"url": response.url}
"""
FAILURE = 2.0  # s without a beat until an agent is dead
GRACE = 3.0  # s more until the page shows it: the next look comes within `EVERY`, and is sent at once
BUSY = 30.0  # s that a machine may need on top of both, as others run on it


@pytest.fixture
def running() -> Iterator[Callable[[Running], Running]]:
    """Processes that are ended with the test."""
    with ExitStack() as ends:

        def keep(process: Running) -> Running:
            ends.callback(process.wait)
            ends.callback(process.kill)
            return process

        yield keep


def beat_of(server: Server, name: str) -> Beat:
    """What an agent has said last of itself."""
    beat = Beat.parse(server.client().hget(KEYS.beats, name).decode())
    assert beat is not None
    return beat


def declared(server: Server, incarnation: str) -> float:
    """Redis's time at which one of the others says that this incarnation is dead; waits for it."""
    end = time.monotonic() + FAILURE + GRACE + BUSY
    while not any(incarnation in beat_of(server, other).dead for other in ("a1", "a3")):
        assert time.monotonic() < end, "the others do not declare it dead"
        time.sleep(0.02)
    return server_time(server.client())


def next_look(address: str, since: float) -> dict[str, Any]:
    """The first document of the page's server that was read after this time of Redis."""
    while True:
        with urlopen(f"{address}/api/crawl", timeout=BUSY) as answer:
            document: dict[str, Any] = json.load(answer)
        if document["time"] > since:
            return document
        time.sleep(0.05)


def test_a_killed_agent_is_shown_as_dead_and_the_crawl_goes_on(
    tmp_path: Path, site: Site, one_server: Server, tab: Tab, running: Callable[[Running], Running]
) -> None:
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "served.py").write_text(textwrap.dedent(SPIDER))
    urls = [f"http://h{number}.example/{number}" for number in range(12)]
    for url in urls:
        site.page(url)
    given = {"UBI_REDIS_URL": one_server.url, "UBI_SERVE": 1, "UBI_LEASE_TIMEOUT": 1.2, "UBI_FAILURE_TIMEOUT": FAILURE}

    def start(name: str) -> Running:
        options = [part for key, value in {**given, "UBI_AGENT_ID": name}.items() for part in ("-s", f"{key}={value}")]
        return running(project.start("crawl", "served", *options))

    agents = {name: start(name) for name in ("a1", "a2", "a3")}
    until_there(one_server, 3)
    (tmp_path / "token").write_text("a-token-of-this-test-only\n")
    (tmp_path / "token").chmod(0o600)
    command = (
        "ubi",
        "web",
        "--json",
        "--port",
        "0",
        "--token-file",
        "token",
        "--crawl",
        "bot:served",
        "--redis-url",
        one_server.url,
    )
    served = running(project.start(*command))
    address = json.loads(read_until(served, '"url"').splitlines()[-1])["url"].rstrip("/")

    tab.open(address)
    tab.until_says("3 waiting")
    incarnation = beat_of(one_server, "a2").incarnation
    agents["a2"].kill()
    killed = server_time(one_server.client())
    dead = declared(one_server, incarnation)
    look = next_look(address, dead)
    # In time by the clock of the looks, however slow the machine: the first one after the others know it says so.
    assert {row["agent"]: row["state"] for row in look["agents"]}["a2"] == "dead"
    assert EVERY < GRACE
    shown = (
        "return [...document.querySelectorAll('.agents tbody tr')]"
        ".some(one => one.textContent.includes('a2') && one.querySelector('.chip')?.textContent === 'dead')"
    )
    tab.until(shown, FAILURE + GRACE + BUSY)
    shown_at = server_time(one_server.client())
    print(f"after kill -9: declared dead {dead - killed:.1f} s, on the page {shown_at - killed:.1f} s")
    tab.until("return document.querySelector('.events').textContent.includes('a2')")

    tab.press("Read-only")
    tab.until("return document.querySelector('dialog[open]')")
    tab.type("token", "a-token-of-this-test-only\ue007")
    tab.until_says("Changes are allowed in this tab.")
    tab.show("seeds")
    tab.type("urls", "\n".join(urls))
    tab.press("Seed", "form")
    tab.until(lambda: set(site.urls()) >= set(urls), LIMIT)
    tab.until_says("12 URLs sent", "OK 12")
    tab.show(f"url/{urls[0]}")
    tab.until_says("Fetched with status 200")
    tab.show("host/h1.example")
    tab.until_says("Nothing of it waits.")
    for view in ("ring", "hosts", "failures", "mail", "outputs", "settings", "crawl"):
        tab.show(view)
        tab.until("return document.querySelectorAll('#main .card').length > 0")
        assert not tab.run("return document.querySelector('#main .notice.bad')?.textContent"), view
    tab.press("Finish")
    tab.press("Finish", "dialog")
    tab.until_says("Finished: nothing is left to fetch anywhere.")
    assert [agents[name].wait(LIMIT) for name in ("a1", "a3")] == [0, 0]
    assert tab.complaints() == []
    assert [one for one in tab.requests() if not one.startswith((address, "data:"))] == []
