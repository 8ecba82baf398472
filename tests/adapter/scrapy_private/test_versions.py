"""What stands for names that an older Scrapy lacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser

from scrapy_ubi.adapter.scrapy_private import versions

ROBOTS = b"User-agent: *\nCrawl-delay: 3\n"


@pytest.mark.parametrize("parser", [ProtegoRobotParser(ROBOTS, None), PythonRobotParser(ROBOTS, None)])
def test_the_delay_that_a_robots_txt_asks_for(parser: Any) -> None:
    assert versions.crawl_delay(parser, "bot") == 3
    older: Any = SimpleNamespace(rp=parser.rp)  # a parser of Scrapy 2.17
    assert versions.crawl_delay(older, "bot") == 3


def test_a_parser_that_knows_of_no_delay() -> None:
    own: Any = SimpleNamespace(allowed=lambda url, agent: True)
    assert versions.crawl_delay(own, "bot") is None


def test_the_jitter_of_a_slot_that_has_none() -> None:
    older: Any = SimpleNamespace(randomize_delay=True)
    assert versions.jitter_of(older) == 0.5


def test_the_uri_of_a_feed() -> None:
    assert versions.feed_uri("%(name)s-%(batch_id)03d.jl", {"name": "walk", "batch_id": 2}) == "walk-002.jl"
