"""Agents that crawl answer Prometheus and probes while they do (UBI_METRICS); without the setting nothing of it is
there."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.web.metrics_routes import targets
from tests.support.crawls import LIMIT, agent_of, crawl
from tests.support.prometheus import Recorded, needs_promtool, promtool
from tests.support.site import Site, links

HOSTS = [f"http://h{number}.example" for number in range(8)]


async def get(address: str, path: str) -> tuple[int, str]:
    """Status and body of what is answered."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


class Asks(Spider):
    """Follows every link, and asks its own agent at each page."""

    name = "asks"

    async def start(self) -> AsyncIterator[Any]:
        for host in HOSTS:
            yield Request(f"{host}/0")

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        assert isinstance(response, TextResponse)
        scheduler = agent_of(self)
        address = json.loads(scheduler.node.lifecycle.publisher.shown())["metrics"]
        async with asyncio.timeout(LIMIT):
            while True:  # a crawl of a few pages may be over before its first flush
                answers = {path: await get(address, path) for path in ("/metrics", "/live", "/ready")}
                if Recorded(answers["/metrics"][1]).value("ubi_flush_seconds_count"):
                    break
                await asyncio.sleep(0.02)
        yield {"agent": scheduler.agent_id, "profile": scheduler.node.lifecycle.publisher.shown(), **answers}
        for link in response.css("a::attr(href)").getall():
            yield Request(link)


def crawled(site: Site, agents: int, **settings: Any) -> list[dict[str, Any]]:
    for host in HOSTS:
        for number in range(5):
            site.page(f"{host}/{number}", links(f"{host}/{(number + 1) % 5}", f"{host}/gone"))
    own = {"UBI_METRICS": "127.0.0.1:0", **settings}
    return [item for outcome in crawl(Asks, site.proxy, agents, own) for item in outcome.items]


def test_an_agent_tells_what_it_has_done(site: Site) -> None:
    items = crawled(site, 1, UBI_STORES=["items"])
    status, text = items[-1]["/metrics"]
    told = Recorded(text)
    assert status == 200 and len({item["/live"] for item in items}) == 1
    assert items[-1]["/live"] == (200, "ok\n") and items[-1]["/ready"] == (200, "ok\n")
    assert told.value("ubi_agent_state", agent="a0", state="crawling") == 1
    assert told.value("ubi_redis_up") == told.value("ubi_view_complete") == told.value("ubi_view_settled") == 1
    assert told.value("ubi_load_seconds_count") > 0
    assert told.value("process_resident_memory_bytes") > 1_000_000
    assert told.value("ubi_exchange_seconds_count") > 0 and told.value("ubi_flush_seconds_count") > 0


@needs_promtool
def test_promtool_finds_nothing_to_say_of_an_agent(site: Site) -> None:
    promtool("check", "metrics", stdin=crawled(site, 1)[-1]["/metrics"][1])


def test_agents_of_a_group_are_ready_and_can_be_found(site: Site) -> None:
    items = crawled(site, 2)
    assert {item["agent"] for item in items} == {"a0", "a1"}
    ready = {item["agent"] for item in items if item["/ready"][0] == 200}
    assert ready == {"a0", "a1"}, {item["/ready"] for item in items}
    for item in items:
        assert (item["/ready"][0] == 200) == item["/ready"][1].startswith("ok")
    profiles = {item["agent"]: read_profile(item["agent"], item["profile"].encode()) for item in items}
    agents = [AgentStatus(name, "crawling", one) for name, one in profiles.items() if isinstance(one, Profile)]
    found = targets(CrawlStatus("c", tuple(agents)))
    assert len({target for one in found for target in one["targets"]}) == 2
    told = Recorded([item["/metrics"][1] for item in items if item["agent"] == "a0"][-1])
    assert told.value("ubi_letters_total", agent="a0", lane="state", direction="sent") >= 0


def test_without_the_setting_no_module_of_it_is_loaded() -> None:
    program = (
        "import sys, scrapy_ubi.adapter.components.scheduler, scrapy_ubi.addon.turn_on, json\n"
        "print(json.dumps([name for name in sys.modules if 'prometheus' in name or 'scrapy_ubi.agent.metrics' "
        "in name]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == []
