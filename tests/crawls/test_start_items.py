"""Items of start(), in whole crawls: those of plain Scrapy, however many agents there are, also when one is killed."""

from __future__ import annotations

import json
import textwrap
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydispatch.dispatcher import getAllReceivers
from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.http import Response

from tests.crawls.ring import HOSTS, PLAIN, Walk, ring
from tests.support.crawls import agent_of, crawl, items_of
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, on_redis
from tests.support.server import Server
from tests.support.site import Site

AGENTS = pytest.mark.parametrize("agents", [1, 2, 4])


class Pipeline:
    """Drops some, and fails at others."""

    async def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if item.get("what") == "dropped":
            raise DropItem("as it is told")
        if item.get("what") == "failing":
            raise ValueError("a bug")
        return item


class YieldsItems(Walk):
    """Begins with items, and ends with some."""

    custom_settings: ClassVar[dict[str, Any]] = {"ITEM_PIPELINES": {Pipeline: 1}}

    async def start(self) -> AsyncIterator[Any]:
        yield {"what": "first"}
        yield Request(f"{HOSTS[0]}/")
        for what in ("alike", "alike", "dropped", "failing", "last"):
            yield {"what": what}


class Own(YieldsItems):
    """Each agent has one of its own."""

    async def start(self) -> AsyncIterator[Any]:
        async for found in super().start():
            yield found
        yield {"what": agent_of(self).agent_id}


@AGENTS
def test_items_are_those_of_plain_scrapy(site: Site, agents: int) -> None:
    ring(site)
    plain = items_of(crawl(YieldsItems, site.proxy, settings=PLAIN))
    begun = [item for item in plain if "what" in item]
    assert Counter(item["what"] for item in begun) == {"first": 1, "alike": 2, "last": 1}
    outcomes = crawl(YieldsItems, site.proxy, agents)
    found = items_of(outcomes)
    assert [item for item in found if "what" in item] == begun
    assert {item["url"] for item in found if "url" in item} == {item["url"] for item in plain if "url" in item}
    assert all(outcome.reason == "finished" for outcome in outcomes)
    elsewhere = sum(outcome.stats.get("ubi/start/items_elsewhere", 0) for outcome in outcomes)
    assert elsewhere == 6 * (agents - 1)


class Silent(Walk):
    """Its start() yields requests only. `heard`: who hears of its items."""

    heard: ClassVar[list[int]] = []

    def parse(self, response: Response) -> Iterator[Any]:
        self.heard.append(len(list(getAllReceivers(self.crawler.signals.sender, signals.item_scraped))))
        yield from super().parse(response)


def test_where_start_yields_no_items_nothing_is_heard_of_those_of_pages(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring(site)
    heard = []
    for settings in ({**PLAIN, "agents": 1}, {"agents": 2}):
        monkeypatch.setattr(Silent, "heard", [])
        crawl(Silent, site.proxy, int(str(settings.pop("agents"))), settings)
        heard.append(set(Silent.heard))
    assert heard[0] == heard[1] and len(heard[0]) == 1


def test_agents_may_have_items_of_their_own(site: Site) -> None:
    ring(site)
    found = Counter(item["what"] for item in items_of(crawl(Own, site.proxy, 3)) if "what" in item)
    assert found == {"first": 1, "alike": 2, "last": 1, "a0": 1, "a1": 1, "a2": 1}


SPIDER = """
    import asyncio, pathlib
    import scrapy

    class Slow:
        # The pipelines of the first agent do not come to an end.
        async def process_item(self, item):
            if "held" in pathlib.Path("held").read_text() and self.crawler.settings["UBI_AGENT_ID"] == "a0":
                pathlib.Path("arrived").touch()
                await asyncio.sleep(1000)
            return item

        @classmethod
        def from_crawler(cls, crawler):
            self = cls()
            self.crawler = crawler
            return self

    class Begins(scrapy.Spider):
        name = "begins"
        custom_settings = {"ITEM_PIPELINES": {Slow: 1}, "UBI_FAILURE_TIMEOUT": 4, "UBI_LEASE_TIMEOUT": 2}

        async def start(self):
            yield {"what": 1}
            yield scrapy.Request("http://h1.example/")

        def parse(self, response):
            yield {"url": response.url}
"""


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Iterator[Project]:
    site.page("http://h1.example/", "text")
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "begins.py").write_text(textwrap.dedent(SPIDER))
    yield project


def _items(project: Project) -> list[str]:
    lines = [line for path in project.place.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(json.dumps(json.loads(line)) for line in lines)


def _ended(*processes: Running) -> None:
    for process in processes:
        output, _ = process.communicate(timeout=LIMIT)
        assert process.returncode in (0, 1) and "Closing spider (finished)" in output, output


@pytest.mark.processes
@pytest.mark.parametrize("returns", [False, True], ids=["", "and started again"])
def test_what_a_killed_agent_had_not_kept_comes_all_the_same(
    project: Project, one_server: Server, returns: bool
) -> None:
    (project.place / "held").write_text("held")
    first = project.start("crawl", "begins", *on_redis(one_server.url, "a0"))
    try:
        end = time.monotonic() + LIMIT
        while not (project.place / "arrived").exists():
            assert time.monotonic() < end and first.poll() is None
            time.sleep(0.02)
        second = project.start("crawl", "begins", *on_redis(one_server.url, "a1"))
    finally:
        first.kill()
        first.communicate()
    (project.place / "held").write_text("")
    _ended(second, *([project.start("crawl", "begins", *on_redis(one_server.url, "a0"))] if returns else []))
    assert _items(project) == ['{"url": "http://h1.example/"}', '{"what": 1}']
