"""Ordinary spiders, whole crawls: what a Scrapy user knows behaves the same, with one agent and with several."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import FormRequest, JsonRequest, Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_ubi.components.spider_middleware import PAUSE_EVERY
from tests.support.crawls import FAST, LIMIT, crawl, items_of, total
from tests.support.site import Held, Page, Site, Visit, links
from tests.support.versions import since

HOSTS = [f"http://h{number}.example" for number in range(8)]
AGENTS = pytest.mark.parametrize("agents", [1, 3])


class Walk(Spider):
    """Follows every link, yields an item a page."""

    name = "walk"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url, "depth": response.meta.get("depth", 0)}
        for link in LinkExtractor().extract_links(response):
            yield Request(link.url)


def ring(site: Site) -> set[str]:
    """Eight hosts of three pages, each linking to its own pages and to the next host."""
    urls = set()
    for number, host in enumerate(HOSTS):
        following = HOSTS[(number + 1) % len(HOSTS)]
        pages = [f"{host}/", f"{host}/a", f"{host}/b"]
        for page in pages:
            site.page(page, links(*pages, f"{following}/"))
        urls.update(pages)
    return urls


@AGENTS
def test_every_page_is_fetched_once_and_the_crawl_ends_by_itself(site: Site, agents: int) -> None:
    urls = ring(site)
    outcomes = crawl(Walk, site.proxy, agents)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert len(items_of(outcomes)) == len(urls)
    # A link to the seed is a request that is done, too, where its finder had not heard that the seed is known.
    assert total(outcomes, "ubi/unique") - len(urls) in (0, 1)
    assert max(site.most_at_once.values()) == 1


class Heard(Walk):
    """The same with a listener, which has to hear of every request."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Heard:
        self = super().from_crawler(crawler, *args, **kwargs)
        self.heard = Counter[str]()
        crawler.signals.connect(self.scheduled, signals.request_scheduled)
        crawler.signals.connect(self.dropped, signals.request_dropped)
        crawler.signals.connect(self.told, signals.spider_closed)
        return self

    def scheduled(self, request: Request) -> None:
        self.heard["scheduled"] += 1

    def dropped(self, request: Request) -> None:
        self.heard["dropped"] += 1

    def told(self) -> None:
        for name, number in self.heard.items():
            self.crawler.stats.set_value(f"heard/{name}", number)


def test_stats_are_the_same_whether_somebody_hears_of_every_request_or_nobody(site: Site) -> None:
    ring(site)
    [unheard], [heard] = crawl(Walk, site.proxy, 1), crawl(Heard, site.proxy, 1)
    names = ("ubi/scheduler/duplicates", "ubi/scheduler/enqueued", "ubi/unique", "ubi/done")
    assert [unheard.stats.get(name) for name in names] == [heard.stats.get(name) for name in names]
    assert heard.stats["heard/dropped"] == heard.stats["ubi/scheduler/duplicates"]
    assert heard.stats["heard/scheduled"] == len(HOSTS) * 3 * 4 + 1


class HeardLate(Walk):
    """The same with a listener that is connected by the first callback."""

    def parse(self, response: Response) -> Iterator[Any]:
        if response.url == self.start_urls[0]:
            self.dropped = list[str]()
            self.crawler.signals.connect(self.drop, signals.request_dropped)
            yield from (Request(f"{HOSTS[0]}/a") for _ in range(2))

    def drop(self, request: Request) -> None:
        self.dropped.append(request.url)


def test_who_listens_from_a_callback_on_hears_of_its_own_links(site: Site) -> None:
    site.page(f"{HOSTS[0]}/")
    site.page(f"{HOSTS[0]}/a")
    [outcome] = crawl(HeardLate, site.proxy)
    assert outcome.crawler.spider.dropped == [f"{HOSTS[0]}/a"]  # type: ignore[union-attr]


def test_depths_are_those_of_one_agent(site: Site) -> None:
    ring(site)
    assert items_of(crawl(Walk, site.proxy, 3)) == items_of(crawl(Walk, site.proxy, 1))


PLAIN = {"ADDONS": {}}


class Everything(Spider):
    """What ordinary spiders do, all of it at once. Each feature has a method; each reports by items."""

    name = "everything"
    handle_httpstatus_list = (418,)

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOSTS[0]}/", callback=self.index, cb_kwargs={"level": (1, 2)}, meta={"tags": {"a", "b"}})
        yield Request(f"{HOSTS[1]}/moved", callback=self.arrived, dont_filter=True, meta={"from": "start"})
        yield Request("data:,hello%20local", callback=self.local)

    def local(self, response: Response) -> Iterator[Any]:
        yield {"local": response.body.decode()}
        yield Request(f"{HOSTS[7]}/from-local", self.arrived)

    def index(self, response: Response, level: tuple[int, int]) -> Iterator[Any]:
        yield {"index": level, "tags": sorted(response.meta["tags"])}
        yield FormRequest(f"{HOSTS[2]}/form", formdata={"name": "ü"}, callback=self.echoed)
        yield FormRequest(f"{HOSTS[2]}/form", formdata={"name": "other"}, callback=self.echoed)
        yield JsonRequest(f"{HOSTS[3]}/json", data={"a": [1]}, callback=self.echoed, headers={"X-Kind": "json"})
        yield Request(f"{HOSTS[4]}/missing", self.echoed, errback=self.failed, cb_kwargs={"n": 1}, meta={"n": 1})
        yield Request(f"{HOSTS[4]}/teapot", self.arrived)
        yield Request(f"{HOSTS[5]}/flaky", self.arrived, errback=self.failed)
        yield Request(f"{HOSTS[5]}/broken", self.arrived, errback=self.failed, meta={"n": 2})
        yield Request(f"{HOSTS[6]}/login", self.logged_in, cookies={"ask": "1"})
        yield Request(f"{HOSTS[6]}/dance", self.arrived, dont_filter=True)
        yield Request(f"{HOSTS[7]}/poll", self.polled, dont_filter=True, cb_kwargs={"left": 3})
        yield Request(f"{HOSTS[7]}/raises", self.raises)
        yield Request(f"{HOSTS[7]}/private", self.arrived, errback=self.failed, meta={"ignore": True})
        yield Request(f"{HOSTS[0]}/async", self.slow, priority=10)
        yield from response.follow_all(["/x", "/x", "/y#1", "/y#2"], self.arrived)  # type: ignore[attr-defined]

    def echoed(self, response: Response, n: int = 0) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"echo": response.text, "n": n}

    def failed(self, failure: Any) -> Iterator[Any]:
        request = failure.request
        yield {"failed": request.url, "error": type(failure.value).__name__, "n": request.meta.get("n")}
        if request.meta.get("n") == 1:
            yield Request(f"{HOSTS[1]}/after-failure", self.arrived)

    def arrived(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        meta = response.meta
        yield {
            "arrived": response.url,
            "text": response.text,
            "from": meta.get("from"),
            "times": (meta.get("redirect_times"), meta.get("retry_times")),
            "by": meta.get("redirect_urls"),
        }

    def logged_in(self, response: Response) -> Iterator[Any]:
        yield Request(f"{HOSTS[6]}/account", self.echoed)

    def polled(self, response: Response, left: int) -> Iterator[Any]:
        yield {"poll": left}
        if left > 1:
            yield response.request.replace(cb_kwargs={"left": left - 1})  # type: ignore[union-attr]

    def raises(self, response: Response) -> Iterator[Any]:
        yield {"before": "the error"}
        yield Request(f"{HOSTS[1]}/before-error", self.arrived)
        raise RuntimeError("a spider's bug")

    async def slow(self, response: Response) -> AsyncIterator[Any]:
        yield {"slow": 1}
        second = await self.crawler.engine.download_async(Request(f"{HOSTS[0]}/inline"))
        yield {"slow": second.body.decode()}
        yield Request(f"{HOSTS[3]}/after-slow", self.arrived)


class Ignoring:
    """A downloader middleware that ignores what is marked so."""

    def process_request(self, request: Request) -> None:
        if request.meta.get("ignore"):
            raise scrapy.exceptions.IgnoreRequest("not this one")


def everything(site: Site) -> None:
    def echo(visit: Visit) -> Page:
        return Page(f"{visit.method} {visit.body.decode()} {visit.headers.get('x-kind')}")

    def login(visit: Visit) -> Page:
        """The jar may hold cookies of the other pages of this host, by what was fetched before."""
        return Page("", headers={"Set-Cookie": f"who={'asked' if 'ask=1' in visit.headers['cookie'] else 'nobody'}"})

    def dance(visit: Visit) -> Page:
        if "step=2" in visit.headers.get("cookie", ""):
            return Page("danced")
        return Page("", 302, {"Location": f"{HOSTS[6]}/step", "Set-Cookie": "step=1"})

    site.page(f"{HOSTS[0]}/", "index")
    site.redirect(f"{HOSTS[1]}/moved", f"{HOSTS[2]}/moved-again", 301)
    site.redirect(f"{HOSTS[2]}/moved-again", f"{HOSTS[3]}/here")
    site.page(f"{HOSTS[3]}/here", "at last")
    for url in (f"{HOSTS[2]}/form", f"{HOSTS[3]}/json"):
        site.page(url, echo)
    site.page(f"{HOSTS[4]}/teapot", Page("short and stout", 418))
    site.page(f"{HOSTS[5]}/flaky", lambda visit: Page("well", 200 if visit.number == 2 else 503))
    site.page(f"{HOSTS[5]}/broken", Page("never", 500))
    site.page(f"{HOSTS[6]}/login", login)
    site.page(f"{HOSTS[6]}/account", lambda visit: Page(visit.headers.get("cookie", "").partition("who=")[2][:5]))
    site.page(f"{HOSTS[6]}/dance", dance)
    site.page(f"{HOSTS[6]}/step", Page("", 302, {"Location": f"{HOSTS[6]}/dance", "Set-Cookie": "step=2"}))
    for path in ("4/x", "0/x", "0/y", "0/async", "0/inline", "7/poll", "7/raises", "1/before-error", "1/after-failure"):
        number, _, rest = path.partition("/")
        site.page(f"{HOSTS[int(number)]}/{rest}", f"this is {rest}")
    site.page(f"{HOSTS[3]}/after-slow", "after slow")
    site.page(f"{HOSTS[7]}/from-local", "from local")


EVERYTHING = {
    "DOWNLOADER_MIDDLEWARES": {Ignoring: 10},
    "UBI_FOREIGN_DOWNLOADS": "allow",
}


@pytest.mark.parametrize(("lean", "fast"), [(True, False), (False, False), (True, True)], ids=["", "not lean", "fast"])
def test_every_feature_behaves_as_in_plain_scrapy(site: Site, lean: bool, fast: bool) -> None:
    everything(site)
    plain = crawl(Everything, site.proxy, settings=EVERYTHING | PLAIN)
    asked, site.visits = site.urls(), []
    outcomes = crawl(Everything, site.proxy, settings=EVERYTHING | {"UBI_LEAN": lean, "UBI_FAST": fast})
    if fast:  # a response's URL has no fragment with Twisted's handler and ours; with httpx, which is used here, it has
        for item in plain[0].items:
            item.update({name: value.partition("#")[0] for name, value in item.items() if name == "arrived"})
    assert items_of(outcomes) == items_of(plain)
    assert site.urls() == asked
    assert outcomes[0].stats["spider_exceptions/count"] == 1
    assert outcomes[0].reason == plain[0].reason == "finished"


def test_every_feature_behaves_alike_with_three_agents(site: Site) -> None:
    everything(site)
    one = crawl(Everything, site.proxy, settings=EVERYTHING)
    asked, site.visits = site.urls(), []
    three = crawl(Everything, site.proxy, 3, settings=EVERYTHING)
    # Every agent's start() yields the local request: it belongs to no host, so each fetches its own.
    local = {"local": "hello local"}
    assert [item for item in items_of(three) if item != local] == [item for item in items_of(one) if item != local]
    assert site.urls() == asked
    assert total(three, "ubi/forwarded") > 0
    failed = {"http/404": 1, "http/500": 1, "callback/RuntimeError": 1, "ignored/IgnoreRequest": 1}
    for outcomes in (one, three):
        assert {reason: total(outcomes, f"ubi/failed/{reason}") for reason in failed} == failed


class Rules(CrawlSpider):
    name = "rules"
    start_urls = (f"{HOSTS[0]}/",)
    rules = (Rule(LinkExtractor(), callback="found", cb_kwargs={"by": "rule"}, follow=True, errback="lost"),)

    def found(self, response: Response, by: str) -> Iterator[Any]:
        yield {"url": response.url, "by": by, "text": response.meta["link_text"], "rule": response.meta["rule"]}

    def lost(self, failure: Any) -> Iterator[Any]:
        yield {"lost": failure.request.url}


@AGENTS
def test_a_crawl_spider_follows_its_rules(site: Site, agents: int) -> None:
    urls = ring(site)
    site.page(f"{HOSTS[3]}/", links(*urls, f"{HOSTS[3]}/gone"))
    plain = crawl(Rules, site.proxy, settings=PLAIN)
    found = Counter(item["url"] for item in items_of(plain) if "url" in item)
    asked, site.visits = site.urls(), []
    outcomes = crawl(Rules, site.proxy, agents)
    assert Counter(item["url"] for item in items_of(outcomes) if "url" in item) == found
    assert [item for item in items_of(outcomes) if "lost" in item] == [{"lost": f"{HOSTS[3]}/gone"}]
    # A start URL that is linked is fetched twice: it came unfiltered, and the rule has a callback of its own.
    assert site.urls() == asked and asked[f"{HOSTS[0]}/"] == 2


class Floods(Walk):
    """Far more seeds than may wait to be sent, while Redis is away for a moment. `most` did."""

    most = 0

    async def start(self) -> AsyncIterator[Any]:
        hub, node = self.settings["TEST_HUB"], self.crawler.engine._slot.scheduler.node  # type: ignore[union-attr]
        hub.down = True
        asyncio.get_running_loop().call_later(0.5, setattr, hub, "down", False)
        for number in range(1000):
            yield Request(f"{HOSTS[number % 8]}/{number}")
            Floods.most = max(Floods.most, len(node.agent.outbox))


def test_seeds_wait_while_too_many_are_to_be_sent(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Floods, "most", 0)
    crawl(Floods, site.proxy, 3, {"UBI_OUTBOX_RECORDS": 100, "HTTPERROR_ALLOW_ALL": True})
    assert site.urls() == {f"{HOSTS[number % 8]}/{number}": 1 for number in range(1000)}
    assert Floods.most <= 100 + 2 * PAUSE_EVERY  # each may be told to its owner and a successor


class BitByBit(Walk):
    """Feeds itself as many seeds as the scheduler has room for."""

    async def start(self) -> AsyncIterator[Any]:
        scheduler: Any = self.crawler.engine._slot.scheduler  # type: ignore[union-attr]
        for number in range(100):
            while len(scheduler) >= 5:
                await asyncio.sleep(0)
            yield Request(f"{HOSTS[number % 8]}/{number}")


@AGENTS
def test_a_spider_may_ask_how_many_requests_wait(site: Site, agents: int) -> None:
    crawl(BitByBit, site.proxy, agents, {"HTTPERROR_ALLOW_ALL": True})
    assert site.urls() == {f"{HOSTS[number % 8]}/{number}": 1 for number in range(100)}


class Seeds(Spider):
    """Seeds to be fetched anyway, twice each, one of them through a redirect that sets a cookie and returns."""

    name = "seeds"

    async def start(self) -> AsyncIterator[Any]:
        for _ in range(2):
            for host in HOSTS:
                yield Request(f"{host}/", dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "start": response.meta["is_start_request"]}


@AGENTS
def test_seeds_are_taken_once_also_unfiltered_and_through_redirects(site: Site, agents: int) -> None:
    for host in HOSTS:
        site.page(f"{host}/", host)
    site.redirect(f"{HOSTS[1]}/", f"{HOSTS[2]}/")
    site.redirect(f"{HOSTS[3]}/", f"{HOSTS[3]}/enter")
    site.redirect(f"{HOSTS[3]}/enter", f"{HOSTS[3]}/")
    site.page(
        f"{HOSTS[3]}/",
        lambda visit: Page("in") if visit.number > 1 else Page("", 302, {"Location": f"{HOSTS[3]}/enter"}),
    )
    outcomes = crawl(Seeds, site.proxy, agents)
    urls = [item["url"] for item in items_of(outcomes)]
    assert sorted(urls) == [f"{host}/" for host in HOSTS if host != HOSTS[1]]
    asked = site.urls()
    assert asked.pop(f"{HOSTS[3]}/") == 2
    assert set(asked.values()) == {1}
    assert all(item["start"] for item in items_of(outcomes))


class LogsIn(Spider):
    """Logs in once for each name, by a session of its own."""

    name = "logs-in"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOSTS[0]}/", dont_filter=True)
        for name in ("ann", "bob", 3):
            yield Request(f"{HOSTS[0]}/", dont_filter=True, meta={"cookiejar": name})
            yield Request(f"{HOSTS[1]}/", meta={"cookiejar": name})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "as": response.meta.get("cookiejar")}


@AGENTS
def test_a_seed_to_be_fetched_anyway_is_taken_once_for_each_cookiejar(site: Site, agents: int) -> None:
    for host in HOSTS[:2]:
        site.page(f"{host}/", host)
    items = items_of(crawl(LogsIn, site.proxy, agents))
    assert site.urls() == {f"{HOSTS[0]}/": 4, f"{HOSTS[1]}/": 1}
    assert {item["as"] for item in items if item["url"] == f"{HOSTS[0]}/"} == {None, "ann", "bob", 3}


class Pages(Spider):
    """Asks for one page after the other by requests that are made of the one before."""

    name = "pages"

    async def start(self) -> AsyncIterator[Any]:
        for host in HOSTS[:4]:
            yield JsonRequest(f"{host}/json", data={"page": 1}, callback=self.by_json)

    def by_json(self, response: Response) -> Iterator[Any]:
        request: Any = response.request
        page = json.loads(request.body)["page"]
        yield {"url": response.url, "page": page, "as": type(request).__name__}
        if page < 3:
            yield request.replace(data={"page": page + 1})
        else:
            yield FormRequest(f"{HOSTS[page]}/form", formdata={"of": response.url}, callback=self.by_form)

    def by_form(self, response: Response) -> Iterator[Any]:
        request: Any = response.request
        yield {"body": request.body.decode(), "as": type(request).__name__}
        if b"again" not in request.body:
            yield request.replace(formdata={"again": request.body.decode()})


def test_requests_for_json_and_forms_are_what_they_were_in_their_callbacks(site: Site) -> None:
    for host in HOSTS[:4]:
        site.page(f"{host}/json")
        site.page(f"{host}/form")
    plain = items_of(crawl(Pages, site.proxy, settings=PLAIN))
    assert len(plain) == 4 * 3 + 4 * 2
    for agents in (1, 3):
        assert items_of(crawl(Pages, site.proxy, agents)) == plain


class Important(Spider):
    """One host, so that the order is that of the frontier alone."""

    name = "important"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        for number in (1, 3, 2):
            yield Request(f"{HOSTS[0]}/{number}", self.page, priority=number)

    def page(self, response: Response) -> None:
        """Nothing."""


def test_requests_of_higher_priority_come_first(site: Site) -> None:
    for path in ("", "1", "2", "3"):
        site.page(f"{HOSTS[0]}/{path}")
    crawl(Important, site.proxy)
    assert [visit.url[-1] for visit in site.visits] == ["/", "3", "2", "1"]


class Lambdas(Spider):
    """Requests that cannot travel whole."""

    name = "lambdas"

    start_urls = (f"{HOSTS[0]}/start",)

    def parse(self, response: Response) -> Iterator[Any]:
        for host in HOSTS:
            yield Request(f"{host}/", callback=lambda response: [{"by": "lambda"}], meta={"spider": self})


