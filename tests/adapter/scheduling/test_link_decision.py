"""What becomes of a link: one decision, whose answers are one table. Here by itself; its doors have tests of their own
(`test_enqueue`, `test_bulk_enqueue`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.check import HOST
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.scheduling import hostless
from scrapy_ubi.adapter.scheduling.link_decision import Candidate, CandidateBatch, LinkDecision, Spelling
from scrapy_ubi.agent import Node, Visit
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.urls import partition_key, url_key
from tests.adapter.scheduling.test_bulk_enqueue import PAGE, World

STATS = Path(__file__).parents[3] / "docs/reference/stats.md"
FAR = [f"http://h{number}.example/" for number in range(2, 12)]


# ---------------------------------------------------------------------- the table of answers


def test_the_table_of_answers_in_the_docs_is_that_of_the_code() -> None:
    shown = STATS.read_text(encoding="utf-8").partition("## What becomes of a link")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", shown, re.M)]
    assert rows[2:] == [
        [verdict.value, "yes" if verdict else "no", verdict.reason, ", ".join(f"`{stat}`" for stat in verdict.stats)]
        for verdict in Verdict
    ]


def found(world: World, url: str, **more: Any) -> Verdict:
    """A request that the page yields."""
    request = Request(url, **more)
    world.enqueue.mark_child(request, world.request)
    return world.enqueue.take_request(request, False)


def twice(world: World, url: str) -> Verdict:
    assert found(world, url) is Verdict.FOUND
    return found(world, url)


def retried(world: World) -> Verdict:
    """The retry of a page that is under way."""
    url = f"{PAGE}a"
    entry = Entry(url_key("GET", url), url, 1)
    state, _ = world.node.frontier.add("h1.example", [entry])
    request = world.flights.add(Flight(Request(url), "h1.example", Visit(state, entry, 0))).request
    retry = request.replace(dont_filter=True, meta={"retry_times": 1})
    world.enqueue.mark_successor(retry, request)
    return world.enqueue.take_request(retry, False)


def malformed(world: World) -> Verdict:
    world.take_plain(PlainLinks([7]))
    return Verdict.MALFORMED


def too_large(world: World) -> Verdict:
    verdicts = [found(world, url, method="POST", body="x" * 3000) for url in FAR]  # some are this agent's own
    return verdicts[verdicts.index(Verdict.TOO_LARGE)]


def late(world: World) -> Verdict:
    return world.enqueue.take_request(Request(f"{PAGE}a"), False)


SCENES: dict[Verdict, list[tuple[Callable[[World], Verdict], dict[str, Any]]]] = {
    Verdict.FOUND: [(lambda world: found(world, f"{PAGE}a"), {})],
    Verdict.RETRIED: [(retried, {})],
    Verdict.LOCAL: [(lambda world: found(world, "data:,x"), {})],
    Verdict.KNOWN: [(lambda world: twice(world, f"{PAGE}a"), {})],
    Verdict.LIMITED: [
        (lambda world: found(world, f"{PAGE}a"), {"UBI_HOST_LIMITS": "known=1"}),
        (lambda world: found(world, f"{PAGE}a", meta={"depth": 2}), {"UBI_CRAWL_LIMITS": "depth=1"}),
    ],
    Verdict.FILTERED: [(lambda world: found(world, f"{PAGE}{'a' * 50}"), {"UBI_FILTERS": ["length(40)"]})],
    Verdict.UNREACHABLE: [
        (lambda world: found(world, "http://127.0.0.1/"), {}),
        (lambda world: found(world, "file:///etc/passwd"), {}),
    ],
    Verdict.BAD_HOST: [(lambda world: found(world, f"{PAGE}a", meta={HOST: ["none"]}), {})],
    Verdict.TOO_LONG: [(lambda world: found(world, f"{PAGE}{'a' * 5000}"), {})],
    Verdict.TOO_LARGE: [(too_large, {"UBI_MAX_LETTER_BYTES": 16_384})],
    Verdict.MALFORMED: [(malformed, {})],
    Verdict.LATE: [(late, {})],
    Verdict.NO_ROOM: [(lambda world: found(world, "data:,x"), {})],
}


def family(stat: str) -> str:
    return re.sub("<[^>]*>", "[a-z_]+", stat)


@pytest.mark.parametrize(
    ("verdict", "scene", "scrapy"),
    [(verdict, *scene) for verdict in Verdict for scene in SCENES[verdict]],
    ids=lambda each: each.name if isinstance(each, Verdict) else "",
)
def test_each_answer_is_counted_by_its_own_stat_and_by_no_other(
    verdict: Verdict, scene: Callable[[World], Verdict], scrapy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if verdict is Verdict.LATE:
        monkeypatch.setattr(Node, "over", property(lambda node: True))
    if verdict is Verdict.NO_ROOM:
        monkeypatch.setattr(hostless, "MOST_WAITING", 0)

    async def run() -> tuple[Verdict, dict[str, Any]]:
        world = World(scrapy, group=verdict is Verdict.TOO_LARGE)
        given_verdict = scene(world)
        world.parts.stats.close(world.node, {}, 0)
        return given_verdict, world.crawler.stats.get_stats()

    given_verdict, stats = asyncio.run(run())
    assert given_verdict is verdict and bool(given_verdict) == verdict.is_taken
    all_stats = {stat for each in Verdict for stat in each.stats}
    counted = {
        stat for stat in all_stats if any(value and re.fullmatch(family(stat), name) for name, value in stats.items())
    }
    if verdict in (Verdict.KNOWN, Verdict.TOO_LARGE):
        counted.remove("ubi/scheduler/enqueued")  # of others, which were taken
    assert counted and counted <= set(verdict.stats)


# ---------------------------------------------------------------------- the decision by itself


class Links(CandidateBatch):
    """Links of a page, or of none, and what of them was made."""

    def __init__(self, decision: LinkDecision, page: Visit | None, seed: bool = False) -> None:
        self.page = page
        self.depth = 1
        self.seed = seed
        self.hosts = decision.known_hosts()
        self.made: list[str] = []

    def request(self, candidate: Candidate) -> Request:
        self.made.append(f"request {candidate[1]}")
        return Request(candidate[1])

    def entry(self, candidate: Candidate) -> Entry:
        _, url, _, _, key, priority = candidate
        self.made.append(url)
        self.hosts.clear()
        return Entry(key, url, self.depth, priority)


def candidates(urls: Iterable[str]) -> list[Candidate]:
    return [(n, url, url, partition_key(url) or "", url_key("GET", url), 0) for n, url in enumerate(urls)]


def of(world: World) -> tuple[LinkDecision, Links]:
    return world.parts.decision, Links(world.parts.decision, world.page)


NAMES = st.sampled_from([f"http://h{host}.example/{path}" for host in (1, 2, 3) for path in "abc"])


@given(first=st.lists(NAMES, max_size=6), second=st.lists(NAMES, max_size=6), group=st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_two_forms_of_the_first_question_have_one_answer(first: list[str], second: list[str], group: bool) -> None:
    """Of one, and of many; and the node counts the same."""

    async def run() -> None:
        world = World(group=group)
        decision, batch = of(world)
        decision.decide(batch, candidates(dict.fromkeys(first)))
        counters = world.node.agent.counters
        before = counters.links, counters.suppressed
        unknown = decision.unknown(batch, candidates(second))
        between = counters.links, counters.suppressed
        alone = [
            each
            for each in candidates(second)
            if not decision.is_known(each[3], each[4], batch.depth, each[5], batch.request, each)
        ]
        assert unknown == alone == [each for each in candidates(second) if each[1] not in first]
        after = counters.links, counters.suppressed
        assert [b - a for a, b in zip(before, between, strict=True)] == [
            b - a for a, b in zip(between, after, strict=True)
        ]

    asyncio.run(run())


@given(urls=st.lists(NAMES | st.just("http://127.0.0.1/"), max_size=8), group=st.booleans())
@settings(max_examples=50, deadline=None)
def test_what_is_decided_of_many_is_what_is_decided_one_by_one(urls: list[str], group: bool) -> None:
    async def run() -> None:
        together, alone = World(group=group), World(group=group)
        decision, batch = of(together)
        verdicts = decision.decide(batch, decision.unknown(batch, candidates(urls)))
        decision, batch = of(alone)
        each = [decision.decide_one(batch, candidate) for candidate in candidates(urls)]
        assert sorted(verdict.value for verdict in verdicts) == sorted(verdict.value for verdict in each)
        outcomes = [world.outcome() for world in (together, alone)]
        assert outcomes[0] == outcomes[1]

    asyncio.run(run())


def test_nothing_is_made_of_what_is_known_or_out_of_reach() -> None:
    async def run() -> None:
        decision, batch = of(World())
        links = candidates([f"{PAGE}a", "http://127.0.0.1/"])
        assert [decision.decide_one(batch, link) for link in links] == [Verdict.FOUND, Verdict.UNREACHABLE]
        assert batch.made == [f"{PAGE}a"]
        assert decision.decide_one(batch, links[0]) is Verdict.KNOWN
        assert decision.unknown(batch, links[:1]) == []
        assert batch.made == [f"{PAGE}a"]

    asyncio.run(run())


def test_what_is_under_way_is_known_without_a_question_to_the_node() -> None:
    async def run() -> None:
        world = World()
        decision, batch = of(world)
        [link] = candidates([f"{PAGE}under-way"])
        world.flights.add(Flight(Request(link[1]), link[3], Visit(world.page.state, Entry(link[4], link[1], 0), 0)))  # type: ignore[union-attr]
        before = world.node.agent.counters.links
        assert decision.unknown(batch, [link]) == []
        assert decision.decide_one(batch, link) is decision.decide_one(Links(decision, None), link) is Verdict.KNOWN
        assert world.node.agent.counters.links == before and not batch.made

    asyncio.run(run())


def test_what_comes_from_no_page_is_told_the_node_however_often() -> None:
    async def run() -> None:
        world = World()
        decision = world.parts.decision
        batch = Links(decision, None)
        links = candidates([f"{PAGE}a"])
        for verdict in (Verdict.FOUND, Verdict.KNOWN):
            assert decision.unknown(batch, links) == links
            assert decision.decide(batch, links) == [verdict]
        assert decision.decide_one(batch, links[0]) is Verdict.KNOWN
        assert batch.made == [f"{PAGE}a"] * 3

    asyncio.run(run())


@pytest.mark.parametrize("seed", [True, False])
def test_after_the_end_of_the_crawl_only_seeds_are_taken(seed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Node, "over", property(lambda node: True))

    async def run() -> Verdict:
        decision = World().parts.decision
        return decision.decide_one(Links(decision, None, seed), candidates([f"{PAGE}a"])[0])

    assert asyncio.run(run()) is (Verdict.FOUND if seed else Verdict.LATE)


def test_what_lossy_steps_join_is_counted_unless_it_is_to_be_fetched_for_its_own_sake() -> None:
    async def run() -> None:
        world = World()
        decision, batch = of(world)
        first, second = candidates([f"{PAGE}a", f"{PAGE}A"])
        second = (*second[:4], first[4], 0)
        spellings = [Spelling(number, f"{PAGE}a", ("case",)) for number in (1, 2, 3)]
        assert decision.decide_one(batch, first, spellings[0]) is Verdict.FOUND
        assert decision.decide_one(batch, second, spellings[1]) is Verdict.KNOWN
        assert world.node.joins.counts == {"case": 1}
        assert decision.decide_one(batch, second, spellings[2]._replace(again=True)) is Verdict.KNOWN
        assert world.node.joins.counts == {"case": 1}

    asyncio.run(run())
