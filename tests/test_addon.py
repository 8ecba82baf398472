"""The add-on: what it sets, what the user's settings keep, and when it refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_ubi import Addon
from scrapy_ubi.adapter.components.downloader_middleware import UbiDownloaderMiddleware
from scrapy_ubi.adapter.components.expand_middleware import PlainLinksMiddleware
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.adapter.components.spider_middleware import UbiSpiderMiddleware
from scrapy_ubi.adapter.feeds.feed_params import FeedParams
from scrapy_ubi.addon import turn_on
from scrapy_ubi.addon.turn_on import ASYNCIO_REACTOR, CONCURRENT_ITEMS, refusal
from tests.support.builders import applied
from tests.support.versions import since


class OwnScheduler(UbiScheduler):
    """A user's subclass."""


class First:
    """A user's middleware, as near to the engine as users put them."""


def components(settings: BaseSettings, name: str) -> list[Any]:
    return list(map(load_object, build_component_list(settings.get_component_priority_dict_with_base(name))))


def test_one_line_puts_everything_in_place() -> None:
    settings = applied()
    assert load_object(settings["SCHEDULER"]) is UbiScheduler
    assert settings[REFUSAL] is None
    assert settings.getint("CONCURRENT_ITEMS") == CONCURRENT_ITEMS


@pytest.mark.parametrize("priority", [-1000, 0, 1, 5000])
def test_the_middlewares_are_outermost_and_innermost(priority: int) -> None:
    users = {name: {First: priority} for name in ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES")}
    settings = applied(**users)
    assert components(settings, "SPIDER_MIDDLEWARES")[0] is UbiSpiderMiddleware
    assert components(settings, "DOWNLOADER_MIDDLEWARES")[-1] is UbiDownloaderMiddleware


@pytest.mark.parametrize("name", ["TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED"])
def test_what_runs_code_from_outside_is_off_unless_it_is_set(name: str) -> None:
    assert not applied().getbool(name)
    assert applied(**{name: True}).getbool(name)
    assert Settings({"ADDONS": {}}).getbool(name), "where the add-on does nothing it is as Scrapy has it"


def test_a_key_that_cannot_be_read_is_why_the_crawl_may_not_start(tmp_path: Path) -> None:
    assert "UBI_BOT_KEY is" in applied(UBI_BOT_KEY=str(tmp_path / "none.pem"))[REFUSAL]
    for address in ("http://bot.example", "https://bot.example/a b", 'https://bot.example/"', "bot.example"):
        assert "UBI_BOT_AGENT is" in applied(UBI_BOT_AGENT=address)[REFUSAL]


def test_applied_twice_it_is_there_once() -> None:
    settings = applied()
    Addon().update_settings(settings)
    assert components(settings, "SPIDER_MIDDLEWARES").count(UbiSpiderMiddleware) == 1


def test_the_users_values_stay() -> None:
    assert applied(CONCURRENT_ITEMS=50).getint("CONCURRENT_ITEMS") == 50
    assert applied(ITEM_PIPELINES={First: 1}).getint("CONCURRENT_ITEMS") == 100
    assert applied(SCHEDULER=OwnScheduler)["SCHEDULER"] is OwnScheduler
    assert applied(SCHEDULER="scrapy_ubi.scheduler.UbiScheduler")[REFUSAL] is None


@pytest.mark.parametrize("scheduler", [Scheduler, "scrapy.core.scheduler.Scheduler", "no.such.Scheduler"])
def test_another_scheduler_is_refused_by_ours(scheduler: Any) -> None:
    settings = applied(SCHEDULER=scheduler)
    assert load_object(settings["SCHEDULER"]) is UbiScheduler
    assert settings[REFUSAL].startswith("SCHEDULER is set to")


def test_another_add_on_does_not_put_its_scheduler_in_the_place_of_ours() -> None:
    settings = applied()
    settings.set("SCHEDULER", Scheduler, "addon")
    assert load_object(settings["SCHEDULER"]) is UbiScheduler
    Addon().update_settings(settings)
    assert settings[REFUSAL] is None


@pytest.mark.parametrize("reactor", ["twisted.internet.epollreactor.EPollReactor", None, ""])
def test_a_reactor_without_asyncio_is_refused_on_one_with(reactor: str | None) -> None:
    settings = applied(TWISTED_REACTOR=reactor)
    assert settings["TWISTED_REACTOR"] == ASYNCIO_REACTOR
    assert settings[REFUSAL].startswith("TWISTED_REACTOR is set to")
    assert applied(TWISTED_REACTOR=reactor, TWISTED_REACTOR_ENABLED=False)[REFUSAL] is None


def test_settings_that_do_not_hold_are_refused() -> None:
    assert applied(UBI_FOO=1)[REFUSAL].startswith("UBI_FOO is not a setting")
    assert applied(UBI_REPLICATION=9)[REFUSAL].startswith("UBI_REPLICATION is 9")


def test_an_old_scrapy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapy, "version_info", (2, 16, 0))
    assert "too old" in (refusal(Settings()) or "")