def test_at_one_agent_nothing_of_a_request_is_lost(site: Site) -> None:
    for url in [f"{HOSTS[0]}/start", *(f"{host}/" for host in HOSTS)]:
        site.page(url)
    site.page(f"{HOSTS[0]}/", lambda visit: Page("", 503 if visit.number == 1 else 200))
    outcomes = crawl(Lambdas, site.proxy)
    assert items_of(outcomes) == [{"by": "lambda"}] * len(HOSTS)
    assert outcomes[0].stats["ubi/codec/untravelled/callback"] == len(HOSTS) + 1  # and the retry


def test_a_callback_that_could_not_travel_fails_the_page_and_calls_no_other(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for url in [f"{HOSTS[0]}/start", *(f"{host}/" for host in HOSTS)]:
        site.page(url)
    outcomes = crawl(Lambdas, site.proxy, 3)
    lost = total(outcomes, "ubi/failed/codec/callback")
    assert lost > 0 and len(items_of(outcomes)) == len(HOSTS) - lost == len(site.visits) - 1
    warnings = [record.getMessage() for record in caplog.records if "cannot travel" in record.getMessage()]
    assert len(warnings) == 2 and "meta['spider']" in warnings[0] and "its callback" in warnings[1]
    assert [outcome.reason for outcome in outcomes] == ["finished"] * 3


class Stops(Walk):
    name = "stops"

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        raise scrapy.exceptions.CloseSpider("enough")


OPEN = {"SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None}}


@pytest.mark.parametrize("settings", [OPEN, {"HTTPERROR_ALLOW_ALL": True}], ids=["switched off", "allowed"])
def test_an_error_status_that_callbacks_get_is_no_failure(site: Site, settings: dict[str, Any]) -> None:
    [outcome] = crawl(Seeds, site.proxy, settings=settings)
    assert [item["url"] for item in items_of([outcome])] == [f"{host}/" for host in HOSTS]  # all are 404
    assert not [stat for stat in outcome.stats if stat.startswith("ubi/failed")]


def test_a_spider_that_closes_itself_closes_with_its_reason(site: Site) -> None:
    ring(site)
    outcomes = crawl(Stops, site.proxy)
    assert outcomes[0].reason == "enough"
    assert len(outcomes[0].items) == len(site.visits) < 24


class Breaks(Spider):
    name = "breaks"

    async def start(self) -> AsyncIterator[Any]:
        yield {"from": "start"}
        yield Request(f"{HOSTS[0]}/")
        raise RuntimeError("start broke")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


@since(2, 18)
def test_items_of_start_arrive_and_a_start_that_breaks_ends_with_scrapys_reason(site: Site) -> None:
    site.page(f"{HOSTS[0]}/")
    outcomes = crawl(Breaks, site.proxy)
    assert items_of(outcomes) == [{"from": "start"}, {"url": f"{HOSTS[0]}/"}]
    assert outcomes[0].reason == "start_error"


def test_a_crawl_without_any_request_ends(site: Site) -> None:
    class Nothing(Spider):
        name = "nothing"

    assert [outcome.reason for outcome in crawl(Nothing, site.proxy, 2)] == ["finished", "finished"]


class Long(Spider):
    name = "long"
    start_urls = (f"{HOSTS[0]}/" + "x" * 5000, f"{HOSTS[0]}/", "http://h0.example:99999/")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_urls_that_are_too_long_or_broken_are_no_obstacle(site: Site) -> None:
    site.page(f"{HOSTS[0]}/")
    outcomes = crawl(Long, site.proxy, settings={"URLLENGTH_LIMIT": 0})
    assert items_of(outcomes) == [{"url": f"{HOSTS[0]}/"}]
    assert outcomes[0].stats["ubi/scheduler/dropped/url_too_long"] == 1


def test_filters_keep_a_crawl_in_its_scope_and_say_what_they_refused(site: Site, tmp_path: Path) -> None:
    home, away, page, trap = f"{HOSTS[0]}/", f"{HOSTS[1]}/", f"{HOSTS[0]}/page", f"{HOSTS[0]}/a/a/a"
    site.page(home, links(away, page, trap, f"{HOSTS[0]}/away"))
    site.page(page)
    site.redirect(f"{HOSTS[0]}/away", away)
    log = tmp_path / "refused.jsonl"
    settings = {"UBI_FILTERS": ["scope(stay=host, redirects=yes)", "traps"], "UBI_FILTER_LOG": str(log)}
    outcomes = crawl(Walk, site.proxy, settings=settings)
    assert [outcome.reason for outcome in outcomes] == ["finished"]
    assert sorted(item["url"] for item in items_of(outcomes)) == [home, page]
    assert not site.urls()[away] and not site.urls()[trap]
    assert outcomes[0].stats["ubi/filtered/scope"] == 2
    assert outcomes[0].stats["ubi/filtered/traps"] == 1
    refused = {(line["filter"], line["url"], line["page"]) for line in map(json.loads, log.read_text().splitlines())}
    assert refused == {("scope", away, home), ("traps", trap, home), ("scope", away, f"{HOSTS[0]}/away")}


@AGENTS
def test_a_calendar_of_query_parameters_ends(site: Site, agents: int) -> None:
    def month(visit: Visit) -> Page:
        year, number = map(int, re.findall(r"[ym]=(\d+)", visit.url) or (2000, 1))
        urls = [f"/cal?y={year + (number == 12)}&m={number % 12 + 1}", f"/cal?y={year + 1}&m={number}"]
        return Page(links(*urls, f"/day?y={year}&m={number}&d=1"))

    site.page(f"{HOSTS[0]}/", links("/cal?y=2000&m=1"))
    site.host(urlsplit(HOSTS[0]).netloc, month)
    outcomes = crawl(Walk, site.proxy, agents, {"UBI_FILTERS": "traps(combinations=20)", "ROBOTSTXT_OBEY": False})
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    kinds = Counter(urlsplit(url).path for url in site.urls())
    assert kinds["/cal"] <= agents * 20 + 1 and kinds["/day"] <= agents * 20
    assert total(outcomes, "ubi/filtered/traps") > 0


@AGENTS
def test_one_page_in_several_spellings_is_fetched_once_as_the_settings_say(site: Site, agents: int) -> None:
    home, other = HOSTS[0], HOSTS[1]
    site.page(f"{home}/", links(f"{home}//A.html", f"{home}/a.html", f"{other}/a.html", f"{home}/index.html"))
    for url in (f"{home}//A.html", f"{home}/a.html", f"{other}/a.html", f"{home}/index.html"):
        site.page(url, links(f"{home}/a.html?", f"{other}/A.html"))
    synonym = "synonym(h1.example) = h0.example"
    settings = {"UBI_NORMALISE": "larm", "UBI_HOST_RULES": [synonym]}
    outcomes = crawl(Walk, site.proxy, agents, settings=settings)
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    assert sum(site.urls().values()) == 2
    assert total(outcomes, "ubi/normalise/path-case") >= 1
    joined = {step: total(outcomes, f"ubi/joined/{step}") for step in ("path-case", "slashes", "index", "plus")}
    assert joined == {"path-case": 2, "slashes": 1, "index": 1, "plus": 0}


class Polite(Walk):
    name = "polite"


@AGENTS
def test_robots_txt_is_fetched_once_a_host_and_obeyed(site: Site, agents: int) -> None:
    urls = ring(site)
    for host in HOSTS:
        site.page(f"{host}/robots.txt", "User-agent: *\nDisallow: /b\n")
    outcomes = crawl(Polite, site.proxy, agents, {"ROBOTSTXT_OBEY": True})
    expected = dict.fromkeys([url for url in urls if not url.endswith("/b")], 1)
    assert site.urls() == expected | {f"{host}/robots.txt": 1 for host in HOSTS}
    assert total(outcomes, "ubi/failed/robots") == len(HOSTS)
    assert max(site.most_at_once.values()) == 1


class Fenced(Spider):
    """Its agent loses the right to its hosts while a page is under way, for a moment."""

    name = "fenced"
    loop: asyncio.AbstractEventLoop

    async def start(self) -> AsyncIterator[Any]:
        Fenced.loop = asyncio.get_running_loop()
        yield Request(f"{HOSTS[0]}/", errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "retries": response.meta.get("retry_times")}

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": repr(failure.value)}


def test_a_page_whose_transfer_is_cancelled_is_fetched_again_and_nobody_is_told(site: Site) -> None:
    crawlers: list[Crawler] = []
    second = Held()

    def cancelled_at_first(visit: Visit) -> Page:
        if visit.number > 1:
            second.release()
            return Page("there")
        Fenced.loop.call_soon_threadsafe(lambda: crawlers[0].engine._slot.scheduler.gate.cancel())  # type: ignore[union-attr]
        second.wait()
        return Page("too late")

    site.page(f"{HOSTS[0]}/", cancelled_at_first)
    outcome = crawl(Fenced, site.proxy, with_crawlers=crawlers.extend)[0]
    assert outcome.items == [{"url": f"{HOSTS[0]}/", "retries": None}]
    assert (outcome.stats["ubi/guard/cancelled"], outcome.stats["ubi/scheduler/put_back"]) == (1, 1)
    assert (outcome.stats["ubi/pages"], outcome.stats["ubi/done"], len(site.visits)) == (1, 1, 2)
    assert "retry/count" not in outcome.stats


class Files(Spider):
    """Every page has a file on the next host, which bypasses the scheduler."""

    name = "files"

    async def start(self) -> AsyncIterator[Any]:
        node = self.crawler.engine._slot.scheduler.node  # type: ignore[union-attr]
        while len(node.agent.view.members) < 3:  # or one crawls all of it before the others are there
            await asyncio.sleep(0.01)
        for host in HOSTS:
            yield Request(f"{host}/")

    def parse(self, response: Response) -> Iterator[Any]:
        following = HOSTS[(HOSTS.index(response.url[:-1]) + 1) % len(HOSTS)]
        yield {"url": response.url, "file_urls": [f"{following}/file"]}


@pytest.mark.parametrize("policy", ["polite", "refuse", "allow"])
def test_media_of_another_agents_host_is_as_the_setting_says(site: Site, policy: str, tmp_path: Path) -> None:
    for host in HOSTS:
        site.page(f"{host}/")
        site.page(f"{host}/file", host)
    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path),
        "UBI_FOREIGN_DOWNLOADS": policy,
    }
    outcomes = crawl(Files, site.proxy, 3, settings)
    stored = sum(len(item["files"]) for item in items_of(outcomes))
    done = {"polite": "polite", "refuse": "refused", "allow": "allowed"}[policy]
    foreign = total(outcomes, f"ubi/guard/foreign_{done}")
    assert foreign > 0
    assert total(outcomes, "ubi/downloads/loaded") == stored
    assert total(outcomes, "ubi/downloads/failed/refused") == len(HOSTS) - stored
    assert stored == len(HOSTS) - (foreign if policy == "refuse" else 0)
    assert {outcome.reason for outcome in outcomes} == {"finished"}


