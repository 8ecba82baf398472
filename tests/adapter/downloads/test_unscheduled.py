"""What bypasses the scheduler: what of it is refused, let through and done again; pages that lack a robots.txt. It
ends as with plain Scrapy, whatever its host does, and holds no place while it waits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK

from scrapy_ubi.adapter.downloads import unscheduled
from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import (
    FLAG,
    MOST_BODY,
    MOST_HOSTS,
    WAITS,
    ForeignHost,
    UnscheduledRests,
    same_failure,
)
from scrapy_ubi.adapter.requests.page_outcome import PrivateHost
from scrapy_ubi.adapter.robots.fetch import RobotsLoad, request_for
from scrapy_ubi.adapter.scrapy_private import downloader
from tests.support.gated import OTHER, URL, World, in_loop, turns


def test_a_foreign_download_is_refused_with_one_warning_that_names_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @in_loop
    async def refused_twice() -> None:
        world = World(foreign_downloads="refuse")
        world.node.change(lost={"h2.example"})
        for _ in range(2):
            with pytest.raises(ForeignHost):
                await world.gate.admit(Request(OTHER))
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
            await world.gate.admit(Request(OTHER))
        assert (world.stat("ended"), world.stat("foreign_refused")) == (1, 0)

    refused()
    assert ["the crawl is over" in record.getMessage() for record in caplog.records] == [True]


@in_loop
async def test_a_foreign_download_is_let_through_where_allowed() -> None:
    world = World(foreign_downloads="allow")
    world.node.change(lost={"h2.example"})
    request = Request(OTHER)
    await world.gate.admit(request)
    world.answer.set_result(Response(OTHER))
    assert (await world.gate.carry(request, world.download)).url == OTHER
    assert world.stat("foreign_allowed") == 1 and world.node.held == set()


@in_loop
async def test_media_that_ask_for_no_robots_txt_are_none_themselves() -> None:
    media: dict[str, Any] = {"callback": NO_CALLBACK, "meta": {"dont_obey_robotstxt": True}}
    world, permissive = World(foreign_downloads="refuse"), World(foreign_downloads="allow")
    for one in (world, permissive):
        one.node.change(lost={"h2.example"})
    with pytest.raises(ForeignHost):
        await world.gate.admit(Request(OTHER, **media))
    await permissive.gate.admit(Request(OTHER, **media))
    assert (world.stat("foreign_refused"), permissive.stat("foreign_allowed")) == (1, 1)

    own = Request(f"{URL}x.pdf", **media)
    await world.gate.admit(own)
    carried = asyncio.ensure_future(world.gate.carry(own, world.download))
    await world.transferring.wait()
    world.gate.cancel()
    world.answer.set_result(Response(own.url))
    assert (await carried).url == own.url and world.started == [own.url, own.url]


@in_loop
async def test_what_has_no_host_needs_no_permit() -> None:
    world = World()
    world.node.change(fenced=True)
    await world.gate.admit(Request("data:,x"))


@in_loop
async def test_a_robots_txt_that_was_withdrawn_withdraws_the_pages_that_waited() -> None:
    world = World(foreign_downloads="refuse")
    known: dict[str, bool] = {}
    forgotten: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unscheduled, "robots_known", lambda crawler, netloc: known.get(netloc, False))
        patch.setattr(unscheduled, "forget_robots", lambda crawler, netloc: forgotten.append(netloc))
        world.node.change(lost={"h1.example"})
        with pytest.raises(Withdrawn):
            await world.gate.admit(world.robots())
        world.node.change(lost=set())
        for page in (world.page(), world.page("http://h1.example/2")):
            with pytest.raises(Withdrawn):
                await world.gate.admit(page.request)
        assert forgotten == ["h1.example", "h1.example"]
        await world.gate.admit(world.page("http://h1.example/3", meta={"dont_obey_robotstxt": True}).request)
        world.node.release("h1.example")
        known["h1.example"] = True
        page = world.page("http://h1.example/4")
        await world.gate.admit(page.request)
        assert page.held


@in_loop
async def test_a_robots_txt_that_redirects_to_a_foreign_host_is_not_found() -> None:
    """That of a middleware of the user's own, where nothing is loaded from such hosts."""
    world = World(foreign_downloads="refuse")
    world.node.change(lost={"h2.example"})
    hop = world.robots("http://h2.example/robots.txt", redirect_urls=["http://h1.example/robots.txt"])
    with pytest.raises(ForeignHost):
        await world.gate.admit(hop)
    page = world.page()
    await world.gate.admit(page.request)
    assert page.held


