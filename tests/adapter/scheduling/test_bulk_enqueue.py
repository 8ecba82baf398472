"""Plain links are taken as their requests would be: the same entries, the same counts, whatever the settings.

Two schedulers with nodes of their own take the same links of the same page, one as plain links, one as requests that go
through Scrapy's own middlewares and `enqueue_request`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider, version_info
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.settings.default_settings import DOWNLOAD_HANDLERS_BASE, SPIDER_MIDDLEWARES_BASE
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter

from scrapy_ubi.adapter.components.scheduler import SEED, UbiScheduler
from scrapy_ubi.adapter.components.scheduler_builder import SchedulerBuilder
from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.codec import host_name
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.scheduling.bulk_enqueue import BulkEnqueue
from scrapy_ubi.adapter.scheduling.page_links import SLICE, SLICE_LENGTH, slices
from scrapy_ubi.adapter.scheduling.scrapy_rules import ScrapyRules
from scrapy_ubi.agent import Node, Start, Visit, build_node
from scrapy_ubi.ground import clock
from scrapy_ubi.protocol.done_mark_delivery import Outlinks
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.protocol.records import MOST_OUTLINKS
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.urls import normal_form, partition_key, url_key
from scrapy_ubi.urls.canonical import canonical_form, usual_parts
from tests.support.builders import parts_of
from tests.support.engines import FakeHooks, fake_engine

PAGE = "http://h1.example/"
MALFORMED = "ubi/scheduler/dropped/malformed"


class Walk(Spider):
    name = "walk"

    def parse(self, response: Any) -> None:
        """Nothing."""

    def other(self, response: Any) -> None:
        """Another callback."""

    def lost(self, failure: Any, more: Any = None) -> None:
        """An errback."""


class BeforeNode(SchedulerBuilder):
    def make_node(self, transport: Transport, disk: Any = None) -> Node:
        return self.agent("a1", transport)

    def agent(self, name: str, transport: Transport) -> Node:
        return build_node(self.scheduler.settings, transport, Start(name, "walk"), self.codec.check, self.keys)


class World(UbiScheduler):
    """A scheduler with a node and Scrapy's own middlewares, alone or one of a `group` of two; to be used in a running
    loop."""

    builder_class = BeforeNode
    parts: Any

    def __init__(self, scrapy: dict[str, Any] | None = None, domains: Any = None, group: bool = False) -> None:
        crawler = Crawler(Walk, {"UBI_DIR": "nowhere", **(scrapy or {})})
        super().__init__(crawler)
        crawler.stats = MemoryStatsCollector(crawler)
        crawler.request_fingerprinter = RequestFingerprinter()
        crawler.spider = Walk(allowed_domains=domains)
        self.agent_id = "a1"
        self.settings = UbiSettings.from_scrapy(crawler.settings, "walk")
        self.hooks: Any = FakeHooks()
        self.parts = parts_of(self)
        self._middlewares(crawler)
        self.rules = ScrapyRules(crawler)
        self.parts.put_together()
        self.parts.hang_on_engine()
        self.begin()
        if group:
            self.join()
        self.crawled: list[Request] = []
        state, _ = self.node.frontier.add("h1.example", [Entry(1, PAGE, 0)])
        self.page: Visit | None = Visit(state, Entry(1, PAGE, 0), 0)
        self._taught: Outlinks = []
        self.request = Request(PAGE)
        self.flights.add(Flight(self.request, "h1.example", self.page))

    def join(self) -> None:
        """There is another agent from now on."""
        now = clock.now()
        other = self.parts.agent("a2", self.parts.make_transport())
        self.node.agent.read(now, now, {node.agent.me: node.agent.beat for node in (self.node, other)})

    def _middlewares(self, crawler: Crawler) -> None:
        """Scrapy's, as its engine makes them."""
        order = {**SPIDER_MIDDLEWARES_BASE, **crawler.settings.getdict("SPIDER_MIDDLEWARES")}
        chain = [
            build_from_crawler(load_object(path), crawler)
            for path, place in sorted(order.items(), key=lambda item: item[1] or 0)
            if place is not None
        ]
        self.offsite = OffsiteMiddleware.from_crawler(crawler)
        assert crawler.spider is not None
        self.offsite.spider_opened(crawler.spider)
        crawler.engine = fake_engine(chain, [self.offsite], scheduler=self, crawl=self._engine_takes)

    def _engine_takes(self, request: Request) -> None:
        """As the engine takes a request."""
        self.crawled.append(request)
        try:
            self.offsite.request_scheduled(request, Walk())
        except IgnoreRequest:
            return
        self.enqueue_request(request)

    def response(self, depth: int = 0) -> HtmlResponse:
        self.request.meta["depth"] = depth
        return HtmlResponse(PAGE, request=self.request)

    def take_links(self, links: PlainLinks, response: HtmlResponse) -> Any:
        """As the spider middleware does."""
        flight = self.flights.get(response.request)
        page = flight.visit if flight is not None else None
        return self.page_links.take_links(links, response, page, self._yielded, unheard=True)

    def take_plain(self, links: PlainLinks, depth: int = 0) -> None:
        for _ in self.take_links(links, self.response(depth)):
            """Others have their turn."""

    def take_requests(self, links: PlainLinks, depth: int = 0) -> None:
        """The same links as requests of the page."""
        assert self.crawler.spider is not None
        for request in links.requests(self.crawler.spider):
            if request is None:
                self.crawler.stats.inc_value(MALFORMED)
                continue
            passed = self.rules.one(request, self.response(depth))
            if passed is not None:
                passed.headers.pop("Referer", None)
                self._yielded(passed)

    def _yielded(self, request: Request) -> None:
        """As UbiSpiderMiddleware does."""
        request.meta.pop(NONCE, None)
        self.enqueue.mark_child(request, self.request)
        self._engine_takes(request)

    def turn_page(self) -> None:
        """Put aside what was taught: of a page with very many links not all are gathered."""
        assert self.page is not None
        assert len(self.page.outlinks) <= MOST_OUTLINKS
        self._taught += self.page.outlinks
        self.page.outlinks.clear()

    def outcome(self) -> dict[str, Any]:
        """All that has come of the links."""
        self.parts.stats.page_done()
        stats = {name: value for name, value in self.crawler.stats.get_stats().items() if "plain_links" not in name}
        # Links that would be too deep are not looked at, whether they are URLs or not.
        stats["dropped"] = sum(stats.pop(name, 0) for name in ("depth/request_ignored_count", MALFORMED))
        hosts = {state.host: sorted(state.undone()) for state in self.node.frontier.states()}
        local = []
        while (request := self.next_request()) is not None:  # those without a host: it may fetch no other
            self.hooks.removed(request)
            local.append((request.url, request.meta.get("depth")))
        assert self.page is not None
        taught = self._taught + self.page.outlinks
        joins = self.node.joins
        return {
            "stats": stats,
            "hosts": hosts,
            "local": local,
            "outlinks": sorted(taught, key=lambda outlink: outlink[0]),  # of each host in their order
            "counters": asdict(self.node.agent.counters),
            "forwarded": dict(self.node.agent.discovery.forwarded.items()),
            "limits": dict(self.node.limits.counted),
            "joins": (joins.counts, joins.examples),
            "changed": dict(self.parts.keys.changed),
        }


