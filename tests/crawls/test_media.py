"""Files on other hosts than their pages: the items of plain Scrapy, whoever owns those hosts, and politely."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from tests.support.crawls import Outcome, SharedScheduler, crawl, items_of, total
from tests.support.site import HANG_UP, Page, Site, Visit

PAGES = [f"http://h{number}.example" for number in range(8)]
FILES = [f"http://i{number}.example" for number in range(5)]
NAMES = [host.removeprefix("http://") for host in FILES]
A_PAGE = 6  # files of a page
PLAIN = {"ADDONS": {}}
STORE = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        for host in PAGES:
            running.page(f"{host}/")
        for name in NAMES:
            running.host(name, lambda visit: Page(visit.url))
            running.page(f"http://{name}/robots.txt", Page("", 404))
        yield running


class Album(Spider):
    """Every page has files on several hosts of images, and they all have some of one."""

    name = "album"
    start_urls: ClassVar[list[str]] = [f"{host}/" for host in PAGES]

    def parse(self, response: Response) -> Iterator[Any]:
        name = response.url.strip("/").rpartition("/")[2]
        yield {"url": response.url, "file_urls": [f"{FILES[n % len(FILES)]}/{name}/{n}" for n in range(A_PAGE)]}


def albums(site: Site, place: Path, agents: int, spider: type[Spider] = Album, **settings: Any) -> list[Outcome]:
    return crawl(spider, site.proxy, agents, {**STORE, "FILES_STORE": str(place / str(agents)), **settings})


def items(outcomes: list[Outcome]) -> list[Any]:
    """Items without what a second run would have otherwise: whether a file had been stored before."""
    for item in items_of(outcomes):
        for file in item["files"]:
            file.pop("status", None)
    return items_of(outcomes)


@pytest.mark.parametrize("agents", [1, 2, 3])
def test_items_have_the_files_of_plain_scrapy(site: Site, tmp_path: Path, agents: int) -> None:
    plain = items(crawl(Album, site.proxy, settings={**STORE, **PLAIN, "FILES_STORE": str(tmp_path / "plain")}))
    assert {len(item["files"]) for item in plain} == {A_PAGE}
    site.most_at_once.clear()
    outcomes = albums(site, tmp_path, agents)
    assert items(outcomes) == plain
    assert (total(outcomes, "ubi/guard/foreign_polite") > 0) is (agents > 1)
    assert total(outcomes, "ubi/downloads/loaded") == len(PAGES) * A_PAGE
    assert max(site.most_at_once[name] for name in NAMES) <= agents
    assert {outcome.reason for outcome in outcomes} == {"finished"}


def test_robots_txt_of_an_other_agents_host_is_obeyed_and_read_once_by_each_agent(site: Site, tmp_path: Path) -> None:
    for host in FILES:
        site.page(f"{host}/robots.txt", "User-agent: *\nDisallow: /h1.example/\nCrawl-delay: 0.02\n")
    outcomes = albums(site, tmp_path, 3, ROBOTSTXT_OBEY=True)
    assert {item["url"]: len(item["files"]) for item in items(outcomes)} == {
        f"{host}/": 0 if host == PAGES[1] else A_PAGE for host in PAGES
    }
    asked = site.urls()
    assert not [visit.url for visit in site.visits if visit.host in NAMES and "/h1.example/" in visit.url]
    assert max(asked[f"{host}/robots.txt"] for host in FILES) <= 3
    assert total(outcomes, "ubi/downloads/failed/robots") == A_PAGE
    assert total(outcomes, "ubi/guard/foreign_polite") > 0


def test_a_crawl_delay_lies_between_two_loads_of_one_agent(site: Site, tmp_path: Path) -> None:
    begun: dict[tuple[str, str], list[float]] = {}

    def answer(visit: Visit) -> Page:
        begun.setdefault((visit.host, visit.headers["x-agent"]), []).append(monotonic())
        return Page(visit.url)

    for name in NAMES:
        site.host(name, answer)
        site.page(f"http://{name}/robots.txt", "User-agent: *\nCrawl-delay: 0.15\n")
    albums(site, tmp_path, 3, ROBOTSTXT_OBEY=True, UBI_REPLICATION=0, DOWNLOADER_MIDDLEWARES={Signs: 900})
    assert len(begun) > len(NAMES), "several agents load from one host, and have no copy of its notes"
    assert all(later - earlier >= 0.15 for times in begun.values() for earlier, later in pairwise(sorted(times)))


class Signs:
    """Lets every request tell which agent has made it."""

    def __init__(self, name: str) -> None:
        self._name = name

    @classmethod
    def from_crawler(cls, crawler: Any) -> Signs:
        return cls(crawler.settings["UBI_AGENT_ID"])

    def process_request(self, request: Request) -> None:
        request.headers["X-Agent"] = self._name


def test_a_robots_txt_that_cannot_be_read_for_a_moment_costs_no_file(site: Site, tmp_path: Path) -> None:
    for host in FILES:
        site.page(f"{host}/robots.txt", lambda visit: Page("", 503 if visit.number == 1 else 404))
    outcomes = albums(site, tmp_path, 2, ROBOTSTXT_OBEY=True, RETRY_ENABLED=False)
    assert {len(item["files"]) for item in items(outcomes)} == {A_PAGE}
    assert total(outcomes, "ubi/robots/unreachable") >= len(FILES)


def test_files_of_a_host_that_does_not_answer_fail_and_are_counted(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.host("i0.example", lambda visit: Page("", HANG_UP))
    settings = {"UBI_HOST_FAILURES": 2, "UBI_HOST_TRIES": 1, "UBI_HOST_PAUSE": 0.05, "RETRY_ENABLED": False}
    with caplog.at_level(logging.INFO, "scrapy_ubi"):
        outcomes = albums(site, tmp_path, 3, **settings)
    lost = len(PAGES) * len([n for n in range(A_PAGE) if n % len(FILES) == 0])
    loaded = total(outcomes, "ubi/downloads/loaded")
    assert loaded == sum(len(item["files"]) for item in items(outcomes)) == len(PAGES) * A_PAGE - lost
    failed = sum(total(outcomes, stat) for stat in all_stats(outcomes) if stat.startswith("ubi/downloads/failed/"))
    assert failed == lost
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert any("downloads beside the queue" in record.getMessage() for record in caplog.records)


def all_stats(outcomes: list[Outcome]) -> set[str]:
    return {stat for outcome in outcomes for stat in outcome.stats}


def test_the_crawl_is_not_over_while_an_item_waits_for_a_file(site: Site, tmp_path: Path) -> None:
    """Nor does an agent that has nothing else to do, and owns the file's host, go."""
    slow = f"{FILES[0]}/h0.example/0"

    with site.hold(slow) as held:
        Slowly.release = held.release
        outcomes = albums(site, tmp_path, 3, spider=Slowly)
    assert {len(item["files"]) for item in items(outcomes)} == {A_PAGE}
    assert {outcome.reason for outcome in outcomes} == {"finished"}