@in_loop
async def test_a_robots_txt_is_loaded_from_a_foreign_host_for_media_and_not_for_pages() -> None:
    """One of the user's own middleware cannot be told apart: media would else pass as if there were no rules."""
    world = World()
    world.node.change(lost={"h2.example"})
    loads = (RobotsLoad(of_page, False, 9.0) for of_page in (False, True))
    media, page = (request_for("http://h2.example/robots.txt", load) for load in loads)
    await world.gate.admit(media)
    world.gate.responded(media, Response(media.url))
    with pytest.raises(Withdrawn):
        await world.gate.admit(page)
    await world.gate.admit(world.robots("http://h2.example/robots.txt"))
    assert world.stat("foreign_polite") == 2


def busy(url: str, seconds: float, body: bytes = b"busy") -> Response:
    return HtmlResponse(url, status=503, headers={"Retry-After": str(seconds), "X": "y"}, body=body)


async def load(world: World, url: str, end: Response | Exception) -> None:
    """One load of this URL, which ends so."""
    request = Request(url)
    assert await world.gate.admit(request) is None
    if isinstance(end, Exception):
        world.gate.failed(request, end)
    else:
        world.gate.responded(request, end)


@in_loop
async def test_a_host_that_asks_for_an_hour_is_not_asked_again_and_its_answer_is_given_again() -> None:
    for lost in (set(), {"h2.example"}):
        world = World(max_retry_after=7200.0)
        world.node.change(lost=lost)
        await load(world, OTHER, busy(OTHER, 3600))
        answer = await world.gate.admit(Request(f"{OTHER}2"))
        assert isinstance(answer, HtmlResponse) and (answer.url, answer.status) == (f"{OTHER}2", 503)
        assert (answer.body, answer.headers["X"], answer.flags) == (b"busy", b"y", [FLAG])
        assert world.node.grants["h2.example"] == 1 and world.stat("not_asked") == 1
        assert ("not_before", "h2.example", 3600.0) in world.node.calls


@in_loop
async def test_those_that_wait_hear_of_it_at_once() -> None:
    world = World(max_retry_after=7200.0)
    first = Request(OTHER)
    await world.gate.admit(first)
    waiting = [asyncio.ensure_future(world.gate.admit(Request(f"{OTHER}{number}"))) for number in range(3)]
    page = world.flights.add(type(world.page())(Request(f"{OTHER}p"), "h2.example", world.node.visit(OTHER)))
    queued = asyncio.ensure_future(world.gate.admit(page.request))
    await turns()
    world.gate.responded(first, busy(OTHER, 3600))
    assert [answer.status for answer in cast("list[Any]", await asyncio.gather(*waiting))] == [503] * 3
    assert await queued is None, "a page has its own rules"


@in_loop
async def test_a_short_time_is_waited_for_once() -> None:
    world = World()
    await load(world, OTHER, busy(OTHER, int(WAITS) - 1))
    second, third = Request(f"{OTHER}2"), Request(f"{OTHER}3")
    assert await world.gate.admit(second) is None, "the node lets it wait for its turn"
    waiting = asyncio.ensure_future(world.gate.admit(third))
    await turns()
    world.gate.responded(second, busy(OTHER, int(WAITS) - 1))
    answer = await waiting
    assert answer is not None and answer.status == 503, "it has waited for such a time already"


@in_loop
async def test_with_retry_after_ignored_nothing_is_left_alone() -> None:
    world = World(max_retry_after=0.0)
    await load(world, OTHER, busy(OTHER, 3600))
    assert await world.gate.admit(Request(f"{OTHER}2")) is None


@in_loop
async def test_what_only_a_copy_knows_is_an_answer_too() -> None:
    for noted, status in ((None, 503), (503, 503), (429, 429)):
        world = World()
        world.node.frontier.add("h2.example", ())
        world.node.hosts.asked_left = lambda state: 100.0
        world.node.hosts.asked_status = lambda state, noted=noted: noted
        answer = await world.gate.admit(Request(OTHER))
        assert answer is not None and (answer.status, answer.headers["Retry-After"]) == (status, b"101")


