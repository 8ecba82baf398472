"""The guard: no transfer without permit and lease, and what is withdrawn is no failure."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi import downloadermiddleware, writegate
from scrapy_ubi.downloadermiddleware import ForeignHost, GivenUp, Guard, Withdrawn
from scrapy_ubi.flights import Flight, Flights
from scrapy_ubi.notices import Notices
from scrapy_ubi.robots import load
from scrapy_ubi.robots.load import Load, request_for
from scrapy_ubi.settings import UbiSettings
from tests.support.fakenode import FakeNode

URL = "http://h1.example/"
OTHER = "http://h2.example/x"


class World:
    """A guard before a fake node, and transfers that end when the test says so."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = Crawler(Spider)
        self.crawler.stats = MemoryStatsCollector(self.crawler)
        self.crawler.engine = cast("Any", SimpleNamespace(downloader=None))
        self.node: Any = FakeNode()
        self.flights = Flights()
        self.guard = Guard(self.crawler, self.node, UbiSettings(**settings), self.flights, Notices())
        self.transferring = asyncio.Event()
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.started: list[str] = []

    def page(self, url: str = URL, **arguments: Any) -> Flight:
        request = Request(url, **arguments)
        return self.flights.add(Flight(request, "h1.example", self.node.visit(url)))

    def robots(self, url: str = "http://h1.example/robots.txt", **meta: Any) -> Request:
        return Request(url, callback=NO_CALLBACK, meta={"dont_obey_robotstxt": True, **meta})

    async def download(self, request: Request) -> Response:
        self.started.append(request.url)
        self.transferring.set()
        return await asyncio.shield(self.answer)

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"ubi/guard/{name}", 0)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an async test in a loop of its own, for at most half a minute."""

    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 30))

    run.__name__ = test.__name__
    return run


async def turns(count: int = 10) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


@in_loop
async def test_a_page_waits_for_its_host() -> None:
    world = World()
    first, second = world.page(), world.page("http://h1.example/2")
    await world.guard.admit(first.request)
    waiting = asyncio.ensure_future(world.guard.admit(second.request))
    await turns()
    assert first.held and not waiting.done()
    world.guard.responded(first.request, Response(first.request.url))
    await waiting
    assert (first.held, first.fetched, second.held) == (False, True, True)


@in_loop
async def test_giving_back_twice_does_nothing() -> None:
    world = World()
    page = world.page()
    await world.guard.admit(page.request)
    world.guard.responded(page.request, Response(page.request.url))
    world.guard.failed(page.request, OSError())
    world.guard.release(page)
    assert page.fetched


@in_loop
async def test_no_permit_while_the_lease_does_not_hold() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.guard.admit(page.request))
    await turns()
    assert not waiting.done()
    world.node.change(fenced=False)
    await waiting
    assert page.held


@in_loop
async def test_a_lease_that_ends_right_after_the_grant_is_noticed() -> None:
    world = World()
    page = world.page()
    answers = iter([False, False, True])
    world.node.may_fetch = lambda host: next(answers)
    await world.guard.admit(page.request)
    assert world.node.grants["h1.example"] == 3
    assert page.held


@in_loop
async def test_a_lease_that_ends_in_the_downloaders_queue_is_noticed_where_the_transfer_starts() -> None:
    world = World()
    page = world.page()
    await world.guard.admit(page.request)
    world.node.change(fenced=True)
    carried = asyncio.ensure_future(world.guard.carry(page.request, world.download))
    await turns()
    assert world.started == [] and not page.held
    world.node.change(fenced=False)
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL
    assert page.held and world.node.again == ["h1.example"]


@in_loop
async def test_a_lost_host_withdraws_the_page() -> None:
    world = World()
    world.node.change(lost={"h1.example"})
    page = world.page()
    with pytest.raises(Withdrawn):
        await world.guard.admit(page.request)
    assert page.withdrawn and not page.held


@in_loop
async def test_a_fence_cancels_the_transfers_under_way() -> None:
    world = World()
    page, media = world.page(), Request(OTHER)
    for request in (page.request, media):
        await world.guard.admit(request)
    carried = [asyncio.ensure_future(world.guard.carry(request, world.download)) for request in (page.request, media)]
    await turns()
    assert world.started == [URL, OTHER]
    world.node.change(fenced=True)
    world.guard.cancel()
    with pytest.raises(Withdrawn):
        await carried[0]
    assert page.withdrawn and world.node.held == set()
    assert world.stat("cancelled") == 2
    world.node.change(fenced=False)  # nobody would ask for the media again
    await turns()
    assert world.started == [URL, OTHER, OTHER] and world.node.held == {"h2.example"}
    assert world.node.again == ["h2.example"]  # it keeps its place in Scrapy's downloader
    world.answer.set_result(Response(OTHER))
    assert (await carried[1]).url == OTHER


@pytest.mark.parametrize("closing", [False, True])
def test_media_whose_host_or_lease_is_gone_for_good_are_not_done_again(closing: bool) -> None:
    @in_loop
    async def test() -> None:
        world = World()
        media = Request(OTHER)
        await world.guard.admit(media)
        carried = asyncio.ensure_future(world.guard.carry(media, world.download))
        await turns()
        if closing:
            world.guard.close()
        world.node.change(lost=set() if closing else {"h2.example"}, fenced=closing)
        world.guard.cancel()
        with pytest.raises(Withdrawn if closing else ForeignHost):
            await carried
        assert world.started == [OTHER] and world.node.held == set()

    test()


@in_loop
async def test_a_robots_txt_is_done_again_where_only_media_wait_for_it() -> None:
    world = World()
    loads = [Load(of_page, False, 15.0) for of_page in (True, False)]
    requests = [request_for(f"http://h{number}.example/robots.txt", load) for number, load in enumerate(loads)]
    carried = []
    for request in requests:
        await world.guard.admit(request)
        carried.append(asyncio.ensure_future(world.guard.carry(request, world.download)))
    await turns()
    world.guard.cancel()
    with pytest.raises(Withdrawn):
        await carried[0]
    world.answer.set_result(Response(URL))
    assert (await carried[1]).url == URL


@in_loop
async def test_a_robots_txt_that_is_done_again_has_all_its_time_and_bytes_again() -> None:
    world = World()
    request = request_for("http://h1.example/robots.txt", Load(False, False, 15.0))
    await world.guard.admit(request)
    carried = asyncio.ensure_future(world.guard.carry(request, world.download))
    await turns()
    load.count_bytes(b"x" * load.MOST_BYTES, request)
    transfer = load.load_of(request)
    assert transfer is not None
    transfer.began -= 60.0  # a fence
    world.guard.cancel()
    await turns()
    load.count_bytes(b"x" * load.MOST_BYTES, request)
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL and len(world.started) == 2


@in_loop
async def test_only_transfers_of_the_hosts_named_are_cancelled() -> None:
    world = World()
    page, media = world.page(), Request(OTHER)
    for request in (page.request, media):
        await world.guard.admit(request)
    lost = asyncio.ensure_future(world.guard.carry(page.request, world.download))
    kept = asyncio.ensure_future(world.guard.carry(media, world.download))
    await turns()
    world.guard.cancel(["h1.example"])
    world.answer.set_result(Response(OTHER))
    with pytest.raises(Withdrawn):
        await lost
    assert (await kept).url == OTHER


@in_loop
async def test_a_fence_leaves_those_who_wait_waiting() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.guard.admit(page.request))
    await turns()
    world.guard.cancel()
    await turns()
    assert not waiting.done()
    world.node.change(fenced=False)
    await waiting


@in_loop
async def test_closing_withdraws_those_who_wait_and_lets_transfers_end() -> None:
    world = World()
    loading = world.page()
    await world.guard.admit(loading.request)
    carried = asyncio.ensure_future(world.guard.carry(loading.request, world.download))
    second = world.page("http://h1.example/2")
    waiting = asyncio.ensure_future(world.guard.admit(second.request))
    parsing = world.page("http://h1.example/parsed")
    await turns()
    world.guard.close()
    with pytest.raises(Withdrawn):
        await waiting
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL
    late = world.page("http://h1.example/3")
    with pytest.raises(Withdrawn):
        await world.guard.admit(late.request)
    assert [flight.withdrawn for flight in (loading, second, parsing, late)] == [False, True, False, True]


@in_loop
async def test_media_of_pages_under_way_are_loaded_while_the_spider_is_closed() -> None:
    """Also those that begin after that, and wait for each other: an item would lack them for good."""
    world = World()
    first, second, late = (Request(f"http://h1.example/{name}.png") for name in "abc")
    await world.guard.admit(first)
    waiting = asyncio.ensure_future(world.guard.admit(second))
    await turns()
    world.guard.close()
    after = asyncio.ensure_future(world.guard.admit(late))
    world.guard.responded(first, Response(first.url))
    for which in await asyncio.wait((waiting, after), return_when=asyncio.FIRST_COMPLETED):
        assert len(which) == 1
    world.guard.responded(late if after.done() else second, Response(URL))
    await asyncio.gather(waiting, after)
    assert world.node.held == {"h1.example"}


@in_loop
async def test_media_wait_for_no_lease_while_the_spider_is_closed() -> None:
    """Whether it ended before, ends then, or ends in the downloader's queue; nor does a page wait there. It is said of
    media, as nobody loads them later."""
    world = World()
    first, second, page = Request(OTHER), Request(f"{OTHER}2"), world.page()
    await asyncio.gather(world.guard.admit(first), world.guard.admit(page.request))
    waiting = asyncio.ensure_future(world.guard.admit(second))
    world.guard.close()
    await turns()
    assert not waiting.done()
    world.node.change(fenced=True)
    world.guard.cancel()
    carried = (world.guard.carry(request, world.download) for request in (first, page.request))
    for one in (waiting, *carried, world.guard.admit(Request(f"{OTHER}3"))):
        with pytest.raises(Withdrawn):
            await one
    assert world.started == [] and world.node.held == set()
    assert world.stat("ended") == 3  # and not the page, which is fetched later


@in_loop
async def test_media_wait_for_no_host_that_was_put_off_while_the_spider_is_closed() -> None:
    """Before, by what one of them is answered then, or as it fails: others wait for the hosts that the agent keeps."""
    world = World()
    world.node.put_off.add("h0.example")
    first, second, other = Request(OTHER), Request(f"{OTHER}2"), Request(URL)
    await asyncio.gather(world.guard.admit(first), world.guard.admit(other))
    world.guard.close()
    waiting = asyncio.ensure_future(world.guard.admit(second))
    await turns()
    assert not waiting.done()
    world.node.put_off.add("h2.example")  # 429, and Retry-After
    world.guard.responded(first, Response(OTHER, status=429))
    for one in (waiting, world.guard.admit(Request(f"{OTHER}3")), world.guard.admit(Request("http://h0.example/"))):
        with pytest.raises(Withdrawn):
            await one
    assert world.node.held == {"h1.example"} and world.stat("ended") == 3


@in_loop
async def test_a_foreign_host_is_refused_by_its_name_while_the_spider_is_closed() -> None:
    world = World()
    world.node.change(lost={"h2.example"})
    world.guard.close()
    with pytest.raises(ForeignHost):
        await world.guard.admit(Request(OTHER))
    await world.node.leave("shutdown")
    with pytest.raises(Withdrawn):
        await world.guard.admit(Request(OTHER))


@in_loop
async def test_no_permit_is_given_at_the_moment_of_closing() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.guard.admit(page.request))
    await turns()
    world.node.change(fenced=False)
    world.guard.close()  # before the one that waits has had its turn
    with pytest.raises(Withdrawn):
        await waiting
    assert world.node.held == set()


@in_loop
async def test_who_is_withdrawn_goes_on_as_if_never_cancelled() -> None:
    """The task may be that of the whole page: what it does next is nobody's to cancel."""
    world = World()
    page = world.page()

    async def way() -> int:
        await world.guard.admit(page.request)
        with pytest.raises(Withdrawn):
            await world.guard.carry(page.request, world.download)
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.ensure_future(way())
    await world.transferring.wait()
    world.guard.cancel()
    world.guard.cancel()
    assert await task == 0 and page.withdrawn and not page.held


