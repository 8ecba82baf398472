"""Loading a robots.txt: what stops it, what is unpacked, and what the gate makes of a load on another agent's host."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.exceptions import StopDownload
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import ForeignHost
from scrapy_ubi.adapter.robots import fetch
from scrapy_ubi.adapter.robots.fetch import RobotsLoad, count_bytes, load_of, request_for, unpacked
from scrapy_ubi.policy.robots.text import MOST_BYTES
from tests.support.gated import World, in_loop

URL = "http://h1.example/robots.txt"


def request(of_page: bool = True, redirected: bool = False, timeout: float = 30.0) -> Request:
    return request_for(URL, RobotsLoad(of_page, redirected, timeout))


def test_what_is_too_long_is_stopped_and_kept() -> None:
    asked = request()
    count_bytes(b"x" * MOST_BYTES, asked)
    with pytest.raises(StopDownload) as stop:
        count_bytes(b"x", asked)
    assert not stop.value.fail


def test_what_takes_too_long_is_stopped_and_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(fetch.time, "monotonic", lambda: now)
    asked = request(timeout=3)
    for now in (1000.0, 1003.0):  # noqa: B007 - the clock reads it
        count_bytes(b"x", asked)
    now = 1003.1
    with pytest.raises(StopDownload) as stop:
        count_bytes(b"x", asked)
    assert stop.value.fail


def test_other_loads_are_let_alone() -> None:
    for meta in ({}, {fetch.LOAD: "text"}, {fetch.LOAD: None}):
        other = Request(URL, meta=meta)
        assert load_of(other) is None
        count_bytes(b"x" * (MOST_BYTES + 1), other)


@pytest.mark.parametrize(
    ("encoding", "pack", "body"),
    [
        (b"gzip", gzip.compress, b"Disallow: /"),
        (b" GZIP , gzip", lambda data: gzip.compress(gzip.compress(data)), b"Disallow: /"),
        (b"gzip", lambda data: gzip.compress(data)[:-4], b"Disallow: /"),
        (b"gzip", lambda data: b"no such stream", b""),
        (b"mystery", lambda data: data, b""),
    ],
)
def test_a_body_is_unpacked_and_nobody_else_tries(encoding: bytes, pack: Callable[[bytes], bytes], body: bytes) -> None:
    response = Response(URL, headers={"Content-Encoding": encoding}, body=pack(b"Disallow: /"))
    assert (unpacked(response).body, unpacked(response).headers.get("Content-Encoding")) == (body, None)


def test_of_a_bomb_as_much_as_is_read_is_unpacked() -> None:
    response = Response(URL, headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"x" * 20_000_000))
    assert len(unpacked(response).body) == MOST_BYTES + 1


@in_loop
async def test_a_robots_txt_of_a_page_whose_host_is_lost_is_withdrawn() -> None:
    world = World()
    world.node.change(lost={"h1.example"})
    with pytest.raises(Withdrawn):
        await world.gate.admit(request())


@in_loop
async def test_one_of_media_on_another_agents_host_is_refused_or_goes_without_a_permit() -> None:
    for policy in ("refuse", "allow"):
        world = World(foreign_downloads=policy)
        world.node.change(lost={"h1.example"})
        if policy == "refuse":
            with pytest.raises(ForeignHost):
                await world.gate.admit(request(of_page=False))
        else:
            await world.gate.admit(request(of_page=False))
        assert not world.node.held


@in_loop
async def test_one_that_a_redirect_led_to_goes_to_another_agents_host_without_a_permit() -> None:
    world = World()
    world.node.change(lost={"h1.example"})
    await world.gate.admit(request(redirected=True))
    assert world.stat("foreign_robots") == 1 and not world.node.held


@in_loop
async def test_one_that_a_redirect_led_to_does_not_wait_for_ever_for_its_host() -> None:
    world = World()
    await world.gate.admit(world.page().request)  # and stays there
    with pytest.raises(TimeoutError):
        await world.gate.admit(request(redirected=True, timeout=0.05))
    with pytest.raises(TimeoutError):
        await world.gate.admit(request(redirected=True, timeout=0.0))


@in_loop
async def test_one_that_a_redirect_led_to_is_withdrawn_with_everything_else() -> None:
    world = World()
    world.gate.close()
    with pytest.raises(Withdrawn):
        await world.gate.admit(request(redirected=True))
