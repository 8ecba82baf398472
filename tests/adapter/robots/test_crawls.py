"""Whole crawls that obey robots.txt, whatever it is and however it is served."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError, CloseSpider, DownloadConnectionRefusedError, IgnoreRequest
from scrapy.http import Response

from scrapy_ubi.adapter.components import robots_middleware
from scrapy_ubi.adapter.components.robots_middleware import UbiRobotsMiddleware
from scrapy_ubi.policy.robots import record
from scrapy_ubi.policy.robots.text import MOST_BYTES
from tests.adapter.robots.walks import FORBIDS, HOST, HOSTS, LONG, OBEY, OTHER, Both, Walk, one, pages, paths
from tests.support.crawls import LIMIT, crawl, items_of, total
from tests.support.site import Page, Site, Visit, links


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FIRST_PAUSE", 0.02)


# -- fetched once, obeyed


@pytest.mark.parametrize("agents", [1, 3])
def test_every_robots_txt_is_fetched_once_in_the_whole_cluster_and_obeyed(site: Site, agents: int) -> None:
    allowed = pages(site, *HOSTS)
    for host in HOSTS:
        site.page(f"{host}/robots.txt", FORBIDS)
    outcomes = crawl(Walk, site.proxy, agents, settings=OBEY)
    assert items_of(outcomes) == allowed
    urls = site.urls()
    assert all(urls.pop(f"{host}/robots.txt") == 1 for host in HOSTS) and set(urls.values()) == {1}
    for stat in ("request_count", "response_count", "response_status_count/200", "forbidden"):
        assert total(outcomes, f"robotstxt/{stat}") == len(HOSTS)
    assert total(outcomes, "ubi/failed/robots") == len(HOSTS)
    assert max(site.most_at_once.values()) == 1


def test_it_comes_before_every_page_of_its_host(site: Site) -> None:
    pages(site)
    with site.hold(f"{HOST}/robots.txt") as held:

        def let_go(visit: Visit) -> Page:
            return Page(FORBIDS)

        site.page(f"{HOST}/robots.txt", let_go)
        held.release()
        one(site)
    assert paths(site) == ["/robots.txt", "/", "/yes"]


def test_without_robotstxt_obey_none_is_fetched(site: Site) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS)
    one(site, ROBOTSTXT_OBEY=False)
    assert paths(site) == ["/", "/yes", "/no"]


class Unasked(Walk):
    """Its first page does not obey, its second comes by a download that bypasses the scheduler."""

    async def start(self) -> Any:
        yield Request(f"{HOST}/no", self.second, meta={"dont_obey_robotstxt": True})

    async def second(self, response: Response) -> Any:
        assert self.crawler.engine is not None
        for path in ("/yes", "/no/2"):
            try:
                loaded = await self.crawler.engine.download_async(Request(HOST + path))
                yield loaded.url
            except IgnoreRequest as error:
                yield str(error)


def test_meta_can_switch_it_off_and_downloads_beside_the_queue_obey(site: Site) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS)
    outcome = one(site, Unasked)
    assert outcome.items == [f"{HOST}/yes", "Forbidden by robots.txt"]
    assert paths(site) == ["/no", "/robots.txt", "/yes"]


class Agents(Walk):
    async def start(self) -> Any:
        for number, agent in enumerate(["Foo/1", "Bar/1", "Foo/2", "Baz"]):
            yield Request(f"{HOST}/{number}", headers={"User-Agent": agent})


class Beside(Walk):
    """Its first page has a file of another host loaded, whose own page waits for its robots.txt meanwhile."""

    start_urls = (f"{OTHER}/", f"{HOST}/")

    async def parse(self, response: Response) -> Any:  # type: ignore[override]
        url = response.url
        if url == f"{HOST}/":
            assert self.crawler.engine is not None
            url = (await self.crawler.engine.download_async(Request(f"{OTHER}/yes"))).url
        yield url


class Waiting(UbiRobotsMiddleware):
    """Has a function called when the file waits for its robots.txt."""

    file_waits: Callable[[], None]

    async def process_request(self, request: Request) -> None:
        if request.url == f"{OTHER}/yes":
            asyncio.get_running_loop().call_soon(Waiting.file_waits)
        await super().process_request(request)


def test_what_waits_beside_a_page_whose_robots_txt_is_withdrawn_asks_for_it_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would load the file again: its item would lack it for good."""
    pages(site, HOST, OTHER)
    crawlers: list[Crawler] = []
    cancelled = threading.Event()

    def cancel() -> None:
        crawlers[0].engine.scheduler.gate.cancel()  # type: ignore[union-attr]
        cancelled.set()

    def answer(visit: Visit) -> Page:
        cancelled.wait(LIMIT)
        return Page(FORBIDS)

    monkeypatch.setattr(Waiting, "file_waits", cancel, raising=False)
    site.page(f"{OTHER}/robots.txt", answer)
    settings = {**OBEY, "DOWNLOADER_MIDDLEWARES": {Waiting: 100}}
    outcome = crawl(Beside, site.proxy, settings=settings, with_crawlers=crawlers.extend)[0]
    assert sorted(outcome.items) == [f"{OTHER}/", f"{OTHER}/yes"]
    assert outcome.stats["ubi/guard/cancelled"] == 1