@in_loop
async def test_the_right_to_write_is_that_of_the_transfer_alone() -> None:
    world = World()
    page = world.page()
    rights: list[object] = []

    async def download(request: Request) -> Response:
        rights.append(writegate.may_write.get())
        return Response(request.url)

    await world.guard.admit(page.request)
    await world.guard.carry(page.request, download)
    assert callable(rights[0]) and writegate.may_write.get() is None


@in_loop
async def test_a_connection_that_is_kept_holds_no_page() -> None:
    world = World()
    kept: list[contextvars.Context] = []  # as its transport does

    async def download(request: Request) -> Response:
        kept.append(contextvars.copy_context())
        return Response(request.url)

    page = world.page()
    await world.guard.admit(page.request)
    await world.guard.carry(page.request, download)
    world.guard.release(page)
    world.flights.remove(page.request)
    gone = weakref.ref(page.request)
    del page
    gc.collect()
    assert kept and gone() is None


@in_loop
async def test_cancelled_by_somebody_else_stays_cancelled() -> None:
    world = World()
    page = world.page()
    await world.guard.admit(page.request)
    carried = asyncio.ensure_future(world.guard.carry(page.request, world.download))
    await turns()
    carried.cancel()
    with pytest.raises(asyncio.CancelledError):
        await carried
    assert not page.withdrawn


