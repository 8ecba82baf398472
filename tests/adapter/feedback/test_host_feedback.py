"""Manners, in whole crawls: delays as the web saw them, hosts that ask to be left alone, hosts that do not answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core import downloader
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from scrapy_ubi.adapter.feedback import host_feedback
from scrapy_ubi.adapter.feedback.host_feedback import SeveralLoads, SingleLoads
from scrapy_ubi.agent.hosts.host_concurrency import HostConcurrency
from scrapy_ubi.settings.loads_at_once import read_loads
from tests.agent.hosts.test_host_notes import HOST, OTHER, House
from tests.support.crawls import Outcome, crawl, items_of, total
from tests.support.site import HANG_UP, Page, Site, Visit

SLOW, QUICK = "slow.example", "quick.example"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        for host in (SLOW, QUICK):
            for number in range(8):
                running.page(f"http://{host}/{number}", "page")
        yield running


class AnyScheduler(Spider):
    """The same, for plain Scrapy as well."""

    name = "both"

    async def start(self) -> Any:
        for number in range(4):
            for host in (SLOW, QUICK):
                yield Request(f"http://{host}/{number}", errback=self.lost)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}

    def lost(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "error": repr(failure.value)}


class Both(Spider):
    """So many pages of each host; items say what came of them."""

    name = "both"
    pages = 4

    async def start(self) -> Any:
        self.node = self.crawler.engine.scheduler.node
        for number in range(int(self.pages)):
            for host in (SLOW, QUICK):
                yield Request(f"http://{host}/{number}", errback=self.lost)

    def parse(self, response: Response) -> Any:
        yield {"url": response.url, "status": response.status}

    def lost(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "error": type(failure.value).__name__}


def run(site: Site, spider: type[Spider] = Both, agents: int = 1, **settings: Any) -> list[Outcome]:
    outcomes = crawl(spider, site.proxy, agents, settings)
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert {url for url in site.urls() if QUICK in url} == {f"http://{QUICK}/{number}" for number in range(4)}
    return outcomes


def always(site: Site, host: str, page: Page | Callable[[Visit], Page]) -> None:
    for number in range(8):
        site.page(f"http://{host}/{number}", page)


def noted(outcome: Outcome) -> dict[str, int]:
    """What the report names."""
    return dict(outcome.crawler.spider.node.counters()["noted"])


# -- what people see of a host that fails


class Watches(Both):
    """Notes what people see of the slow host, after each of its pages."""

    def parse(self, response: Response) -> Any:
        return self.seen(response.url, response.status)

    def lost(self, failure: Any) -> Any:
        return self.seen(failure.request.url, failure.value.response.status)

    def seen(self, url: str, status: int) -> Any:
        if SLOW in url:
            state = self.node.frontier.find(SLOW)
            yield {"status": status, "error": self.node.hosts.get(state, "error") or ""}


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_host_that_fails_shows_its_status_until_it_answers(site: Site, status: int) -> None:
    for number in range(3):
        site.page(f"http://{SLOW}/{number}", Page("", status))
    one_page_at_a_time = {"CONCURRENT_REQUESTS": 1, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1}  # seen before the next
    found = items_of(run(site, Watches, RETRY_TIMES=1, UBI_HOST_FAILURES=0, UBI_HOST_DELAY=0, **one_page_at_a_time))
    assert {(item["status"], item["error"]) for item in found} == {(200, ""), (status, f"http/{status}")}


# -- the delay


@pytest.mark.parametrize("agents", [1, 2])
def test_download_delay_is_kept_from_the_end_of_each_load(site: Site, agents: int) -> None:
    run(site, agents=agents, DOWNLOAD_DELAY=0.3)
    for host in (SLOW, QUICK):
        assert len(site.gaps(host)) == 3
        assert min(site.gaps(host)) >= 0.3


def test_a_download_slot_has_its_delay(site: Site) -> None:
    (one,) = run(site, DOWNLOAD_SLOTS={SLOW: {"delay": 0.3, "concurrency": 1}})
    assert min(site.gaps(SLOW)) >= 0.3
    assert one.crawler.settings.getfloat("DOWNLOAD_DELAY_JITTER") == 0


def test_what_autothrottle_wants_is_kept_from_the_end_of_each_load(site: Site) -> None:
    run(site, AUTOTHROTTLE_ENABLED=True, AUTOTHROTTLE_START_DELAY=0.8)
    first, second, _ = site.gaps(SLOW)
    assert first >= 0.4  # half of the one before, or the latency where that is more
    assert second >= 0.2


def test_who_answers_slowly_is_asked_seldom(site: Site) -> None:
    def late(visit: Visit) -> Page:
        time.sleep(0.1)  # the response time
        return Page("page")

    always(site, SLOW, late)
    run(site, UBI_DELAY_FACTOR=3)
    assert min(site.gaps(SLOW)) >= 0.3


def test_a_delay_by_response_time_has_a_bound(site: Site) -> None:
    def late(visit: Visit) -> Page:
        time.sleep(0.1)
        return Page("page")

    always(site, SLOW, late)
    (one,) = run(site, UBI_DELAY_FACTOR=1000, UBI_MAX_DELAY=0.2)
    assert min(site.gaps(SLOW)) >= 0.2
    assert one.stats["finish_reason"] == "finished", "and not after 300 seconds"


class Stops(Both):
    """Closes after its first page. Items are the delays of its host."""

    async def start(self) -> Any:
        self.node = self.crawler.engine.scheduler.node
        for number in range(3):
            yield Request(f"http://{SLOW}/{number}")

    def parse(self, response: Response) -> Any:
        yield self.node.hosts.delays(self.node.frontier.find(SLOW))
        if self.settings["UBI_DELAY_FACTOR"]:
            raise CloseSpider("enough")


def test_after_a_restart_without_a_factor_response_times_do_not_matter(site: Site, tmp_path: Path) -> None:
    place = {"UBI_DIR": str(tmp_path)}
    slow, quick = {**place, "UBI_DELAY_FACTOR": 1000, "UBI_MAX_DELAY": 0.2}, {**place, "UBI_DELAY_FACTOR": 0}
    assert crawl(Stops, site.proxy, settings=slow)[0].items == [{"response": 0.2}]
    assert crawl(Stops, site.proxy, settings=quick)[0].items == [{}, {}]


# -- hosts on one address


class Neighbours(Spider):
    """Pages of three names of one machine, loaded from directly."""

    name = "neighbours"
    hosts: tuple[str, ...] = ()

    async def start(self) -> Any:
        for number in range(3):
            for host in self.hosts:
                yield Request(f"http://{host}/{number}", dont_filter=True)

    def parse(self, response: Response) -> None:
        """Nothing."""


def test_hosts_on_one_address_are_loaded_from_as_if_they_were_one(site: Site) -> None:
    port = site.proxy.rsplit(":", 1)[1]
    hosts = tuple(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    for host in hosts:
        for number in range(3):
            site.page(f"http://{host}/{number}", lambda visit: time.sleep(0.05) or Page("page"))
    (one,) = crawl(Neighbours, settings={"UBI_POLITE_BY_IP": True, "UBI_HOST_DELAY": 0.2}, hosts=hosts)
    assert one.reason == "finished"
    assert len(site.visits) == 6
    spans = sorted(span for host in hosts for span in site.spans[host])
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
    assert min(gaps[1:]) >= 0.2, "of the first loads of the two nothing is known yet"


# -- Retry-After


class TakesAnotherToken(RetryMiddleware):
    """A project's own: it asks again with another token where the site has had enough of one."""

    token = 0

    def process_request(self, request: Request) -> None:
        request.headers["X-Token"] = str(self.token)

    def process_response(self, request: Request, response: Response) -> Any:
        if response.status != 429:
            return response
        self.token += 1
        return request.replace(dont_filter=True)