def compare(
    pages: list[tuple[PlainLinks, int]],
    scrapy: dict[str, Any] | None = None,
    domains: Any = None,
    group: bool = False,
    seeds: Sequence[str] = (),
) -> Any:
    """Take the links of some pages both ways, after start() has yielded these; the outcome."""

    async def both() -> tuple[Any, Any]:
        plain, ordinary = World(scrapy, domains, group), World(scrapy, domains, group)
        for url in seeds:
            for world in (plain, ordinary):
                world.enqueue_request(Request(url, dont_filter=True, meta={SEED: True}))
                world.node.agent.closing.strays.clear()  # as when others have heard of them
        for links, depth in pages:
            plain.take_plain(links, depth)
            ordinary.take_requests(links, depth)
            plain.turn_page()
            ordinary.turn_page()
        assert "ubi/plain_links/expanded" not in plain.crawler.stats.get_stats()
        return plain.outcome(), ordinary.outcome()

    plain, ordinary = asyncio.run(both())
    assert plain == ordinary
    return plain


USUAL = [
    PAGE,
    f"{PAGE}a",
    f"{PAGE}a#here",
    f"{PAGE}a#",
    f"{PAGE}a/index.html",
    f"{PAGE}a/index.html?PHPSESSID=0123456789abcdef0123456789abcdef",
    f"{PAGE}A",
    "http://www.h1.example/a",
    "http://h2.example/b?x=1&y=2",
    "http://h2.example/b?y=2&x=1",
    "http://h2.example/b?y=2&x=1#top",
    "http://h2.example/b?x=1&&y=2",
    "http://h2.example/b?x",
    "http://h2.example/b?x=/a,b+c%20d",
    "http://h2.example/b%2c;",
    "http://h2.example/b,",
    "https://sub.h2.example/long/path/with/many/parts.html",
]
ODD = [
    "HTTP://H1.Example:80/./a",
    "http://h1.example/%7euser/../b",
    "http://h1.example/päge?q=ü#ö",
    "http://h1.example/a b",
    "http://h1.example/a\\b\t",
    "http://h1.example/?",
    "http://h1.example",
    "http://h3.example:8080/x",
    "http://h3.example:8080/y?b=1&a=2",
    "http://H3.example:8080/y?a=2&b=1#top",
    "http://h3.example:8080/z/../y",
    "http://h3.example:22840/é?a",
    "http://u:%21p@h1.example:22840/a;b#c%20d",
    "http://127.0.0.5:8000/x",
    "http://h1.example/.hidden/../x",
    "http://user@h1.example/",
    "http://[::1]/six",
    "http://[::1",
    "http://h1.example:99999/",
    "http://xn--bcher-kva.example/",
    "http://bücher.example/",
    "http://127.0.0.1/",
    "http://localhost/x",
    "http://db.localhost/x",
    "http://2130706433/",
    "http://user@localhost:6379/",
    "file:///etc/passwd",
    "http:///h1.example/",
    "//h1.example/no-scheme",
    "relative",
    "",
    "data:,hello",
    "mailto:a@h1.example",
    "ftp://h1.example/file",
    "javascript:void(0)",
    "http://h1.example/\ud800",
    "http://h1.example/" + "x" * 3000,
    "http://h1.example/" + "y" * 5000,
    None,
    7,
    b"http://h1.example/bytes",
    ["http://h1.example/list"],
]
SCORED = {"UBI_SCORE": ["keywords(a, here, x)", "depth(-3)", "path(/a=3, *b=-7)"]}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"UBI_PARTITION": "domain"},
    {"UBI_NORMALISE": "larm +session +query-order"},
    {"UBI_NORMALISE": "safe -fragment -escapes"},
    {"UBI_NORMALISE": "safe"},
    {"UBI_NORMALISE": "scrapy -path-escapes"},
    {"UBI_NORMALISE": "scrapy", "UBI_FILTERS": ["visited"]},
    {"UBI_HOST_RULES": ["startsWith(www.) =", "synonym(h2.example) = h1.example"]},
    {"UBI_FILTERS": ["length(40); scope(hosts=h1.example); depth(2); extensions(-html)"]},
    {"UBI_FILTERS": ["visited; schemes(http, https)"]},
    {"UBI_HOST_LIMITS": "known=3"},
    {"UBI_PRIVATE_HOSTS": "allow", "DOWNLOAD_HANDLERS": {"ftp": DOWNLOAD_HANDLERS_BASE["ftp"]}},
    {"UBI_CRAWL_LIMITS": "depth=2"},
    SCORED,
    {"UBI_SCORE": ["keywords(a)"], "UBI_FILTERS": ["visited"], "DEPTH_PRIORITY": -1, "UBI_NORMALISE": "larm"},
    *([{"DEPTH_LIMIT": 2, "DEPTH_STATS_VERBOSE": True}] if version_info >= (2, 18) else []),  # 2.17 counts less
    {"DEPTH_PRIORITY": 1, "URLLENGTH_LIMIT": 40},
    {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.depth.DepthMiddleware": None}, "URLLENGTH_LIMIT": 5000},
]

