"""What spiders do in Scrapy behaves the same: callbacks, forms, cookies, redirects, errors, rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import scrapy
from scrapy import Request, Spider
from scrapy.http import FormRequest, JsonRequest, Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from tests.crawls.ring import AGENTS, HOSTS, PLAIN, ring
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, Visit, links


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