@pytest.mark.parametrize("settings", [{"ADDONS": {}}, {}])
def test_a_retry_middleware_of_the_projects_sees_that_it_is_to_come_back_later(
    site: Site, settings: dict[str, Any]
) -> None:
    uses = Counter[str]()

    def metered(visit: Visit) -> Page:
        token = visit.headers["x-token"]
        uses[token] += 1
        return Page("page") if uses[token] <= 2 else Page("too many", 429, {"Retry-After": "0"})

    always(site, SLOW, metered)
    middlewares = {"scrapy.downloadermiddlewares.retry.RetryMiddleware": None, TakesAnotherToken: 550}
    outcomes = run(
        site,
        AnyScheduler,
        DOWNLOADER_MIDDLEWARES=middlewares,
        CONCURRENT_REQUESTS=1,
        UBI_HOST_DELAY=0,
        UBI_HOST_PAUSE=0,
        **settings,
    )
    assert [item for item in items_of(outcomes) if "error" in item] == []
    assert len(items_of(outcomes)) == 8
    assert max(uses.values()) == 3, "a token is not tried again"


def busy(times: int, value: str = "1", status: int = 503) -> Callable[[Visit], Page]:
    """A page that asks so often to come back later."""
    return lambda visit: Page("busy", status, {"Retry-After": value}) if visit.number <= times else Page("page")


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_for_it_is_left_alone_and_its_page_fetched_later(site: Site, status: int) -> None:
    site.page(f"http://{SLOW}/0", busy(1, status=status))
    (one,) = run(site, RETRY_TIMES=0)
    assert max(site.gaps(SLOW)) >= 1
    assert site.urls()[f"http://{SLOW}/0"] == 2
    assert [item["status"] for item in items_of([one])] == [200] * 8
    assert one.stats["ubi/hosts/postponed/retry-after"] == 1
    assert "retry/count" not in one.stats, "it has used up no retry"


