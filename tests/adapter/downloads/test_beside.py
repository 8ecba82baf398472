"""What bypasses the scheduler ends as with plain Scrapy, whatever its host does, and holds no place while it waits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import HtmlResponse, Response

from scrapy_ubi.adapter.downloads.beside import FLAG, MOST_BODY, MOST_HOSTS, WAITS, UnscheduledRests, same_failure
from scrapy_ubi.adapter.requests.page_outcome import PrivateHost
from scrapy_ubi.adapter.scrapy_private import downloader
from tests.support.gated import OTHER, World, in_loop, turns

BUSY = {"Retry-After": "3600"}


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
