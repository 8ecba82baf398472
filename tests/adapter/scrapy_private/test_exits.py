"""Canaries: what the hooks on the engine tell of each request, for every way out of Scrapy."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.scrapy_private.engine import Download, EngineHooks
from tests.support.crawls import crawl
from tests.support.site import Page, Site

HOST = "http://h1.example"


class Exits(Spider):
    """A page for each way out of Scrapy."""

    name = "exits"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOST}/", self.index)

    def index(self, response: Response) -> Iterator[Any]:
        for method in ("items", "requests", "asynchronous", "raises", "raises_late", "returns_none", "inline"):
            yield Request(f"{HOST}/{method}", getattr(self, method))
        for path in ("404", "500", "redirect", "slow", "ignored", "ignored-response"):
            meta = {"download_timeout": 0.3, "path": path}
            yield Request(f"{HOST}/{path}", self.items, meta=meta)
            yield Request(f"{HOST}/{path}?errback", self.items, errback=self.failed, meta=meta)
        yield Request("data:,local", self.items)
        yield Request("nowhere://x", self.items, errback=self.failed)

    def items(self, response: Response) -> Iterator[Any]:
        yield {"of": response.url}

    def requests(self, response: Response) -> Iterator[Any]:
        for number in range(10):
            yield Request(f"{HOST}/child{number}", self.returns_none, cb_kwargs={"of": response.url})

    async def asynchronous(self, response: Response) -> AsyncIterator[Any]:
        yield {"of": response.url}
        await asyncio.sleep(0)
        yield Request(f"{HOST}/async-child", self.returns_none, cb_kwargs={"of": response.url})

    def raises(self, response: Response) -> None:
        raise RuntimeError("at once")

    def raises_late(self, response: Response) -> Iterator[Any]:
        yield Request(f"{HOST}/late-child", self.returns_none, cb_kwargs={"of": response.url})
        raise RuntimeError("late")

    def returns_none(self, response: Response, of: str = "") -> None:
        return None

    async def inline(self, response: Response) -> list[Any]:
        await self.crawler.engine.download_async(Request(f"{HOST}/inlined"))
        return [{"of": response.url}]

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"of": failure.request.url}


class Ignores:
    """A downloader middleware that ignores requests and responses by their path."""

    def process_request(self, request: Request) -> None:
        if request.meta.get("path") == "ignored":
            raise IgnoreRequest

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("path") == "ignored-response":
            raise IgnoreRequest
        return response


class SlowPipeline:
    """An item pipeline that gives way to the loop a few times."""

    async def process_item(self, item: Any) -> Any:
        for _ in range(20):
            await asyncio.sleep(0)
        Recording.events.append(("item", item["of"]))
        return item


class Recording(UbiScheduler):
    """Notes what happens to each request, by object identity where it matters."""

    events: list[tuple[str, str]]
    handed_out: list[Request]
    removed: list[Request]
    closing: int

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            self.handed_out.append(request)
        return request

    def enqueue_request(self, request: Request) -> bool:
        self.events.append(("child", request.cb_kwargs.get("of", "")))
        return super().enqueue_request(request)

    def begin(self) -> None:
        super().begin()
        hooks = EngineHooks(self.crawler.engine)
        hooks.on_removed(self._note_removed)
        hooks.on_closing(self._note_closing)
        hooks.on_outcome(self._note_outcome)
        hooks.on_successor(self._note_successor)
        hooks.around_transfers(self._note_transfer)

    def _note_removed(self, request: Request) -> None:
        self.removed.append(request)
        self.events.append(("removed", request.url))

    def _note_closing(self) -> None:
        type(self).closing += 1

    def _note_outcome(self, result: Response | Failure, request: Request) -> bool:
        self.events.append(("outcome", request.url))
        return False

    def _note_successor(self, new: Request, request: Request) -> None:
        self.events.append(("successor", f"{request.url} {new.url}"))

    async def _note_transfer(self, request: Request, download: Download) -> Response:
        self.events.append(("transfer", request.url))
        return await download(request)


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[type[Recording], Site]]:
    """A crawl with every kind of exit, recorded."""
    with Site() as site:
        record(site)
        yield Recording, site


def record(site: Site) -> None:
    Recording.events, Recording.handed_out, Recording.removed, Recording.closing = [], [], [], 0
    for path in ("", "items", "requests", "asynchronous", "raises", "raises_late", "returns_none", "inline", "inlined"):
        site.page(f"{HOST}/{path}")
    for child in (*(f"child{number}" for number in range(10)), "async-child", "late-child", "ignored-response"):
        site.page(f"{HOST}/{child}")
    for end in ("", "?errback"):
        site.page(f"{HOST}/500{end}", Page("", 500))
        site.redirect(f"{HOST}/redirect{end}", f"{HOST}/items")
    with site.hold(f"{HOST}/slow"), site.hold(f"{HOST}/slow?errback"):
        settings = {
            "SCHEDULER": Recording,
            "RETRY_TIMES": 1,
            "DOWNLOADER_MIDDLEWARES": {Ignores: 10},
            "ITEM_PIPELINES": {SlowPipeline: 1},
            "UBI_LEAN": False,  # the hooks are for Scrapy's way
        }
        outcome = crawl(Exits, site.proxy, settings=settings)[0]
    assert outcome.reason == "finished"


def test_every_request_is_removed_exactly_once_however_it_ends(recorded: tuple[type[Recording], Site]) -> None:
    handed_out, removed_requests = recorded[0].handed_out, recorded[0].removed
    removed = Counter(map(id, removed_requests))
    assert {id(request) for request in handed_out} <= removed.keys()
    assert set(removed.values()) == {1}
    bypassed = [request.url for request in removed_requests if request not in handed_out]
    assert bypassed == [f"{HOST}/inlined"]


def test_a_request_is_removed_after_its_last_output_and_item(recorded: tuple[type[Recording], Site]) -> None:
    events = recorded[0].events
    last_removed = {url: place for place, (what, url) in enumerate(events) if what == "removed"}
    for place, (what, url) in enumerate(events):
        if what in ("child", "item") and url:
            assert place < last_removed[url], (what, url)
    assert sum(what == "item" for what, _ in events) >= 10
    assert sum(what == "child" and url != "" for what, url in events) == 12


def test_the_outcome_of_every_request_is_seen_but_of_those_that_go_on(recorded: tuple[type[Recording], Site]) -> None:
    events = recorded[0].events
    outcomes = Counter(url for what, url in events if what == "outcome")
    assert outcomes[f"{HOST}/404"] == outcomes[f"{HOST}/500"] == outcomes[f"{HOST}/ignored"] == 1
    assert outcomes[f"{HOST}/redirect"] == outcomes[f"{HOST}/inlined"] == 0
    assert outcomes[f"{HOST}/ignored-response"] == outcomes[f"{HOST}/slow"] == 1


def test_a_request_in_place_of_a_response_is_seen_with_the_request_whose_place_it_takes(
    recorded: tuple[type[Recording], Site],
) -> None:
    told = [urls.split() for what, urls in recorded[0].events if what == "successor"]
    assert [new for old, new in told if old == f"{HOST}/redirect"], "the redirect"
    assert all(new == old for old, new in told if "redirect" not in old), "all others are retries"


def test_every_transfer_is_carried(recorded: tuple[type[Recording], Site]) -> None:
    recording, site = recorded
    carried = Counter(url for what, url in recording.events if what == "transfer" and url.startswith("http"))
    assert carried == site.urls()


def test_closing_is_seen_once(recorded: tuple[type[Recording], Site]) -> None:
    assert recorded[0].closing == 1
