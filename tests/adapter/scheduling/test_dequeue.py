"""Dequeue by itself: what is handed out and when, who hears of a page, and what the node is told of its end."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpErrorMiddleware
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.request import RequestFingerprinter
from twisted.python.failure import Failure

from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.requests.callbacks import errback_lost
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.observers import Observers, PageObserver
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.scheduling.dequeue import MOST_PASSED, MOST_TOLD, Dequeue
from scrapy_ubi.adapter.scheduling.hostless import Hostless
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.agent.profile.idle_reason import OUTPUTS
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import seed_key
from tests.support.engines import fake_engine
from tests.support.fakenode import FakeNode

HOST = "h1.example"
URL = f"http://{HOST}/"


class Gate:
    """Of a gate, what takes permits back."""

    def __init__(self) -> None:
        self.released: list[Flight] = []

    def release(self, flight: Flight) -> None:
        self.released.append(flight)

    def take_out(self, flight: Flight) -> None:
        flight.move(Transfer.WITHDRAWN)


class Hearing(PageObserver):
    """Notes what it hears of, in the node's own record of calls, and answers what the test wants."""

    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        self.calls = calls
        self.kind, self.over, self.breaks = "", False, False

    def full(self) -> str:
        return self.kind

    def begun(self, flight: Flight) -> None:
        self.calls.append(("begun", flight.request.url))

    def answered(self, flight: Flight, response: Response) -> None:
        self.calls.append(("answered", flight.status, flight.failed))

    def passes_over(self, flight: Flight, response: Response) -> bool:
        self.calls.append(("passes_over", flight.status, flight.failed))
        return self.over

    def failed(self, flight: Flight, error: BaseException) -> None:
        self.calls.append(("failed", type(error).__name__))

    def ended(self, flight: Flight) -> None:
        self.calls.append(("heard of the end", flight.failed))
        if self.breaks:
            raise RuntimeError("the disk is on fire")

    def withdrawn(self, flight: Flight) -> None:
        self.calls.append(("withdrawn",))


class World:
    """A `Dequeue` before a fake node, with one observer."""

    def __init__(self, errors_pass: bool = False) -> None:
        crawler = Crawler(Spider)
        crawler.stats = MemoryStatsCollector(crawler)
        usual = [] if errors_pass else [build_from_crawler(HttpErrorMiddleware, crawler)]
        crawler.engine = fake_engine(usual)
        spider, settings = Spider("walk"), UbiSettings()
        self.crawler, self.node, self.gate, self.flights = crawler, FakeNode(), Gate(), Flights()
        codec, keys = Codec(spider, crawler.settings), RequestKeys(settings)
        self.local = Hostless(RequestFingerprinter(), lambda: None)
        self.kept, self.observers, self.stats = KeptRequests(), Observers(self.flights), StatBuffer(crawler.stats)
        self.hearing = self.observers.add(Hearing(self.node.calls))
        tools: Any = SimpleNamespace(
            node=self.node, codec=codec, flights=self.flights, seeds=Seeds(keys, codec, alone=True)
        )
        gate: Any = self.gate
        self.dequeue = Dequeue(crawler, spider, tools, self.local, self.kept, gate, self.observers, self.stats)

    def wait(self, *paths: str, text: str = "") -> None:
        """These pages wait in the queue of their host."""
        for path in paths:
            self.node.discover(HOST, Entry(hash(path) & 0xFFFFFFFF, f"{URL}{path}", 1, 0, text))
        self.node.calls.clear()

    def take(self) -> Request:
        request = self.dequeue.next_request()
        assert request is not None
        return request

    def flight(self, request: Request) -> Flight:
        flight = self.flights.get(request)
        assert flight is not None
        return flight

    def said(self, *names: str) -> list[tuple[Any, ...]]:
        return [call for call in self.node.calls if call[0] in names]

    def stat(self, name: str) -> Any:
        self.stats.page_done()
        return self.crawler.stats.get_value(f"ubi/{name}", 0)


def failure(error: Exception) -> Any:
    return Failure(error)


def test_a_page_that_waits_is_handed_out_and_its_observers_hear_of_it() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    assert page.url == f"{URL}a" and world.dequeue.next_request() is None
    assert world.node.calls == [("begun", f"{URL}a")]
    assert world.flight(page).host == HOST


def test_nothing_is_handed_out_by_an_agent_that_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.wait("a")
    monkeypatch.setattr(world.node, "live", SimpleNamespace(paused=True))
    assert world.dequeue.next_request() is None and len(world.node.queue) == 1


def test_nothing_is_taken_from_the_queue_while_an_observer_has_no_room() -> None:
    world = World()
    world.wait("a")
    world.hearing.kind = OUTPUTS
    assert world.dequeue.next_request() is None and len(world.node.queue) == 1
    world.hearing.kind = ""
    assert world.take().url == f"{URL}a"


def test_local_requests_come_first_and_are_no_visits_but_observers_hear_of_them() -> None:
    world = World()
    world.wait("a")
    world.local.add(Request("data:,x"))
    page = world.take()
    assert page.url == "data:,x" and world.flight(page).visit is None
    assert not world.dequeue.outcome(Response(page.url, status=500), page), "its callback gets it"
    world.dequeue.removed(page)
    assert world.node.calls == [("begun", "data:,x"), ("answered", 0, None), ("heard of the end", None)]
    assert world.local.over and world.take().url == f"{URL}a"


