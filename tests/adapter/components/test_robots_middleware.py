"""The place of the middleware among the user's settings."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from scrapy_ubi.adapter.components.robots_middleware import UbiRobotsMiddleware, place_robots

SCRAPYS = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


class Own(RobotsTxtMiddleware):
    """A user's own."""


class OwnOfOurs(UbiRobotsMiddleware):
    """A user's own, derived from ours."""


def placed(middlewares: dict[Any, int | None] | None = None, obey: bool = True) -> dict[str, int]:
    """The robots.txt middlewares that there are, with their numbers."""
    settings = Settings({"ROBOTSTXT_OBEY": obey, "DOWNLOADER_MIDDLEWARES": middlewares or {}})
    place_robots(settings)
    found = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    names = {getattr(cls, "__name__", str(cls).rpartition(".")[2]): number for cls, number in found.items()}
    return {name: number for name, number in names.items() if "Robots" in name or "Own" in name}


@pytest.mark.parametrize(
    ("middlewares", "there"),
    [
        (None, {"UbiRobotsMiddleware": 100}),
        ({SCRAPYS: 333}, {"UbiRobotsMiddleware": 333}),
        ({RobotsTxtMiddleware: 333}, {"UbiRobotsMiddleware": 333}),
        ({UbiRobotsMiddleware: 77}, {"UbiRobotsMiddleware": 77}),
        ({"scrapy_ubi.adapter.components.robots_middleware.UbiRobotsMiddleware": 77}, {"UbiRobotsMiddleware": 77}),
        ({OwnOfOurs: 77}, {"OwnOfOurs": 77}),
    ],
)
def test_it_takes_the_place_of_scrapys(middlewares: dict[Any, int | None] | None, there: dict[str, int]) -> None:
    assert placed(middlewares) == there


def test_without_robotstxt_obey_nothing_changes() -> None:
    assert placed(obey=False) == {"RobotsTxtMiddleware": 100}


@pytest.mark.parametrize(
    ("middlewares", "there", "sentence"),
    [
        ({Own: 100, SCRAPYS: None}, {"Own": 100}, "Own stays"),
        ({Own: 101}, {"RobotsTxtMiddleware": 100, "Own": 101}, "Own stays"),
        ({SCRAPYS: None}, {}, "is left to what replaces it"),
    ],
)
def test_what_the_user_has_put_there_stays(
    middlewares: dict[Any, int | None], there: dict[str, int], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert placed(middlewares) == there
    assert sentence in caplog.text