def test_a_foreign_download_is_refused_with_one_warning_that_names_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @in_loop
    async def refused_twice() -> None:
        world = World()
        world.node.change(lost={"h2.example"})
        for _ in range(2):
            with pytest.raises(ForeignHost):
                await world.guard.admit(Request(OTHER))
        assert world.stat("foreign_refused") == 2

    refused_twice()
    assert [record.getMessage().count("UBI_FOREIGN_DOWNLOADS") for record in caplog.records] == [1]


def test_a_download_that_comes_when_the_crawl_is_over_is_named_as_that(caplog: pytest.LogCaptureFixture) -> None:
    @in_loop
    async def refused() -> None:
        world = World()
        world.node.start_exhausted()  # the fake node's crawl is over
        world.node.change(lost={"h2.example"})  # and the node permits nothing
        assert world.node.over
        with pytest.raises(Withdrawn):
            await world.guard.admit(Request(OTHER))
        assert (world.stat("ended"), world.stat("foreign_refused")) == (1, 0)

    refused()
    assert ["the crawl is over" in record.getMessage() for record in caplog.records] == [True]


@in_loop
async def test_a_foreign_download_is_let_through_where_allowed() -> None:
    world = World(foreign_downloads="allow")
    world.node.change(lost={"h2.example"})
    request = Request(OTHER)
    await world.guard.admit(request)
    world.answer.set_result(Response(OTHER))
    assert (await world.guard.carry(request, world.download)).url == OTHER
    assert world.stat("foreign_allowed") == 1 and world.node.held == set()