def test_a_newer_scrapy_than_those_that_were_tried_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scrapy, "version_info", (2, 99, 0))
    with caplog.at_level("INFO"):
        assert applied()[REFUSAL] is None
    assert [record for record in caplog.records if "is newer than those" in record.getMessage()]


def test_a_setting_of_politeness_that_is_not_done_as_it_says_is_named(caplog: pytest.LogCaptureFixture) -> None:
    applied(CONCURRENT_REQUESTS_PER_DOMAIN=16)
    assert [record.getMessage().split()[0] for record in caplog.records] == ["CONCURRENT_REQUESTS_PER_DOMAIN"]
    assert (applied(DOWNLOAD_SLOTS={"a.example": {"delay": "x"}})[REFUSAL] or "").startswith("DOWNLOAD_SLOTS has")


@since(2, 19)
def test_no_slot_adds_to_a_delay_unless_somebody_asks_for_it() -> None:
    from scrapy.core.downloader import _default_jitter

    assert _default_jitter(applied(DOWNLOAD_DELAY=1)) == 0
    assert _default_jitter(applied(DOWNLOAD_DELAY_JITTER=0.2)) == 0.2
    with pytest.warns(ScrapyDeprecationWarning):
        assert _default_jitter(applied(RANDOMIZE_DOWNLOAD_DELAY=True)) == 0.5


def test_feed_parameters_are_composed_with_the_users() -> None:
    def own(params: dict[str, Any], spider: Any) -> dict[str, Any]:
        return params

    settings = applied(
        FEED_URI_PARAMS=own, FEEDS={"a-%(ubi_agent)s.json": {"uri_params": own}, "b.json": {"format": "json"}}
    )
    feeds = settings.getdict("FEEDS")
    assert isinstance(settings["FEED_URI_PARAMS"], FeedParams)
    assert isinstance(feeds["a-%(ubi_agent)s.json"]["uri_params"], FeedParams)
    assert feeds["b.json"] == {"format": "json"}
    copy.deepcopy(settings["FEED_URI_PARAMS"])


def test_where_it_is_off_everything_is_plain_scrapys_but_names_in_feeds() -> None:
    plain, off = Settings(), applied(UBI_ENABLED=False)
    names = ("SCHEDULER", "DOWNLOADER_MIDDLEWARES", "EXTENSIONS", "CONCURRENT_ITEMS", "STATS_CLASS", "USER_AGENT")
    assert {name: off[name] for name in names} == {name: plain[name] for name in names}
    added = set(components(off, "SPIDER_MIDDLEWARES")) - set(components(plain, "SPIDER_MIDDLEWARES"))
    assert added == {PlainLinksMiddleware}
    assert isinstance(off["FEED_URI_PARAMS"], FeedParams)


@pytest.mark.parametrize("text", ["0", "False", 0])
def test_off_on_the_command_line(text: object) -> None:
    assert applied(UBI_ENABLED=text)["SCHEDULER"] == Settings()["SCHEDULER"]


def test_neither_on_nor_off_is_refused() -> None:
    assert "UBI_ENABLED is 'maybe'" in applied(UBI_ENABLED="maybe")[REFUSAL]


def test_what_scrapy_logs_of_it_has_no_addresses() -> None:
    settings = applied(FEEDS={"a.jl": {"uri_params": "project.names"}})
    shown = [repr(Addon()), repr(settings["FEED_URI_PARAMS"]), repr(settings.getdict("FEEDS"))]
    assert not any(" at 0x" in text for text in shown), shown


def test_pages_visited_again_do_not_come_from_a_cache() -> None:
    assert applied(UBI_RECRAWL="every(1d)")[REFUSAL] is None
    assert "HTTPCACHE_ENABLED" in applied(UBI_RECRAWL="every(1d)", HTTPCACHE_ENABLED=True)[REFUSAL]
    assert "UBI_HOST_ITERATE" in applied(UBI_RECRAWL="every(1d)", UBI_HOST_ITERATE=True)[REFUSAL]
    assert "sitemap" in applied(UBI_RECRAWL="sitemap")[REFUSAL]


@pytest.mark.parametrize(
    ("values", "there", "remedy"),
    [
        ({"UBI_BROWSER": "auto"}, False, "pip install 'scrapy-ubi[browser]'"),
        ({"UBI_BROWSER": "always", "TWISTED_REACTOR_ENABLED": False}, True, "remove it, or TWISTED_REACTOR_ENABLED"),
        ({"UBI_BROWSER": "off"}, False, None),
        ({"UBI_BROWSER": "perhaps"}, False, "perhaps"),
    ],
)
def test_a_browser_that_cannot_be_there_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], there: bool, remedy: str | None
) -> None:
    monkeypatch.setattr(turn_on, "find_spec", lambda name: object() if there else None)
    sentence = applied(**values)[REFUSAL]
    assert sentence is None if remedy is None else remedy in sentence
