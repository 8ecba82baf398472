"""Canaries: each private name of Scrapy's that is used, and what it is relied on to do.

When one of these fails after an upgrade of Scrapy, the table in scrapy_ubi/scrapy_private.py says what hangs on the
name.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import ssl
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from scrapy import Request, Spider, signals
from scrapy.commands.fetch import Command as Fetch
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler, TunnelError
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.core.scraper import Scraper
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest, StopDownload
from scrapy.http import Headers, HtmlResponse, JsonResponse, Response
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor as ScrapysExtractor
from scrapy.pipelines.media import MediaPipeline
from scrapy.settings import Settings
from scrapy.settings.default_settings import RETRY_EXCEPTIONS
from scrapy.shell import Shell
from scrapy.spiders import CrawlSpider, Rule
from scrapy.spiders.crawl import _identity_process_request
from scrapy.utils.reactor import CallLaterOnce
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.client import _AgentBase, _RetryingHTTP11ClientProtocol

from scrapy_ubi.components.scheduler import UbiScheduler
from scrapy_ubi.scrapy_private import (
    Download,
    EngineHooks,
    RulesByPage,
    copy_of,
    data_loss,
    forget_robots,
    forget_tree,
    headers_of,
    is_trial,
    large,
    no_tunnel,
    only_scrapy_listens,
    parsed_page,
    robots_known,
    slot_delay,
    stopped_by,
    tls_context,
    too_large,
    values_of,
)
from tests.support.crawls import crawl
from tests.support.site import Page, Site

HOST = "http://h1.example"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


def test_the_slots_names() -> None:
    assert list(inspect.signature(_Slot.remove_request).parameters) == ["self", "request"]
    assert inspect.iscoroutinefunction(_Slot.close)
    assert "schedule" in vars(CallLaterOnce) and list(inspect.signature(CallLaterOnce.schedule).parameters)[1:] == [
        "delay"
    ]
    assert "remove_request" not in getattr(_Slot, "__slots__", ())
    source = inspect.getsource(_Slot.__init__)
    assert all(name in source for name in ("self.closing:", "self.nextcall:", "self.inprogress:"))


def test_the_names_of_engine_scraper_and_handlers() -> None:
    assert list(inspect.signature(Scraper.enqueue_scrape).parameters) == ["self", "result", "request"]
    assert inspect.iscoroutinefunction(DownloadHandlers.download_request_async)
    assert list(inspect.signature(DownloadHandlers.download_request_async).parameters) == ["self", "request"]
    assert "handlers" in inspect.getsource(Downloader.__init__)


def test_the_names_of_the_downloaders_slots() -> None:
    """tests/politeness/test_host_feedback.py shows what they are relied on for."""
    assert list(inspect.signature(inspect.unwrap(Downloader._get_slot)).parameters)[:2] == ["self", "request"]
    slot = Slot(1, 10.0, 0.5)
    assert (slot.delay, slot.jitter, slot.lastseen) == (10.0, 0.5, 0)
    assert "penalty = delay - now + slot.lastseen" in inspect.getsource(Downloader._process_queue)


def test_scrapys_own_listener_is_told_from_others() -> None:
    """The offsite middleware is the only one of Scrapy's that hears of every request which is scheduled."""
    crawler = Crawler(Spider)
    which = (signals.request_scheduled, signals.request_dropped)
    assert only_scrapy_listens(crawler, *which)
    crawler.stats = crawler.settings  # type: ignore[assignment]  # it is given on, not used
    offsite = OffsiteMiddleware.from_crawler(crawler)
    assert only_scrapy_listens(crawler, *which)

    class Own(OffsiteMiddleware):
        def request_scheduled(self, request: Request, spider: Spider) -> None:
            """Does more."""

    own = Own.from_crawler(crawler)
    assert not only_scrapy_listens(crawler, *which) and only_scrapy_listens(crawler, signals.request_dropped)
    assert offsite is not own  # both live: signals hold them weakly


