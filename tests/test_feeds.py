"""Feed URIs that hold the agent's name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy.settings import Settings

from scrapy_ubi.feeds import FeedParams, of_one_name
from scrapy_ubi.settings import UbiSettings


def spider(**scheduler: Any) -> Any:
    return SimpleNamespace(crawler=SimpleNamespace(engine=SimpleNamespace(scheduler=SimpleNamespace(**scheduler))))


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


def test_without_an_agent_the_names_are_empty() -> None:
    assert FeedParams()({}, spider()) == {"ubi_agent": "", "ubi_crawl": ""}


def test_a_feed_with_one_name_for_all_processes_is_named() -> None:
    feeds = {"items.jsonl": {}, "%(ubi_agent)s.jsonl": {}, "%(time)s.jsonl": {}, "stdout:": {}}
    (sentence,) = of_one_name(Settings({"FEEDS": feeds}))
    assert "the feed 'items.jsonl' has one name" in sentence and "%(ubi_agent)s" in sentence


def test_what_is_the_same_for_all_of_a_crawl_keeps_no_two_apart() -> None:
    same = ("%(name)s.jl", "%(ubi_crawl)s/%(name)s-%(batch_id)05d.jl", "a%20b.jl")
    apart = ("%(name)s-%(ubi_agent)s.jl", "%(name)s/%(time)s.jl", "%(batch_time)s.jl", "%(name)s-%(shard)s.jl")
    sentences = list(of_one_name(Settings({"FEEDS": {name: {} for name in same + apart}})))
    assert [name for name in same + apart if any(repr(name) in sentence for sentence in sentences)] == list(same)