def test_a_host_that_always_asks_is_given_up_and_the_crawl_ends(site: Site) -> None:
    always(site, SLOW, Page("busy", 503, {"Retry-After": "0"}))
    (one,) = run(site, UBI_HOST_TRIES=2, UBI_HOST_PAUSE=0.8)
    assert all(gap >= pause for gap, pause in zip(site.gaps(SLOW), (0, 0.1, 0.2), strict=False))
    asked = [visit.url for visit in site.visits if SLOW in visit.url]
    assert len(set(asked)) == 3 and len(asked) <= 6, "different pages, some of them twice"
    assert one.stats["ubi/failed/host/busy"] == 4
    assert one.stats["ubi/hosts/ended/host/busy"] == 1
    assert noted(one) == {"ended/host/busy": 1}
    assert {item["url"] for item in items_of([one])} == {f"http://{QUICK}/{number}" for number in range(4)}


def test_a_page_that_always_asks_fails_and_its_host_goes_on(site: Site) -> None:
    """As with plain Scrapy: the pages found later are loaded, too."""
    site.page(f"http://{SLOW}/0", busy(1000, "0"))
    (one,) = run(site, UBI_HOST_TRIES=1, UBI_HOST_PAUSE=0.2, UBI_HOST_FAILURES=2, RETRY_TIMES=1)
    assert site.urls()[f"http://{SLOW}/0"] <= 6, "it is spared once between two other answers, and has a retry"
    assert one.stats["ubi/failed/http/503"] == 1
    assert "ubi/hosts/ended/host/busy" not in one.stats
    assert [item["status"] for item in items_of([one]) if "error" not in item] == [200] * 7


def test_a_request_for_ever_has_a_bound(site: Site) -> None:
    site.page(f"http://{SLOW}/0", busy(1, "999999"))
    (one,) = run(site, UBI_MAX_RETRY_AFTER=0.5)
    assert max(site.gaps(SLOW)) >= 0.5
    assert len(items_of([one])) == 8


@pytest.mark.parametrize("value", ["soon", "-1", ""])
def test_what_cannot_be_read_is_as_if_it_was_not_there(site: Site, value: str) -> None:
    site.page(f"http://{SLOW}/0", busy(1, value))
    (one,) = run(site)
    assert one.stats["ubi/politeness/retry_after_unread"] == 1
    assert one.stats["retry/count"] == 1
    assert len(items_of([one])) == 8


