"""The pages for Prometheus and probes, as a web application mounts them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from redis import ConnectionError as RedisAway

from scrapy_ubi.agent.metrics.metric_table import METRICS
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.web.metrics_routes import KEPT, add_routes, away_text, metrics_text, targets, why_not_settled
from tests.cli.monitor.by_hand import VIEW, incarnation, profile
from tests.support.prometheus import Recorded, needs_promtool, promtool

OTHER = "0000000000000001"


class Reader:
    """Gives `status`, or raises what stands there; `reads` so far."""

    def __init__(self, status: CrawlStatus | Exception) -> None:
        self.status, self.reads = status, 0

    async def read(self) -> CrawlStatus:
        self.reads += 1
        if isinstance(self.status, Exception):
            raise self.status
        return self.status


def ask(reader: Reader, *paths: str, away: tuple[type[Exception], ...] = ()) -> list[tuple[int, str]]:
    """Status and body of each answer."""

    async def main() -> list[tuple[int, str]]:
        app = web.Application()
        add_routes(app, reader.read, lambda: "demo:web", away)
        async with TestClient(TestServer(app)) as client:
            answers = [await client.get(path) for path in paths]
            return [(answer.status, await answer.text()) for answer in answers]

    return asyncio.run(main())


def test_all_four_answer_from_one_look_at_redis() -> None:
    reader = Reader(crawl(agent("a1", metrics="m1:9410"), agent("a2")))
    metrics, found, live, ready, one = ask(reader, "/metrics", "/sd", "/live", "/ready", "/ready?agent=a2")
    assert len(Recorded(metrics[1]).of("ubi_pages_total")) == 2
    assert '"targets": ["m1:9410"]' in found[1]
    assert live == ready == one == (200, "ok\n")
    assert reader.reads == 1


def test_a_group_that_has_not_settled_is_not_ready() -> None:
    reader = Reader(crawl(agent("a1"), with_beat(agent("a2"), settled="")))
    assert ask(reader, "/ready", "/live") == [
        (503, "Not now: a2 has not handed over all it holds.\n"),
        (200, "ok\n"),
    ]


def test_a_redis_that_is_away_is_told_as_such() -> None:
    class Problem(Exception):
        pass

    cases: list[tuple[Exception, dict[str, Any]]] = [(RedisAway("away"), {}), (Problem(), {"away": (Problem,)})]
    for error, more in cases:
        metrics, found, ready = ask(Reader(error), "/metrics", "/sd", "/ready", **more)
        assert Recorded(metrics[1]).samples == [("ubi_redis_up", {"crawl": "demo:web"}, 0.0)]
        assert metrics[0] == 200 and found[0] == ready[0] == 503


def test_nothing_can_be_changed_here() -> None:
    async def main(check: Callable[[TestClient[Any, Any]], Awaitable[None]]) -> None:
        app = web.Application()
        add_routes(app, Reader(crawl()).read, str)
        async with TestClient(TestServer(app)) as client:
            await check(client)

    async def check(client: TestClient[Any, Any]) -> None:
        for path in ("/metrics", "/sd", "/live", "/ready"):
            assert [(await client.request(how, path)).status for how in ("POST", "PUT", "DELETE")] == [405] * 3

    asyncio.run(main(check))


def agent(name: str, state: str = "crawling", age: float | None = 1.0, **changes: Any) -> AgentStatus:
    """One that has settled, in the view of all; `changes` are those of its profile."""
    read = read_profile(name, json.dumps(profile(name, **changes)).encode())
    assert isinstance(read, Profile), read
    return AgentStatus(name, state, read, Beat(incarnation(name), 0, 200, VIEW, VIEW), 3, 1, age)


def with_beat(one: AgentStatus, **changes: Any) -> AgentStatus:
    assert one.beat is not None
    return replace(one, beat=replace(one.beat, **changes))


def crawl(*agents: AgentStatus, **control: str) -> CrawlStatus:
    return CrawlStatus("demo:web", agents, control, 1_700_000_000.0)


def told(*agents: AgentStatus, **control: str) -> Recorded:
    return Recorded(metrics_text(crawl(*agents, **control)))


def test_every_agent_is_told_under_its_name() -> None:
    found = told(agent("a1", counters={"pages": 5}), agent("a2", "dead", counters={"pages": 7}))
    assert found.value("ubi_pages_total", crawl="demo:web", agent="a1") == 5
    assert found.value("ubi_pages_total", crawl="demo:web", agent="a2") == 7
    assert found.value("ubi_agent_state", agent="a2", state="dead") == 1
    assert found.value("ubi_agents", state="dead") == found.value("ubi_agents", state="crawling") == 1
    assert found.value("ubi_inbox_letters", agent="a1") == 3
    assert found.value("ubi_redis_up") == 1


def test_the_same_metric_says_the_same_here_and_at_the_agent() -> None:
    slowest = {"host": "a.example", "queued": 3, "delay": 1.0}
    counters = {"responses": {"2xx": 1}, "noted": {"truncated": 1}, "slowest": slowest}
    found = told(agent("a1", counters=counters, curve=[[0, 100, 150], [60, 10, 150]]))
    names = {name for name, _, _ in found.samples}
    assert names == {metric.name for metric in METRICS if metric.teller in ("both", "all")}
    for name, labels, _ in found.samples:
        own = next(metric.labels for metric in METRICS if metric.name == name)
        assert set(own) <= set(labels) <= {"crawl", "agent", *own}


@pytest.mark.parametrize("state", ["dead", "silent", "left", "finished", "unreadable"])
def test_who_has_not_worked_for_ten_minutes_is_told_no_more(state: str) -> None:
    assert told(agent("a1"), agent("a2", state, KEPT)).of("ubi_pages_total", agent="a2")
    assert not told(agent("a1"), agent("a2", state, KEPT + 1)).of("ubi_pages_total", agent="a2")
    assert told(agent("a1", age=KEPT + 1)).of("ubi_pages_total", agent="a1"), "who works is told"


def test_one_whose_profile_is_unreadable_is_told_by_its_state_alone() -> None:
    found = told(AgentStatus("a1", "unreadable", trouble=("profile: no JSON",)))
    assert found.value("ubi_agent_state", agent="a1", state="unreadable") == 1
    assert not found.of("ubi_pages_total")


def test_a_crawl_that_is_not_there_is_told_so() -> None:
    found = Recorded(metrics_text(CrawlStatus("gone")))
    assert found.value("ubi_agents", crawl="gone", state="crawling") == 0
    assert Recorded(away_text("gone")).samples == [("ubi_redis_up", {"crawl": "gone"}, 0.0)]


def test_a_view_is_complete_when_all_have_settled_in_it() -> None:
    one, two = agent("a1"), agent("a2")
    assert told(one, two).of("ubi_view_complete") == [1, 1]
    late = with_beat(two, settled="")
    found = told(one, late)
    assert (found.value("ubi_view_settled", agent="a1"), found.value("ubi_view_settled", agent="a2")) == (1, 0)
    assert found.of("ubi_view_complete") == [0, 0]


@pytest.mark.parametrize(
    ("two", "why"),
    [
        (agent("a2"), ""),
        (agent("a2", "dead"), ""),
        (with_beat(agent("a2"), settled=""), "a2 has not handed over all it holds"),
        (with_beat(agent("a2"), settled=OTHER), "a2 has not handed over all it holds"),
        (with_beat(agent("a2"), pending=("0" * 16,)), "a2 holds up 1 hosts"),
        (with_beat(agent("a2"), settled=OTHER, digest=OTHER), "the agents have 2 different views of the group"),
        (with_beat(agent("a2", "leaving"), settled=""), "a2 has not handed over all it holds"),
        (replace(agent("a2"), beat=None), "a2 has not handed over all it holds"),
    ],
    ids=["settled", "dead", "late", "of-before", "holds-up", "two-views", "leaving", "no-beat"],
)
def test_an_agent_may_be_taken_away_when_all_have_settled(two: AgentStatus, why: str) -> None:
    assert why_not_settled(crawl(agent("a1"), two)) == why


def test_who_was_restarted_last_has_to_be_there() -> None:
    there = crawl(agent("a1"), agent("a2", "left"), agent("a3", "fenced"))
    assert why_not_settled(there, "a1") == ""
    assert why_not_settled(there, "a2") == "no agent of the name 'a2' works"
    assert why_not_settled(there, "a9") == "no agent of the name 'a9' works"
    assert why_not_settled(there, "a3") == "a3 is fenced"
    assert why_not_settled(crawl()) == "no agent works"


def test_prometheus_finds_agents_that_answer_it() -> None:
    agents = (agent("a1", metrics="m1:9410"), agent("a2"), agent("a3", "dead", metrics="m3:9410"))
    assert targets(crawl(*agents)) == [
        {"targets": ["m1:9410"], "labels": {"__meta_ubi_crawl": "demo:web", "__meta_ubi_agent": "a1"}}
    ]


@needs_promtool
def test_promtool_finds_nothing_to_say() -> None:
    promtool("check", "metrics", stdin=metrics_text(crawl(agent("a1"), agent("a2", "dead"))))
