"""Settings that people change while a crawl runs, at Scrapy's end: each is read from then on."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.http import Response
from scrapy.utils import log

from scrapy_ubi.adapter.components.node_events import LiveChanges
from scrapy_ubi.adapter.process.error_log import Burst
from scrapy_ubi.adapter.requests.page_outcome import TooLong
from scrapy_ubi.adapter.scrapy_private.changed_settings import ChangedSettings
from scrapy_ubi.agent.steering.live_entries import LiveEntry
from scrapy_ubi.agent.steering.runtime import RuntimeSettings
from scrapy_ubi.settings import UbiSettings, read_value
from scrapy_ubi.settings.live_rows import LIVE
from tests.adapter.components.unit import Unit
from tests.support.engines import fake_engine
from tests.support.gated import World, in_loop

VALUES: dict[str, Any] = {
    "UBI_ROBOTS_TTL": 60.0,
    "UBI_ROBOTS_TIMEOUT": 3.0,
    "UBI_ROBOTS_GIVE_UP": 9.0,
    "UBI_MAX_DELAY": 5.0,
    "UBI_MAX_BODY": "all(4096)",
}


def say(live: RuntimeSettings, **values: Any) -> None:
    """People say this, one after the other."""
    n = max((entry.n for entry in live.table.entries.values()), default=0)
    for number, (name, value) in enumerate(values.items(), n + 1):
        entry = LiveEntry(name, "", value, number, "ann", 1.0)
        live.read_control({entry.field: entry.text})
        assert live.table.entries[entry.field] == entry, live.table.refused


def steered(**settings: Any) -> Unit:
    """A scheduler whose node has these settings as well."""
    unit = Unit(**settings)
    unit.node.live = RuntimeSettings(unit.settings)
    LiveChanges(unit, unit.parts.link_filter, unit.parts.errors)
    return unit


@pytest.mark.parametrize("name", VALUES)
def test_what_is_read_from_the_schedulers_settings_when_it_is_needed(name: str) -> None:
    unit = Unit()
    before = unit.settings
    say(unit.node.live, **{name: VALUES[name]})
    assert getattr(unit.settings, LIVE[name].name) == read_value(LIVE[name], VALUES[name])
    say(unit.node.live, **{name: None})
    assert unit.settings == before


def test_filters_judge_links_from_then_on_and_know_the_seeds_of_those_before() -> None:
    unit = steered(filters=("scope(stay=host)",))
    seed = Request("http://seed.example/", meta={"ubi_seed": True})
    assert unit.enqueue_request(seed)
    link = Request("http://a.example/x.pdf", meta={"depth": 1})
    assert not unit.enqueue_request(link)
    say(unit.node.live, UBI_FILTERS=["extensions(-pdf)"])
    assert not unit.enqueue_request(Request("http://seed.example/y.pdf", meta={"depth": 1}))
    assert unit.enqueue_request(Request("http://a.example/x", meta={"depth": 1}))
    say(unit.node.live, UBI_FILTERS=[])
    assert unit.enqueue_request(link)
    say(unit.node.live, UBI_FILTERS=None)
    assert not unit.enqueue_request(Request("http://a.example/z", meta={"depth": 1}))
    assert unit.enqueue_request(Request("http://seed.example/y.pdf", meta={"depth": 1}))


def test_filters_that_follow_each_other_know_the_seeds() -> None:
    unit = steered(filters=("scope(stay=host)",))
    unit.enqueue_request(Request("http://seed.example/", meta={"ubi_seed": True}))
    say(unit.node.live, UBI_FILTERS=["length(100)", "scope(stay=host)"])
    assert unit.enqueue_request(Request("http://seed.example/y", meta={"depth": 1}))
    assert not unit.enqueue_request(Request("http://other.example/y", meta={"depth": 1}))


def test_filters_of_settings_py_that_cannot_be_read_again_leave_those_that_are() -> None:
    unit = Unit()
    unit.node.live = RuntimeSettings(UbiSettings(filters=("scope(file=/nowhere/at/all)",)))
    LiveChanges(unit, unit.parts.link_filter, unit.parts.errors)
    say(unit.node.live, UBI_FILTERS=["extensions(-pdf)"])
    say(unit.node.live, UBI_FILTERS=None)
    assert not unit.enqueue_request(Request("http://a.example/x.pdf", meta={"depth": 1}))


def test_sitemaps_are_followed_from_then_on() -> None:
    unit = Unit()
    say(unit.node.live, UBI_SITEMAPS=7)
    assert unit.sitemaps.use.most == 7
    assert unit.observers.find_observer(type(unit.sitemaps)) is unit.sitemaps, "it hears of pages from then on"
    say(unit.node.live, UBI_SITEMAPS=9)
    assert unit.observers.passes_over == [unit.sitemaps.passes_over]


def test_a_burst_of_errors_is_another_one() -> None:
    burst = Burst(3, 10.0)
    assert not burst.error(1.0) and not burst.error(2.0)
    burst.set(2, 10.0)
    assert burst.error(3.0)
    burst.set(0, 10.0)
    assert not burst.error(4.0)


def test_a_paused_crawl_hands_out_nothing_not_even_what_has_no_host() -> None:
    unit = Unit()
    assert unit.enqueue_request(Request("data:,x"))
    say(unit.node.live, pause=True)
    assert unit.next_request() is None
    say(unit.node.live, pause=None)
    assert unit.take().url == "data:,x"


# -- the gate and what it learns of hosts


@in_loop
async def test_a_load_may_take_as_long_as_is_said_while_it_runs() -> None:
    world = World()
    page = world.page()
    world.gate.follow(UbiSettings(max_load_seconds=0.01))
    await world.gate.admit(page.request)
    with pytest.raises(TooLong):
        await world.gate.carry(page.request, world.download)


@in_loop
async def test_how_many_failures_exclude_a_host_is_said_while_it_runs() -> None:
    world = World(host_failures=0)
    page = world.page()
    for failures, excluded in ((0, False), (1, True)):
        world.gate.follow(UbiSettings(host_failures=failures, host_pause=9.0))
        await world.gate.admit(page.request)
        world.node.hosts.calls.clear()
        try:
            world.gate.failed(page.request, TimeoutError())
        except Exception:  # noqa: BLE001 - it may be withdrawn
            assert excluded
        assert any(call[0] == "postpone" for call in world.node.hosts.calls) == excluded
        page = world.page("http://h1.example/2")


@in_loop
async def test_how_long_a_host_may_ask_to_be_left_alone_is_said_while_it_runs() -> None:
    world = World(max_retry_after=0.0)
    world.crawler.engine = fake_engine([])
    for most, asked in ((0.0, []), (7.0, [7.0])):
        world.gate.follow(UbiSettings(max_retry_after=most))
        page = world.page(f"http://h1.example/{most}")
        await world.gate.admit(page.request)
        world.node.hosts.calls.clear()
        world.gate.responded(page.request, Response(page.request.url, 429, {"Retry-After": "100"}))
        assert [call[2] for call in world.node.hosts.calls if call[0] == "postpone"] == asked


# -- what Scrapy has copied


def crawler(**settings: Any) -> Any:
    timeouts = DownloadTimeoutMiddleware(180.0)
    kept = {"slow": {"delay": 9.0}}
    slots = {"slow": SimpleNamespace(delay=9.0), "h.example": SimpleNamespace(delay=2.0)}
    downloader = SimpleNamespace(total_concurrency=16, slots=slots, per_slot_settings=kept, _delay=2.0)
    numbers = {"DOWNLOAD_DELAY": 2.0, "AUTOTHROTTLE_ENABLED": False, **settings}
    return SimpleNamespace(
        engine=SimpleNamespace(downloader=downloader),
        get_downloader_middleware=lambda cls: timeouts,
        settings=SimpleNamespace(getfloat=numbers.get, getbool=numbers.get),
        spider=SimpleNamespace(),
    )


def test_requests_at_once_and_the_time_of_a_load_are_scrapys() -> None:
    one = crawler()
    changed, timeouts = ChangedSettings(one), one.get_downloader_middleware(None)
    changed.apply({"CONCURRENT_REQUESTS": 3, "DOWNLOAD_TIMEOUT": 9.0})
    assert (one.engine.downloader.total_concurrency, vars(timeouts)["_timeout"]) == (3, 9.0)
    changed.apply({"CONCURRENT_REQUESTS": 5})
    assert (one.engine.downloader.total_concurrency, vars(timeouts)["_timeout"]) == (5, 180.0)
    changed.apply({})
    assert one.engine.downloader.total_concurrency == 16


def test_a_downloader_without_them_keeps_what_it_has() -> None:
    one = crawler()
    one.engine.downloader = SimpleNamespace()
    ChangedSettings(one).apply({"CONCURRENT_REQUESTS": 3})
    ChangedSettings(one).delay(1.0)
    assert vars(one.engine.downloader) == {}


def test_the_log_says_more_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.NullHandler(logging.INFO)
    monkeypatch.setattr(log, "_scrapy_root_handler", handler)
    changed = ChangedSettings(crawler())
    changed.apply({"LOG_LEVEL": "ERROR"})
    assert handler.level == logging.ERROR
    changed.apply({})
    assert handler.level == logging.INFO


@pytest.mark.parametrize("seconds", [0.5, 2.0, 30.0])
def test_slots_add_nothing_to_a_delay_that_is_shorter(seconds: float) -> None:
    one = crawler()
    ChangedSettings(one).delay(seconds)
    downloader = one.engine.downloader
    assert downloader.slots["h.example"].delay == vars(downloader)["_delay"] == min(2.0, seconds)
    assert downloader.slots["slow"].delay == 9.0, "DOWNLOAD_SLOTS says so"


def test_slots_of_autothrottle_and_those_without_a_delay_are_let_alone() -> None:
    for settings in ({"AUTOTHROTTLE_ENABLED": True}, {"DOWNLOAD_DELAY": 0.0}):
        one = crawler(**settings)
        ChangedSettings(one).delay(0.5)
        assert one.engine.downloader.slots["h.example"].delay == 2.0


def test_scrapy_217_asks_the_spider() -> None:
    one = crawler()
    del vars(one.engine.downloader)["_delay"]
    ChangedSettings(one).delay(2.0)
    assert not hasattr(one.spider, "download_delay")
    for seconds in (0.5, 2.0):
        ChangedSettings(one).delay(seconds)
        assert one.spider.download_delay == seconds
