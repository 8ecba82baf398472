"""The gate: no transfer without permit and lease, and what is withdrawn is no failure."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import weakref
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import ForeignHost
from scrapy_ubi.adapter.robots import fetch as load
from scrapy_ubi.adapter.robots.fetch import RobotsLoad, request_for
from scrapy_ubi.adapter.scrapy_private import socket_gate
from tests.support.gated import OTHER, URL, World, in_loop, turns


@in_loop
async def test_a_page_waits_for_its_host() -> None:
    world = World()
    first, second = world.page(), world.page("http://h1.example/2")
    await world.gate.admit(first.request)
    waiting = asyncio.ensure_future(world.gate.admit(second.request))
    await turns()
    assert first.held and not waiting.done()
    world.gate.responded(first.request, Response(first.request.url))
    await waiting
    assert (first.held, first.fetched, second.held) == (False, True, True)


@in_loop
async def test_giving_back_twice_does_nothing() -> None:
    world = World()
    page = world.page()
    await world.gate.admit(page.request)
    world.gate.responded(page.request, Response(page.request.url))
    world.gate.failed(page.request, OSError())
    world.gate.release(page)
    assert page.fetched


@in_loop
async def test_no_permit_while_the_lease_does_not_hold() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.gate.admit(page.request))
    await turns()
    assert not waiting.done()
    world.node.change(fenced=False)
    await waiting
    assert page.held


@in_loop
async def test_a_lease_that_ends_in_the_downloaders_queue_is_noticed_where_the_transfer_starts() -> None:
    world = World()
    page = world.page()
    await world.gate.admit(page.request)
    world.node.change(fenced=True)
    carried = asyncio.ensure_future(world.gate.carry(page.request, world.download))
    await turns()
    assert world.started == [] and not page.held
    world.node.change(fenced=False)
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL
    assert page.held and world.node.again == ["h1.example"]


def breaking(world: World, times: int) -> Any:
    """A handler whose kept connections break so many times."""

    async def download(request: Request) -> Response:
        world.started.append(request.url)
        if len(world.started) > times:
            return Response(request.url)
        right = socket_gate.may_write.get()
        assert isinstance(right, socket_gate.OneTransfer) and right.repeats == len(world.started) - 1
        right.broken = True
        raise DownloadFailedError("the connection was closed")

    return download


@in_loop
async def test_what_a_kept_connection_has_lost_is_sent_again_under_a_new_permit() -> None:
    world = World()
    page, media = world.page(), Request(OTHER)
    for request, host in ((page.request, "h1.example"), (media, "h2.example")):
        world.started.clear()
        await world.gate.admit(request)
        assert (await world.gate.carry(request, breaking(world, 2))).url == request.url
        assert world.started == [request.url] * 3
        assert world.node.again == [host] * 2
        world.node.again.clear()
    assert world.stat("repeated") == 4 and page.held


@in_loop
async def test_a_robots_txt_is_not_sent_again_so() -> None:
    world = World()
    request = request_for("http://h1.example/robots.txt", RobotsLoad(True, False, 10.0))
    await world.gate.admit(request)
    with pytest.raises(DownloadFailedError):
        await world.gate.carry(request, breaking(world, 1))


@in_loop
async def test_a_lost_host_withdraws_the_page() -> None:
    world = World()
    world.node.change(lost={"h1.example"})
    page = world.page()
    with pytest.raises(Withdrawn):
        await world.gate.admit(page.request)
    assert page.withdrawn and not page.held


@in_loop
async def test_a_fence_cancels_the_transfers_under_way() -> None:
    world = World()
    page, media = world.page(), Request(OTHER)
    for request in (page.request, media):
        await world.gate.admit(request)
    carried = [asyncio.ensure_future(world.gate.carry(request, world.download)) for request in (page.request, media)]
    await turns()
    assert world.started == [URL, OTHER]
    world.node.change(fenced=True)
    world.gate.cancel()
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
        world = World(foreign_downloads="refuse")
        media = Request(OTHER)
        await world.gate.admit(media)
        carried = asyncio.ensure_future(world.gate.carry(media, world.download))
        await turns()
        if closing:
            world.gate.close()
        world.node.change(lost=set() if closing else {"h2.example"}, fenced=closing)
        world.gate.cancel()
        with pytest.raises(Withdrawn if closing else ForeignHost):
            await carried
        assert world.started == [OTHER] and world.node.held == set()

    test()


@in_loop
async def test_a_robots_txt_is_done_again_where_only_media_wait_for_it() -> None:
    world = World()
    loads = [RobotsLoad(of_page, False, 15.0) for of_page in (True, False)]
    requests = [request_for(f"http://h{number}.example/robots.txt", load) for number, load in enumerate(loads)]
    carried = []
    for request in requests:
        await world.gate.admit(request)
        carried.append(asyncio.ensure_future(world.gate.carry(request, world.download)))
    await turns()
    world.gate.cancel()
    with pytest.raises(Withdrawn):
        await carried[0]
    world.answer.set_result(Response(URL))
    assert (await carried[1]).url == URL


@in_loop
async def test_a_robots_txt_that_is_done_again_has_all_its_time_and_bytes_again() -> None:
    world = World()
    request = request_for("http://h1.example/robots.txt", RobotsLoad(False, False, 15.0))
    await world.gate.admit(request)
    carried = asyncio.ensure_future(world.gate.carry(request, world.download))
    await turns()
    load.count_bytes(b"x" * load.MOST_BYTES, request)
    transfer = load.load_of(request)
    assert transfer is not None
    transfer.began -= 60.0  # a fence
    world.gate.cancel()
    await turns()
    load.count_bytes(b"x" * load.MOST_BYTES, request)
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL and len(world.started) == 2


@in_loop
async def test_only_transfers_of_the_hosts_named_are_cancelled() -> None:
    world = World()
    page, media = world.page(), Request(OTHER)
    for request in (page.request, media):
        await world.gate.admit(request)
    lost = asyncio.ensure_future(world.gate.carry(page.request, world.download))
    kept = asyncio.ensure_future(world.gate.carry(media, world.download))
    await turns()
    world.gate.cancel(["h1.example"])
    world.answer.set_result(Response(OTHER))
    with pytest.raises(Withdrawn):
        await lost
    assert (await kept).url == OTHER


@in_loop
async def test_a_fence_leaves_those_who_wait_waiting() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.gate.admit(page.request))
    await turns()
    world.gate.cancel()
    await turns()
    assert not waiting.done()
    world.node.change(fenced=False)
    await waiting


@in_loop
async def test_closing_withdraws_those_who_wait_and_lets_transfers_end() -> None:
    world = World()
    loading = world.page()
    await world.gate.admit(loading.request)
    carried = asyncio.ensure_future(world.gate.carry(loading.request, world.download))
    second = world.page("http://h1.example/2")
    waiting = asyncio.ensure_future(world.gate.admit(second.request))
    parsing = world.page("http://h1.example/parsed")
    await turns()
    world.gate.close()
    with pytest.raises(Withdrawn):
        await waiting
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL
    late = world.page("http://h1.example/3")
    with pytest.raises(Withdrawn):
        await world.gate.admit(late.request)
    assert [flight.withdrawn for flight in (loading, second, parsing, late)] == [False, True, False, True]


@in_loop
async def test_media_of_pages_under_way_are_loaded_while_the_spider_is_closed() -> None:
    """Also those that begin after that, and wait for each other: an item would lack them for good."""
    world = World()
    first, second, late = (Request(f"http://h1.example/{name}.png") for name in "abc")
    await world.gate.admit(first)
    waiting = asyncio.ensure_future(world.gate.admit(second))
    await turns()
    world.gate.close()
    after = asyncio.ensure_future(world.gate.admit(late))
    world.gate.responded(first, Response(first.url))
    for which in await asyncio.wait((waiting, after), return_when=asyncio.FIRST_COMPLETED):
        assert len(which) == 1
    world.gate.responded(late if after.done() else second, Response(URL))
    await asyncio.gather(waiting, after)
    assert world.node.held == {"h1.example"}


@in_loop
async def test_media_wait_for_no_lease_while_the_spider_is_closed() -> None:
    """Whether it ended before, ends then, or ends in the downloader's queue; nor does a page wait there. It is said of
    media, as nobody loads them later."""
    world = World()
    first, second, page = Request(OTHER), Request(f"{OTHER}2"), world.page()
    await asyncio.gather(world.gate.admit(first), world.gate.admit(page.request))
    waiting = asyncio.ensure_future(world.gate.admit(second))
    world.gate.close()
    await turns()
    assert not waiting.done()
    world.node.change(fenced=True)
    world.gate.cancel()
    carried = (world.gate.carry(request, world.download) for request in (first, page.request))
    for one in (waiting, *carried, world.gate.admit(Request(f"{OTHER}3"))):
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
    await asyncio.gather(world.gate.admit(first), world.gate.admit(other))
    world.gate.close()
    waiting = asyncio.ensure_future(world.gate.admit(second))
    await turns()
    assert not waiting.done()
    world.node.put_off.add("h2.example")  # 429, and Retry-After
    world.gate.responded(first, Response(OTHER, status=429))
    for one in (waiting, world.gate.admit(Request(f"{OTHER}3")), world.gate.admit(Request("http://h0.example/"))):
        with pytest.raises(Withdrawn):
            await one
    assert world.node.held == {"h1.example"} and world.stat("ended") == 3


@in_loop
async def test_a_foreign_host_is_refused_by_its_name_while_the_spider_is_closed() -> None:
    world = World(foreign_downloads="refuse")
    world.node.change(lost={"h2.example"})
    world.gate.close()
    with pytest.raises(ForeignHost):
        await world.gate.admit(Request(OTHER))
    await world.node.leave("shutdown")
    with pytest.raises(Withdrawn):
        await world.gate.admit(Request(OTHER))


@in_loop
async def test_no_permit_is_given_at_the_moment_of_closing() -> None:
    world = World()
    world.node.change(fenced=True)
    page = world.page()
    waiting = asyncio.ensure_future(world.gate.admit(page.request))
    await turns()
    world.node.change(fenced=False)
    world.gate.close()  # before the one that waits has had its turn
    with pytest.raises(Withdrawn):
        await waiting
    assert world.node.held == set()


@in_loop
async def test_who_is_withdrawn_goes_on_as_if_never_cancelled() -> None:
    """The task may be that of the whole page: what it does next is nobody's to cancel."""
    world = World()
    page = world.page()

    async def way() -> int:
        await world.gate.admit(page.request)
        with pytest.raises(Withdrawn):
            await world.gate.carry(page.request, world.download)
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.ensure_future(way())
    await world.transferring.wait()
    world.gate.cancel()
    world.gate.cancel()
    assert await task == 0 and page.withdrawn and not page.held


