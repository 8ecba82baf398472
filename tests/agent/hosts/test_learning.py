"""Learning in a group: what was joined and marked is safe through crashes and handoffs; every page is fetched somehow.

A small web of 6 hosts and 24 pages a host, each linked to in several spellings. Whoever draws differently prints it.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from dataclasses import replace

import pytest

from scrapy_ubi.agent import Visit
from scrapy_ubi.transport.in_process import MemoryHub
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl, entry

LEARNED = replace(SETTINGS, normalise="learned")
HOSTS, PAGES = 6, 24
SEEDS = ["http://h0.example/d0/p0.html", "http://h3.example/d0/p0.html"]


def page_of(url: str) -> str:
    """The one spelling of a page, whatever the URL's."""
    return url.lower().replace("/index.html", "/").replace("://", ":").replace("//", "/").split("?")[0]


def spelled(host: int, page: int, draw: random.Random) -> str:
    """A URL of a page, in a spelling that is drawn."""
    path = f"/d{page % 4}/p{page}.html" if page % 3 else f"/d{page % 4}/p{page}/"
    if draw.random() < 0.3:
        path = path.upper() if draw.random() < 0.5 else path.replace("/p", "/P")
    if path.endswith("/") and draw.random() < 0.4:
        path += "index.html"
    if draw.random() < 0.3:
        path = path.replace("/", "//", 1)
    return f"http://h{host}.example{path}" + ("?utm_source=x" if draw.random() < 0.2 else "")


def links_of(url: str) -> list[str]:
    """The links of a page: the same whenever it is fetched, and whatever its spelling."""
    page = page_of(url)
    host, number = int(page[6 : page.index(".")]), int(page.rsplit("/p", 1)[1].rstrip("/").removesuffix(".html"))
    draw = random.Random(page)
    ways = [(host, number + 1), (host, number * 3 + 1), (host + 1, number), (host + 2, number * 2)]
    return [spelled(to % HOSTS, target % PAGES, draw) for to, target in ways for _ in range(3)]


def reachable() -> set[str]:
    want, todo = {page_of(url) for url in SEEDS}, list(SEEDS)
    for url in todo:
        for link in links_of(url):
            if page_of(link) not in want:
                want.add(page_of(link))
                todo.append(link)
    return want


class Learning(Crawler):
    """Fetches that web, and tells the node what each page held."""

    def __init__(self, hub: MemoryHub, name: str, log: Log) -> None:
        super().__init__(hub, name, log, LEARNED)

    def read(self, visit: Visit) -> None:
        for url in links_of(visit.entry.url):
            self.node.discover(*entry(url, visit.entry.depth + 1), page=visit)
        self.node.end_visit(visit, status=200, content=zlib.crc32(page_of(visit.entry.url).encode()))


def spellings() -> set[str]:
    return {entry(link)[1].url for page in reachable() for link in links_of(page.replace(":", "://", 1))}


def judge(log: Log, group: list[Learning]) -> None:
    assert {page_of(url) for url in log.fetched} == reachable()
    assert not log.fatal
    for one in group:
        assert not one.node.agent.work.out
        one.node.agent.check_invariants()


def test_a_group_fetches_every_page_and_by_far_not_every_spelling() -> None:
    async def run() -> None:
        hub, log = MemoryHub(), Log()
        group = [Learning(hub, f"a{number}", log) for number in range(3)]
        for one in group:
            one.start(SEEDS)
        await asyncio.gather(*(one.task for one in group))
        judge(log, group)
        assert max(log.fetched.values()) == 1
        joined = sum(sum(one.node.joins.counts.values()) for one in group)
        assert joined and len(log.fetched) < len(spellings())
        sums = [one.node.counters() for one in group]
        assert sum(one["done"] for one in sums) == sum(one["unique"] for one in sums)

    crawl(run)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("clean", [False, True])
def test_no_page_is_lost_when_an_agent_goes_in_the_middle(seed: int, clean: bool) -> None:
    """It crashes, or leaves; a newcomer comes. Repeat with `-k 'test_no_page_is_lost and {seed}'`."""

    async def run() -> None:
        draw = random.Random(seed)
        hub, log = MemoryHub(), Log(hold_after=draw.randrange(40, 200))
        group = [Learning(hub, f"a{number}", log) for number in range(3)]
        for one in group:
            one.start(SEEDS)
        async with asyncio.timeout(30):
            await log.held.wait()
        gone = group.pop(draw.randrange(3))
        if clean:
            gone.stop()
        else:
            await gone.crash()
        log.hold_after = None
        log.go.set()
        newcomer = Learning(hub, "b", log)
        newcomer.start(SEEDS)
        group.append(newcomer)
        await asyncio.gather(*(one.task for one in group), *([gone.task] if clean else []))
        print("seed", seed, "clean", clean)
        judge(log, group)

    crawl(run)
