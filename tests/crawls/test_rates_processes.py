"""A rate and real processes: the web never sees more in any window, while an agent joins, one is killed, and one is
paused until the others hold it dead.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crawls.test_rates import most_in_a_window
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, on_redis, until_joined
from tests.support.server import Server
from tests.support.site import Site, links

pytestmark = [pytest.mark.processes, pytest.mark.slow]

HOST, PAGES, LOADS, SECONDS = "h1.example", 150, 12, 2
RATED = [
    f"UBI_RATES={json.dumps({HOST: f'{LOADS}/{SECONDS}s'})}",
    f"UBI_HOST_SHARDS={json.dumps({HOST: [16, 'fast']})}",
    "UBI_LEASE_TIMEOUT=2",
    "UBI_FAILURE_TIMEOUT=3",
]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_kill_a_join_and_a_pause_never_lead_to_more_than_the_rate(
    tmp_path: Path, site: Site, one_server: Server
) -> None:
    urls = [f"http://{HOST}/", *(f"http://{HOST}/{number}" for number in range(PAGES))]
    for url in urls:
        site.page(url, links(*urls) if url == urls[0] else "")
    project = Project(tmp_path, site.proxy)

    def start(agent: str) -> Running:
        settings = [part for one in (*RATED, f"USER_AGENT={agent}") for part in ("-s", one)]
        return project.start("crawl", "walk", *on_redis(one_server.url, agent), *settings)

    def seen(more: int) -> None:
        before = len(site.visits)
        until(lambda: len(site.visits) >= before + more)

    with until_joined(site, urls[0], one_server, 3):
        processes = {agent: start(agent) for agent in ("a1", "a2", "a3")}
    seen(PAGES // 6)
    processes["a4"] = start("a4")
    seen(PAGES // 6)
    killed = processes.pop(site.visits[-1].headers["user-agent"])
    killed.kill()
    killed.communicate(timeout=LIMIT)
    seen(PAGES // 6)
    paused = processes[next(agent for agent in ("a1", "a2", "a3") if agent in processes)]
    paused.send_signal(signal.SIGSTOP)
    time.sleep(6)  # the others hold it dead by then; nothing is asserted about when
    paused.send_signal(signal.SIGCONT)
    outputs = {agent: process.communicate(timeout=LIMIT)[0] for agent, process in processes.items()}
    assert {agent: process.returncode for agent, process in processes.items()} == dict.fromkeys(processes, 0), outputs
    assert set(site.urls()) == set(urls)
    assert most_in_a_window(site, SECONDS, HOST) <= LOADS
    assert len({visit.headers["user-agent"] for visit in site.visits}) > 2, "its shares were of several agents"