def test_rules_are_those_for_the_user_agent_of_each_request(site: Site) -> None:
    site.page(f"{HOST}/robots.txt", "User-agent: foo\nDisallow: /\n\nUser-agent: bar\nDisallow: /0\n")
    assert one(site, Agents).items == [f"{HOST}/1", f"{HOST}/3"]
    assert one(site, Agents, ROBOTSTXT_USER_AGENT="foo").items == []


def test_others_are_told_of_a_parsed_robots_txt(site: Site) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS + "Sitemap: /map.xml\n")
    told: list[Any] = []

    def parsed(robotparser: Any, request: Request) -> None:
        told.append((list(robotparser.rp.sitemaps), request.url))

    def listen(crawlers: list[Crawler]) -> None:
        crawlers[0].signals.connect(parsed, signals.robots_parsed, weak=False)

    crawl(Walk, site.proxy, settings=OBEY, with_crawlers=listen)
    assert told == [(["/map.xml"], f"{HOST}/")]


def test_a_parser_of_the_users_is_used(site: Site) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS)
    assert one(site, ROBOTSTXT_PARSER="scrapy.robotstxt.PythonRobotParser").items == [f"{HOST}/", f"{HOST}/yes"]
    outcome = one(site, ROBOTSTXT_PARSER="tests.adapter.robots.test_crawls.Broken")
    assert len(outcome.items) == 3 and outcome.stats["ubi/robots/broken"] > 3


