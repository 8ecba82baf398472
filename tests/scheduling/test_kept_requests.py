"""Original requests are kept within a bound."""

from __future__ import annotations

from scrapy import Request

from scrapy_ubi.scheduling.kept_requests import Originals


def test_an_original_is_taken_once() -> None:
    originals = Originals()
    request = Request("http://h1.example/")
    assert originals.add(1, request)
    assert originals.take(1) is request
    assert originals.take(1) is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    originals = Originals(most=2)
    requests = [Request(f"http://h1.example/{number}") for number in range(3)]
    assert originals.add(0, requests[0]) and originals.add(1, requests[1])
    assert originals.add(0, requests[0])  # again: now the newest
    assert not originals.add(2, requests[2])
    assert (len(originals), originals.take(1), originals.take(0), originals.take(2)) == (
        2,
        None,
        requests[0],
        requests[2],
    )