def test_the_delay_of_the_slot_that_a_request_went_through() -> None:
    assert Downloader.DOWNLOAD_SLOT == "download_slot"
    source = inspect.getsource(Downloader.__init__)
    assert "self.slots: dict[str, Slot]" in source
    slots = {"a.example": Slot(1, 2.5)}
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=SimpleNamespace(slots=slots)))
    assert slot_delay(crawler, Request("http://a.example", meta={"download_slot": "a.example"})) == 2.5
    assert slot_delay(crawler, Request("http://a.example", meta={"download_slot": "b.example"})) == 0.0
    assert slot_delay(crawler, Request("http://a.example")) == 0.0
    crawler.engine.downloader = object()  # a user's own
    assert slot_delay(crawler, Request("http://a.example")) == 0.0


def test_what_a_page_was_parsed_into_is_let_go() -> None:
    """Page and selector hold each other: without a collection of garbage they go when nobody else has them."""
    page = HtmlResponse("http://a.example", body=b"<title>T</title>", encoding="utf-8")
    held = page.selector
    tree = weakref.ref(held)
    gc.disable()
    try:
        forget_tree(page)
        assert held.css("title::text").get() == "T", "whoever holds it keeps it"
        del held
        assert tree() is None
    finally:
        gc.enable()
    assert page.css("title::text").get() == "T"
    forget_tree(Response("http://a.example"))


def test_whether_a_page_was_parsed() -> None:
    page = HtmlResponse("http://a.example", body=b"<title>T</title>", encoding="utf-8")
    assert parsed_page(page) is None
    assert page.css("title")
    assert parsed_page(page) is page.selector.root
    text = JsonResponse("http://a.example", body=b"{}", encoding="utf-8")
    assert text.selector.type == "json"
    assert parsed_page(text) is None


def test_the_names_on_the_way_to_a_connection() -> None:
    """tests/scrapy_private/test_socket_gate.py shows what they are relied on for."""
    assert list(inspect.signature(DownloadHandlers._get_handler).parameters) == ["self", "scheme"]
    assert "self._pool: HTTPConnectionPool" in inspect.getsource(HTTP11DownloadHandler.__init__)
    assert "d = self._pool.getConnection(key, endpoint)" in inspect.getsource(_AgentBase)
    assert "self._clientProtocol = clientProtocol" in inspect.getsource(_RetryingHTTP11ClientProtocol)


@pytest.mark.parametrize(
    ("function", "look_up"),
    [
        (ExecutionEngine._remove_request, "self._slot.remove_request(request)"),
        (ExecutionEngine.download_async, "self._slot.remove_request(request)"),
        (ExecutionEngine.close_spider_async, "await self._slot.close()"),
        (ExecutionEngine._start_scheduled_requests, "self._spider_idle()"),
        (ExecutionEngine._handle_downloader_output, "self.scraper.enqueue_scrape(result, request)"),
        (Downloader._download, "self.handlers.download_request_async(request)"),
        (Downloader._enqueue_request, "self._get_slot(request)"),
        (MediaPipeline._check_media_to_download, "self.crawler.engine.download_async(request)"),
    ],
)
def test_each_name_is_looked_up_where_it_is_called(function: Any, look_up: str) -> None:
    """Wrapping on the instance is enough only as long as Scrapy keeps no reference of its own."""
    assert look_up in inspect.getsource(inspect.unwrap(function))


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_who_holds_a_spider_open_at_idle(theirs: bool, ours: bool) -> None:
    """We are asked last, whoever was connected when, and whatever else the others raise."""
    crawler = Crawler(Spider)
    heard: list[object] = []
    engine: Any = SimpleNamespace(_slot=object(), signals=crawler.signals, spider=Spider("s"), _start_error=False)
    engine.spider_is_idle = lambda: heard.append("closes")
    engine._spider_idle = partial(ExecutionEngine._spider_idle, engine)

    def asked(held: bool) -> bool:
        heard.append(held)
        return ours

    def holds() -> None:
        assert engine.signals.send_catch_log(signals.request_dropped, request=None) == []
        if theirs:
            raise DontCloseSpider

    def closes() -> None:
        raise CloseSpider

    crawler.signals.connect(closes, signals.spider_idle)
    EngineHooks(engine).at_idle(asked)
    crawler.signals.connect(holds, signals.spider_idle)
    for _ in range(2):
        engine._spider_idle()
        assert heard == [theirs] + ["closes"] * (not theirs and not ours)
        assert engine.signals is crawler.signals
        heard.clear()


