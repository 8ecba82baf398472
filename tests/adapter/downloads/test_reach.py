"""Where links may lead: what pages of which kind may name, and what may be connected to."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.page_outcome import PrivateHost, reason_of
from scrapy_ubi.settings import UbiSettings

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.5"
PAGE = "http://h1.example/"


class World:
    def __init__(self, scrapy: dict[str, Any] | None = None, **settings: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.asked: list[str] = []
        self.reach = Reach(
            UbiSettings(**settings), Settings(scrapy), self.resolve, Notices(), lambda name: self.counts.update([name])
        )

    async def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        if host.startswith("gone"):
            raise OSError("no such name")
        return [PRIVATE] if host.endswith(".corp") else [PUBLIC]

    def kind(self, url: str, page: str = PAGE) -> str | None:
        refusal = self.reach.refusal(url, page)
        return None if refusal is None else refusal[0]

    def reachable(self, host: str, *addresses: str) -> list[str]:
        return asyncio.run(self.reach.reachable(host, list(addresses)))


@pytest.mark.parametrize("url", ["http://127.0.0.1:6379/", "https://localhost/", "http://[::1]/", "http://2130706433/"])
def test_a_public_page_leads_to_no_private_host(url: str) -> None:
    world = World()
    assert world.kind(url) == "private"
    assert world.kind(url, "http://127.0.0.1:8000/") is None, "that page is private itself"
    assert world.kind(url, "http://[fd00::1]/") is None
    assert World(private_hosts="allow").kind(url) is None


def test_a_page_is_private_whose_name_led_to_a_private_address() -> None:
    world = World()
    world.reach.seed("http://wiki.corp/")
    assert world.kind("http://10.0.0.7/", "http://wiki.corp/a") == "private"
    assert world.reachable("wiki.corp", PRIVATE) == [PRIVATE]
    assert world.kind("http://10.0.0.7/", "http://wiki.corp/a") is None


@pytest.mark.parametrize("url", ["file:///etc/passwd", "FILE:///x", "ftp://h/x", "s3://bucket/key"])
def test_an_http_page_leads_to_no_other_scheme_that_could_be_loaded(url: str) -> None:
    assert World().kind(url) == "scheme"
    assert World(private_hosts="allow").kind(url) == "scheme"
    assert World().kind(url, "http://127.0.0.1/") == "scheme"
    assert World().kind(url, "file:///a/list.html") is None, "the user's own"
    handlers = {"DOWNLOAD_HANDLERS": {url.partition(":")[0].lower(): "my.Handler"}}
    assert World(handlers).kind(url) is None, "the user has set a handler of their own"


@pytest.mark.parametrize("url", ["data:,x", "mailto:a@h.example", "about:blank", "http://h2.example/", "https:///x"])
def test_what_harms_nobody_passes(url: str) -> None:
    assert World().kind(url) is None


def test_names_that_lead_to_private_addresses_are_refused_at_the_connection() -> None:
    world = World()
    world.reach.seed(PAGE)
    with pytest.raises(PrivateHost, match=r"evil\.example has the private address 10\.0\.0\.5") as caught:
        world.reachable("evil.example", PRIVATE)
    assert reason_of(caught.value) == "link/private"
    assert world.counts == {"ubi/private/refused": 1}
    assert world.asked == ["h1.example"], "seeds are looked up to see what kind of crawl it is"
    assert world.reachable("evil.example", PRIVATE, PUBLIC) == [PUBLIC]
    assert world.reachable("h2.example", PUBLIC) == [PUBLIC]


def test_a_crawl_of_the_web_looks_nothing_up() -> None:
    world = World()
    world.reach.seed(PAGE)
    assert world.reachable("h2.example", PUBLIC) == [PUBLIC]
    assert world.asked == []


@pytest.mark.parametrize(
    ("seeds", "allowed"),
    [
        ([], False),
        (["http://wiki.corp/"], True),
        (["http://127.0.0.1/"], True),
        (["http://wiki.corp/", "http://gone.corp/"], True),
        (["http://wiki.corp/", "http://h1.example/"], False),
        (["http://127.0.0.1/", "http://93.184.216.34/"], False),
        (["http://gone.example/"], False),
    ],
)
def test_the_crawl_of_an_intranet_has_private_seeds_only(seeds: list[str], allowed: bool) -> None:
    world = World()
    for url in seeds:
        world.reach.seed(url)
    if allowed:
        assert world.reachable("jira.corp", PRIVATE) == [PRIVATE]
        assert world.reach.permits("other.corp", PRIVATE), "that is known now"
    else:
        with pytest.raises(PrivateHost):
            world.reachable("jira.corp", PRIVATE)


def test_a_seed_that_comes_later_counts() -> None:
    world = World()
    with pytest.raises(PrivateHost):
        world.reachable("jira.corp", PRIVATE)
    world.reach.seed("http://wiki.corp/")
    assert world.reachable("jira.corp", PRIVATE) == [PRIVATE]


def test_hosts_of_start_requests_are_the_users_own_whatever_the_crawl() -> None:
    world = World()
    world.reach.seed(PAGE)
    world.reach.seed("http://Wiki.Corp:8080/start")
    assert world.reachable("wiki.corp", PRIVATE) == [PRIVATE]
    with pytest.raises(PrivateHost):
        world.reachable("jira.corp", PRIVATE)


def test_what_is_written_as_private_was_judged_where_it_was_found() -> None:
    assert World().reachable("127.0.0.1", "127.0.0.1") == ["127.0.0.1"]
    assert World().reachable("2130706433", "127.0.0.1") == ["127.0.0.1"]
    assert World().reachable("::1", "::1") == ["::1"]
    assert World(private_hosts="allow").reachable("evil.example", PRIVATE) == [PRIVATE]


def test_of_many_seeds_a_thousand_are_looked_up() -> None:
    world = World()
    for number in range(3000):
        world.reach.seed(f"http://h{number}.corp/")
    assert asyncio.run(world.reach.is_intranet())
    assert len(world.asked) == 1000
    assert asyncio.run(world.reach.is_intranet())
    assert len(world.asked) == 1000


def bypasses(world: World, url: str, *came_by: str) -> bool:
    try:
        asyncio.run(world.reach.bypasses(Request(url, meta={"redirect_urls": list(came_by)} if came_by else None)))
    except PrivateHost:
        return False
    return True


def test_media_of_a_private_host_are_loaded_in_an_intranets_crawl_only() -> None:
    world, inside = World(), World()
    world.reach.seed(PAGE)
    inside.reach.seed("http://wiki.corp/")
    assert bypasses(world, "http://img.example/a.png") and bypasses(inside, "http://img.example/a.png")
    assert not bypasses(world, "http://10.0.0.7/a.png") and bypasses(inside, "http://10.0.0.7/a.png")
    assert bypasses(World(private_hosts="allow"), "http://10.0.0.7/a.png")


def test_hops_of_media_are_judged_by_where_they_come_from() -> None:
    world = World()
    assert not bypasses(world, "http://127.0.0.1:6379/", "http://img.example/a.png")
    assert bypasses(world, "http://127.0.0.1:6379/", "http://127.0.0.1:8000/a.png")


def test_redirects_of_a_robots_txt_are_judged_and_counted() -> None:
    world = World()
    assert world.reach.follows("http://h1.example/robots.txt", "http://h2.example/robots.txt")
    assert not world.reach.follows("http://h1.example/robots.txt", "http://127.0.0.1:6379/")
    assert world.counts == {"ubi/private/refused": 1}