@in_loop
async def test_the_right_to_write_is_that_of_the_transfer_alone() -> None:
    world = World()
    page = world.page()
    rights: list[object] = []

    async def download(request: Request) -> Response:
        rights.append(socket_gate.may_write.get())
        return Response(request.url)

    await world.gate.admit(page.request)
    await world.gate.carry(page.request, download)
    assert callable(rights[0]) and socket_gate.may_write.get() is None


@in_loop
async def test_a_connection_that_is_kept_holds_no_page() -> None:
    world = World()
    kept: list[contextvars.Context] = []  # as its transport does

    async def download(request: Request) -> Response:
        kept.append(contextvars.copy_context())
        return Response(request.url)

    page = world.page()
    await world.gate.admit(page.request)
    await world.gate.carry(page.request, download)
    world.gate.release(page)
    world.flights.remove(page.request)
    gone = weakref.ref(page.request)
    del page
    gc.collect()
    assert kept and gone() is None


@in_loop
async def test_cancelled_by_somebody_else_stays_cancelled() -> None:
    world = World()
    page = world.page()
    await world.gate.admit(page.request)
    carried = asyncio.ensure_future(world.gate.carry(page.request, world.download))
    await turns()
    carried.cancel()
    with pytest.raises(asyncio.CancelledError):
        await carried
    assert not page.withdrawn