@AGENTS
@pytest.mark.parametrize("chain", [["visited", "depth(9)"], ["depth(9)", "visited"]])
def test_known_links_may_be_dropped_by_the_chain(site: Site, agents: int, chain: list[str]) -> None:
    urls = ring(site)
    outcomes = crawl(Walk, site.proxy, agents, settings={"UBI_FILTERS": chain})
    assert site.urls() == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/filtered/visited") > len(urls)


def test_a_crawl_that_has_ended_leaves_nothing_in_memory(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process may run one after another for months."""
    ring(site)
    monkeypatch.setenv("http_proxy", site.proxy)
    crawler = Crawler(Walk, {**FAST, "UBI_DIR": str(tmp_path)})
    asyncio.run(asyncio.wait_for(crawler.crawl_async(), LIMIT))
    assert site.visits
    kept = weakref.ref(crawler)
    del crawler
    caplog.clear()
    gc.collect()
    assert kept() is None


class Proxied(Spider):
    """Each page goes through the proxy that the spider chooses."""

    name = "proxied"

    async def start(self) -> Any:
        yield Request("http://h0.example/", meta={"proxy": self.settings["TEST_PROXY"]})

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}
        for url in response.css("a::attr(href)").getall():
            yield Request(url, meta={"proxy": self.settings["TEST_PROXY"]})


@pytest.mark.parametrize("named", [True, False])
def test_proxies_that_the_spider_chooses_are_obeyed_by_others_where_they_are_named(
    site: Site, named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    urls = [f"http://h{number}.example/" for number in range(40)]
    site.page(urls[0], links(*urls[1:]))
    for url in urls[1:]:
        site.page(url, "leaf")
    settings = {"TEST_PROXY": site.proxy, "UBI_PROXIES": ["127.0.0.1"] if named else []}
    outcomes = crawl(Proxied, agents=2, settings=settings)
    failed = total(outcomes, "ubi/failed/codec/proxy")
    assert len(items_of(outcomes)) + failed == len(urls)
    assert (failed == 0) is named
    said = [record.getMessage() for record in caplog.records if "Set UBI_PROXIES" in record.getMessage()]
    assert bool(said) is not named
