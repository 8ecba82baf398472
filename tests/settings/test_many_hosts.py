"""UBI_CONCURRENCY and UBI_DNS_SERVERS: what may be written, and what the add-on makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.addons import AddonManager
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.components.own_concurrency import OwnConcurrency
from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.adapter.downloads.resolver import ReactorNames
from scrapy_ubi.adapter.feedback import scrapy_delays
from scrapy_ubi.adapter.scrapy_private import versions
from scrapy_ubi.addon import turn_on
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.loads_at_once import Loads
from tests.support.builders import applied


def read(**values: Any) -> UbiSettings:
    return UbiSettings.from_scrapy(Settings(values), "walk")


def finds_itself(**values: Any) -> bool:
    components = build_component_list(applied(**values).get_component_priority_dict_with_base("EXTENSIONS"))
    return OwnConcurrency in map(load_object, components)


@pytest.mark.parametrize(
    ("value", "wanted"), [(None, None), (200, Loads(200)), ("200", Loads(200)), ("auto(500)", Loads(500, auto=True))]
)
def test_requests_at_once(value: object, wanted: Loads | None) -> None:
    assert read(UBI_CONCURRENCY=value).concurrency == wanted


@pytest.mark.parametrize("value", [0, True, 1.5, 100_001, "auto", "auto(0)", "auto(500", {"a.example": 3}])
def test_requests_at_once_that_do_not_hold(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_CONCURRENCY is "):
        read(UBI_CONCURRENCY=value)


def test_the_agent_finds_it_by_itself_where_nothing_is_set_or_that_is_asked_for() -> None:
    assert finds_itself()
    assert finds_itself(CONCURRENT_REQUESTS=32, UBI_CONCURRENCY="auto(500)")
    assert not finds_itself(CONCURRENT_REQUESTS=16)
    assert not finds_itself(UBI_CONCURRENCY=200)
    assert applied(CONCURRENT_REQUESTS=16, UBI_CONCURRENCY=200).getint("CONCURRENT_REQUESTS") == 200


def test_where_somebody_elses_handler_fetches_nothing_changes_unless_it_is_asked_for() -> None:
    browser = {"https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"}
    assert not finds_itself(DOWNLOAD_HANDLERS=browser)
    assert finds_itself(DOWNLOAD_HANDLERS=browser, UBI_CONCURRENCY="auto(50)")
    assert finds_itself(DOWNLOAD_HANDLERS={"ftp": "own.Ftp", "http": None})
    assert finds_itself(DOWNLOAD_HANDLERS={"https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler"})
    assert finds_itself(UBI_FAST=True)


def test_a_number_that_a_later_add_on_sets_is_kept() -> None:
    OwnConcurrency.from_crawler(get_crawler())
    with pytest.raises(NotConfigured):
        OwnConcurrency.from_crawler(get_crawler(settings_dict={"CONCURRENT_REQUESTS": 8}))


def test_no_one_is_told_to_raise_a_number_that_the_agent_finds() -> None:
    def told(**values: Any) -> bool:
        return any("raise it as well" in each for each in scrapy_delays.remarks(Settings(values)))

    assert told(UBI_HOST_CONCURRENCY=20, CONCURRENT_REQUESTS=16)
    assert not told(UBI_HOST_CONCURRENCY=20)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, ()),
        ("system", ("system",)),
        ("192.0.2.1, 192.0.2.2:5353", ("192.0.2.1", "192.0.2.2:5353")),
        (["[2001:db8::1]:53", "2001:db8::2"], ("[2001:db8::1]:53", "2001:db8::2")),
    ],
)
def test_dns_servers(value: object, wanted: tuple[str, ...]) -> None:
    assert read(UBI_DNS_SERVERS=value).dns_servers == wanted


@pytest.mark.parametrize("value", ["ns.example", "192.0.2.1:0", "192.0.2.1:x", ["system", "192.0.2.1"], 53, [53]])
def test_dns_servers_that_do_not_hold(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_DNS_SERVERS is "):
        read(UBI_DNS_SERVERS=value)


def before_any_crawler(**values: Any) -> Settings:
    """What a CrawlerProcess makes of a project's settings."""
    settings = Settings({"ADDONS": {"scrapy_ubi.Addon": 1}, **values})
    AddonManager.load_pre_crawler_settings(settings)
    return settings


def test_the_reactor_asks_them_too_unless_the_project_has_a_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_on, "find_spec", lambda name: object())
    name, usual = versions.RESOLVERS[0], "scrapy.resolver.CachingThreadedResolver"
    assert before_any_crawler(UBI_DNS_SERVERS=["192.0.2.1"])[name] is ReactorNames
    for resolver in versions.RESOLVERS:
        assert before_any_crawler(UBI_DNS_SERVERS=["192.0.2.1"], **{resolver: "own.Names"})[resolver] == "own.Names"
        assert before_any_crawler()[resolver] == usual
        assert before_any_crawler(UBI_DNS_SERVERS=["192.0.2.1"], UBI_ENABLED=False)[resolver] == usual
        assert before_any_crawler(UBI_DNS_SERVERS="no address")[resolver] == usual


def test_without_aiodns_the_start_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_on, "find_spec", lambda name: None)
    assert "pip install 'scrapy-ubi[dns]'" in applied(UBI_DNS_SERVERS="system")[REFUSAL]
