"""What bypasses the scheduler: what of it is refused, let through and done again; and pages that lack a robots.txt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from scrapy_ubi.adapter.downloads import unscheduled
from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import ForeignHost
from scrapy_ubi.adapter.robots.fetch import RobotsLoad, request_for
from tests.support.gated import OTHER, URL, World, in_loop


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