class Broken:
    """A parser that works for an empty text only."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Broken:
        return cls()

    def allowed(self, url: str, user_agent: str) -> bool:
        raise ZeroDivisionError

    def crawl_delay(self, user_agent: str) -> float:
        raise ZeroDivisionError


# -- what an answer means


@pytest.mark.parametrize("status", [401, 404])
def test_without_a_robots_txt_everything_is_allowed(site: Site, status: int) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", Page(FORBIDS, status))
    assert len(one(site).items) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_one_that_cannot_be_read_puts_its_host_off_and_not_the_others(site: Site, status: int) -> None:
    allowed = pages(site, HOST, OTHER)
    site.page(f"{OTHER}/robots.txt", FORBIDS)

    def answer(visit: Visit) -> Page:  # until the other host is crawled
        return Page(FORBIDS) if f"{OTHER}/yes" in site.urls() else Page("x", status)

    site.page(f"{HOST}/robots.txt", answer)
    outcome = one(site, Both)
    assert sorted(outcome.items) == allowed
    tries = site.urls()[f"{HOST}/robots.txt"] - 1
    assert tries >= 1
    assert outcome.stats[f"robotstxt/response_status_count/{status}"] == tries
    assert outcome.stats["ubi/robots/unreachable"] == tries
    put_back = outcome.stats.get("ubi/scheduler/put_back", 0)  # a busy machine may be slower than the short pause
    assert outcome.stats.get("ubi/hosts/postponed/robots", 0) == put_back <= tries
    assert "retry/count" not in outcome.stats


@pytest.mark.parametrize("most", [600, 0])
def test_one_that_says_when_to_come_back_is_left_alone_until_then(site: Site, most: int) -> None:
    times: list[float] = []

    def answer(visit: Visit) -> Page:
        times.append(time.monotonic())
        return Page("x", 429, {"Retry-After": "1"}) if len(times) == 1 else Page(FORBIDS)

    allowed = pages(site)
    site.page(f"{HOST}/robots.txt", answer)
    outcome = one(site, UBI_MAX_RETRY_AFTER=most)
    assert sorted(outcome.items) == allowed and len(times) == 2
    assert times[1] - times[0] >= (0.99 if most else 0)


def test_one_that_can_never_be_read_lets_its_pages_fail_and_the_crawl_end(site: Site) -> None:
    allowed = pages(site, OTHER)
    pages(site, HOST)
    site.page(f"{OTHER}/robots.txt", FORBIDS)
    site.page(f"{HOST}/robots.txt", Page("x", 503))
    outcome = one(site, Both, UBI_ROBOTS_GIVE_UP=0.1)
    assert (sorted(outcome.items), outcome.reason) == (allowed, "finished")
    assert outcome.stats["ubi/failed/robots/unreachable"] == outcome.stats["ubi/robots/refused"] == 1
    assert outcome.stats["ubi/robots/given_up"] == 1
    assert f"{HOST}/" not in site.urls()


class Insists(Walk):
    """Asks once more for what has failed, to be fetched anyway: as a request that was requeued is."""

    async def start(self) -> Any:
        yield Request(f"{HOST}/1", errback=self.again)

    def again(self, failure: Any) -> Iterator[Request]:
        yield Request(f"{HOST}/", dont_filter=True)


@pytest.mark.parametrize(("pause", "items"), [(0.0, [f"{HOST}/"]), (3600.0, [])])
def test_a_request_to_be_fetched_anyway_has_it_asked_for_once_more(
    site: Site, monkeypatch: pytest.MonkeyPatch, pause: float, items: list[str]
) -> None:
    monkeypatch.setattr(record, "INSIST_AFTER", pause)
    site.page(f"{HOST}/", "home")
    site.page(f"{HOST}/robots.txt", lambda visit: Page("x", 503 if visit.number == 1 else 404))
    assert one(site, Insists, UBI_ROBOTS_GIVE_UP=0).items == items


class Nowhere(Walk):
    """Pages of a host that does not exist: nothing listens there, and no proxy is asked."""

    host = "127.0.0.1:1"

    async def start(self) -> Any:
        for number in range(3):
            yield Request(f"http://{self.host}/{number}", meta={"proxy": None}, errback=self.lost)

    def lost(self, failure: Any) -> Iterator[Any]:
        yield {"error": failure.type, "tries": failure.request.meta.get("retry_times"), "url": failure.request.url}


class Nameless(Nowhere):
    """Pages of a host without an address."""

    host = "no-such-host.invalid"


@pytest.mark.parametrize("obey", [True, False])
@pytest.mark.parametrize("retries", [2, 0])
@pytest.mark.parametrize(
    ("spider", "error"), [(Nowhere, DownloadConnectionRefusedError), (Nameless, CannotResolveHostError)]
)
def test_errbacks_hear_why_a_host_is_not_reached_as_without_robots_txt(
    spider: type[Nowhere], error: type[Exception], retries: int, obey: bool
) -> None:
    settings = {"ROBOTSTXT_OBEY": obey, "UBI_ROBOTS_GIVE_UP": 0, "RETRY_TIMES": retries, "UBI_HOST_FAILURES": 0}
    outcome = crawl(spider, "", settings=settings)[0]
    tries = retries or None
    assert sorted(items_of([outcome]), key=itemgetter("url")) == [
        {"error": error, "tries": tries, "url": f"http://{spider.host}/{number}"} for number in range(3)
    ]
    assert outcome.stats.get("retry/max_reached") == 3
    assert outcome.stats.get("ubi/failed/robots/unreachable", 0) == (3 if obey else 0)


def test_a_host_that_does_not_exist_is_given_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_middleware, "SHARE_NO_SERVER", 0)
    outcome = crawl(Nowhere, "", settings={**OBEY, "UBI_ROBOTS_GIVE_UP": 3600})[0]
    assert outcome.stats["ubi/failed/robots/unreachable"] == 3
    assert outcome.stats["robotstxt/request_count"] == 1, "the second and third page fail by what is remembered"
    assert sum(number for stat, number in outcome.stats.items() if stat.startswith("robotstxt/exception_count/")) == 1


def test_one_that_does_not_answer_in_time_cannot_be_read(site: Site) -> None:
    allowed = pages(site, OTHER)
    site.page(f"{OTHER}/robots.txt", FORBIDS)
    with site.hold(f"{HOST}/robots.txt"):
        outcome = one(site, Both, UBI_ROBOTS_TIMEOUT=0.2, UBI_ROBOTS_GIVE_UP=0.1)
    assert (sorted(outcome.items), outcome.reason) == (allowed, "finished")
    assert outcome.stats["ubi/failed/robots/unreachable"] == 1


def test_one_that_drips_cannot_be_read(site: Site) -> None:
    def drops() -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b"User-agent: *\nDisallow: /\n"

    site.page(f"{HOST}/robots.txt", lambda visit: Page(b"", chunks=drops()))
    outcome = one(site, UBI_ROBOTS_TIMEOUT=0.3, UBI_ROBOTS_GIVE_UP=0)
    assert outcome.stats["ubi/failed/robots/unreachable"] == 1 and outcome.reason == "finished"


# -- whatever is sent


def test_of_one_without_end_the_beginning_is_read(site: Site) -> None:
    pages(site)
    sent = itertools.count()

    def lines() -> Iterator[bytes]:
        for _ in sent:
            yield b"# and so on\n" * 5000

    site.page(f"{HOST}/robots.txt", lambda visit: Page(FORBIDS.encode(), chunks=lines()))
    outcome = one(site)
    assert outcome.items == [f"{HOST}/", f"{HOST}/yes"]
    assert outcome.stats["ubi/robots/truncated"] == 1
    assert outcome.stats["robotstxt/forbidden"] == 1


@pytest.mark.parametrize("announced", [False, True])
def test_rules_beyond_the_bound_do_not_count(site: Site, announced: bool) -> None:
    pages(site)
    body = FORBIDS.encode() + b"# x\n" * (MOST_BYTES // 4) + b"User-agent: *\nDisallow: /\n" + b"# x\n" * MOST_BYTES
    page = Page(body) if announced else Page(b"", chunks=[body])
    site.page(f"{HOST}/robots.txt", page)
    assert one(site, DOWNLOAD_MAXSIZE=1000).items == [f"{HOST}/", f"{HOST}/yes"]


def test_of_a_bomb_the_beginning_is_unpacked(site: Site) -> None:
    pages(site)
    bomb = gzip.compress(FORBIDS.encode() + b"# boom\n" * 5_000_000, 1)
    site.page(f"{HOST}/robots.txt", Page(bomb, 200, {"Content-Encoding": "gzip"}))
    outcome = one(site)
    assert outcome.items == [f"{HOST}/", f"{HOST}/yes"]
    assert outcome.stats["ubi/robots/truncated"] == 1


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /no\r\n", {}),
        (b"<html>\x00\xff\nUser-agent: *\rDisallow: /no", {"Content-Type": "text/html"}),
        (gzip.compress(FORBIDS.encode()), {"Content-Encoding": "x-gzip"}),
    ],
    ids=["bom", "garbage", "gzip"],
)
def test_what_is_a_rule_is_one_whatever_surrounds_it(site: Site, body: bytes, headers: dict[str, str]) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", Page(body, 200, headers))
    assert one(site).items == [f"{HOST}/", f"{HOST}/yes"]


def test_a_rule_holds_however_the_url_is_spelled(site: Site) -> None:
    """To a server all of these are /no/..., and it is the URL as it was found that is fetched."""
    spellings = ("/x/../no/1", "/./no/2", "/%6Eo/3", "/x/%2e%2e/no/4", "//h0.example:80/no/5", "/yes/../yes")
    site.page(f"{HOST}/robots.txt", FORBIDS)
    site.page(f"{HOST}/", links(*spellings))
    outcome = one(site)
    assert not [path for path in paths(site) if "no" in path]
    assert outcome.stats["robotstxt/forbidden"] == 5


@pytest.mark.parametrize("encoding", ["gzip", "br, mystery"])
def test_garbage_is_no_rule(site: Site, encoding: str) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", Page(bytes(range(256)) * 9, 200, {"Content-Encoding": encoding}))
    assert len(one(site).items) == 3


# -- redirects


def chain(site: Site, hops: int) -> None:
    for number in range(hops):
        site.redirect(f"{HOSTS[number]}/robots.txt", f"{HOSTS[number + 1]}/robots.txt")
    site.page(f"{HOSTS[hops]}/robots.txt", FORBIDS)


class Offsite(Walk):
    allowed_domains = ("h0.example",)
    handle_httpstatus_list = (301, 302, 404)


def test_five_redirects_are_followed_to_any_host(site: Site) -> None:
    pages(site)
    chain(site, 5)
    outcome = one(site, Offsite, REDIRECT_MAX_TIMES=1)
    assert outcome.items == [f"{HOST}/", f"{HOST}/yes"]
    assert outcome.stats["ubi/robots/redirects"] == 5


def test_redirects_are_followed_to_hosts_of_other_agents(site: Site) -> None:
    pages(site)
    chain(site, 5)
    outcomes = crawl(Walk, site.proxy, 3, settings=OBEY)
    assert items_of(outcomes) == [f"{HOST}/", f"{HOST}/yes"]
    assert total(outcomes, "ubi/guard/foreign_robots") > 0
    assert set(site.urls().values()) == {1}


def test_a_redirect_is_followed_after_the_delay_of_its_host_however_long_that_is(site: Site) -> None:
    """Mostly it leads to the same host, by https."""
    allowed = pages(site)
    site.redirect(f"{HOST}/robots.txt", "/rules")
    site.page(f"{HOST}/rules", FORBIDS)
    assert one(site, UBI_HOST_DELAY=2.0, UBI_ROBOTS_TIMEOUT=1.9, UBI_ROBOTS_GIVE_UP=0).items == allowed
    assert min(site.gaps("h0.example")) >= 2.0


@pytest.mark.parametrize("to", ["/robots.txt", "ftp://h.example/x", "http://["])
def test_redirects_without_end_or_aim_mean_that_there_is_none(site: Site, to: str) -> None:
    pages(site)
    site.redirect(f"{HOST}/robots.txt", to)
    assert len(one(site).items) == 3


# -- again, and elsewhere


class Aging(UbiRobotsMiddleware):
    """A day passes before each request."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler, lambda: self.now)
        self.now = time.time()

    async def process_request(self, request: Request) -> None:
        self.now += 86_400
        await super().process_request(request)