def test_the_header_can_be_passed_over(site: Site) -> None:
    site.page(f"http://{SLOW}/0", busy(1, "999999"))
    (one,) = run(site, UBI_MAX_RETRY_AFTER=0)
    assert one.stats["retry/count"] == 1
    assert len(items_of([one])) == 8


class Handles(Both):
    """Wants to see such pages itself."""

    name = "handles"
    handle_httpstatus_list = (503,)


@pytest.mark.parametrize("settings", [{}, {"RETRY_HTTP_CODES": [500]}, {"RETRY_ENABLED": False}])
def test_whoever_handles_the_status_sees_it_as_ever_and_the_host_is_left_alone(
    site: Site, settings: dict[str, Any]
) -> None:
    site.page(f"http://{SLOW}/0", busy(2, "0"))
    (one,) = run(site, Handles, **settings, RETRY_TIMES=1, UBI_HOST_PAUSE=0.1)
    tried = 1 if settings else 2
    assert one.stats["ubi/hosts/postponed/retry-after"] == tried
    assert site.urls()[f"http://{SLOW}/0"] == tried
    assert {"url": f"http://{SLOW}/0", "status": 503} in items_of([one])
    assert len(items_of([one])) == 8


# -- a host that does not answer


def loads(outcome: Outcome) -> int:
    """Loads that ended without a response; what the web saw may be more, as the handler tries again by itself."""
    return int(outcome.stats.get("downloader/exception_count", 0))


def tried(site: Site, outcomes: list[Outcome]) -> int:
    """Loads of the slow host, but for those that were sent again at the end of a connection, or aborted."""
    return len(site.spans[SLOW]) - total(outcomes, "ubi/guard/repeated") - total(outcomes, "ubi/guard/cancelled")


def test_a_host_that_does_not_answer_is_given_up_after_some_tries(site: Site) -> None:
    always(site, SLOW, Page(status=HANG_UP))
    (one,) = run(site, UBI_HOST_FAILURES=2, UBI_HOST_TRIES=1, UBI_HOST_PAUSE=0.5, RETRY_TIMES=0)
    assert tried(site, [one]) == 3
    assert max(site.gaps(SLOW)) >= 0.5, "after two failures it is left alone"
    assert one.stats["ubi/hosts/postponed/health"] == 1
    assert one.stats["ubi/failed/host/dead"] == 3, "the loads that excluded and ended it have cost no page its retries"
    assert noted(one) == {"host/excluded": 1, "ended/host/dead": 1}
    lost = {item["url"] for item in items_of([one]) if "error" in item}
    assert len(lost) == 1
    assert all(SLOW in url for url in lost)


def test_a_host_whose_loads_all_take_too_long_is_given_up_too(site: Site) -> None:
    """Else a host that drips would take UBI_MAX_LOAD_SECONDS for each of its pages."""
    stopped = threading.Event()

    def drip(visit: Visit) -> Page:
        return Page("<html>", chunks=iter(lambda: b" " if not stopped.wait(0.02) else b"", b""))

    always(site, SLOW, drip)
    try:
        (one,) = run(site, UBI_HOST_FAILURES=1, UBI_HOST_TRIES=1, UBI_HOST_PAUSE=0.01, UBI_MAX_LOAD_SECONDS=2.0)
    finally:
        stopped.set()
    assert one.stats["ubi/failed/load/too_long"] == 2
    assert one.stats["ubi/failed/host/dead"] == 2
    assert noted(one) == {"host/excluded": 1, "ended/host/dead": 1}


def test_one_answer_makes_a_host_healthy_again(site: Site) -> None:
    for number in (0, 1, 3):
        site.page(f"http://{SLOW}/{number}", Page(status=HANG_UP))
    site.page(f"http://{SLOW}/2", Page("not here", 404))
    (one,) = run(site, UBI_HOST_FAILURES=3, RETRY_TIMES=0)
    assert loads(one) == 3
    assert "ubi/hosts/postponed/health" not in one.stats


def test_health_can_be_passed_over(site: Site) -> None:
    always(site, SLOW, Page(status=HANG_UP))
    (one,) = run(site, UBI_HOST_FAILURES=0, RETRY_TIMES=1)
    assert loads(one) == 8, "each page twice, as ever"
    assert "ubi/failed/host/dead" not in one.stats


def test_a_dead_host_is_one_for_every_agent(site: Site) -> None:
    always(site, SLOW, Page(status=HANG_UP))
    outcomes = run(site, agents=2, UBI_HOST_FAILURES=1, UBI_HOST_TRIES=0, RETRY_TIMES=0)
    assert tried(site, outcomes) == 1
    assert total(outcomes, "ubi/failed/host/dead") == 4


class Cemetery(Spider):
    """A page of each of so many hosts."""

    name = "cemetery"

    async def start(self) -> Any:
        for number in range(5):
            yield Request(f"http://dead{number}.example/", errback=lambda failure: None)


def test_a_million_dead_hosts_do_not_fill_a_log_of_warnings(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_feedback, "MOST_SAID", 2)
    for number in range(5):
        site.page(f"http://dead{number}.example/", Page(status=HANG_UP))
    with caplog.at_level("INFO", "scrapy_ubi"):
        (one,) = crawl(Cemetery, site.proxy, 1, {"UBI_HOST_FAILURES": 1, "UBI_HOST_TRIES": 0, "RETRY_TIMES": 0})
    assert one.stats["ubi/hosts/ended/host/dead"] == 5
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, text in said if "it is given up" in text] == ["WARNING"] * 2 + ["INFO"] * 3
    assert [level for level, text in said if text.startswith("More hosts that are given up (host/dead)")] == ["WARNING"]


# -- a host that answers with errors

ERRORS = {"UBI_HOST_FAILURES": 2, "UBI_HOST_TRIES": 1, "UBI_HOST_PAUSE": 0.64, "RETRY_TIMES": 1}
RESTS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64]


def outage(loads: int, status: int = 503) -> Callable[[Visit], Page]:
    """A page of a host that fails for its first so many loads, and then is well."""
    seen: list[str] = []

    def answer(visit: Visit) -> Page:
        seen.append(visit.url)
        return Page("failing", status) if len(seen) <= loads else Page("page")

    return answer


@pytest.mark.parametrize("status", [500, 503, 522, 524, 429])
def test_a_host_that_fails_for_a_while_rests_and_loses_no_page(site: Site, status: int) -> None:
    always(site, SLOW, outage(10, status))
    (one,) = run(site, **ERRORS, pages=4)
    assert [item["status"] for item in items_of([one])] == [200] * 8
    assert len(site.spans[SLOW]) == 10 + 4
    rests = site.gaps(SLOW)[1:10:2]
    assert all(rest >= wanted for rest, wanted in zip(rests, RESTS, strict=False)), rests
    assert one.stats["ubi/hosts/postponed/failing"] == 5
    assert one.stats["retry/count"] == 1, "that of the first page; the others were spared"
    assert noted(one) == {"host/failing": 5}


def test_a_host_that_always_fails_is_given_up_and_the_crawl_ends(site: Site) -> None:
    always(site, SLOW, Page("failing", 503))
    (one,) = run(site, **ERRORS)
    assert len(site.spans[SLOW]) == 2 * (len(RESTS) + 1)
    assert one.stats["ubi/failed/host/failing"] == 4
    assert one.stats["ubi/hosts/postponed/failing"] == len(RESTS)
    assert noted(one) == {"host/failing": len(RESTS), "ended/host/failing": 1}
    assert {item["url"] for item in items_of([one])} == {f"http://{QUICK}/{number}" for number in range(4)}


class LooksAtResponses(RetryMiddleware):
    def process_response(self, request: Request, response: Response) -> Any:
        return super().process_response(request, response)


def test_a_host_that_always_fails_rests_whoever_looks_at_its_answers(site: Site) -> None:
    always(site, SLOW, Page("failing", 503))
    middlewares = {"scrapy.downloadermiddlewares.retry.RetryMiddleware": None, LooksAtResponses: 550}
    (one,) = run(site, **ERRORS, DOWNLOADER_MIDDLEWARES=middlewares)
    assert one.stats["ubi/hosts/postponed/failing"] == 4, "its pages' retries end before the host is given up"
    assert noted(one)["host/failing"] == 4


