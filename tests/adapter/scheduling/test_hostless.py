"""Requests that belong to no host stay here, once each."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from scrapy_ubi.adapter.scheduling import hostless
from scrapy_ubi.adapter.scheduling.hostless import Hostless


def test_order_is_priority_then_arrival() -> None:
    local = Hostless(RequestFingerprinter(), changed=list, most_out=9)
    for number, priority in enumerate((0, 5, 0, 5)):
        assert local.add(Request(f"data:,{number}", priority=priority))
    assert len(local) == 4
    urls = [request.url for request in iter(local.next_request, None)]
    assert urls == ["data:,1", "data:,3", "data:,0", "data:,2"]
    assert not local


def test_a_duplicate_is_refused_unless_it_asks_to_be_fetched_anyway() -> None:
    local = Hostless(RequestFingerprinter(), changed=list)
    assert local.add(Request("ftp://h1.example/x"))
    assert not local.add(Request("ftp://h1.example/x"))
    assert local.add(Request("ftp://h1.example/x", dont_filter=True))
    assert len(local) == 2


def test_it_is_told_when_one_is_added_and_when_one_is_done() -> None:
    told: list[bool] = []
    local = Hostless(RequestFingerprinter(), changed=lambda: told.append(local.over))
    assert local.over
    request = Request("data:,x")
    assert local.add(request) and not local.add(request)
    assert local.next_request() is request
    assert local.next_request() is None and not local.over, "its callback may yet find pages"
    local.done()
    assert told == [False, True]


def test_no_more_are_out_at_once_than_that() -> None:
    local = Hostless(RequestFingerprinter(), changed=list, most_out=2)
    for number in range(4):
        local.add(Request(f"ftp://h1.example/{number}"))
    assert local.next_request() and local.next_request()
    assert local.next_request() is None and len(local) == 2
    local.done()
    assert local.next_request() and not local.next_request()


def test_what_waits_and_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostless, "MANY_WAITING", 1)
    monkeypatch.setattr(hostless, "MOST_WAITING", 3)
    monkeypatch.setattr(hostless, "MOST_SEEN", 2)
    local = Hostless(RequestFingerprinter(), changed=list)
    said = []
    for number in range(3):
        local.add(Request(f"data:,{number}"))
        said.append((local.many, local.full))
    assert said == [(False, False), (True, False), (True, True)]
    assert not local.add(Request("data:,2")) and local.add(Request("data:,0")), "the oldest is forgotten"