WITHOUT_LENGTH = {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None}}

LINKS = st.lists(
    st.sampled_from([*USUAL, *ODD])
    | st.text(max_size=20)
    | st.text(max_size=20).map(lambda text: PAGE + text)
    | st.text("abAB%2fe./?#&=;:@[]|é \\", max_size=20).map(lambda text: f"http://h{text}"),
    max_size=12,
)
PAGES = st.lists(st.tuples(LINKS, st.integers(0, 3)), min_size=1, max_size=3)


@given(
    pages=PAGES,
    scrapy=st.sampled_from(SETTINGS),
    domains=st.sampled_from([None, ["h1.example"], ["example"]]),
    group=st.booleans(),
    seeds=st.lists(st.sampled_from(USUAL), max_size=3),
    callback=st.sampled_from([None, "parse", "other"]),
)
@example([(["http://büher.example/"], 0)], SCORED, None, False, [], None)
@settings(max_examples=25, deadline=None)
@example([(["http://h2.example/b?y=2&x=1", ODD[0], "http://h2.example/b?x=1&y=2"], 0)], {}, None, False, [], None)
def test_whatever_pages_hold_it_is_taken_as_its_requests_would_be(
    pages: list[tuple[list[Any], int]],
    scrapy: dict[str, Any],
    domains: Any,
    group: bool,
    seeds: list[str],
    callback: str | None,
) -> None:
    compare([(PlainLinks(links, callback), depth) for links, depth in pages], scrapy, domains, group, seeds)


