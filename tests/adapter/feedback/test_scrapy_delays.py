"""Scrapy's own settings of politeness: checked, and named where they are not done as they say."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import SETTINGS_PRIORITIES, Settings

from scrapy_ubi.adapter.feedback.scrapy_delays import check, let_through, remarks
from scrapy_ubi.errors import UbiSettingError


def said(**settings: Any) -> list[str]:
    return list(remarks(Settings(settings, priority="project")))


def test_a_project_that_says_nothing_is_told_nothing() -> None:
    assert said() == said(DOWNLOAD_DELAY=1, CONCURRENT_REQUESTS_PER_DOMAIN=1, AUTOTHROTTLE_ENABLED=True) == []
    assert said(DOWNLOAD_SLOTS={"a.example": {"delay": 3, "concurrency": 1}}) == []
    assert said(CONCURRENT_REQUESTS_PER_IP=1, UBI_POLITE_BY_IP=True) == []
    assert said(DOWNLOAD_DELAY=1, UBI_HOST_DELAY=2) == []
    assert said(CONCURRENT_REQUESTS_PER_DOMAIN=8, UBI_HOST_CONCURRENCY=4) == []


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({}, 8),
        ({"UBI_HOST_CONCURRENCY": 4}, 8),
        ({"UBI_HOST_CONCURRENCY": 16}, 16),
        ({"UBI_HOST_CONCURRENCY": {"a.example": "auto(12)"}}, 12),
        ({"UBI_HOST_CONCURRENCY": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 2}, 16),
        ({"UBI_HOST_CONCURRENCY": "x"}, 8),
    ],
)
def test_scrapys_slots_let_as_many_through_as_are_allowed(settings: dict[str, Any], slots: int) -> None:
    applied = Settings({"CONCURRENT_REQUESTS_PER_DOMAIN": 8, **settings}, priority="project")
    let_through(applied, SETTINGS_PRIORITIES["addon"])
    assert applied.getint("CONCURRENT_REQUESTS_PER_DOMAIN") == slots


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": 8}, "UBI_HOST_CONCURRENCY = 8 allows more"),
        ({"CONCURRENT_REQUESTS_PER_IP": 1}, "only by UBI_POLITE_BY_IP"),
        ({"DOWNLOAD_SLOTS": {"a.example": {"concurrency": 4}}}, "4 loads at once from a.example"),
        ({"DOWNLOAD_SLOTS": {"a.example": {"concurrency": 4}}}, "UBI_HOST_CONCURRENCY = {'a.example': 4} allows more"),
        ({"DOWNLOAD_SLOTS": {"a": {"concurrency": 4}}, "UBI_HOST_CONCURRENCY": {"a": 8}}, "lets 4 loads at once"),
        ({"UBI_HOST_CONCURRENCY": 32, "CONCURRENT_REQUESTS": 16}, "lets an agent load 16"),
        ({"DOWNLOAD_DELAY": 1.5, "UBI_HOST_DELAY": "0.2"}, "the longer one counts"),
    ],
)
def test_what_is_not_done_is_said(settings: dict[str, Any], words: str) -> None:
    (sentence,) = said(**settings)
    assert words in sentence


@pytest.mark.parametrize(
    "slots",
    [
        {"a.example": 3},
        {"a.example": {"delay": "3"}},
        {"a.example": {"delay": -1}},
        {"a.example": {"delay": True}},
        {"a.example": {"delay": float("nan")}},
        {"a.example": {"delay": float("inf")}},
        {"a.example": {"delay": None}},
        {3: {"delay": 1}},
    ],
)
def test_slots_that_do_not_hold_are_an_error_with_a_remedy(slots: Any) -> None:
    with pytest.raises(UbiSettingError, match=r"DOWNLOAD_SLOTS .*give each slot a dict"):
        check(Settings({"DOWNLOAD_SLOTS": slots}))


@pytest.mark.parametrize("number", [0, -1, True, "2", None])
def test_a_slot_that_lets_nothing_through_is_an_error(number: Any) -> None:
    with pytest.raises(UbiSettingError, match=r"DOWNLOAD_SLOTS has a concurrency of .*: give each slot 1 or more\."):
        check(Settings({"DOWNLOAD_SLOTS": {"a.example": {"concurrency": number}}}))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": 0}, "CONCURRENT_REQUESTS_PER_DOMAIN"),
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": "-1", "CONCURRENT_REQUESTS_PER_IP": 0}, "CONCURRENT_REQUESTS_PER_DOMAIN"),
        ({"CONCURRENT_REQUESTS_PER_IP": -1}, "CONCURRENT_REQUESTS_PER_IP"),
    ],
)
def test_settings_that_let_nothing_through_are_an_error_as_scrapy_would_stand_still(
    settings: dict[str, Any], name: str
) -> None:
    with pytest.raises(UbiSettingError, match=f"{name} is .*lets no request through: give 1 or more"):
        check(Settings(settings, priority="project"))
    check(Settings({"CONCURRENT_REQUESTS_PER_DOMAIN": 0, "CONCURRENT_REQUESTS_PER_IP": 1}, priority="project"))


def test_slots_that_hold_pass() -> None:
    check(Settings())
    check(Settings({"DOWNLOAD_SLOTS": {"a.example": {"delay": 0.5}, "b.example": {"concurrency": 1}}}))
    check(Settings({"DOWNLOAD_SLOTS": '{"a.example": {"delay": 2}}'}))
