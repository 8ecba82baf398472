"""What agents were started from, and whether they may crawl together."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.agent.profile.origin import LONGEST, Origin, other_arguments, other_class


def published(spider_class: str = "p.Walk", spider: str = "walk", **arguments: str) -> dict[str, Any]:
    mark = repr(sorted(arguments.items())) if arguments else ""
    return {**Origin(spider_class, mark, arguments).published(), "spider": spider}


def test_arguments_that_differ_are_said_of_both() -> None:
    assert other_arguments(published(site="a"), published(site="a")) is None
    assert other_arguments(published(site="a"), published(site="b")) == ("the arguments site=a", "the arguments site=b")
    assert other_arguments(published(), published(site="b", n="1")) == ("no arguments", "the arguments site=b, n=1")


def test_values_that_are_not_shown_differ_all_the_same() -> None:
    one, other = (Origin("p.Walk", mark, {"token": "***"}).published() for mark in ("00", "01"))
    assert other_arguments(one, other) == ("the arguments token=***", "the arguments token=*** with other values")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"arguments_mark": None, "arguments": None},
        {"arguments_mark": 3},
    ],
)
def test_what_an_older_version_says_is_not_compared(told: dict[str, Any]) -> None:
    assert other_arguments(told, published(site="a")) is None
    assert other_class(told, published()) is None


def test_what_lies_in_redis_is_made_fit_for_a_terminal() -> None:
    said = other_arguments({"arguments_mark": "x", "arguments": {"\x1b[2J": "y" * 9999}}, published())
    assert said is not None and "\x1b" not in said[0] and len(said[0]) < LONGEST + 20


def test_spiders_of_one_name_and_two_classes_are_two_projects() -> None:
    assert other_class(published("p.Walk"), published("p.Walk")) is None
    assert other_class(published("p.Walk"), published("q.Walk")) == ("p.Walk", "q.Walk")
    assert other_class(published("p.Walk"), published("p.Shop", spider="shop")) is None
    assert other_class(published("__main__.Walk"), published("p.Walk")) is None
    assert other_class(published("p.Walk"), published("__main__.Walk")) is None