@in_loop
async def test_after_some_failures_in_a_row_those_that_wait_for_that_server_fail_together() -> None:
    for lost in (set(), {"h2.example"}):
        world = World(host_failures=3)
        world.node.change(lost=lost)
        world.node.note = lambda what, host: None
        await load(world, OTHER, DownloadTimeoutError("late"))
        await load(world, OTHER, DownloadTimeoutError("late"))
        last = Request(OTHER)
        await world.gate.admit(last)
        waiting = [asyncio.ensure_future(world.gate.admit(Request(f"{OTHER}{number}"))) for number in range(35)]
        await turns()
        world.gate.failed(last, DownloadConnectionRefusedError("no"))
        for one in waiting:
            with pytest.raises(DownloadConnectionRefusedError, match="no"):
                await one
        assert (world.stat("failed_together"), world.node.grants["h2.example"]) == (35, 3)


@in_loop
async def test_an_answer_or_a_failure_too_few_lets_each_have_its_try() -> None:
    world = World(host_failures=2)
    world.node.note = lambda what, host: None
    await load(world, OTHER, DownloadTimeoutError())
    await load(world, OTHER, Response(OTHER, status=500))
    last = Request(OTHER)
    await world.gate.admit(last)
    waiting = asyncio.ensure_future(world.gate.admit(Request(f"{OTHER}2")))
    await turns()
    world.gate.failed(last, DownloadTimeoutError())
    assert await waiting is None and world.stat("failed_together") == 0


@in_loop
async def test_what_fails_while_pages_rest_does_not_count_for_the_host() -> None:
    world = World(host_failures=1)
    world.node.frontier.add("h2.example", ())
    world.node.hosts.rests = lambda state: True
    await load(world, OTHER, OSError())
    assert not [call for call in world.node.hosts.calls if call[0] in ("put", "postpone")]


@in_loop
async def test_who_waits_beside_the_scheduler_holds_no_place_and_pages_do() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloader, "MOST_WITHOUT", 2)
        await _who_holds_a_place()


async def _who_holds_a_place() -> None:
    world, woken = World(), list[int]()
    files = [Request(f"{OTHER}{number}") for number in range(4)]
    page = world.page()
    active = {*files, page.request}
    slot = SimpleNamespace(nextcall=SimpleNamespace(schedule=lambda: woken.append(1)))
    engine = SimpleNamespace(downloader=SimpleNamespace(active=active, slots={}), _slot=slot)
    world.crawler.engine = cast("Any", engine)
    world.node.change(fenced=True)
    waiting = [asyncio.ensure_future(world.gate.admit(request)) for request in (*files, page.request)]
    await turns()
    assert active == {*files[2:], page.request} and len(woken) == 2, "beyond a bound they keep it"
    waiting[0].cancel()
    await turns()
    assert files[0] in active
    world.node.change(fenced=False)
    await turns()
    assert active == {*files, page.request}


def test_what_is_remembered_has_bounds() -> None:
    beside = UnscheduledRests(lambda: 0.0)
    for number in range(MOST_HOSTS + 5):
        beside.failed(Request(f"http://h{number}.example/"))
        beside.asked(f"h{number}.example", 9.0, busy(OTHER, 9, b"x" * (MOST_BODY + 1)))
    assert [beside.left(f"h{number}.example") for number in (4, 5)] == [0.0, 9.0], "the oldest five are forgotten"
    assert [beside.failed(Request(f"http://h{number}.example/")) for number in (5, 4)] == [2, 1]
    assert beside.answer("h9.example", Request(OTHER), 9.0).body == b""


def test_an_error_that_cannot_be_copied_is_told_itself() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one}")

    odd = Odd(1, 2)
    assert same_failure(odd) is odd


@in_loop
async def test_what_start_awaits_before_any_page_may_lead_to_a_private_host_and_later_it_may_not() -> None:
    world = World()
    login = "http://10.1.2.3/login"
    with pytest.raises(PrivateHost):
        await world.gate.admit(Request("http://10.1.2.4/", meta={"redirect_urls": ["http://h1.example/"]}))
    assert await world.gate.admit(Request(login)) is None
    world = World()
    await world.gate.admit(world.page().request)
    with pytest.raises(PrivateHost):
        await world.gate.admit(Request(login))
