"""Whole crawls with plain links, and the same crawls with requests: the same pages, depths, callbacks, counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, ClassVar

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.http import Response
from scrapy.link import Link
from scrapy.spiders import CrawlSpider, Rule

from scrapy_ubi import LinkExtractor, PlainLinks, UbiCrawlSpider, UbiSpider
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from tests.support.crawls import Outcome, crawl, items_of, total
from tests.support.site import HANG_UP, Page, Site, links
from tests.support.versions import since

HOSTS = [f"http://h{number}.example" for number in range(6)]
AGENTS = pytest.mark.parametrize("agents", [1, 3])
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "INFO"}
PLAIN = {"ADDONS": {}}

# What both ways count alike, besides all of ubi/filtered, ubi/joined and the like.
SAME = (
    "request_depth",
    "depth/",
    "urllength/",
    "offsite/",
    "ubi/filtered",
    "ubi/joined",
    "ubi/limits",
)
SAME_COUNTS = ("ubi/scheduler/enqueued", "ubi/scheduler/duplicates", "ubi/unique", "ubi/pages", "item_scraped_count")


@pytest.fixture
def site() -> Iterator[Site]:
    """Six hosts in a ring, each with pages in several spellings, and links that are odd."""
    with Site() as running:
        for number, host in enumerate(HOSTS):
            following = HOSTS[(number + 1) % len(HOSTS)]
            pages = [f"{host}/", f"{host}/a", f"{host}/b/index.html", f"{host}/c?y=1&x=2"]
            odd = [f"{host}/a#part", "/b/./index.html", f"{host}/b/", "http://[::1", "mailto:a@b", "http://nowhere/%zz"]
            for page in pages:
                running.page(
                    page, links(*pages, *odd, f"{following}/", f"{following}/{'long' * 20}"), content_type="text/html"
                )
            running.page(f"{host}/b/", "the same, by another name")
        yield running


class Wander(UbiSpider):
    """Follows all links, as plain links or as requests."""

    name = "wander"
    start_urls = (f"{HOSTS[0]}/",)
    plain = False

    def follow(self, response: Response, **more: Any) -> Iterable[Any]:
        found = self.links(response, **more)
        if self.plain:
            return [found]
        return [request for request in found.requests(self) if request is not None]

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.told(response)
        yield from self.follow(response, callback="section", cb_kwargs={"by": ("parse", 1)}, meta={"tags": {"a"}})

    def section(self, response: Response, by: tuple[str, int]) -> Iterator[Any]:
        yield {**self.told(response), "by": by, "tags": response.meta["tags"]}
        if response.url.endswith("/a"):
            yield Request(f"{response.urljoin('/')}?again", self.again, dont_filter=True, cb_kwargs={"left": 1})
        more = {"callback": self.section, "cb_kwargs": {"by": ("section", 2)}, "meta": response.meta, "priority": 1}
        yield from self.follow(response, **more)

    def again(self, response: Response, left: int) -> Iterator[Any]:
        yield {"again": response.url, "left": left}
        if left:
            yield response.request.replace(cb_kwargs={"left": 0})  # type: ignore[union-attr]

    def told(self, response: Response) -> dict[str, Any]:
        assert response.request is not None
        return {"url": response.url, "depth": response.meta["depth"], "priority": response.request.priority}


class Plain(Wander):
    plain = True


def counts(outcomes: list[Outcome]) -> dict[str, Any]:
    stats = {name: value for name, value in outcomes[0].stats.items() if name.startswith(SAME)}
    return stats | {name: total(outcomes, name) for name in SAME_COUNTS}


SETTINGS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"DEPTH_LIMIT": 2, "DEPTH_STATS_VERBOSE": True, "URLLENGTH_LIMIT": 60}, ["h0.example", "h1.example"]),
    ({"DEPTH_PRIORITY": -1, "UBI_NORMALISE": "larm +query-order"}, []),
    (
        {
            "UBI_FILTERS": ["scope(hosts=h0.example, hosts=h2.example); extensions(-html)", "visited"],
            "UBI_HOST_LIMITS": "known=3",
        },
        [],
    ),
]


@since(2, 18)  # `depth/request_ignored_count`
@pytest.mark.parametrize(("settings", "domains"), SETTINGS, ids=str)
def test_one_agent_crawls_alike_by_plain_links_and_by_requests(
    site: Site, settings: dict[str, Any], domains: list[str]
) -> None:
    requests = crawl(Wander, site.proxy, settings=ONE_BY_ONE | settings, allowed_domains=domains)
    asked, site.visits = site.urls(), []
    plain = crawl(Plain, site.proxy, settings=ONE_BY_ONE | settings, allowed_domains=domains)
    assert site.urls() == asked
    assert items_of(plain) == items_of(requests)
    assert counts(plain) == counts(requests)
    assert plain[0].stats["ubi/plain_links/taken"] > len(asked)
    assert "ubi/plain_links/expanded" not in plain[0].stats


def test_three_agents_fetch_what_one_does_by_requests(site: Site) -> None:
    requests = crawl(Wander, site.proxy)
    asked, site.visits = site.urls(), []
    plain = crawl(Plain, site.proxy, 3)
    assert site.urls() == asked
    assert {item.get("url") for item in items_of(plain)} == {item.get("url") for item in items_of(requests)}
    assert total(plain, "ubi/forwarded") > 0
    assert all(outcome.reason == "finished" for outcome in plain)


@AGENTS
def test_pages_are_sent_no_referer_unless_asked_for(site: Site, agents: int) -> None:
    class Polite(UbiSpider):
        name = "polite"
        start_urls = (f"{HOSTS[0]}/",)

        def parse(self, response: Response, referer: bool = False) -> Iterator[Any]:
            yield self.links(response, referer=referer, cb_kwargs={"referer": not referer})

    crawl(Polite, site.proxy, agents, settings={"DEPTH_LIMIT": 2})
    said = {visit.url: visit.headers.get("referer") for visit in site.visits}
    assert said[f"{HOSTS[0]}/a"] is None and said[f"{HOSTS[2]}/"] == f"{HOSTS[1]}/"


class Rules(CrawlSpider):
    name = "rules"
    start_urls = (f"{HOSTS[0]}/",)
    rules = (
        Rule(LinkExtractor(allow="/$"), callback="front", cb_kwargs={"by": 1}, follow=True, process_links="most"),
        Rule(LinkExtractor(allow="/a$"), callback="found", process_request="marked"),
        Rule(LinkExtractor(allow="index"), errback="lost", follow=False),
        Rule(LinkExtractor(allow="long"), callback="found", errback="lost"),
    )

    def most(self, found: list[Link]) -> Iterator[Link]:
        return (link for link in found if not link.url.startswith(HOSTS[4]))

    def marked(self, request: Request, response: Response) -> Request:
        return request.replace(meta={**request.meta, "marked": response.url})

    def front(self, response: Response, by: int) -> Iterator[Any]:
        yield {"front": response.url, "by": by, **self.told(response.meta)}

    def found(self, response: Response) -> Iterator[Any]:
        yield {"found": response.url, **self.told(response.meta)}

    def lost(self, failure: Any) -> Iterator[Any]:
        yield {"lost": failure.request.url, **self.told(failure.request.meta)}

    def told(self, meta: dict[str, Any]) -> dict[str, Any]:
        return {name: meta.get(name) for name in ("rule", "link_text", "depth", "marked")}


class PlainRules(UbiCrawlSpider, Rules):
    pass


class OwnRequests(PlainRules):
    def _build_request(self, rule_index: int, link: Link) -> Request:
        return super()._build_request(rule_index, link).replace(headers={"X-Own": "1"})


@pytest.mark.parametrize("settings", [{}, PLAIN], ids=["with the add-on", "without"])
def test_rules_come_to_the_same_by_plain_links(site: Site, settings: dict[str, Any]) -> None:
    rules = crawl(Rules, site.proxy, settings=ONE_BY_ONE | settings)
    asked, site.visits = site.urls(), []
    plain = crawl(PlainRules, site.proxy, settings=ONE_BY_ONE | settings)
    assert site.urls() == asked
    assert items_of(plain) == items_of(rules)
    assert ("ubi/plain_links/taken" in plain[0].stats) is not bool(settings)


class OddTexts(PlainRules):
    """Its `process_links` puts something else than text in the links' texts."""

    rules = (Rule(LinkExtractor(allow="/$"), callback="found", process_links="told_apart"),)

    def told_apart(self, found: list[Link]) -> list[Link]:
        for link in found:
            link.text = (link.text, object)  # type: ignore[assignment]
        return found