@in_loop
async def test_media_of_another_agents_host_are_loaded_one_at_a_time() -> None:
    world = World()
    world.node.change(lost={"h2.example"})
    first, second = Request(OTHER), Request(f"{OTHER}2")
    await world.gate.admit(first)
    waiting = asyncio.ensure_future(world.gate.admit(second))
    await turns()
    assert world.node.abroad == {"h2.example"} and not waiting.done()
    world.answer.set_result(Response(OTHER))
    assert (await world.gate.carry(first, world.download)).url == OTHER
    world.gate.responded(first, Response(OTHER))
    await waiting
    assert world.stat("foreign_polite") == 2 and world.node.grants["h2.example"] == 2


@in_loop
async def test_media_whose_host_goes_to_another_agent_are_loaded_all_the_same() -> None:
    """Before they begin, and where their transfer starts: as those of a page whose own host goes."""
    world = World()
    first, second = Request(URL), Request(f"{URL}2")
    await world.gate.admit(first)
    waiting = asyncio.ensure_future(world.gate.admit(second))
    await turns()
    world.node.change(lost={"h1.example"})
    carried = asyncio.ensure_future(world.gate.carry(first, world.download))
    await turns()
    assert world.started == [URL] and world.node.abroad == {"h1.example"}
    world.answer.set_result(Response(URL))
    assert (await carried).url == URL
    world.gate.responded(first, Response(URL))
    await waiting