def test_one_page_that_always_fails_does_not_disturb_its_host(site: Site) -> None:
    site.page(f"http://{SLOW}/1", Page("failing", 500))
    (one,) = run(site, **{**ERRORS, "RETRY_TIMES": 3})
    assert site.urls()[f"http://{SLOW}/1"] == 4
    assert one.stats["ubi/failed/http/500"] == 1
    assert len(items_of([one])) == 8 - 1 + 1, "its errback is told"
    assert "ubi/hosts/postponed/failing" not in one.stats


def test_pages_that_are_left_of_a_failing_host_use_up_their_retries(site: Site) -> None:
    """Fewer than make a streak: else the crawl would not end."""
    for number in (1, 2):
        site.page(f"http://{SLOW}/{number}", Page("failing", 500))
    (one,) = run(site, **{**ERRORS, "UBI_HOST_FAILURES": 3})
    assert one.stats["ubi/failed/http/500"] == 2
    assert len(site.spans[SLOW]) == 2 + 2 * 2


@pytest.mark.parametrize(
    "settings", [{"UBI_HOST_FAILURES": 0}, {"RETRY_ENABLED": False}, {"RETRY_HTTP_CODES": [500]}, {"handles": True}]
)
def test_errors_that_scrapy_would_not_retry_or_somebody_handles_go_their_usual_way(
    site: Site, settings: dict[str, Any]
) -> None:
    always(site, SLOW, Page("failing", 503))
    spider = Handles if settings.pop("handles", False) else Both
    (one,) = run(site, spider, **{**ERRORS, **settings})
    tried = 1 if "RETRY_ENABLED" in settings or "RETRY_HTTP_CODES" in settings else 2
    assert len(site.spans[SLOW]) == 4 * tried
    assert len(items_of([one])) == 8, "each page has its callback or its errback"
    assert "ubi/hosts/postponed/failing" not in one.stats


# -- a host that a proxy cannot reach


def test_a_host_that_a_proxy_has_never_reached_is_given_up_soon(site: Site) -> None:
    always(site, SLOW, Page("no such host", 502))
    (one,) = run(site, UBI_HOST_PAUSE=3.2)
    assert len(site.spans[SLOW]) == 4
    assert all(gap >= rest for gap, rest in zip(site.gaps(SLOW), (0.05, 0.1, 0.2), strict=True))
    assert one.stats["ubi/failed/host/dead"] == 4
    assert noted(one) == {"host/excluded": 3, "ended/host/dead": 1}


def test_one_that_it_has_reached_before_is_one_that_fails(site: Site) -> None:
    for number in range(1, 8):
        site.page(f"http://{SLOW}/{number}", Page("no such host", 502))
    (one,) = run(site, **ERRORS)
    assert noted(one) == {"host/failing": len(RESTS), "ended/host/failing": 1}


@pytest.mark.parametrize("reached", [False, True])
def test_a_robots_txt_that_a_proxy_cannot_reach_is_not_asked_for_for_long(site: Site, reached: bool) -> None:
    site.page(f"http://{SLOW}/robots.txt", Page("no such host", 404 if reached else 502))
    if reached:
        always(site, SLOW, Page("no such host", 502))
    (one,) = crawl(Both, site.proxy, 1, {"ROBOTSTXT_OBEY": True, "UBI_ROBOTS_GIVE_UP": 5, **ERRORS})
    what = "host/failing" if reached else "robots/unreachable"
    assert one.stats[f"ubi/failed/{what}"] == 4
    assert site.urls()[f"http://{SLOW}/robots.txt"] == (1 if reached else 2), "now, and after a tenth of 5 s"


# -- the others


