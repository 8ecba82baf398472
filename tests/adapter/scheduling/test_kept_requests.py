"""Original requests are kept within a bound."""

from __future__ import annotations

from scrapy import Request

from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests


def test_an_original_is_taken_once() -> None:
    kept = KeptRequests()
    request = Request("http://h1.example/")
    assert kept.add(1, request)
    assert kept.take_request(1) is request
    assert kept.take_request(1) is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    kept = KeptRequests(most=2)
    requests = [Request(f"http://h1.example/{number}") for number in range(3)]
    assert kept.add(0, requests[0]) and kept.add(1, requests[1])
    assert kept.add(0, requests[0])  # again: now the newest
    assert not kept.add(2, requests[2])
    assert (len(kept), kept.take_request(1), kept.take_request(0), kept.take_request(2)) == (
        2,
        None,
        requests[0],
        requests[2],
    )