@in_loop
async def test_a_fenced_agent_loads_nothing_from_hosts_of_others() -> None:
    world = World()
    world.node.change(lost={"h2.example"}, fenced=True)
    media = Request(OTHER)
    waiting = asyncio.ensure_future(world.gate.admit(media))
    await turns()
    assert not waiting.done()
    world.node.change(fenced=False)
    await waiting
    carried = asyncio.ensure_future(world.gate.carry(media, world.download))
    await turns()
    world.node.change(fenced=True)
    world.gate.cancel()
    await turns()
    assert world.started == [OTHER] and not world.node.held
    world.node.change(fenced=False)
    await turns()
    assert world.started == [OTHER, OTHER]
    world.answer.set_result(Response(OTHER))
    assert (await carried).url == OTHER


@in_loop
async def test_media_of_other_agents_hosts_wait_for_no_lease_while_the_spider_is_closed() -> None:
    world = World()
    world.node.change(lost={"h2.example"})
    first, second = Request(OTHER), Request(f"{OTHER}2")
    await world.gate.admit(first)
    waiting = asyncio.ensure_future(world.gate.admit(second))
    world.gate.close()
    await turns()
    assert not waiting.done()
    world.gate.responded(first, Response(OTHER))
    await waiting
    world.node.change(fenced=True)
    world.gate.cancel()
    with pytest.raises(Withdrawn):
        await world.gate.carry(second, world.download)
    assert world.stat("ended") == 1 and not world.node.held


@in_loop
async def test_a_handler_that_makes_an_error_of_its_own_of_being_cancelled_withdraws_all_the_same() -> None:
    """Else the retry middleware would take it for a failure of the page."""
    world = World()
    page = world.page()

    async def download(request: Request) -> Response:
        try:
            return await world.download(request)
        except asyncio.CancelledError:
            raise OSError("the transfer was cancelled") from None

    await world.gate.admit(page.request)
    carried = asyncio.ensure_future(world.gate.carry(page.request, download))
    await world.transferring.wait()
    world.gate.cancel()
    with pytest.raises(Withdrawn):
        await carried
    assert page.withdrawn and not world.node.held


@in_loop
async def test_a_request_object_that_is_downloaded_twice_at_once_comes_one_after_the_other() -> None:
    world = World()
    media = Request(OTHER)
    await world.gate.admit(media)
    second = asyncio.ensure_future(world.gate.admit(media))
    await turns()
    assert not second.done()
    world.gate.responded(media, Response(OTHER))
    await second
    assert world.node.held == {"h2.example"} and world.node.grants["h2.example"] == 2
    world.gate.responded(media, Response(OTHER))
    assert not world.node.held


@in_loop
async def test_while_the_spider_is_closed_an_end_at_one_host_looks_at_those_who_wait_for_it_alone() -> None:
    world = World()
    first, others = Request(OTHER), [Request(f"http://h{number}.example/") for number in range(10, 20)]
    await asyncio.gather(world.gate.admit(first), *(world.gate.admit(other) for other in others))
    waiting = [asyncio.ensure_future(world.gate.admit(Request(f"{other.url}2"))) for other in (first, *others)]
    await turns()
    world.gate.close()
    looked: list[str] = []
    world.node.loads = lambda host: looked.append(host) or True
    world.gate.responded(first, Response(OTHER))
    await waiting[0]
    assert looked == ["h2.example"]
    for one in waiting:
        one.cancel()


@in_loop
async def test_where_the_handler_asks_for_the_right_itself_it_is_not_asked_for_before() -> None:
    world, asked = World(), list[str]()
    may_fetch = world.node.may_fetch
    world.node.may_fetch = lambda host: asked.append(host) or may_fetch(host)

    async def download(request: Request) -> Response:
        right = socket_gate.may_write.get()
        assert right is not None
        asked.append("handler")
        if not right():
            raise OSError("no right to write")
        world.started.append(request.url)
        return Response(request.url)

    page = world.page()
    await world.gate.admit(page.request)
    world.node.change(fenced=True)
    carried = asyncio.ensure_future(world.gate.carry(page.request, socket_gate.Asking(download)))
    await turns()
    assert asked == ["handler", "h1.example"] and not world.started and not world.node.held
    world.node.change(fenced=False)
    assert (await carried).url == URL
    assert asked == ["handler", "h1.example"] * 2
