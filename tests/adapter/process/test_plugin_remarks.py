"""Plug-ins that see one agent where they saw the crawl are named at the start, in a group only; those that lose items
after a kill always."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from scrapy_ubi.adapter.process.start_remarks import plugin_remarks
from scrapy_ubi.settings import UbiSettings

GROUP = {"UBI_REDIS_URL": "redis://localhost"}
DBM = "scrapy.extensions.httpcache.DbmCacheStorage"


def said(values: dict[str, object]) -> list[str]:
    settings = Settings(values)
    return list(plugin_remarks(settings, UbiSettings.from_scrapy(settings, "walk")))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"SPIDERMON_ENABLED": True}, "SPIDERMON_ENABLED"),
        ({"HTTPCACHE_ENABLED": True, "HTTPCACHE_STORAGE": DBM}, "HTTPCACHE_STORAGE"),
        ({"SPLASH_URL": "http://localhost:8050"}, "SPLASH_URL"),
    ],
)
def test_it_is_named_in_a_group(values: dict[str, object], name: str) -> None:
    (sentence,) = said({**values, **GROUP})
    assert sentence.startswith(name)
    assert not said(values), "alone it sees the crawl"


def test_what_marks_pages_before_their_items_are_stored_is_named_by_an_agent_alone_too() -> None:
    (sentence,) = said({"DELTAFETCH_ENABLED": True})
    assert "its items are lost" in sentence
    both = said({"DELTAFETCH_ENABLED": True, **GROUP})
    assert len(both) == 2 and "DELTAFETCH_DIR" in both[1]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"SPIDERMON_ENABLED": False},
        {"HTTPCACHE_ENABLED": True},
        {"HTTPCACHE_STORAGE": DBM},
        {"SPLASH_URL": "http://localhost:8050", "UBI_PARTITION": "project.hosts.host"},
    ],
    ids=["nothing", "off", "files", "cache off", "hosts named"],
)
def test_what_works_is_not(values: dict[str, object]) -> None:
    assert not said({**values, **GROUP})
