"""Crawls of real processes whose pages are visited again, while agents are killed, leave and come back."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.project import LIMIT, Project, on_redis, until_joined
from tests.support.server import Server
from tests.support.site import Page, Site, Visit, links

pytestmark = pytest.mark.processes

HOSTS = [f"h{number}.example" for number in range(1, 7)]
RECRAWL = ["-s", "UBI_RECRAWL=every(3s, rounds=2)", "-s", "UBI_HEARTBEAT_INTERVAL=0.2"]
GROUP = ["-s", "UBI_LEASE_TIMEOUT=2", "-s", "UBI_FAILURE_TIMEOUT=4"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not come"
        time.sleep(0.02)  # a probe of the condition


def web(site: Site) -> set[str]:
    """Six hosts of three pages with ETags, linked in a ring."""
    urls: set[str] = set()
    for number, host in enumerate(HOSTS):
        following = HOSTS[(number + 1) % len(HOSTS)]
        body = links(*(f"http://{host}/{page}" for page in "ab"), f"http://{following}/")

        def answer(visit: Visit, body: str = body) -> Page:
            seen = visit.headers.get("if-none-match") == '"1"'
            return Page("" if seen else body, 304 if seen else 200, {"ETag": '"1"'})

        for url in (f"http://{host}/", f"http://{host}/a", f"http://{host}/b"):
            site.page(url, answer)
            urls.add(url)
    return urls


@pytest.mark.parametrize("fast", ["UBI_FAST=0", "UBI_FAST=1", "UBI_LEAN=0"])
def test_the_schedule_of_an_agent_alone_outlives_kill_9(tmp_path: Path, site: Site, fast: str) -> None:
    urls, project = web(site), Project(tmp_path, site.proxy)
    order = ["crawl", "plain", "-o", "items.jsonl", "-s", fast, *RECRAWL]
    first = project.start(*order)
    until(lambda: len(site.visits) > len(urls) + 4)
    first.kill()
    first.wait(LIMIT)
    before = site.urls()
    status, output = project.run(*order)
    assert status == 0, output
    assert site.urls().keys() == urls
    assert all(3 <= times <= 4 for times in site.urls().values()), site.urls()  # what was not written is visited twice
    later = [visit for visit in site.visits if visit.number > 1]
    assert all(visit.headers.get("if-none-match") == '"1"' for visit in later), "validators are kept"
    assert Counter(item["url"] for item in project.items()).keys() <= urls
    assert before != site.urls()


@pytest.mark.faults
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "leaves"])
def test_the_schedule_of_a_group_outlives_an_agent(tmp_path: Path, site: Site, one_server: Server, by: int) -> None:
    urls, project = web(site), Project(tmp_path, site.proxy)
    seed = "http://h1.example/"
    with until_joined(site, seed, one_server, 3):
        orders = [["crawl", "plain", *on_redis(one_server.url, name), *RECRAWL, *GROUP] for name in ("a", "b", "c")]
        agents = [project.start(*order) for order in orders]
    until(lambda: len(site.visits) > len(urls) + 4)
    agents[0].send_signal(by)
    agents[0].wait(LIMIT)
    for agent in agents[1:]:
        output, _ = agent.communicate(timeout=LIMIT)
        assert agent.wait() == 0, output
    assert site.urls().keys() == urls
    times = [*site.urls().values()]
    if by == signal.SIGTERM:
        assert times == [3] * len(urls), site.urls()
    else:
        assert min(times) >= 3 and sum(times) <= 3 * len(urls) + 12, site.urls()
    assert max(site.most_at_once.values()) == 1