@in_loop
async def test_media_that_ask_for_no_robots_txt_are_none_themselves() -> None:
    media: dict[str, Any] = {"callback": NO_CALLBACK, "meta": {"dont_obey_robotstxt": True}}
    world, permissive = World(), World(foreign_downloads="allow")
    for one in (world, permissive):
        one.node.change(lost={"h2.example"})
    with pytest.raises(ForeignHost):
        await world.guard.admit(Request(OTHER, **media))
    await permissive.guard.admit(Request(OTHER, **media))
    assert (world.stat("foreign_refused"), permissive.stat("foreign_allowed")) == (1, 1)

    own = Request(f"{URL}x.pdf", **media)
    await world.guard.admit(own)
    carried = asyncio.ensure_future(world.guard.carry(own, world.download))
    await world.transferring.wait()
    world.guard.cancel()
    world.answer.set_result(Response(own.url))
    assert (await carried).url == own.url and world.started == [own.url, own.url]


@in_loop
async def test_media_of_a_host_that_is_given_up_are_not_tried() -> None:
    world = World()
    world.node.hosts.get = lambda state, section: [8, 3]  # one failure more, and it is dead
    world.node.note = lambda what, host: None
    state, _ = world.node.frontier.add("h2.example", ())
    tried = Request(OTHER)
    await world.guard.admit(tried)
    waiting = asyncio.ensure_future(world.guard.admit(Request(f"{OTHER}2")))
    await turns()
    world.guard.failed(tried, OSError())
    assert world.node.hosts.why == {"h2.example": "host/dead"}
    with pytest.raises(GivenUp):
        await waiting
    with pytest.raises(GivenUp):
        await world.guard.admit(Request(f"{OTHER}3"))
    assert world.stat("given_up") == 2 and world.node.grants["h2.example"] == 1
    world.node.hosts.end(state, "limit/host_pages")
    await world.guard.admit(Request(f"{OTHER}4"))
    assert world.node.grants["h2.example"] == 2


@in_loop
async def test_what_has_no_host_needs_no_permit() -> None:
    world = World()
    world.node.change(fenced=True)
    await world.guard.admit(Request("data:,x"))


@in_loop
async def test_a_robots_txt_that_was_withdrawn_withdraws_the_pages_that_waited() -> None:
    world = World()
    known: dict[str, bool] = {}
    forgotten: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloadermiddleware, "robots_known", lambda crawler, netloc: known.get(netloc, False))
        patch.setattr(downloadermiddleware, "forget_robots", lambda crawler, netloc: forgotten.append(netloc))
        world.node.change(lost={"h1.example"})
        with pytest.raises(Withdrawn):
            await world.guard.admit(world.robots())
        world.node.change(lost=set())
        for page in (world.page(), world.page("http://h1.example/2")):
            with pytest.raises(Withdrawn):
                await world.guard.admit(page.request)
        assert forgotten == ["h1.example", "h1.example"]
        await world.guard.admit(world.page("http://h1.example/3", meta={"dont_obey_robotstxt": True}).request)
        world.node.release("h1.example")
        known["h1.example"] = True
        page = world.page("http://h1.example/4")
        await world.guard.admit(page.request)
        assert page.held


@in_loop
async def test_a_robots_txt_that_redirects_to_a_foreign_host_is_not_found() -> None:
    world = World()
    world.node.change(lost={"h2.example"})
    hop = world.robots("http://h2.example/robots.txt", redirect_urls=["http://h1.example/robots.txt"])
    with pytest.raises(ForeignHost):
        await world.guard.admit(hop)
    page = world.page()
    await world.guard.admit(page.request)
    assert page.held