def test_what_our_download_handler_has_of_scrapys() -> None:
    crawler = Crawler(Spider)
    request = Request(f"{HOST}/large")
    stop = StopDownload(fail=False)

    def receiver(data: bytes) -> None:
        raise stop

    assert stopped_by(signals.bytes_received, crawler, request, {"data": b"x"}) is None
    crawler.signals.connect(receiver, signals.bytes_received)
    assert stopped_by(signals.bytes_received, crawler, request, {"data": b"x"}) is stop
    assert "5" in too_large(5, 4, request, True) and "(4)" in too_large(5, 4, request, False)
    assert "5" in large(5, 4, request, True) and "warn size (4)" in large(5, 4, request, False)
    assert HOST in data_loss(HOST)
    assert isinstance(no_tunnel("why"), TunnelError)
    assert f"{TunnelError.__module__}.{TunnelError.__name__}" in RETRY_EXCEPTIONS


def test_tls_is_as_the_settings_have_it() -> None:
    lenient = tls_context(Settings({"DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"}))
    assert (lenient.verify_mode, lenient.maximum_version) == (ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2)
    assert tls_context(Settings({"DOWNLOAD_VERIFY_CERTIFICATES": True})).verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(ValueError, match="DOWNLOAD_TLS_MIN_VERSION"):
        tls_context(Settings({"DOWNLOAD_TLS_MIN_VERSION": "none"}))
    with pytest.raises(ValueError, match="DOWNLOADER_CLIENT_TLS_CIPHERS is 'NONE-SUCH'"):
        tls_context(Settings({"DOWNLOADER_CLIENT_TLS_CIPHERS": "NONE-SUCH"}))


def test_headers_are_a_dict_of_names_in_titles_and_lists() -> None:
    usual = Headers([("set-cookie", "a"), ("Set-Cookie", "b"), ("x-UPPER-x", "c")])
    ours = headers_of({b"Set-Cookie": [b"a", b"b"], b"x-UPPER-x".title(): [b"c"]})
    assert dict(values_of(usual)) == dict(values_of(ours)) and type(ours) is Headers
    assert ours.getlist("SET-cookie") == [b"a", b"b"] and ours["X-Upper-X"] == b"c"
    copy = copy_of(ours)
    assert copy == ours and type(copy) is Headers
    copy.appendlist("Set-Cookie", "d")
    assert ours.getlist("Set-Cookie") == [b"a", b"b"]


class Exits(Spider):
    """A page for each way out of Scrapy."""

    name = "exits"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{HOST}/", self.index)

    def index(self, response: Response) -> Iterator[Any]:
        for method in ("items", "requests", "asynchronous", "raises", "raises_late", "returns_none", "inline"):
            yield Request(f"{HOST}/{method}", getattr(self, method))
        for path in ("404", "500", "redirect", "slow", "ignored", "ignored-response"):
            meta = {"download_timeout": 0.3, "path": path}
            yield Request(f"{HOST}/{path}", self.items, meta=meta)
            yield Request(f"{HOST}/{path}?errback", self.items, errback=self.failed, meta=meta)
        yield Request("data:,local", self.items)
        yield Request("nowhere://x", self.items, errback=self.failed)

    def items(self, response: Response) -> Iterator[Any]:
        yield {"of": response.url}

    def requests(self, response: Response) -> Iterator[Any]:
        for number in range(10):
            yield Request(f"{HOST}/child{number}", self.returns_none, cb_kwargs={"of": response.url})

    async def asynchronous(self, response: Response) -> AsyncIterator[Any]:
        yield {"of": response.url}
        await asyncio.sleep(0)
        yield Request(f"{HOST}/async-child", self.returns_none, cb_kwargs={"of": response.url})

    def raises(self, response: Response) -> None:
        raise RuntimeError("at once")

    def raises_late(self, response: Response) -> Iterator[Any]:
        yield Request(f"{HOST}/late-child", self.returns_none, cb_kwargs={"of": response.url})
        raise RuntimeError("late")

    def returns_none(self, response: Response, of: str = "") -> None:
        return None

    async def inline(self, response: Response) -> list[Any]:
        await self.crawler.engine.download_async(Request(f"{HOST}/inlined"))
        return [{"of": response.url}]

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"of": failure.request.url}


