"""What comes in is decided once: whether `is_known` is asked before, or `take` decides alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.request import RequestFingerprinter

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.scheduling.drops import Drops
from scrapy_ubi.adapter.scheduling.enqueue import Enqueue
from scrapy_ubi.adapter.scheduling.hostless import Hostless
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.adapter.scheduling.link_decision import LinkDecision
from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import seed_key
from tests.support.fakenode import FakeNode
from tests.support.reaching import reach

HOST = "http://h1.example"
PAGE = f"{HOST}/"


class Node(FakeNode):
    """A fake node that notes what it is asked."""

    asked = 0

    def know(self, key: int) -> None:
        self._known.add(key)

    def met(self, host: str, key: int, depth: int, priority: int) -> bool:
        self.asked += 1
        return super().met(host, key, depth, priority)


class World:
    """An `Enqueue` before a fake node, and a page that is out."""

    def __init__(self, **settings: Any) -> None:
        crawler = Crawler(Spider)
        self.stats = MemoryStatsCollector(crawler)
        self.stat_buffer = StatBuffer(self.stats)
        self.flights, self.kept = Flights(), KeptRequests()
        self.node: Any = Node()
        chosen = UbiSettings(max_url_length=100, **settings)
        losses = Drops(self.stat_buffer.count, Notices(), self.kept, chosen.max_letter_bytes, alone=True)
        filtering = LinkFilter.from_settings(chosen, self.stat_buffer.count)
        codec = Codec(Spider("walk"), crawler.settings)
        keys = RequestKeys(chosen)
        seeds = Seeds(keys, codec)
        decision = LinkDecision(chosen, codec, keys, self.node, self.flights, filtering, losses, reach(chosen), seeds)
        self.enqueue = Enqueue(decision, Hostless(RequestFingerprinter(), changed=list), self.stat_buffer)
        filtering.ask_frontier(self.enqueue.is_visited)
        self.enqueue.take_request(Request(PAGE), seed=True)
        self.page = self.handed_out()
        self.page_key = self.node.calls[0][2].key

    def handed_out(self) -> Request:
        visit = self.node.next_visit()
        return self.flights.add(Flight(Request(visit.entry.url), visit.host, visit)).request

    def found(self, request: Request, ask: bool = True) -> str:
        """What becomes of a request that the page yields."""
        self.enqueue.mark_child(request, self.page)
        if ask and self.enqueue.is_known(request):
            return "known"
        return "taken" if self.enqueue.take_request(request, seed=False) else "dropped"

    def outcome(self) -> dict[str, Any]:
        """What the node was told of, and what was counted."""
        self.stat_buffer.page_done()
        entries: list[Entry] = [call[2] for call in self.node.calls if call[0] == "discover"]
        return {"entries": entries, "joins": self.node.joins.counts, **self.stats.get_stats()}


LINKS: list[Callable[[], Request]] = [
    lambda: Request(f"{HOST}/a"),
    lambda: Request(f"{HOST}/a#again"),
    lambda: Request(PAGE),
    lambda: Request(PAGE, dont_filter=True),
    lambda: Request(f"{HOST}/a", dont_filter=True),
    lambda: Request(f"{HOST}/A/index.html"),
    lambda: Request(f"{HOST}/a/index.html"),
    lambda: Request(f"{HOST}/{'x' * 100}"),
    lambda: Request("data:,x"),
    lambda: Request("data:,x"),
    lambda: Request(f"{HOST}/b", meta={"page": print}),
    lambda: Request(f"{HOST}/b"),
]


@pytest.mark.parametrize(
    "settings",
    [{}, {"normalise": "larm"}, {"filters": ("visited", "length(50)")}],
    ids=["usual", "lossy", "filters"],
)
def test_who_asks_whether_a_request_is_known_gets_the_same(settings: dict[str, Any]) -> None:
    asking, taking = World(**settings), World(**settings)
    for link in LINKS:
        became = [asking.found(link()), taking.found(link(), ask=False)]
        assert became[0].replace("known", "dropped") == became[1]
    assert asking.outcome() == taking.outcome()


def test_the_node_is_asked_once_of_each_request() -> None:
    world = World()
    before = world.node.asked
    assert [world.found(Request(f"{HOST}/a")) for _ in range(2)] == ["taken", "known"]
    assert world.node.asked == before + 2


def test_what_was_found_out_is_of_that_request_only() -> None:
    world = World()
    asked, other = Request(f"{HOST}/a"), Request(f"{HOST}/b")
    world.enqueue.mark_child(asked, world.page)
    assert not world.enqueue.is_known(asked)
    assert world.enqueue.take_request(other, seed=False) and world.enqueue.take_request(asked, seed=False)
    entries = world.outcome()["entries"]
    assert [entry.url for entry in entries] == [PAGE, f"{HOST}/b", f"{HOST}/a"]
    assert len({entry.key for entry in entries}) == 3


@pytest.mark.parametrize("url", ["http://127.0.0.1:6379/", "http://localhost/", "file:///etc/passwd"])
def test_what_a_page_may_not_lead_to_is_dropped_however_it_is_asked(url: str) -> None:
    world = World()
    assert world.found(Request(url)) == world.found(Request(url, dont_filter=True), ask=False) == "dropped"
    redirect = Request(url, meta={"redirect_urls": [PAGE], "redirect_times": 1})
    assert not world.enqueue.take_request(redirect, seed=False)
    outcome = world.outcome()
    reason = "scheme" if url.startswith("file:") else "private"
    assert outcome[f"ubi/scheduler/dropped/{reason}"] == 3
    assert len(outcome["entries"]) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:6379/", "file:///etc/passwd"])
def test_what_the_user_asks_for_goes_anywhere(url: str) -> None:
    world = World()
    assert world.enqueue.take_request(Request(url), seed=True)
    assert world.enqueue.take_request(Request(f"{url}x"), seed=False), "fed from outside"
    world.enqueue.mark_child(of_local := Request(f"{url}y"), None)
    assert world.enqueue.take_request(of_local, seed=False), "of a page that is no page of the web"


def test_what_comes_from_no_page_is_told_the_node() -> None:
    world = World()
    assert not world.enqueue.is_known(Request(PAGE)), "no page has yielded it"
    world.enqueue.mark_child(stray := Request(PAGE), None)
    assert not world.enqueue.is_known(stray)
    before = world.node.asked
    assert world.enqueue.take_request(Request(f"{HOST}/a"), seed=False)
    assert world.node.asked == before


def test_a_seed_to_be_fetched_anyway_that_is_known_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    world.node.know(seed_key(world.page_key))  # an agent has taken it
    for _ in range(3):
        assert not world.enqueue.take_request(Request(PAGE, dont_filter=True), seed=True)
    assert not world.enqueue.take_request(Request(PAGE), seed=True)
    (record,) = caplog.records
    assert record.levelno == logging.INFO and "from another agent or an earlier start" in record.getMessage()
    caplog.clear()
    url = f"{HOST}/seed"
    taken = [world.enqueue.take_request(Request(url, dont_filter=True), seed=True) for _ in range(3)]
    assert taken == [Verdict.FOUND, Verdict.KNOWN, Verdict.KNOWN]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "start() yields" in record.getMessage()


@pytest.mark.parametrize("ask", [True, False])
def test_a_link_that_gives_what_a_seed_of_its_page_gives_is_a_duplicate(ask: bool) -> None:
    url = f"{HOST}/seed"
    world = World()
    assert world.enqueue.take_request(Request(url, dont_filter=True), seed=True)
    links = [Request(url), Request(url, meta={"page": 2}), Request(url, meta={"page": 3}), Request(url)]
    assert [world.found(link, ask) != "taken" for link in links] == [True, False, True, True]
    assert world.outcome()["ubi/scheduler/duplicates"] == 3


def test_a_seed_that_the_filter_sees_is_one_with_links_to_its_page() -> None:
    url = f"{HOST}/seed"
    world = World()
    assert world.enqueue.take_request(Request(url), seed=True)
    assert world.found(Request(url, meta={"page": 2})) == "known"
    assert not world.enqueue.take_request(Request(url), seed=True) and world.enqueue.take_request(
        Request(url, dont_filter=True), seed=True
    )