def test_texts_of_links_that_cannot_travel_are_there_where_they_are_fetched_and_named(site: Site) -> None:
    outcomes = crawl(OddTexts, site.proxy, settings={"LOG_LEVEL": "INFO"})
    assert items_of(outcomes) and all(item["link_text"][1] is object for item in items_of(outcomes))
    assert outcomes[0].stats["ubi/codec/untravelled/meta/type"] > 0


def test_a_crawl_spider_that_builds_its_requests_makes_them(site: Site) -> None:
    outcomes = crawl(OwnRequests, site.proxy)
    assert {visit.headers.get("x-own") for visit in site.visits if visit.url != f"{HOSTS[0]}/"} == {"1"}
    assert "ubi/plain_links/taken" not in outcomes[0].stats


class Counting:
    """A spider middleware of the user's that wants to see every request."""

    seen: ClassVar[list[str]] = []

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for found in result:
            self.seen.append(type(found).__name__)
            yield found

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        raise AssertionError("the other one is called")


def test_a_spider_middleware_of_the_users_sees_requests(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    requests = crawl(Wander, site.proxy, settings=ONE_BY_ONE)
    Counting.seen.clear()
    with caplog.at_level("INFO", "scrapy_ubi"):
        plain = crawl(Plain, site.proxy, settings=ONE_BY_ONE | {"SPIDER_MIDDLEWARES": {Counting: 500}})
    assert set(Counting.seen) == {"dict", "Request"}
    assert items_of(plain) == items_of(requests)
    assert plain[0].stats["ubi/plain_links/expanded"] > 0 and "ubi/plain_links/taken" not in plain[0].stats
    sentence = "Plain links become ordinary requests: the spider middleware tests.crawls.test_plain_crawls."
    assert caplog.text.count(sentence) == 1


def test_who_listens_to_the_signals_of_requests_hears_of_all(site: Site) -> None:
    heard: list[str] = []

    def connect(crawlers: list[Crawler]) -> None:
        def scheduled(request: Request) -> None:
            heard.append(request.url)

        crawlers[0].signals.connect(scheduled, signals.request_scheduled, weak=False)

    requests = crawl(Wander, site.proxy, settings=ONE_BY_ONE)
    plain = crawl(Plain, site.proxy, settings=ONE_BY_ONE, with_crawlers=connect)
    assert items_of(plain) == items_of(requests)
    assert {f"{HOSTS[0]}/a", f"{HOSTS[5]}/a"} <= set(heard)
    assert plain[0].stats["ubi/plain_links/expanded"] > 0


class OwnScheduler(UbiScheduler):
    def enqueue_request(self, request: Request) -> bool:
        return super().enqueue_request(request)


class OwnOffsite(OffsiteMiddleware):
    """Of the user's."""


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, "DUPEFILTER_CLASS lets every request be fetched"),
        ({"SCHEDULER": OwnScheduler}, "OwnScheduler has an enqueue_request of its own"),
        ({"DOWNLOADER_MIDDLEWARES": {OffsiteMiddleware: None, OwnOffsite: 50}}, "the downloader middleware OwnOffsite"),
    ],
    ids=["DUPEFILTER_CLASS", "SCHEDULER", "OffsiteMiddleware"],
)
def test_what_is_the_users_own_sees_requests(
    site: Site, settings: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "scrapy_ubi"):
        outcomes = crawl(Plain, site.proxy, settings={"DEPTH_LIMIT": 1, **settings})
    assert f"Plain links become ordinary requests: {why}. " in caplog.text
    assert outcomes[0].stats["ubi/plain_links/expanded"] > 0 and f"{HOSTS[1]}/" in site.urls()