class Ignores:
    """A downloader middleware that ignores requests and responses by their path."""

    def process_request(self, request: Request) -> None:
        if request.meta.get("path") == "ignored":
            raise IgnoreRequest

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("path") == "ignored-response":
            raise IgnoreRequest
        return response


class SlowPipeline:
    """An item pipeline that gives way to the loop a few times."""

    async def process_item(self, item: Any) -> Any:
        for _ in range(20):
            await asyncio.sleep(0)
        Recording.events.append(("item", item["of"]))
        return item


class Recording(UbiScheduler):
    """Notes what happens to each request, by object identity where it matters."""

    events: list[tuple[str, str]]
    handed_out: list[Request]
    removed: list[Request]
    closing: int

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            self.handed_out.append(request)
        return request

    def enqueue_request(self, request: Request) -> bool:
        self.events.append(("child", request.cb_kwargs.get("of", "")))
        return super().enqueue_request(request)

    def _hook_in(self) -> None:
        super()._hook_in()
        hooks = EngineHooks(self.crawler.engine)
        hooks.on_removed(self._note_removed)
        hooks.on_closing(self._note_closing)
        hooks.on_outcome(self._note_outcome)
        hooks.on_successor(self._note_successor)
        hooks.around_transfers(self._note_transfer)

    def _note_removed(self, request: Request) -> None:
        self.removed.append(request)
        self.events.append(("removed", request.url))

    def _note_closing(self) -> None:
        type(self).closing += 1

    def _note_outcome(self, result: Response | Failure, request: Request) -> bool:
        self.events.append(("outcome", request.url))
        return False

    def _note_successor(self, new: Request, request: Request) -> None:
        self.events.append(("successor", f"{request.url} {new.url}"))

    async def _note_transfer(self, request: Request, download: Download) -> Response:
        self.events.append(("transfer", request.url))
        return await download(request)


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[type[Recording], Site]]:
    """A crawl with every kind of exit, recorded."""
    with Site() as site:
        record(site)
        yield Recording, site


def record(site: Site) -> None:
    Recording.events, Recording.handed_out, Recording.removed, Recording.closing = [], [], [], 0
    for path in ("", "items", "requests", "asynchronous", "raises", "raises_late", "returns_none", "inline", "inlined"):
        site.page(f"{HOST}/{path}")
    for child in (*(f"child{number}" for number in range(10)), "async-child", "late-child", "ignored-response"):
        site.page(f"{HOST}/{child}")
    for end in ("", "?errback"):
        site.page(f"{HOST}/500{end}", Page("", 500))
        site.redirect(f"{HOST}/redirect{end}", f"{HOST}/items")
    with site.hold(f"{HOST}/slow"), site.hold(f"{HOST}/slow?errback"):
        settings = {
            "SCHEDULER": Recording,
            "RETRY_TIMES": 1,
            "DOWNLOADER_MIDDLEWARES": {Ignores: 10},
            "ITEM_PIPELINES": {SlowPipeline: 1},
            "UBI_LEAN": False,  # the hooks are for Scrapy's way
        }
        outcome = crawl(Exits, site.proxy, settings=settings)[0]
    assert outcome.reason == "finished"


def test_every_request_is_removed_exactly_once_however_it_ends(recorded: tuple[type[Recording], Site]) -> None:
    handed_out, removed_requests = recorded[0].handed_out, recorded[0].removed
    removed = Counter(map(id, removed_requests))
    assert {id(request) for request in handed_out} <= removed.keys()
    assert set(removed.values()) == {1}
    bypassed = [request.url for request in removed_requests if request not in handed_out]
    assert bypassed == [f"{HOST}/inlined"]


def test_a_request_is_removed_after_its_last_output_and_item(recorded: tuple[type[Recording], Site]) -> None:
    events = recorded[0].events
    last_removed = {url: place for place, (what, url) in enumerate(events) if what == "removed"}
    for place, (what, url) in enumerate(events):
        if what in ("child", "item") and url:
            assert place < last_removed[url], (what, url)
    assert sum(what == "item" for what, _ in events) >= 10
    assert sum(what == "child" and url != "" for what, url in events) == 12


