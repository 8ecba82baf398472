"""Canary: Scrapy's bound on the pages that callbacks have is where it is raised, and what errbacks yield is met."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.core.scraper import Scraper, Slot
from scrapy.http import Request, Response
from twisted.python.failure import Failure

from scrapy_ubi.adapter.scrapy_private.scraper import on_errback_output, raise_bound


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


PARENT = Request("http://a.example/")


def output() -> Iterator[Any]:
    yield {"item": 1}
    yield Request("http://a.example/b")


async def slow_output() -> AsyncIterator[Any]:
    for found in output():
        yield found


@pytest.mark.parametrize("make", [output, slow_output, lambda: list(output())])
@pytest.mark.parametrize("failed", [True, False])
def test_requests_of_an_errback_are_met_and_none_of_a_callback(make: Any, failed: bool) -> None:
    met, passed = list[tuple[str, Request]](), list[Any]()

    async def handle_spider_output_async(result: Any, request: Request, response: Any) -> None:
        if isinstance(result, AsyncIterator):
            passed.extend([found async for found in result])
        else:
            passed.extend(result)

    scraper = SimpleNamespace(handle_spider_output_async=handle_spider_output_async)
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(scraper=scraper))
    on_errback_output(crawler, lambda request, parent: met.append((request.url, parent)))
    outcome = Failure(ValueError()) if failed else Response(PARENT.url)  # type: ignore[no-untyped-call]
    asyncio.run(scraper.handle_spider_output_async(make(), PARENT, outcome))
    assert [getattr(each, "url", each) for each in passed] == [{"item": 1}, "http://a.example/b"]
    assert met == ([("http://a.example/b", PARENT)] if failed else [])


def test_where_the_name_is_lacking_nothing_is_met() -> None:
    assert hasattr(Scraper, "handle_spider_output_async")
    for engine in (SimpleNamespace(scraper=SimpleNamespace()), SimpleNamespace()):
        crawler: Any = SimpleNamespace(engine=engine)
        on_errback_output(crawler, lambda request, parent: None)
        assert "handle_spider_output_async" not in vars(getattr(engine, "scraper", SimpleNamespace()))
