"""One host, three agents that share it by its shards, one of them killed: the items are those of plain Scrapy."""

from __future__ import annotations

import json
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from scrapy_ubi.protocol.beat import NEW, Beat
from tests.support.project import LIMIT, Project, on_redis, until_joined
from tests.support.server import Server
from tests.support.site import Page, Site, Visit, links

pytestmark = pytest.mark.processes

HOST = "http://shop.example"
PAGES = 100
SPIDER = f"""
    import scrapy

    class Shop(scrapy.Spider):
        name = "shop"

        async def start(self):
            yield scrapy.Request("{HOST}/0")

        def parse(self, response):
            yield {{"url": response.url}}
            yield from response.follow_all(css="a")
"""
TIMES = ["UBI_HEARTBEAT_INTERVAL=0.2", "UBI_LEASE_TIMEOUT=2", "UBI_FAILURE_TIMEOUT=3"]
SETTINGS = ['UBI_HOST_SHARDS={"shop.example": 8}', "UBI_STORES=items", *TIMES]


def test_one_of_three_agents_of_a_shared_host_is_killed(tmp_path: Path, one_server: Server) -> None:
    with Site() as site:
        for number in range(PAGES):
            to = [f"{HOST}/{(number * 3 + step) % PAGES}" for step in range(4)]
            site.page(f"{HOST}/{number}", lambda visit, to=to: served(visit, to))
        project = Project(tmp_path, site.proxy)
        (tmp_path / "project" / "spiders" / "shop.py").write_text(textwrap.dedent(SPIDER))
        status, output = project.run("crawl", "shop", "-o", "plain.jsonl", "-s", "ADDONS={}")
        assert status == 0, output
        site.visits.clear()
        site.most_at_once.clear()
        agents = {}
        try:
            with until_joined(site, f"{HOST}/0", one_server, 3):
                for name in ("a0", "a1", "a2"):
                    settings = [*SETTINGS, f"UBI_DIR={name}", f"USER_AGENT={name}"]
                    options = [word for setting in settings for word in ("-s", setting)]
                    agents[name] = project.start("crawl", "shop", *on_redis(one_server.url, name), *options)
            end = time.monotonic() + LIMIT
            while not (all(by_agent(site)[name] > 5 for name in agents) and have_copies(one_server, len(agents))):
                assert time.monotonic() < end, by_agent(site)
                time.sleep(0.01)
            agents["a1"].kill()
            for name in ("a0", "a2"):
                output, _ = agents[name].communicate(timeout=LIMIT)
                assert agents[name].returncode == 0 and "Traceback" not in output, output
        finally:
            for agent in agents.values():
                agent.kill()
                agent.communicate()
        assert site.urls().keys() == {f"{HOST}/{number}" for number in range(PAGES)}
        assert site.most_at_once["shop.example"] <= 8
        dirs = [word for name in agents for word in ("--dir", name)]
        status, output = project.run("ubi", "collect", "items", "-o", "all.jsonl", *dirs)
        assert status == 0, output
        assert Counter(map(json.dumps, project.items("all.jsonl"))) == Counter(
            map(json.dumps, project.items("plain.jsonl"))
        )
        status, output = project.run("ubi", "hosts", "--json", *dirs)
        assert status == 0, output
        [row] = json.loads(output)["hosts"]
        assert (row["host"], row["shards"]) == ("shop.example", 8)


def served(visit: Visit, to: list[str]) -> Page:
    """A page that takes a moment, so that no agent has them all."""
    time.sleep(0.1)
    return Page(links(*to))


def have_copies(server: Server, number: int) -> bool:
    """Whether each of so many agents has seen a view complete: from then on one may be lost."""
    with server.client() as client:
        lines = [line for key in client.scan_iter("ubi:{*}:beats") for line in client.hgetall(key).values()]
    beats = [beat for line in lines if (beat := Beat.parse(line.decode())) is not None]
    return len(beats) == number and not any(NEW in beat.flags for beat in beats)


def by_agent(site: Site) -> Counter[str]:
    """How many pages each agent was given."""
    return Counter(visit.headers["user-agent"] for visit in site.visits)