def test_the_outcome_of_every_request_is_seen_but_of_those_that_go_on(recorded: tuple[type[Recording], Site]) -> None:
    events = recorded[0].events
    outcomes = Counter(url for what, url in events if what == "outcome")
    assert outcomes[f"{HOST}/404"] == outcomes[f"{HOST}/500"] == outcomes[f"{HOST}/ignored"] == 1
    assert outcomes[f"{HOST}/redirect"] == outcomes[f"{HOST}/inlined"] == 0
    assert outcomes[f"{HOST}/ignored-response"] == outcomes[f"{HOST}/slow"] == 1


def test_a_request_in_place_of_a_response_is_seen_with_the_request_whose_place_it_takes(
    recorded: tuple[type[Recording], Site],
) -> None:
    told = [urls.split() for what, urls in recorded[0].events if what == "successor"]
    assert [new for old, new in told if old == f"{HOST}/redirect"], "the redirect"
    assert all(new == old for old, new in told if "redirect" not in old), "all others are retries"


def test_every_transfer_is_carried(recorded: tuple[type[Recording], Site]) -> None:
    recording, site = recorded
    carried = Counter(url for what, url in recording.events if what == "transfer" and url.startswith("http"))
    assert carried == site.urls()


def test_closing_is_seen_once(recorded: tuple[type[Recording], Site]) -> None:
    assert recorded[0].closing == 1


def test_what_stops_the_crawler_while_it_closes_waits_for_the_end_unless_it_is_part_of_it(site: Site) -> None:
    site.page(f"{HOST}/")
    ended: list[str] = []

    class Ends(Spider):
        name = "ends"
        start_urls = (f"{HOST}/",)

        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Ends:
            self = super().from_crawler(crawler, *args, **kwargs)
            self.told, context = asyncio.Event(), contextvars.copy_context()  # as of a signal
            self.signal = asyncio.get_running_loop().create_task(self.from_outside(), context=context)
            crawler.signals.connect(self.within, signals.spider_closed)
            return self

        async def from_outside(self) -> None:
            await self.told.wait()
            await self.crawler.engine.close_spider_async(reason="shutdown")
            ended.append("outside")

        async def within(self) -> None:
            self.told.set()
            await self.crawler.engine.close_spider_async(reason="within")
            for _ in range(9):  # turns in which the other one would end
                await asyncio.sleep(0)
            ended.append("within")

        def parse(self, response: Response) -> None:
            """Nothing."""

    (outcome,) = crawl(Ends, site.proxy)
    assert outcome.reason == "finished"
    assert ended[0] == "within"


def robots(parsers: dict[str, Any] | None) -> Crawler:
    middleware = None if parsers is None else SimpleNamespace(_parsers=parsers)
    crawler: Any = SimpleNamespace(get_downloader_middleware=lambda cls: middleware)
    return crawler  # type: ignore[no-any-return]


def test_a_robots_txt_is_known_when_it_was_read() -> None:
    parsers: dict[str, Any] = {"read": object(), "failed": None, "asked": Deferred()}
    known = [netloc for netloc in ("read", "failed", "asked", "never") if robots_known(robots(parsers), netloc)]
    assert known == ["read"]
    assert robots_known(robots(None), "never")


def test_only_a_robots_txt_that_failed_is_forgotten() -> None:
    parsers: dict[str, Any] = {"read": object(), "failed": None, "asked": Deferred()}
    for netloc in (*parsers.copy(), "never"):
        forget_robots(robots(parsers), netloc)
    forget_robots(robots(None), "failed")
    assert sorted(parsers) == ["asked", "read"]


class UsersOwn(RobotsTxtMiddleware):
    """A user's own robots.txt middleware, which stays."""


