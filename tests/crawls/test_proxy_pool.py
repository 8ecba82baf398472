"""Requests go through a pool of proxies (UBI_PROXY_POOL): real ones on loopback, whose logs say who came through."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi.adapter.downloads import proxy_pool
from scrapy_ubi.policy.politeness import proxies as policy
from tests.crawls.ring import AGENTS
from tests.support.crawls import crawl, items_of
from tests.support.site import Answer, Page, Site, Visit, links

HOSTS = [f"h{number}.example" for number in range(6)]
START = f"http://{HOSTS[0]}/"


class Pages(Spider):
    """Takes all pages, and says through which proxy each came."""

    name = "pages"
    start_urls = (START,)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "by": response.meta.get("ubi_proxy"), "status": response.status}
        for link in response.css("a::attr(href)").getall():
            yield Request(link)


@contextmanager
def proxies(number: int) -> Iterator[list[Site]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Site()) for _ in range(number)]


def listed(place: Path, pool: list[Site], *more: str) -> str:
    path = place / "proxies.txt"
    path.write_text("# ours\n" + "\n".join([*(one.proxy for one in pool), *more]) + "\n")
    return str(path)


def web(pool: list[Site], pages: int = 4) -> list[str]:
    """The same web behind each of them."""
    urls = [START, *(f"http://{host}/{page}" for host in HOSTS for page in range(pages))]
    for one in pool:
        for url in urls:
            one.page(url, links(*urls) if url == START else "")
    return urls


def seen(pool: list[Site], host: str) -> list[int]:
    """How many requests of a host came through each."""
    return [sum(1 for visit in one.visits if visit.host == host) for one in pool]


@AGENTS
def test_each_host_keeps_to_one_proxy_and_all_proxies_are_used(tmp_path: Path, agents: int) -> None:
    with proxies(3) as pool:
        urls = web(pool)
        outcomes = crawl(Pages, "", agents, {"UBI_PROXY_POOL": listed(tmp_path, pool)})
        assert len(items_of(outcomes)) == len(urls)
        assert all(sum(count > 0 for count in seen(pool, host)) == 1 for host in HOSTS)
        assert sum(len(one.visits) for one in pool) == len(urls)
        assert sum(bool(one.visits) for one in pool) > 1


@pytest.mark.parametrize(
    ("ban", "bad"),
    [({}, Page("no", 403)), ({"statuses": [], "pattern": "unusual +traffic"}, Page("<p>We see unusual  traffic</p>"))],
)
def test_a_host_that_bans_a_proxy_is_loaded_through_another(tmp_path: Path, ban: dict[str, Any], bad: Page) -> None:
    first: list[int] = []  # the proxy that the first page has come through is banned everywhere

    with proxies(3) as pool:
        urls = web(pool)

        def answer(number: int, good: str) -> Answer:
            def page(visit: Visit) -> Page:
                first.append(number)
                return bad if number == first[0] else Page(good)

            return page

        for number, one in enumerate(pool):
            for url in urls:
                one.page(url, answer(number, links(*urls) if url == START else ""))
        value = {"proxies": listed(tmp_path, pool), **ban}
        outcomes = crawl(Pages, "", settings={"UBI_PROXY_POOL": value})
        items = items_of(outcomes)
        assert {item["url"] for item in items} == set(urls) and {item["status"] for item in items} == {200}
        banned = pool.pop(first[0])
        assert all(seen([banned], host)[0] <= 1 for host in HOSTS), "a ban is remembered with the host"
        assert outcomes[0].stats["ubi/proxies/bans"] == len(banned.visits)
        assert all(sum(count > 0 for count in seen(pool, host)) == 1 for host in HOSTS)


def test_a_proxy_that_gives_no_answer_is_gone_around_and_rests(tmp_path: Path) -> None:
    with proxies(2) as pool, Site() as gone:
        dead = gone.proxy
    with proxies(2) as pool:
        urls = web(pool)
        outcomes = crawl(Pages, "", settings={"UBI_PROXY_POOL": listed(tmp_path, pool, dead)})
        assert {item["url"] for item in items_of(outcomes)} == set(urls)


def test_a_proxy_and_its_cookies_are_one_session(tmp_path: Path) -> None:
    bans: list[str] = []

    def once(visit: Visit) -> Page:
        bans.append(visit.url)
        return Page("no", 403) if len(bans) == 1 else Page("")

    with proxies(2) as pool:
        urls = web(pool, pages=6)
        for number, one in enumerate(pool):
            for url in urls[1:]:
                one.page(url, Page("", headers={"Set-Cookie": f"by={number}"}))
        for one in pool:  # in the middle of the crawl whichever proxy this host has is banned
            one.page(f"http://{HOSTS[1]}/3", once)
        crawl(Pages, "", settings={"UBI_PROXY_POOL": listed(tmp_path, pool)})
        assert len(bans) == 2 and all(seen(pool, HOSTS[1]))
        for number, one in enumerate(pool):
            sent = {visit.headers.get("cookie") for visit in one.visits if visit.host in HOSTS}
            assert sent <= {None, f"by={number}"}, "no proxy has seen the cookies of another"


def test_where_all_are_banned_the_pages_wait_and_a_page_is_tried_some_times_only(tmp_path: Path) -> None:
    times: list[float] = []

    def twice(visit: Visit) -> Page:
        times.append(time.monotonic())
        return Page("no", 403) if len(times) <= 2 else Page("")

    with proxies(2) as pool:
        for one in pool:
            one.page(START, twice)
        value = {"proxies": listed(tmp_path, pool), "seconds": 2}
        outcomes = crawl(Pages, "", settings={"UBI_PROXY_POOL": value})
        assert [item["status"] for item in items_of(outcomes)] == [200]
        assert times[2] - times[1] > 1.0 and outcomes[0].stats["ubi/proxies/none_free"] >= 1
    with proxies(1) as pool:
        pool[0].page(START, Page("no", 403))
        outcomes = crawl(Pages, "", settings={"UBI_PROXY_POOL": {"proxies": listed(tmp_path, pool), "seconds": 1}})
        assert not items_of(outcomes) and len(pool[0].visits) == 4


def test_what_waits_for_a_proxy_is_not_lost_and_a_changed_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_pool, "AGAIN", 0.5)
    monkeypatch.setattr(policy, "MOST_FAILED", 1)
    with Site() as gone:
        dead = gone.proxy
    with proxies(1) as pool:
        urls = web(pool, pages=1)
        for host in HOSTS:
            pool[0].page(f"http://{host}/robots.txt", "")
        path = Path(listed(tmp_path, [], dead))
        settings = {"UBI_PROXY_POOL": str(path), "ROBOTSTXT_OBEY": True, "UBI_ROBOTS_GIVE_UP": 3, "RETRY_TIMES": 0}
        later = threading.Timer(5.0, listed, (tmp_path, pool))  # longer than a robots.txt is asked for in vain
        later.start()
        outcomes = crawl(Pages, "", settings=settings)
        later.join()
        assert {item["url"] for item in items_of(outcomes)} == set(urls)
        assert outcomes[0].stats["ubi/proxies/none_free"] >= 1


def given() -> list[str]:
    return GIVEN


GIVEN: list[str] = []


def test_a_function_gives_the_proxies_and_a_request_with_its_own_keeps_it(tmp_path: Path) -> None:
    class Own(Spider):
        name = "own"

        async def start(self) -> Any:
            yield Request(f"http://{HOSTS[1]}/0")
            yield Request(f"http://{HOSTS[2]}/0", meta={"proxy": other.proxy})

        def parse(self, response: Response) -> Any:
            yield {"url": response.url}

    with proxies(2) as (one, other):
        web([one, other])
        GIVEN[:] = [one.proxy]
        outcomes = crawl(Own, "", settings={"UBI_PROXY_POOL": "tests.crawls.test_proxy_pool.given"})
        assert len(items_of(outcomes)) == 2
        assert [len(one.visits), len(other.visits)] == [1, 1]


def test_the_rate_of_a_proxy_holds_for_all_hosts_behind_it(tmp_path: Path) -> None:
    with proxies(1) as pool:
        urls = web(pool, pages=2)
        name = f"proxy:{pool[0].proxy.removeprefix('http://').rstrip('/')}"
        settings = {"UBI_PROXY_POOL": listed(tmp_path, pool), "UBI_RATES": {name: "4/s"}}
        outcomes = crawl(Pages, "", settings=settings)
        assert len(items_of(outcomes)) == len(urls)
        begins = sorted(begin for spans in pool[0].spans.values() for begin, _ in spans)
        assert max(sum(1 for one in begins if first <= one < first + 1) for first in begins) <= 4
