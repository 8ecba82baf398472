"""One big host and real processes: the web never has more loads of it at once than are allowed, while agents join and
the owner leaves.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, on_redis, until_joined
from tests.support.server import Server
from tests.support.site import Page, Site, Visit, links

pytestmark = pytest.mark.processes

HOST, PAGES, MOST = "h1.example", 60, 4


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_never_more_than_allowed_while_agents_join_and_the_owner_leaves(
    tmp_path: Path, site: Site, one_server: Server
) -> None:
    urls = [f"http://{HOST}/", *(f"http://{HOST}/{number}" for number in range(PAGES))]

    def slow(visit: Visit) -> Page:
        time.sleep(0.1)
        return Page(links(*urls) if visit.url == urls[0] else "")

    site.host(HOST, slow)
    project = Project(tmp_path, site.proxy)

    def start(agent: str) -> Running:
        settings = [*on_redis(one_server.url, agent), "-s", f"UBI_HOST_CONCURRENCY={MOST}", "-s", f"USER_AGENT={agent}"]
        return project.start("crawl", "walk", *settings)

    with until_joined(site, urls[0], one_server, 2):
        processes = {agent: start(agent) for agent in ("a1", "a2")}
    until(lambda: len(site.visits) > PAGES // 4)
    processes["a3"] = start("a3")
    owner = site.visits[-1].headers["user-agent"]
    processes[owner].send_signal(signal.SIGTERM)  # with loads open
    outputs = {agent: process.communicate(timeout=LIMIT)[0] for agent, process in processes.items()}
    assert {agent: process.returncode for agent, process in processes.items()} == dict.fromkeys(processes, 0), outputs
    assert site.urls() == dict.fromkeys(urls, 1)
    assert site.most_at_once[HOST] == MOST
    assert len({visit.headers["user-agent"] for visit in site.visits}) > 1, "another agent went on"