class Slowly(Album):
    """Lets the file go that is held when this agent's other pages are done, and the beats have said so many times."""

    release: ClassVar[Any]

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
        asyncio.get_running_loop().create_task(self._let_go(node))

    async def _let_go(self, node: Any) -> None:
        while not self._beats_of(node) or node.agent.work.out > 1:
            await asyncio.sleep(0.01)
        begun = self._beats_of(node)
        while self._beats_of(node) < begun + 10:  # far more than the end of a crawl takes
            await asyncio.sleep(0.01)
        assert not node.over
        Slowly.release()

    def _beats_of(self, node: Any) -> int:
        beat = node.agent.group.claim.last  # as last read
        return beat.counter if beat is not None else 0


class Late(SharedScheduler):
    """The second agent joins when the first one parses pages."""

    parses = asyncio.Event()

    async def _join(self, spider: Spider) -> None:
        if self.crawler.settings["UBI_AGENT_ID"] != "a0":
            await Late.parses.wait()
        await super()._join(spider)


class OwnFiles(Album):
    """Its pages are parsed until another agent has joined; each has files of its own host."""

    async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
        node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
        Late.parses.set()
        while len(node.agent.view.members) < 2:
            await asyncio.sleep(0.01)
        yield {"url": response.url, "file_urls": [f"{response.url}{number}" for number in range(3)]}


def test_files_of_a_page_come_though_its_host_goes_to_an_agent_that_joins(site: Site, tmp_path: Path) -> None:
    for host in PAGES:
        for number in range(3):
            site.page(f"{host}/{number}", f"{host} {number}")
    Late.parses = asyncio.Event()
    settings = {"SCHEDULER": f"{__name__}.Late", "TEST_AGENTS": 1}
    outcomes = albums(site, tmp_path, 2, spider=OwnFiles, **settings)
    assert {item["url"]: len(item["files"]) for item in items(outcomes)} == {f"{host}/": 3 for host in PAGES}
    assert total(outcomes, "ubi/guard/foreign_polite") > 0
    assert max(Counter(visit.url for visit in site.visits if visit.url.endswith("example/")).values()) == 1
