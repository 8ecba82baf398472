"""What is noted of hosts, in whole crawls: a host that is put off is fetched later, and its keepers know it."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.agent import Node
from tests.crawls.ring import HOSTS, Walk, ring
from tests.support.crawls import crawl, total
from tests.support.site import Site

LATER = 0.3  # s


class PutOff:
    """Puts off every host when its first page is to be fetched, and notes that."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.times: Times = crawler.settings["TEST_TIMES"]

    from_crawler = classmethod(lambda cls, crawler: cls(crawler))

    def process_request(self, request: Request) -> None:
        assert self.crawler.engine is not None
        scheduler = self.crawler.engine.scheduler
        assert isinstance(scheduler, UbiScheduler)
        self.times.nodes[scheduler.agent_id] = scheduler.node
        state, hosts = scheduler.gate.hosts.state_of(request), scheduler.node.hosts
        if state is None or hosts.get(state, "test") is not None:
            return
        hosts.put(state, "test", scheduler.agent_id)
        self.times[state.host] = monotonic()
        hosts.postpone(state, LATER, "test")
        raise Withdrawn("put off")

    def process_response(self, request: Request, response: Response) -> Response:
        host = urlsplit(request.url).netloc
        self.times.fetched.setdefault(host, monotonic())
        return response


class Times(dict[str, float]):
    """When each host was put off; a copy of the settings still shares it. `fetched`: when its first page came.
    `nodes`: of those who put some off.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fetched: dict[str, float] = {}
        self.nodes: dict[str, Node] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Times:
        return self


@pytest.mark.parametrize("agents", [1, 3])
def test_a_host_that_is_put_off_is_fetched_later_and_its_keepers_know(site: Site, agents: int) -> None:
    urls, times, crawlers = ring(site), Times(), list[Crawler]()
    settings = {"DOWNLOADER_MIDDLEWARES": {PutOff: 950}, "TEST_TIMES": times}
    outcomes = crawl(Walk, site.proxy, agents, settings, with_crawlers=crawlers.extend)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert times.keys() == {host.removeprefix("http://") for host in HOSTS}
    for host, begun in times.items():
        assert times.fetched[host] >= begun + LATER
        noted = {
            node.frontier.find(host).notes  # type: ignore[union-attr]
            for name, node in times.nodes.items()
            if name in node.agent.keeping.keepers_of(host)
        }
        assert len(noted) == 1, "all who keep it know the same"
        assert noted.pop().version > 1
    assert total(outcomes, "ubi/hosts/postponed/test") == len(HOSTS)
    assert total(outcomes, "ubi/hosts/notes_too_large") == 0


def test_what_was_noted_is_known_after_a_restart(site: Site, tmp_path: Path) -> None:
    ring(site)
    settings = {
        "DOWNLOADER_MIDDLEWARES": {PutOff: 950},
        "TEST_TIMES": Times(),
        "UBI_DIR": str(tmp_path / "agent"),
    }
    first = crawl(Walk, site.proxy, settings={**settings, "CLOSESPIDER_ITEMCOUNT": 7})
    put_off = total(first, "ubi/hosts/postponed/test")
    assert first[0].reason == "closespider_itemcount"
    assert put_off >= 1
    second = crawl(Walk, site.proxy, settings=settings)
    assert second[0].reason == "finished"
    assert put_off + total(second, "ubi/hosts/postponed/test") == len(HOSTS), "each once"