class Enough(Both):
    """Closes when it has all pages of the quick host."""

    name = "enough"
    seen = 0

    def parse(self, response: Response) -> Any:
        self.seen += QUICK in response.url
        if self.seen == 4:
            raise CloseSpider("enough")


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        (Page("busy", 503, {"Retry-After": "80000"}), {"UBI_MAX_RETRY_AFTER": 80000}),
        (Page(status=HANG_UP), {"UBI_HOST_FAILURES": 1, "UBI_HOST_PAUSE": 80000}),
        (Page("page"), {"DOWNLOAD_SLOTS": {SLOW: {"delay": 1000}}}),
    ],
    ids=["asks to be left alone", "does not answer", "has a long delay"],
)
def test_nobody_else_waits_for_a_host_that_is_left_alone(site: Site, page: Page, settings: dict[str, Any]) -> None:
    """Not even with a single place in the downloader."""
    always(site, SLOW, page)
    (one,) = crawl(Enough, site.proxy, 1, {"CONCURRENT_REQUESTS": 1, "UBI_LEAVE_TIMEOUT": 0, **settings})
    assert one.reason == "enough"
    assert site.urls()[f"http://{SLOW}/0"] >= 1


@pytest.mark.parametrize("lean", [True, False])
def test_on_a_machine_that_was_booted_just_now_the_first_page_waits_for_no_delay(
    site: Site, lean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scrapy's slots say that they were last used at 0 of a clock that may have begun with the machine."""
    booted = time.monotonic()
    monkeypatch.setattr(downloader, "monotonic", lambda: time.monotonic() - booted)
    settings = {"DOWNLOAD_SLOTS": {SLOW: {"delay": 1000, "jitter": 0.5}}, "UBI_LEAVE_TIMEOUT": 0, "UBI_LEAN": lean}
    (one,) = crawl(Enough, site.proxy, 1, {"CONCURRENT_REQUESTS": 1, **settings})
    assert one.reason == "enough"
    assert site.urls()[f"http://{SLOW}/0"] == 1


class Loads(SeveralLoads):
    """Those of a host with four at once, at a time that only a test moves."""

    def __init__(self, value: object = {HOST: 4}) -> None:
        self.house = House()
        self.house.state()
        self.now = 50.0
        self.concurrency = HostConcurrency(read_loads(value), self.house.hosts)
        super().__init__(self.concurrency, lambda: self.now)

    def late(self, began: float, host: str | None = HOST) -> bool:
        flight: Any = SimpleNamespace(host=host, began=began)
        return self.is_late(flight)


def test_loads_that_began_before_the_host_was_put_off_are_late() -> None:
    loads = Loads()
    assert not loads.late(49.0)
    loads.put_off(HOST)
    assert loads.late(49.0)
    assert not loads.late(50.0)
    assert not loads.late(49.0, OTHER)
    assert not loads.late(49.0, None)


def test_of_a_host_with_one_at_a_time_none_is_late() -> None:
    loads = Loads()
    loads.put_off(OTHER)
    assert not loads.late(49.0, OTHER)


def test_the_one_put_off_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_feedback, "MOST_HOSTS", 2)
    loads = Loads(4)
    for host in ("a", "b", "a", "c"):
        loads.put_off(host)
    assert [loads.late(49.0, host) for host in ("a", "b", "c")] == [True, False, True]


@pytest.mark.parametrize("status", [429, 503])
def test_auto_hears_of_all(status: int) -> None:
    loads = Loads("auto(8)")
    for _ in range(3):
        loads.note_answer(HOST, 49.0, 200, 0.1)
    assert loads.concurrency.limit(HOST) == 3
    loads.note_answer(HOST, 49.5, status, 0.1)
    assert loads.concurrency.limit(HOST) == 1
    loads.now = 60.0
    for _ in range(3):
        loads.note_answer(HOST, 55.0, 200, 0.1)
    assert loads.concurrency.limit(HOST) == 3
    loads.note_failure(HOST, 56.0)
    assert loads.concurrency.limit(HOST) == 1


def test_without_any_such_host_nothing_is_kept() -> None:
    loads = SingleLoads()
    loads.note_answer(HOST, 1.0, 503, 0.1)
    loads.note_failure(HOST, 1.0)
    loads.put_off(HOST)
    flight: Any = SimpleNamespace(host=HOST, began=0.5)
    assert not loads.is_late(flight)
