"""A crawl of real processes that waits for URLs, while agents are killed and leave."""

from __future__ import annotations

import signal
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, until_there
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.processes

SPIDER = """
    import scrapy

    class Served(scrapy.Spider):
        name = "served"

        def parse(self, response):
            yield {"url": response.url}
"""
KEYS = RedisKeys("bot:served")
LIST = "served:start_urls"
EACH = 100  # URLs of a writer


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not come"
        time.sleep(0.02)  # a probe of the condition


def write(project: Project, server: Server, urls: list[list[str]]) -> None:
    """Three writers at once, each in its way: into the stream, by the command, into scrapy-redis's list."""

    def stream() -> None:
        with server.client() as client:
            for url in urls[0]:
                client.xadd(KEYS.seeds, {"url": url})

    def command() -> None:
        (project.place / "urls.txt").write_text("\n".join(urls[1]))
        arguments = ("--crawl", KEYS.crawl, "--redis-url", server.url, "-f", "urls.txt", "--wait")
        status, output = project.run("ubi", "seed", *arguments)
        said.append((status, Counter(line.split(" ")[0] for line in output.splitlines())))

    def listed() -> None:
        with server.client() as client:
            for url in urls[2]:
                client.lpush(LIST, url)

    said: list[tuple[int, Counter[str]]] = []
    writers = [threading.Thread(target=one) for one in (stream, command, listed)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    ((status, words),) = said
    assert status == 0 and words["OK"] + words["KNOWN"] == EACH, (status, words)  # KNOWN: read twice, after a crash


def test_each_url_is_fetched_though_agents_are_killed_and_leave(tmp_path: Path, site: Site, one_server: Server) -> None:
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "served.py").write_text(textwrap.dedent(SPIDER))
    urls = [[f"http://h{number % 30}.example/{way}/{number}" for number in range(EACH)] for way in range(3)]
    wanted = {url for some in urls for url in some}
    for url in wanted:
        site.page(url)

    def start(agent: str) -> Running:
        settings = {
            "UBI_REDIS_URL": one_server.url, "UBI_AGENT_ID": agent, "UBI_SERVE": 1, "UBI_SEED_LIST": LIST,
            "UBI_LEASE_TIMEOUT": 1.0, "UBI_FAILURE_TIMEOUT": 1.6,
        }  # fmt: skip
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return project.start("crawl", "served", *given)

    agents = [start(name) for name in ("a1", "a2", "a3")]
    until_there(one_server, 3)
    writing = threading.Thread(target=write, args=(project, one_server, urls))
    writing.start()
    until(lambda: len(site.urls()) > 30)
    agents[0].kill()
    until(lambda: len(site.urls()) > 90)
    agents[1].send_signal(signal.SIGTERM)
    writing.join()
    until(lambda: site.urls().keys() >= wanted)
    with one_server.client() as client:
        until(lambda: not client.xlen(KEYS.seeds) and not client.exists(LIST))
    for agent in agents[1:]:
        agent.send_signal(signal.SIGTERM)
    outputs = [agent.communicate(timeout=LIMIT)[0] for agent in agents]
    assert [agent.returncode for agent in agents[1:]] == [0, 0], outputs
    assert site.urls().keys() == wanted and max(site.most_at_once.values()) == 1
    assert sum(site.urls().values()) - len(wanted) <= 60, "only what the killed agent had not told of is fetched twice"
    assert all("Traceback" not in output for output in outputs), outputs