@pytest.mark.parametrize(("callback", "once"), [(None, True), ("parse", True), ("other", False)])
@pytest.mark.parametrize("scrapy", [{}, {"UBI_NORMALISE": "larm"}, {"UBI_FILTERS": ["visited"]}], ids=str)
@pytest.mark.parametrize("group", [False, True])
def test_a_link_to_a_seed_with_its_callback_is_a_duplicate(
    scrapy: dict[str, Any], group: bool, callback: str | None, once: bool
) -> None:
    links = [*USUAL, "HTTP://H1.Example:80/./a"]
    compare([(PlainLinks(links, callback), 1)], scrapy, None, group, seeds=[f"{PAGE}a", "http://h2.example/b,"])
    outcome = compare([(PlainLinks([f"{PAGE}a"], callback), 1)], scrapy, None, group, seeds=[f"{PAGE}a"])
    taken = len(outcome["hosts"].get("h1.example", ())) - 1 + len(outcome["forwarded"])
    assert taken == (1 if once else 2)


@pytest.mark.parametrize("scrapy", SETTINGS, ids=str)
def test_all_kinds_of_links_at_once(scrapy: dict[str, Any]) -> None:
    outcome = compare([(PlainLinks([*USUAL, *ODD]), depth) for depth in (1, 0, 2)], scrapy)
    assert outcome["stats"]["dropped"] >= 24


