"""Feed URIs that hold the agent's name."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.extensions.feedexport import FeedExporter
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.feeds.feed_params import FeedParams, feed_params, times
from scrapy_ubi.settings import UbiSettings


def spider(**scheduler: Any) -> Any:
    slot = SimpleNamespace(scheduler=SimpleNamespace(**scheduler))  # where it is before Scrapy 2.19
    return SimpleNamespace(crawler=SimpleNamespace(engine=SimpleNamespace(scheduler=slot.scheduler, _slot=slot)))


AGENT = spider(agent_id="a1", settings=UbiSettings(crawl="c"))


def test_agent_and_crawl_are_added() -> None:
    assert FeedParams()({"name": "walk"}, AGENT) == {"name": "walk", "ubi_agent": "a1", "ubi_crawl": "c"}


def test_the_users_own_function_sees_and_may_replace_all() -> None:
    def own(params: dict[str, Any], spider: Any) -> dict[str, Any]:
        return {"both": f"{params['name']}-{params['ubi_agent']}"}

    assert FeedParams(own)({"name": "walk"}, AGENT) == {"both": "walk-a1", "ubi_agent": "a1", "ubi_crawl": "c"}


def test_a_function_that_changes_the_parameters_in_place() -> None:
    def own(params: dict[str, Any], spider: Any) -> None:
        params["more"] = 1

    assert FeedParams(own)({}, AGENT)["more"] == 1


class Walk(Spider):
    name = "walk"


@pytest.mark.parametrize(("crawl", "shown"), [(None, "bot:walk"), ("c", "c")])
def test_without_an_agent_the_names_are_those_of_plain_scrapy(crawl: str | None, shown: str) -> None:
    walk = Walk.from_crawler(get_crawler(Walk, {"BOT_NAME": "bot", "UBI_CRAWL": crawl}))
    assert FeedParams()({}, walk) == {"ubi_agent": "plain", "ubi_crawl": shown}
    assert feed_params({"name": "walk"}, walk) == {"name": "walk", "ubi_agent": "plain", "ubi_crawl": shown}


def test_the_function_gives_an_agent_what_the_add_on_gives() -> None:
    expected = {"name": "walk", "ubi_agent": "a1", "ubi_crawl": "c"}
    assert feed_params({"name": "walk"}, AGENT) == expected
    for own in ("scrapy_ubi.feed_params", feed_params):
        assert FeedParams(own)({"name": "walk"}, AGENT) == expected
        assert FeedParams(own).own is None, "a feed without the agent's name is still one for all"


def test_the_log_shows_whose_parameters_they_are() -> None:
    def own(params: dict[str, Any], spider: Any) -> None:
        """Nothing."""

    assert repr(FeedParams("project.names")) == "FeedParams(project.names)"
    assert repr(FeedParams(own)).endswith("own)") and " at 0x" not in repr(FeedParams(own))


def test_the_first_file_has_the_times_of_the_start() -> None:
    """Under which the name was looked at; the next one has its own."""
    params = {"time": "later", "batch_time": "later", "batch_id": 1}
    begun = times()
    agent = spider(agent_id="a1", settings=UbiSettings(crawl="c"), feed_times=begun)
    found = FeedParams()(params, agent)
    assert (found["time"], found["batch_time"]) == tuple(begun.values())
    assert FeedParams()({**params, "batch_id": 2}, agent)["time"] == "later"


def test_times_are_written_as_scrapy_writes_them() -> None:
    class Feeding(Spider):
        name = "feeding"

    exporter = FeedExporter(get_crawler(Feeding, {"FEEDS": {"x.jl": {"format": "jl"}}}))
    theirs, ours = exporter._get_uri_params(Feeding(), None), times()
    for name, mine in ours.items():
        assert re.sub(r"\d", "0", mine) == re.sub(r"\d", "0", theirs[name])