def test_the_robots_middleware_keeps_parsers_like_that(site: Site) -> None:
    class Seen(Spider):
        name = "seen"
        start_urls = (f"{HOST}/", "http://h2.example/")

        def parse(self, response: Response) -> None:
            middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
            assert middleware is not None
            parsers.update(middleware._parsers)

    parsers: dict[str, Any] = {}
    for url in (f"{HOST}/", f"{HOST}/robots.txt", "http://h2.example/"):
        site.page(url)
    site.page("http://h2.example/robots.txt", "", Location="http://h2.example/robots.txt")
    site.redirect("http://h2.example/robots.txt", "http://h2.example/robots.txt")
    own = {UsersOwn: 100, RobotsTxtMiddleware: None}
    crawl(Seen, site.proxy, settings={"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS": 1, "DOWNLOADER_MIDDLEWARES": own})
    assert set(parsers) == {"h1.example", "h2.example"}
    assert parsers["h1.example"] is not None and parsers["h2.example"] is None


def test_the_commands_that_look_at_a_page_are_told_from_crawls() -> None:
    class Own(Spider):
        name = "own"

        async def start(self) -> AsyncIterator[Any]:
            yield Request(HOST)

    def crawler(close_if_idle: bool) -> Any:
        return mock.Mock(spider=Own(), engine=mock.Mock(_slot=mock.Mock(close_if_idle=close_if_idle)))

    assert "self.close_if_idle: bool = close_if_idle" in inspect.getsource(_Slot)
    assert not is_trial(crawler(close_if_idle=True))
    assert "open_spider_async(close_if_idle=False)" in inspect.getsource(Shell)
    assert is_trial(crawler(close_if_idle=False))
    assert Fetch.__module__ == "scrapy.commands.fetch"
    Own.start.__module__ = "scrapy.commands.fetch"
    assert is_trial(crawler(close_if_idle=True))


BAD_END = """
from scrapy import Spider, signals
from scrapy_ubi.scrapy_private import end_badly

class Bad(Spider):
    name = "bad"

    async def start(self):
        self.crawler.signals.connect(self.after, signals.engine_stopped)
        end_badly(self.crawler)
        self.crawler.signals.connect(self.after, signals.spider_closed)
        return
        yield

    def after(self):
        assert self.crawler.spider is self
"""


@pytest.mark.processes
@pytest.mark.parametrize("process", ["AsyncCrawlerProcess", "CrawlerProcess"])
def test_a_crawl_that_ends_badly_has_exit_status_1_and_says_no_more(process: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD_END)
    older = f"FORCE_CRAWLER_PROCESS={process == 'CrawlerProcess'}"
    command = [sys.executable, "-m", "scrapy", "runspider", str(file), "-s", older, "-s", "LOG_LEVEL=WARNING"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_crawl_spiders_rules_are_asked_where_they_make_requests() -> None:
    class Told(RulesByPage):
        name = "told"
        rules = (Rule(ScrapysExtractor(), "found"), Rule(ScrapysExtractor(), process_request="own"))

        def own(self, request: Request, response: Response) -> Request:
            return request

        def found(self, response: Response) -> None:
            """A callback."""

        def links_of_rule(self, rule: int, links: list[Link], callback: Any, errback: Any) -> Any:
            return rule, [link.url for link in links], callback, errback

    spider = Told()
    page = HtmlResponse(f"{HOST}/", body=b"<a href=a>a</a>", encoding="utf-8")
    assert list(spider._requests_to_follow(page)) == [(0, [f"{HOST}/a"], spider._callback, spider._errback)]
    spider._rules.reverse()
    [request, (rule, links, _, _)] = spider._requests_to_follow(page)
    assert (request.url, request.meta["rule"], request.meta["link_text"]) == (f"{HOST}/a", 0, "a")
    assert (rule, links) == (1, []), "each link belongs to the first rule that finds it"
    assert "self._requests_to_follow(response)" in inspect.getsource(CrawlSpider.parse_with_rules)
    # The callback finds its rule by this, and the texts of links are where ours are.
    built = CrawlSpider._build_request(spider, 7, Link("http://a.example/", "text"))
    assert built.meta == {"rule": 7, "link_text": "text"} and built.callback == spider._callback
    assert 'meta["rule"]' in inspect.getsource(CrawlSpider._callback)
    assert Rule().process_request is _identity_process_request


def test_the_scraper_hands_over_items_by_name() -> None:
    assert "self.start_itemproc_async(output, response=response)" in inspect.getsource(
        Scraper._process_spidermw_output_async
    )