def test_without_the_add_on_the_spider_crawls_as_usual(site: Site) -> None:
    outcomes = crawl(Plain, site.proxy, settings=ONE_BY_ONE | PLAIN)
    asked, site.visits = site.urls(), []
    requests = crawl(Wander, site.proxy, settings=ONE_BY_ONE | PLAIN)
    assert site.urls() == asked and items_of(outcomes) == items_of(requests)
    assert outcomes[0].reason == "finished"


class Seeds(UbiSpider):
    """Plain links from start(), and from an errback after a load that has failed."""

    name = "seeds"

    async def start(self) -> AsyncIterator[Any]:
        yield PlainLinks([f"{HOSTS[0]}/broken", f"{HOSTS[1]}/a", "no URL"], callback="found", errback="lost")

    def found(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}

    def lost(self, failure: Any) -> Iterator[Any]:
        yield {"lost": failure.request.url}
        yield PlainLinks([f"{HOSTS[2]}/a"], callback=self.found)


@AGENTS
@pytest.mark.parametrize("settings", [{}, PLAIN, {"SPIDER_MIDDLEWARES": {Counting: 500}}], ids=["", "plain", "own"])
def test_start_and_errbacks_may_yield_them(site: Site, agents: int, settings: dict[str, Any]) -> None:
    if agents > 1 and settings == PLAIN:
        pytest.skip("there are no agents without the add-on")
    site.page(f"{HOSTS[0]}/broken", Page(status=HANG_UP))
    outcomes = crawl(Seeds, site.proxy, agents, settings={"RETRY_ENABLED": False, **settings})
    assert items_of(outcomes) == [{"lost": f"{HOSTS[0]}/broken"}, {"url": f"{HOSTS[1]}/a"}, {"url": f"{HOSTS[2]}/a"}]
    assert all(outcome.reason == "finished" for outcome in outcomes)


