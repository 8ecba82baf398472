"""Requests that Scrapy holds are known by object, and the latest of a key counts."""

from __future__ import annotations

from typing import Any

from scrapy import Request

from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from tests.support.fakenode import FakeNode

URL = "http://h1.example/"


def flight(key: int) -> Flight:
    visit: Any = FakeNode().visit(URL, key=key)
    return Flight(Request(URL), "h1.example", visit)


def test_equal_requests_are_different_flights() -> None:
    flights = Flights()
    first, second = flights.add(flight(1)), flights.add(flight(2))
    assert (flights.get(first.request), flights.get(second.request)) == (first, second)
    assert flights.get(Request(URL)) is flights.get(None) is None
    assert len(flights) == 2


def test_the_latest_flight_of_a_key_counts_and_an_older_one_leaves_it_alone() -> None:
    flights = Flights()
    older, newer = flights.add(flight(1)), flights.add(flight(1))
    assert flights.of_key(1) is newer
    assert flights.remove(older.request) is older
    assert flights.of_key(1) is newer
    assert flights.remove(newer.request) is newer
    assert flights.of_key(1) is flights.remove(newer.request) is None


def test_flights_may_end_while_they_are_gone_through() -> None:
    flights = Flights()
    for key in range(3):
        flights.add(flight(key))
    for one in flights:
        flights.remove(one.request)
    assert len(flights) == 0