AGING = {"DOWNLOADER_MIDDLEWARES": {Aging: 100}}


def test_it_is_fetched_again_when_it_is_too_old(site: Site) -> None:
    site.page(f"{HOST}/", links("/1", "/2", "/3"))
    site.page(f"{HOST}/robots.txt", lambda visit: Page(f"User-agent: *\nDisallow: /{visit.number}\n"))
    one(site, **AGING)
    assert paths(site) == ["/robots.txt", "/", "/robots.txt", "/1", "/robots.txt", "/2", "/robots.txt", "/3"]
    site.visits.clear()
    one(site, UBI_ROBOTS_TTL=10 * 86_400, **AGING)
    assert paths(site) == ["/robots.txt", "/", "/2", "/3"]


def test_what_it_said_holds_on_while_it_cannot_be_read(site: Site) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", lambda visit: Page(FORBIDS, 200 if visit.number == 1 else 503))
    outcome = one(site, UBI_ROBOTS_GIVE_UP=0, **AGING)
    assert outcome.items == [f"{HOST}/", f"{HOST}/yes"]
    assert outcome.stats["ubi/robots/stale"] == 2 == outcome.stats["ubi/robots/unreachable"]
    assert "ubi/failed/robots/unreachable" not in outcome.stats


class Stops(Walk):
    """The first agent closes after its first page."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        if self.settings["UBI_AGENT_ID"] == "a0" and not self.settings["TEST_GO_ON"]:
            raise CloseSpider("enough")


@pytest.mark.parametrize(("body", "fetches"), [(FORBIDS, 1), (f"User-agent: x\n{LONG}{FORBIDS}", 1), (LONG, 2)])
def test_after_a_restart_it_is_known_unless_its_rules_are_too_long(
    site: Site, tmp_path: Path, body: str, fetches: int
) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", body.replace("User-agent: x\nUser-agent: *", "User-agent: x"))
    settings = {"UBI_DIR": str(tmp_path)}
    assert one(site, Stops, **settings).reason == "enough"
    outcome = one(site, Stops, TEST_GO_ON=True, **settings)
    assert outcome.reason == "finished"
    assert site.urls() == {f"{HOST}/robots.txt": fetches, f"{HOST}/": 1, f"{HOST}/yes": 1}
    assert outcome.stats.get("ubi/robots/from_notes", 0) == 2 - fetches


class StopsDelayed(Stops):
    """Yields the delays of its host at each page."""

    def parse(self, response: Response) -> Iterator[Any]:
        node = self.crawler.engine.scheduler.node  # type: ignore[union-attr]
        yield node.hosts.delays(node.frontier.find("h0.example"))
        yield from super().parse(response)


@pytest.mark.parametrize(
    ("changed", "then"),
    [
        ({}, {"robots": 0.25}),
        ({"UBI_MAX_DELAY": 0.1}, {"robots": 0.1}),
        ({"UBI_MAX_DELAY": 0}, {}),
        ({"ROBOTSTXT_OBEY": False}, {}),
    ],
)
def test_after_a_restart_a_crawl_delay_is_honoured_as_the_settings_say_now(
    site: Site, tmp_path: Path, changed: dict[str, Any], then: dict[str, float]
) -> None:
    pages(site)
    site.page(f"{HOST}/robots.txt", FORBIDS + "Crawl-delay: 0.25\n")
    before = one(site, StopsDelayed, UBI_DIR=str(tmp_path))
    assert before.items == [{"robots": 0.25}, f"{HOST}/"]
    after = one(site, StopsDelayed, TEST_GO_ON=True, UBI_DIR=str(tmp_path), **changed)
    assert after.items[:2] == [then, f"{HOST}/yes"]


def test_after_a_handoff_it_is_known_and_so_is_its_delay(site: Site) -> None:
    allowed = pages(site, *HOSTS)
    for host in HOSTS:
        site.page(f"{host}/robots.txt", FORBIDS + "Crawl-delay: 0.1\n")
    outcomes = crawl(Stops, site.proxy, 2, settings=OBEY)
    assert sorted(outcome.reason for outcome in outcomes) == ["enough", "finished"]
    assert items_of(outcomes) == allowed
    assert all(site.urls()[f"{host}/robots.txt"] == 1 for host in HOSTS), json.dumps(site.urls())
    assert total(outcomes, "robotstxt/request_count") == len(HOSTS)
    for host in HOSTS:
        begins = sorted(begin for begin, _ in site.spans[host.removeprefix("http://")])
        assert all(later - sooner >= 0.1 for sooner, later in itertools.pairwise(begins)), begins
