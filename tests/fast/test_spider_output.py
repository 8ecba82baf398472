"""The output of callbacks, taken the lean way and Scrapy's: the same items, errors and stats."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider, DropItem
from scrapy.http import Response
from scrapy.logformatter import LogFormatter

from scrapy_ubi.fast import pieces as leanpieces
from scrapy_ubi.fast import spider_output
from tests.fast.test_path import Later, both
from tests.support.crawls import crawl, items_of
from tests.support.site import Site

HOSTS = [f"http://h{number}.example" for number in range(12)]
NAMES = ("item_scraped_count", "item_dropped_count", "item_error_count", "spider_exceptions/count",
         "spider_exceptions/ValueError", "ubi/failed/callback/ValueError", "ubi/unique", "ubi/done")  # fmt: skip


class Shapes(Spider):
    """Callbacks of every shape."""

    name = "shapes"

    async def start(self) -> AsyncIterator[Any]:
        for host, callback in zip(HOSTS, self.all(), strict=False):
            yield Request(f"{host}/", callback)

    def all(self) -> list[Any]:
        return [self.plain, self.listed, self.one, self.nothing, self.awaited, self.streamed, self.breaks, self.fails,
                self.asks, self.none_between]  # fmt: skip

    def plain(self, response: Response) -> Iterator[Any]:
        yield from ({"plain": number} for number in range(100))

    def listed(self, response: Response) -> list[Any]:
        return [{"listed": 1}, None, {"listed": 2}]

    def one(self, response: Response) -> Any:
        return {"one": 1}

    def nothing(self, response: Response) -> None:
        """Yields nothing."""

    async def awaited(self, response: Response) -> list[Any]:
        await asyncio.sleep(0)
        return [{"awaited": 1}]

    async def streamed(self, response: Response) -> AsyncIterator[Any]:
        for number in range(3):
            await asyncio.sleep(0)
            yield {"streamed": number}

    def breaks(self, response: Response) -> Iterator[Any]:
        yield {"before": 1}
        raise ValueError("in the middle")

    def fails(self, response: Response) -> Iterator[Any]:
        raise ValueError("at once")

    def asks(self, response: Response) -> Iterator[Any]:
        yield response.follow("/more", self.one)
        yield {"asked": 1}

    def none_between(self, response: Response) -> Iterator[Any]:
        yield {"between": 1}
        yield None
        yield {"between": 2}


class Recovering:
    """A spider middleware that gives something instead of an error, and sees no output."""

    def process_spider_exception(self, response: Response, exception: Exception) -> Iterable[Any] | None:
        return [{"instead of": str(exception)}] if "middle" in str(exception) else None


class Refusing:
    """A spider middleware that does not let every response through."""

    def process_spider_input(self, response: Response) -> None:
        if response.url.startswith(HOSTS[1]):
            raise ValueError("refused")


class Choosy:
    """A pipeline of plain functions: drops, changes and fails."""

    def process_item(self, item: Any) -> Any:
        if item.get("plain", 0) % 10 == 1:
            raise DropItem("one of ten")
        if item.get("plain", 0) % 10 == 2:
            raise ValueError("a pipeline's bug")
        return {**item, "seen": True}


class Stubbed:
    """A spider middleware whose plain method is there for an old Scrapy, and called by nobody."""

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        raise AssertionError("the asynchronous one is called")

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            yield each


@pytest.fixture
def shapes(site: Site) -> Site:
    for host in HOSTS:
        site.page(f"{host}/", "<p>a page</p>")
        site.page(f"{host}/more", "<p>more</p>")
    return site


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"SPIDER_MIDDLEWARES": {Recovering: 100}},
        {"SPIDER_MIDDLEWARES": {Recovering: 2_000_000, Refusing: 10}},
        {"SPIDER_MIDDLEWARES": {Stubbed: 100}},
        {"ITEM_PIPELINES": {Choosy: 1}},
        {"ITEM_PIPELINES": {Later: 1, Choosy: 2}},
    ],
    ids=["default", "recovering", "refusing", "stubbed", "plain pipeline", "coroutine"],
)
def test_callbacks_of_every_shape(shapes: Site, settings: dict[str, Any]) -> None:
    theirs, lean = both(Shapes, shapes, **settings)
    assert items_of([lean]) == items_of([theirs])
    assert {name: lean.stats.get(name) for name in NAMES} == {name: theirs.stats.get(name) for name in NAMES}
    assert lean.stats["item_scraped_count"] > 80
    if Recovering in settings.get("SPIDER_MIDDLEWARES", ()):
        assert {"instead of": "in the middle"} in lean.items


def test_items_pass_a_plain_pipeline_in_their_order_and_those_of_a_coroutine_at_once(shapes: Site) -> None:
    settings = {"CONCURRENT_ITEMS": 7}
    [one] = crawl(Shapes, shapes.proxy, settings=settings | {"ITEM_PIPELINES": {Choosy: 1}})
    order = [item["plain"] for item in one.items if "plain" in item]
    assert order == sorted(order) and len(order) == 80
    Later.most = Later.now = 0
    crawl(Shapes, shapes.proxy, settings=settings | {"ITEM_PIPELINES": {Later: 1}})
    assert Later.most >= 7


class Ticking(Spider):
    """Yields a page without end, and says how often others have had a turn meanwhile."""

    name = "ticking"
    start_urls = (f"{HOSTS[0]}/",)
    turns = 0

    async def tick(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    def parse(self, response: Response) -> Iterator[Any]:
        ticking = asyncio.ensure_future(self.tick())
        yield from self.pieces(response)
        ticking.cancel()
        yield {"turns": self.turns}

    def pieces(self, response: Response) -> Iterator[Any]:
        for number in range(64 * 20):
            yield response.follow(f"/more?{number % 2}")


class TickingItems(Ticking):
    def pieces(self, response: Response) -> Iterator[Any]:
        for number in range(leanpieces.SLICE * 20):
            yield {"turns": -number}


@pytest.mark.parametrize("spider", [Ticking, TickingItems])
def test_a_page_that_yields_much_lets_others_have_their_turn(shapes: Site, spider: type[Ticking]) -> None:
    shapes.page(f"{HOSTS[0]}/more?0", "")
    shapes.page(f"{HOSTS[0]}/more?1", "")
    [lean] = crawl(spider, shapes.proxy)
    assert max(item["turns"] for item in lean.items) >= 20


class Closing(Spider):
    name = "closing"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"before": 1}
        raise CloseSpider("enough")


def test_a_callback_may_close_the_spider(shapes: Site) -> None:
    theirs, lean = both(Closing, shapes)
    assert (lean.reason, items_of([lean])) == (theirs.reason, items_of([theirs])) == ("enough", [{"before": 1}])


def test_a_middleware_that_is_not_known_is_not_asked_by_its_plain_method() -> None:
    class Manager:
        middlewares = (Stubbed(),)

    class Scraper:
        spidermw = Manager()
        itemproc = object()
        logformatter = LogFormatter()

    output = spider_output.LeanOutput(Scraper(), None)  # type: ignore[arg-type]
    assert not output.is_lean