def test_a_page_goes_by_its_observers_before_the_node_hears_of_its_end() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    world.flight(page).fetched = True
    assert not world.dequeue.outcome(Response(page.url), page)
    world.dequeue.removed(page)
    assert world.node.calls == [
        ("begun", f"{URL}a"),
        ("answered", 0, None),
        ("passes_over", 200, None),
        ("heard of the end", None),
        ("ended", f"{URL}a", None, True),
    ]
    assert len(world.gate.released) == 1 and not len(world.flights)


def test_a_page_whose_end_an_observer_could_not_take_is_not_done() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    world.dequeue.outcome(Response(page.url), page)
    world.hearing.breaks = True
    with pytest.raises(RuntimeError):
        world.dequeue.removed(page)
    assert not world.said("ended", "put_back")


def test_all_observers_are_asked_whether_a_callback_is_called_and_one_is_enough() -> None:
    world = World()
    second = world.observers.add(Hearing(world.node.calls))
    world.wait("a", "b", "c")
    for first_says, second_says in ((True, False), (False, True), (False, False)):
        world.hearing.over, second.over = first_says, second_says
        page = world.take()
        world.node.calls.clear()
        assert world.dequeue.outcome(Response(page.url), page) is (first_says or second_says)
        assert len(world.said("passes_over")) == 2


@pytest.mark.parametrize("errors_pass", [False, True])
def test_an_error_status_is_a_failure_unless_callbacks_get_whatever_comes(errors_pass: bool) -> None:
    world = World(errors_pass)
    world.wait("a")
    page = world.take()
    assert not world.dequeue.outcome(Response(page.url, status=503), page)
    world.dequeue.removed(page)
    failed = None if errors_pass else "http/503"
    assert world.said("passes_over", "ended") == [
        ("passes_over", 503, failed),
        ("ended", f"{URL}a", failed, False),
    ]
    assert world.stat("failed/http/503") == (not errors_pass)


def test_a_page_without_a_response_has_failed_and_observers_hear_why() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    assert not world.dequeue.outcome(failure(OSError("reset")), page), "its errback is called"
    world.dequeue.removed(page)
    assert world.said("failed", "ended") == [("failed", "OSError"), ("ended", f"{URL}a", "exception/OSError", False)]
    assert world.stat("failed/exception/OSError") == 1


def test_what_was_withdrawn_is_no_failure_and_waits_again() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    assert world.dequeue.outcome(failure(Withdrawn("later")), page), "the spider hears nothing of it"
    world.dequeue.removed(page)
    assert world.node.calls == [("begun", f"{URL}a"), ("withdrawn",), ("put_back", f"{URL}a")]
    assert world.stat("scheduler/put_back") == 1 and world.take().url == page.url


def test_a_request_that_cannot_travel_is_kept_where_it_is_put_back() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    page.callback = lambda response: None
    world.dequeue.outcome(failure(Withdrawn("later")), page)
    world.dequeue.removed(page)
    assert world.take() is page


def test_an_error_of_the_callback_is_why_its_page_failed() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    response = Response(page.url, request=page)
    world.dequeue.outcome(response, page)
    world.dequeue.spider_error(failure(KeyError("title")), response)
    world.dequeue.spider_error(failure(KeyError("title")), None)
    world.dequeue.removed(page)
    assert world.said("ended") == [("ended", f"{URL}a", "callback/KeyError", False)]


def test_a_page_that_lacks_its_errback_has_failed_for_that(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.wait("a")
    page = world.take()
    page.errback = errback_lost
    world.dequeue.outcome(failure(OSError("reset")), page)
    world.dequeue.removed(page)
    assert world.said("heard of the end", "ended") == [
        ("heard of the end", "exception/OSError"),
        ("ended", f"{URL}a", "codec/errback", False),
    ]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_an_entry_that_cannot_be_read_is_a_page_that_failed_and_the_next_one_is_handed_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.wait(*map(str, range(MOST_TOLD + 1)), text='{"callback": "no such one"}')
    world.wait("good")
    with caplog.at_level(logging.DEBUG, "scrapy_ubi.scheduler"):
        assert world.take().url == f"{URL}good"
    ended = world.said("ended")
    assert len(ended) == MOST_TOLD + 1 and all(call[2].startswith("codec/") for call in ended)
    assert [record.levelname for record in caplog.records] == ["ERROR"] * MOST_TOLD + ["DEBUG"]


def test_links_that_are_seeds_are_done_without_a_load_and_others_have_their_turn() -> None:
    world = World()
    dropped: list[str] = []

    def drop(request: Request) -> None:
        dropped.append(request.url)

    world.crawler.signals.connect(drop, signals.request_dropped)
    world.wait(*map(str, range(MOST_PASSED + 1)))
    for visit in world.node.queue:
        visit.state.done.add(seed_key(visit.entry.key))
    assert world.dequeue.next_request() is None and len(world.node.queue) == 1
    assert len(dropped) == MOST_PASSED == world.stat("scheduler/duplicates")
    assert not world.said("begun")


def test_a_request_that_was_let_go_before_is_nothing() -> None:
    world = World()
    world.wait("a")
    page = world.take()
    world.dequeue.removed(page)
    world.node.calls.clear()
    world.dequeue.removed(page)
    assert not world.dequeue.outcome(Response(page.url), page) and not world.node.calls