class Resetting(Wander):
    """What its first page leads to begins anew at depth 0; what that leads to counts from there."""

    def parse(self, response: Response) -> Any:
        depth = response.meta.get("depth")  # not in a generator: Scrapy has not added what is missing yet
        anew = {"depth_reset": True} if response.url == f"{HOSTS[0]}/" else {}
        return [{"url": response.url, "depth": depth}, *self.follow(response, meta=anew)]


class PlainResetting(Resetting):
    plain = True


@since(2, 18)  # `depth_reset`
@pytest.mark.parametrize("spider", [Resetting, PlainResetting])
def test_a_depth_may_begin_anew_as_in_plain_scrapy(site: Site, spider: type[Wander]) -> None:
    site.page(f"{HOSTS[0]}/", links(f"{HOSTS[1]}/deep", f"{HOSTS[2]}/deep"))
    site.page(f"{HOSTS[1]}/deep", links(f"{HOSTS[3]}/deep"))
    settings = {"DEPTH_STATS_VERBOSE": True}
    expected, ours = (
        crawl(Resetting, site.proxy, settings=settings | PLAIN),
        crawl(spider, site.proxy, settings=settings),
    )
    assert items_of(ours) == items_of(expected)
    assert counts(ours)["request_depth_count/0"] == counts(expected)["request_depth_count/0"] == 3


class Recovering:
    """A spider middleware that yields links in place of an error; they have not come by Scrapy's DepthMiddleware."""

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Any]:
        if response.url != f"{HOSTS[0]}/":
            return []
        meta = {"listener": print} if response.meta.get("odd") else {}
        return [PlainLinks([f"{HOSTS[1]}/", f"{HOSTS[2]}/"], "told", meta=meta), {"instead": type(exception).__name__}]


class Failing(Wander):
    """Fails on its first page; links in its place may have something in common, or something that cannot travel."""

    more: ClassVar[dict[str, Any]] = {}

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOSTS[0]}/", meta=self.more)

    def parse(self, response: Response) -> Iterator[Any]:
        raise RuntimeError

    def told(self, response: Response) -> Any:
        return [super().told(response)]


@pytest.mark.parametrize("more", [{}, {"odd": True}], ids=["", "odd"])
def test_a_spider_middleware_may_yield_them_in_place_of_an_error(site: Site, more: dict[str, Any]) -> None:
    [outcome] = crawl(Failing, site.proxy, settings={"SPIDER_MIDDLEWARES": {Recovering: 543}}, more=more)
    pages = [{"url": f"{host}/", "depth": 1, "priority": 0} for host in HOSTS[1:3]]
    assert items_of([outcome]) == [{"instead": "RuntimeError"}, *pages]
    assert "spider_exceptions/KeyError" not in outcome.stats


class Wrong(UbiSpider):
    """Says callbacks that are none."""

    name = "wrong"
    start_urls = (f"{HOSTS[0]}/", f"{HOSTS[1]}/", f"{HOSTS[2]}/")

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url.startswith(HOSTS[0]):
            yield self.links(response, callback="missing")
        elif response.url.startswith(HOSTS[1]):
            yield PlainLinks([f"{HOSTS[3]}/"], errback=lambda failure: None)
        else:
            yield PlainLinks([f"{HOSTS[3]}/a"], meta={"no JSON": object()})
        yield {"after": response.url}


def test_what_cannot_be_a_callback_is_an_error_that_names_it(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    outcomes = crawl(Wrong, site.proxy)
    assert "PlainLinks: callback is 'missing', which is no method of Wrong" in caplog.text
    assert f"its errback Wrong.parse.<locals>.<lambda> at {__file__}:" in caplog.text
    assert "(no method of the spider) cannot travel" in caplog.text
    assert outcomes[0].stats["spider_exceptions/ValueError"] == 2
    # meta that cannot travel goes the ordinary way, as one agent can do with it
    assert outcomes[0].stats["ubi/plain_links/expanded"] >= 1 and f"{HOSTS[3]}/a" in site.urls()


def test_a_page_without_end_lets_others_have_their_turn(site: Site) -> None:
    """And its links are all taken before the page is done."""
    many = [f"{HOSTS[0]}/{number}" for number in range(2_500)]

    class Many(UbiSpider):
        name = "many"
        start_urls = (f"{HOSTS[0]}/",)

        def parse(self, response: Response) -> Iterator[Any]:
            if response.url == f"{HOSTS[0]}/":
                yield PlainLinks(many)

    outcomes = crawl(Many, site.proxy, settings={"UBI_HOST_LIMITS": "pages=3", "LOG_LEVEL": "INFO"})
    assert outcomes[0].stats["ubi/scheduler/enqueued"] == 2_501
    assert outcomes[0].reason == "finished"