@pytest.mark.parametrize("scrapy", [{}, {"URLLENGTH_LIMIT": 40}, WITHOUT_LENGTH], ids=str)
def test_links_far_too_long_are_not_looked_at_as_a_whole(
    scrapy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def request(url: str) -> Request:
        assert len(url) < 10_000
        return Request(url)

    for module in ("bulk_enqueue", "scrapy_rules"):
        monkeypatch.setattr(f"scrapy_ubi.adapter.scheduling.{module}.Request", request)
    base = "%F0%9F%98%80" * 1_000
    far = [f"{origin}/{base}/{number}" for origin in ("http://h1.example", "HTTPS://far.example") for number in "12"]
    odd = ["http://h1.example/a" + " " * 5_000, "http://[" + "x" * 5_000]
    outcome = compare([(PlainLinks([f"{PAGE}a", *far, *odd]), 0)], scrapy, domains=["h1.example"])
    assert [entry.url for entry in outcome["hosts"]["h1.example"] if entry.url != PAGE] == [f"{PAGE}a"]


@pytest.mark.parametrize("scrapy", [{}, {"URLLENGTH_LIMIT": 40}], ids=str)
@pytest.mark.parametrize("user", ["u:" + "p" * 3_000, "u:" + "p" * 2_080, "u" * 3_000 + ":p"])
def test_a_link_with_a_user_longer_than_any_url_is_too_long_and_no_more(user: str, scrapy: dict[str, Any]) -> None:
    """A part of it is no URL: its password stands where the port would."""
    links = PlainLinks([f"{PAGE}a", f"http://{user}@h1.example/b", f"{PAGE}c"])
    outcome = compare([(links, 0)], scrapy, domains=["h1.example"])
    assert {f"{PAGE}a", f"{PAGE}c"} == {entry.url for entry in outcome["hosts"]["h1.example"]} - {PAGE}


@pytest.mark.parametrize("scrapy", SETTINGS[:6], ids=str)
def test_links_to_hosts_of_others_are_told_them_once(scrapy: dict[str, Any]) -> None:
    far = [f"http://h{number}.example/{path}" for number in range(2, 12) for path in ("", "a", "a#b", "A")]
    outcome = compare([(PlainLinks([*USUAL, *far]), depth) for depth in (1, 0, 2)], scrapy, group=True)
    assert outcome["forwarded"] or "UBI_FILTERS" in scrapy


def test_the_owners_of_links_are_asked_for_anew_after_the_turn_of_others() -> None:
    """Who joins meanwhile is told of its links, as it would be of requests."""

    async def run() -> tuple[int, int]:
        hosts = [f"h{number}.example" for number in range(2, 12)]
        world, links = World(), PlainLinks([f"http://{hosts[i % 10]}/{i}" for i in range(2 * SLICE)])
        world.take_plain(links)
        taking = world.take_links(links, world.response())
        next(taking)
        before = len(world.node.agent.discovery.forwarded)
        world.join()
        for _ in taking:
            """Others have their turn."""
        others = [host for host in hosts if world.node.agent.view.ring.owner(host) != "a1"]
        assert others and before == 0
        return len(world.node.agent.discovery.forwarded), SLICE // len(hosts) * len(others)

    told, expected = asyncio.run(run())
    assert told == expected


def test_a_stray_is_an_outlink_of_each_page_that_has_it() -> None:
    """Its own letter may be lost with this agent: who does such a page again has to tell of it."""

    async def both() -> list[Any]:
        outlinks = []
        for take in (World.take_plain, World.take_requests):
            world = World()
            stray, known = (Entry(url_key("GET", f"{PAGE}{name}"), f"{PAGE}{name}", 0) for name in ("stray", "known"))
            world.node.discover("h1.example", stray)
            world.node.discover("h1.example", known, page=world.page)
            world.turn_page()
            world._taught.clear()
            take(world, PlainLinks([stray.url, known.url]))
            outlinks.append([(host, entry.url) for host, entry in world.outcome()["outlinks"]])
        return outlinks

    assert asyncio.run(both()) == [[("h1.example", f"{PAGE}stray")]] * 2


def test_links_too_large_for_a_letter_are_no_duplicates(caplog: pytest.LogCaptureFixture) -> None:
    """Their owner could not be told of them, and nobody else fetches them."""
    far = [f"http://h{number}.example/" for number in range(2, 12)]
    large = PlainLinks(far, headers={"X-A": "x" * 3000})
    for normalise in ("safe", "larm"):  # at once, and one by one
        scrapy = {"UBI_MAX_LETTER_BYTES": 16_384, "UBI_NORMALISE": normalise}
        outcome = compare([(large, 1)], scrapy, group=True)
        own = len([host for host in outcome["hosts"] if host != "h1.example"])
        assert 0 < own < len(far) and not outcome["forwarded"]
        stats = outcome["stats"]
        assert stats["ubi/scheduler/dropped/too_large"] == len(far) - own
        assert stats["ubi/scheduler/enqueued"] == own and "ubi/scheduler/duplicates" not in stats
        limited = compare([(large, 1)], {**scrapy, "UBI_CRAWL_LIMITS": "depth=1"}, group=True)
        assert "ubi/scheduler/dropped/too_large" not in limited["stats"]
    assert "UBI_MAX_LETTER_BYTES), and its host is another agent's: it is dropped" in caplog.text


def test_a_request_too_large_for_a_letter_is_refused() -> None:
    async def run() -> tuple[list[bool], dict[str, Any]]:
        world = World({"UBI_MAX_LETTER_BYTES": 16_384}, group=True)
        urls = [f"http://h{number}.example/" for number in range(2, 12)]
        taken = [world.enqueue_request(Request(url, method="POST", body="x" * 3000)) for url in urls]
        return taken, world.outcome()["stats"]

    taken, stats = asyncio.run(run())
    assert stats["ubi/scheduler/dropped/too_large"] == taken.count(False) > 0
    assert stats["ubi/scheduler/enqueued"] == taken.count(True) > 0
    assert "ubi/scheduler/duplicates" not in stats


def test_after_some_hundred_links_others_have_their_turn() -> None:
    async def run() -> tuple[int, int]:
        world = World()
        many = [f"{PAGE}{number}" for number in range(3 * SLICE)]
        turns = sum(1 for _ in world.take_links(PlainLinks(many), world.response()))
        return turns, world.outcome()["stats"]["ubi/scheduler/enqueued"]

    assert asyncio.run(run()) == (2, 3 * SLICE)


def test_long_links_are_taken_fewer_at_once() -> None:
    """One that is not written as usual takes a millisecond at 2,000 characters."""
    assert list(slices([])) == []
    assert list(slices(["a"] * SLICE)) == [(0, SLICE)]
    assert list(slices(["a"] * (SLICE + 1))) == [(0, SLICE), (SLICE, 2 * SLICE)]
    many: list[Any] = [None, "b" * 2000] * SLICE
    found = list(slices(many))
    assert [number for start, stop in found for number in range(start, stop)] == list(range(len(many)))
    assert all(sum(len(link or "") for link in many[start:stop]) <= SLICE_LENGTH for start, stop in found)
    assert list(slices([None] * (SLICE + 1))) == [(0, SLICE), (SLICE, SLICE + 1)]
    assert list(slices(["c" * 2 * SLICE_LENGTH] * 2)) == [(0, 1), (1, 2)]


def test_links_say_once_what_they_have_in_common_and_each_its_own_text() -> None:
    meta = {"a": (1, 2), "retry_times": 1, "depth": 7, "ubi_nonce": "of the page"}
    links = PlainLinks(
        [PAGE, f"{PAGE}a", "http://h2.example/"],
        callback="other",
        errback="lost",
        cb_kwargs={"b": {3}},
        meta=meta,
        headers={"X-D": "4"},
        priority=5,
        link_texts=["one", "two", "three"],
    )
    outcome = compare([(links, 1), (PlainLinks([f"{PAGE}b"], meta={"depth_reset": True}), 3)], {"DEPTH_PRIORITY": 1})
    [two] = [entry for entry in outcome["hosts"]["h1.example"] if entry.url == f"{PAGE}a"]
    assert "ubi_nonce" not in two.request and two.priority == 3 and two.depth == 2


def test_a_text_that_is_none_is_there_as_well() -> None:
    texts: Any = ["one", None]
    outcome = compare([(PlainLinks([f"{PAGE}a", f"{PAGE}b"], link_texts=texts), 1)])
    found = {entry.url: json.loads(entry.request)["meta"] for entry in outcome["hosts"]["h1.example"] if entry.request}
    assert found == {f"{PAGE}a": {"link_text": "one"}, f"{PAGE}b": {"link_text": None}}


def test_a_depth_below_nothing_is_none() -> None:
    outcome = compare([(PlainLinks([f"{PAGE}{depth}"]), depth) for depth in (-3, -1, 0)], {"DEPTH_PRIORITY": 2})
    assert sorted((entry.depth, entry.priority) for entry in outcome["hosts"]["h1.example"]) == [
        (0, 0),
        (0, 0),
        (0, 4),
        (1, -2),
    ]


def test_sites_off_limits_may_be_allowed() -> None:
    far = ["http://h2.example/", "http://h2.example/a", "http://H3.example:80/"]
    allowed = PlainLinks(far, meta={"allow_offsite": True})
    outcome = compare([(PlainLinks(far), 0), (allowed, 0), (PlainLinks(far), 0)], domains=["h1.example"])
    assert outcome["stats"]["offsite/filtered"] == 6 and outcome["stats"]["offsite/domains"] == 2
    assert set(outcome["hosts"]) == {"h1.example", "h2.example", "h3.example"}


def test_what_comes_from_no_known_page_is_told_the_node_in_any_case() -> None:
    async def run() -> int:
        world = World()
        response = HtmlResponse(PAGE, request=Request(PAGE, meta={"depth": 0}))
        for _ in range(2):
            links = PlainLinks([f"{PAGE}a", f"{PAGE}a#b", "http://h2.example/"])
            for _ in world.take_links(links, response):
                """Nobody waits."""
        outcome = world.outcome()
        assert not outcome["outlinks"] and outcome["stats"]["ubi/scheduler/enqueued"] == 2
        return int(outcome["counters"]["links"])

    assert asyncio.run(run()) == 6


@pytest.mark.parametrize("seed", range(4))
def test_what_one_look_tells_of_a_url_is_so(seed: int) -> None:
    """That a Request would have this very URL, and which its normal form and host are."""
    random, looked = Random(seed), 0
    for _ in range(1_500):
        host = "".join(
            random.choices("aab1-_.xn:@%A", [9, 9, 9, 2, 1, 1, 4, 1, 1, 0.2, 0.2, 0.2, 0.2], k=random.randint(1, 9))
        )
        rest = "".join(random.choices("aA0-_.~!$&'()*+,;=:@/?#%2fF7Ee[]|\\ é\t", k=random.randint(0, 9)))
        url = f"http://{host}{random.choice(['/', '/', '', '//'])}{rest}"
        match = usual_parts(url)
        if match is None or "/." in url:
            continue
        looked += 1
        assert Request(url).url == url
        if match[3] is None:
            assert match[1] == normal_form(url) == canonical_form(url), url
        assert match[2] == partition_key(url) == host_name(url), url
    assert looked > 50


@pytest.mark.parametrize("url", [url for url in USUAL if not url.endswith("#")])
def test_ordinary_urls_take_one_look(url: str) -> None:
    assert usual_parts(url) is not None


# ---------------------------------------------------------------------- the door by itself


class Told:
    """What the node of a world is told at once: how many links of which host."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[tuple[str, int]] = []
        tell = world.node.discover_all

        def discover_all(host: str, entries: Sequence[Entry], page: Any) -> Any:
            self.told.append((host, len(entries)))
            return tell(host, entries, page)

        monkeypatch.setattr(world.node, "discover_all", discover_all)


def told(links: list[Any], scrapy: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    async def run() -> list[tuple[str, int]]:
        world = World(scrapy)
        node = Told(world, monkeypatch)
        world.take_plain(PlainLinks(links))
        return node.told

    return asyncio.run(run())


MIXED = [f"{PAGE}a", "http://h2.example/", f"{PAGE}b", f"{PAGE}c"]


@pytest.mark.parametrize("scrapy", [{}, {"UBI_FILTERS": ["length(40)"]}], ids=str)
def test_the_node_is_told_of_a_page_once_for_each_host(scrapy: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(MIXED, scrapy, monkeypatch) == [("h1.example", 3), ("h2.example", 1)]


def test_a_filter_that_asks_what_is_known_sees_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    again = [f"{PAGE}a", f"{PAGE}a", f"{PAGE}b"]
    assert told(again, {"UBI_FILTERS": ["visited"]}, monkeypatch) == [("h1.example", 1)] * 2


def test_links_of_a_host_are_queued_in_the_order_of_the_page_however_they_are_written() -> None:
    async def run() -> list[str]:
        world = World()
        world.take_plain(PlainLinks([f"{PAGE}1", "HTTP://h1.example/2", f"{PAGE}3", f"{PAGE}%7e4", f"{PAGE}5"]))
        assert world.page is not None
        return [entry.url[-1] for _, entry in world.page.outlinks]

    assert asyncio.run(run()) == ["1", "2", "3", "4", "5"]


def test_links_that_are_known_cost_no_entry_and_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        world = World()
        world.take_plain(PlainLinks(USUAL))
        for name in ("entry", "entries", "request"):
            monkeypatch.setattr(BulkEnqueue, name, None)
        world.take_plain(PlainLinks(USUAL))

    asyncio.run(run())
