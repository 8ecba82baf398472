"""Observers of a project: refused with one sentence where they do not hold, heard of pages, and isolated."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from scrapy_ubi import PageObserver
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.adapter.scheduling.project_observers import isolation, make
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from tests.support.crawls import crawl
from tests.support.site import Site, links

HERE = __name__
URL = "http://h1.example/"


class Heard(PageObserver):
    """Keeps what it hears of, by its class."""

    calls: list[tuple[str, str]]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Heard:
        cls.calls = []
        return cls()

    def begun(self, flight: Flight) -> None:
        self.calls.append(("begun", flight.request.url))

    def passes_over(self, flight: Flight, response: Response) -> bool:
        return response.url.endswith("/over")

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        return isinstance(found, Request) and found.url.endswith("/refused")

    def yielded(self, flight: Flight, response: Response, item: object) -> None:
        self.calls.append(("yielded", response.url))

    def ended(self, flight: Flight) -> None:
        self.calls.append(("ended", flight.request.url))


class Broken(PageObserver):
    """Raises wherever it is asked."""

    def full(self) -> str:
        raise OSError("full")

    def begun(self, flight: Flight) -> None:
        raise OSError("begun")

    def passes_over(self, flight: Flight, response: Response) -> bool:
        raise OSError("passes_over")

    def refuses(self, flight: Flight, response: Response, found: object) -> bool:
        raise OSError("refuses")

    def ended(self, flight: Flight) -> None:
        raise OSError("ended")


class Waiting(PageObserver):
    async def ended(self, flight: Flight) -> None:  # type: ignore[override]
        """Would never be awaited."""


class Off(PageObserver):
    def __init__(self) -> None:
        raise NotConfigured("not today")


class NoObserver:
    pass


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("project.no_such", "cannot be loaded"),
        (3, "cannot be loaded"),
        (f"{HERE}.NoObserver", "is no observer"),
        (f"{HERE}.make", "is no observer"),
        (f"{HERE}.Waiting", "whose ended is a coroutine function"),
    ],
)
def test_what_does_not_hold_is_refused(entry: object, why: str) -> None:
    with pytest.raises(UbiSettingError, match=why):
        make([entry], Crawler(Spider))


def test_one_that_is_not_configured_is_left_out() -> None:
    assert make([f"{HERE}.Off", Heard], Crawler(Spider))[0].__class__ is Heard


@pytest.mark.parametrize("given", ["a.B, c.D", ["a.B", "c.D"], ("a.B", "c.D")])
def test_they_are_named_in_a_list_or_in_one_text(given: Any) -> None:
    assert UbiSettings.from_scrapy(Crawler(Spider, {"UBI_OBSERVERS": given}).settings, "s").observers == ("a.B", "c.D")


@pytest.mark.parametrize(("said", "kind"), [("", ""), ("memory", "memory"), ("my own words", "outputs"), (None, None)])
def test_what_has_no_room_for_a_reason_of_its_own_has_outputs_that_wait(said: Any, kind: Any) -> None:
    assert isolation(Crawler(Spider), lambda stat: None)("full", lambda: said)() == kind


def test_an_error_is_logged_and_counted_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []
    observers = Observers(Flights())
    observers.add(Broken(), isolation(Crawler(Spider), counted.append))
    flight, response = Flight(Request(URL), "h1.example"), Response(URL)
    assert not observers.full[0]() and not observers.passes_over[0](flight, response)
    assert not observers.refuse(flight, response, {})
    observers.ended[0](flight)
    assert counted == [f"ubi/observers/failed/{hook}" for hook in ("full", "passes_over", "refuses", "ended")]
    assert all(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)


class Walk(Spider):
    name = "walk"
    start_urls = (URL,)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield from (response.follow(url) for url in response.css("a::attr(href)").getall())


@pytest.fixture
def site() -> Any:
    with Site() as running:
        html = {"Content_Type": "text/html"}
        running.page(URL, links("over", "refused", "more"), **html)
        for path in ("over", "refused", "more"):
            running.page(URL + path, links("behind" if path == "over" else "more"), **html)
        running.page(URL + "behind")
        yield running


@pytest.mark.parametrize("lean", [False, True])
def test_in_a_crawl_they_hear_of_each_page_and_their_answers_hold(site: Site, lean: bool) -> None:
    observed = [f"{HERE}.Heard", f"{HERE}.Broken"]
    settings = {"UBI_OBSERVERS": observed, "UBI_LEAN": lean, "UBI_HOST_DELAY": 0, "UBI_ERROR_BURST": 0}
    (outcome,) = crawl(Walk, site.proxy, settings=settings)
    pages = {URL, f"{URL}over", f"{URL}more"}
    for hook, urls in (("begun", pages), ("ended", pages), ("yielded", pages - {f"{URL}over"})):
        assert {url for said, url in Heard.calls if said == hook} == urls
    assert outcome.reason == "finished"
    assert outcome.stats["ubi/observers/failed/ended"] == 3 == outcome.stats["ubi/observers/failed/begun"]
