"""Canary: Scrapy's bound on the pages that callbacks have is where it is raised."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy.core.scraper import Slot
from scrapy.http import Request, Response

from scrapy_ubi.adapter.scrapy_private.scraper import raise_bound


def test_what_is_raised_is_what_the_engine_asks() -> None:
    slot = Slot(max_active_size=5000)
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(scraper=SimpleNamespace(slot=slot)))
    slot.add_response_request(Response("http://a.example/", body=b"x" * 6000), Request("http://a.example/"))
    assert slot.needs_backout()
    raise_bound(crawler, 6000)
    assert not slot.needs_backout()
    raise_bound(crawler, -6000)
    assert slot.needs_backout()


def test_nothing_is_raised_where_there_is_no_engine_or_no_page() -> None:
    without: Any = SimpleNamespace(engine=SimpleNamespace(scraper=SimpleNamespace(slot=None)))
    raise_bound(without, 1)
    nothing: Any = SimpleNamespace()
    raise_bound(nothing, 1)
