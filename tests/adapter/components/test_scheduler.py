"""The scheduler between Scrapy and a node: what comes in, what goes out, and when a visit has ended."""

from __future__ import annotations

import pytest
from scrapy import Request, signals
from scrapy.http import Response

from scrapy_ubi.adapter.components.scheduler import SEED
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.scheduling.dequeue import MOST_TOLD
from scrapy_ubi.adapter.scheduling.enqueue import MOST_OFFERED
from scrapy_ubi.adapter.scheduling.inspect_mode import Trial
from scrapy_ubi.protocol.host import Entry, retries_of
from scrapy_ubi.urls.key import seed_key
from tests.adapter.components.unit import HOST, URL, Unit, failure_of


def test_a_request_becomes_an_entry_of_its_host() -> None:
    unit = Unit()
    assert unit.enqueue_request(Request(f"{HOST}:8080/x", meta={"depth": 2}, priority=3))
    [(host, entry, seed)] = unit.found()
    assert (host, entry.url, entry.depth, entry.priority, entry.request) == (
        "h1.example:8080",
        f"{HOST}:8080/x",
        2,
        3,
        "",
    )
    assert not seed
    assert unit.has_pending_requests() and len(unit) == 1


def test_what_is_known_is_dropped() -> None:
    unit = Unit()
    assert unit.enqueue_request(Request(URL))
    assert not unit.enqueue_request(Request(URL + "#fragment"))
    assert unit.stat("scheduler/duplicates") == 1


def test_seeds_are_taken_once_also_when_they_ask_to_be_fetched_anyway() -> None:
    unit = Unit()
    assert unit.enqueue_request(Request(URL, dont_filter=True, meta={SEED: True}))
    assert not unit.enqueue_request(Request(URL, dont_filter=True, meta={SEED: True}))
    assert [seed for _, _, seed in unit.found()] == [True]
    out = unit.take()
    assert SEED not in out.meta and out.meta[NONCE] == "seed"
    assert not unit.enqueue_request(Request(URL, dont_filter=True, meta={SEED: True})), "not a retry either"


def test_a_link_that_is_a_seed_is_done_without_a_load_when_it_has_its_turn() -> None:
    unit, dropped = Unit(), list[str]()

    def drop(request: Request) -> None:
        dropped.append(request.url)

    unit.crawler.signals.connect(drop, signals.request_dropped)
    for path in ("", "a", "b"):
        unit.enqueue_request(Request(URL + path, meta={"depth": 1}))
    for visit in list(unit.node.queue)[:2]:
        visit.state.done.add(seed_key(visit.entry.key))
    assert unit.take().url == URL + "b"
    assert [call[1:] for call in unit.node.calls if call[0] == "ended"] == [
        (URL, None, False),
        (URL + "a", None, False),
    ]
    assert [call for call in unit.node.calls if call[0] == "passed"] == [("passed", "h1.example")] * 2
    assert unit.stat("scheduler/duplicates") == 2 and dropped == [URL, URL + "a"]


def fetched(unit: Unit, request: Request) -> None:
    """This one was handed out, and is over."""
    flight = unit.flights.get(request)
    assert flight is not None
    flight.fetched = True
    request.meta["download_latency"] = 0.1  # as Scrapy notes there
    unit.let_go(request)


@pytest.mark.parametrize("failed", [None, "http/500"])
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_a_link_that_was_fetched_stands_for_a_seed_that_is_met_later(
    ended: bool, alone: bool, failed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unit, "alone", alone)
    unit = Unit()
    urls = [URL, f"{URL}x"]
    for url, more in zip(urls, ({}, {"cb_kwargs": {"word": 1}}), strict=True):
        unit.enqueue_request(Request(url, **more))
    if ended:
        unit.start_ended()
    for page in (unit.take(), unit.take()):
        unit.flights.get(page).failed = failed  # type: ignore[union-attr]
        fetched(unit, page)
    for url in urls:
        unit.enqueue_request(Request(url, dont_filter=True, meta={SEED: True}))
    met = failed is not None or (ended and alone)
    assert [unit.take().url for _ in range(1 + met)] == (urls if met else urls[1:])
    assert unit.next_request() is None and unit.stat("scheduler/duplicates") == (not met)


@pytest.mark.parametrize("failed", [None, "http/500"])
def test_a_seed_that_has_its_turn_while_such_a_link_is_under_way_waits_for_it(failed: str | None) -> None:
    unit = Unit()
    unit.start_ended()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    unit.enqueue_request(Request(URL, dont_filter=True, meta={SEED: True}))
    assert unit.next_request() is None
    dropped = list[Request]()

    def drop(request: Request) -> None:
        dropped.append(request)

    unit.crawler.signals.connect(drop, signals.request_dropped)
    unit.flights.get(page).failed = failed  # type: ignore[union-attr]
    fetched(unit, page)
    assert [(request.url, request is page) for request in dropped] == [(URL, False)] * (failed is None)
    assert unit.stat("scheduler/duplicates") == (failed is None)
    assert unit.node.calls[-1][0] == ("ended" if failed is None else "put_back")


def test_what_asks_to_be_fetched_anyway_is_another_request_each_time() -> None:
    unit = Unit()
    assert all(unit.enqueue_request(Request(URL, dont_filter=True)) for _ in range(3))
    assert len({entry.key for _, entry, _ in unit.found()}) == 3


def test_a_child_has_the_same_nonce_when_its_page_is_fetched_again() -> None:
    nonces = []
    for _ in range(2):
        unit = Unit()
        unit.enqueue_request(Request(URL))
        page = unit.take()
        children = [Request(URL, dont_filter=True) for _ in range(2)]
        for child in children:
            unit.enqueue.mark_child(child, page)
        nonces.append([child.meta[NONCE] for child in children])
    assert nonces[0] == nonces[1] and len(set(nonces[0])) == 2


def test_children_that_need_none_or_whose_page_is_unknown_are_not_marked() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    plain, stranger = Request(URL), Request(URL, dont_filter=True)
    unit.enqueue.mark_child(plain, unit.take())
    unit.enqueue.mark_child(stranger, Request(URL))
    unit.enqueue.mark_child(stranger, None)
    assert NONCE not in plain.meta and NONCE not in stranger.meta


def test_the_node_hears_on_which_page_a_request_was_found() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    child, stray, hop, foreign = (Request(f"{HOST}/{name}") for name in ("child", "stray", "hop", "foreign"))
    unit.enqueue.mark_child(child, page)
    hop.meta["redirect_urls"] = ["http://h7.example/", URL]
    foreign.meta["redirect_urls"] = [f"{HOST}/gone"]
    unit.enqueue_request(child)
    unit.enqueue_request(stray)
    unit.enqueue.mark_successor(hop, page)
    unit.enqueue_request(hop)
    unit.enqueue_request(foreign)
    visits = [unit.node.pages[request.url] for request in (child, stray, hop, foreign)]
    assert visits[0] is visits[2] and visits[0].entry.url == URL
    assert visits[1] is visits[3] is None


def test_a_redirect_counts_for_the_page_that_it_stands_in_place_of() -> None:
    """Of two pages of one URL that are out, a GET and a POST, each has its own redirect."""
    unit = Unit()
    unit.enqueue_request(Request(URL))
    unit.enqueue_request(Request(URL, method="POST", body=b"q=1"))
    pages = [unit.take(), unit.take()]
    for page in reversed(pages):
        hop = Request(f"{HOST}/after-{page.method}", meta={"redirect_urls": [URL]})
        unit.enqueue.mark_successor(hop, page)
        unit.enqueue_request(hop)
        found = unit.node.pages[hop.url]
        flight = unit.flights.get(page)
        assert flight is not None and found is flight.visit


def led_to(unit: Unit, seed: str, **changes: object) -> Request:
    """What a downloader middleware gives in place of the response of a seed that is to be fetched anyway."""
    unit.enqueue_request(Request(seed, dont_filter=True, meta={SEED: True}))
    page = unit.take()
    request = page.replace(**{"url": f"{HOST}/end", **changes})
    unit.enqueue.mark_successor(request, page)
    return request


@pytest.mark.parametrize("marks", [{"redirect_urls": [f"{HOST}/a"]}, {}], ids=["redirect", "middleware"])
def test_what_two_seeds_lead_to_is_fetched_for_each_and_once_however_often_these_are(marks: dict[str, object]) -> None:
    taken = []
    for seed in ("a", "b", "a"):
        unit = Unit()
        request = led_to(unit, f"{HOST}/{seed}")
        request.meta.update(marks)
        assert unit.enqueue_request(request)
        taken.append(unit.found()[-1][1].key)
    assert taken[0] == taken[2] != taken[1]


def test_what_a_middleware_gives_without_dont_filter_is_a_page_as_others_are() -> None:
    unit = Unit()
    assert unit.enqueue_request(led_to(unit, f"{HOST}/a", dont_filter=False))
    assert not unit.enqueue_request(led_to(unit, f"{HOST}/b", dont_filter=False))
    assert not unit.enqueue_request(Request(f"{HOST}/end"))
    child = Request(f"{HOST}/c", dont_filter=True)
    unit.enqueue.mark_child(child, unit.take())
    unit.enqueue_request(child)
    page = unit.take()
    end = page.replace(url=f"{HOST}/end", dont_filter=False)
    unit.enqueue.mark_successor(end, page)
    assert not unit.enqueue_request(end)


def test_a_page_counts_for_the_request_it_was_told_of_only() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    unit.enqueue.mark_child(Request(f"{HOST}/dropped by a signal handler"), page)
    unit.enqueue_request(Request(f"{HOST}/stray"))
    assert unit.node.pages[f"{HOST}/stray"] is None


def test_a_retry_is_the_same_key_again() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL, meta={"depth": 1}))
    page = unit.take()
    retry = page.replace(dont_filter=True, priority=-1, meta={**page.meta, "retry_times": 1})
    unit.enqueue.mark_successor(retry, page)
    assert unit.enqueue_request(retry)
    assert unit.let_go(page)[:2] == ("ended", URL)
    again = unit.take()
    assert again.meta == {"depth": 1, "retry_times": 1} and again.priority == -1
    retry = again.replace(meta={**again.meta, "retry_times": 2}, dont_filter=True)
    unit.enqueue.mark_successor(retry, again)
    assert unit.enqueue_request(retry)
    assert unit.let_go(again)[:2] == ("ended", URL)
    again = unit.take()
    flight = unit.flights.get(again)
    assert flight is not None and flight.visit is not None
    assert retries_of(flight.visit.entry.request) == 2
    assert unit.let_go(again) == ("ended", URL, None, False)
    assert not unit.has_pending_requests() and len(unit) == 0


def test_a_duplicate_of_a_request_that_is_out_is_dropped() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    unit.take()
    assert not unit.enqueue_request(Request(URL))


def test_what_leads_to_a_page_that_is_out_is_no_retry_of_it() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    unit.enqueue_request(Request(f"{HOST}/from"))
    page, other = unit.take(), unit.take()
    redirect = page.replace(meta={"redirect_urls": [f"{HOST}/from"], "redirect_times": 1})
    unit.enqueue.mark_successor(redirect, other)
    assert not unit.enqueue_request(redirect), "a duplicate"
    retried = redirect.replace(dont_filter=True)  # as its page was retried before
    unit.enqueue.mark_successor(retried, other)
    assert not unit.enqueue_request(retried), "a duplicate as well, as where that page is queued or done"
    for _ in range(2):
        anyway = Request(URL, dont_filter=True)
        unit.enqueue.mark_successor(anyway, other)
        assert unit.enqueue_request(anyway)
    assert unit.let_go(page) == ("ended", URL, None, False)
    assert [unit.take().url for _ in range(2)] == [URL, URL] and not len(unit)


def test_what_two_pages_are_redirected_to_is_fetched_once_whenever_it_is_met() -> None:
    """Both came by one URL, so their marks are the same. They were retried before, which has set `dont_filter`."""
    unit = Unit()
    unit.enqueue_request(Request(URL))
    unit.enqueue_request(Request(URL, method="POST", body=b"q=1"))
    pages = [unit.take(), unit.take()]
    marks = {"redirect_urls": [URL], "redirect_times": 1, "retry_times": 1}
    hops = [Request(f"{HOST}/end", dont_filter=True, meta=dict(marks)) for _ in pages]
    for page, hop in zip(pages, hops, strict=True):
        unit.enqueue.mark_successor(hop, page)
    assert unit.enqueue_request(hops[0])
    end = unit.take()
    assert not unit.enqueue_request(hops[1]), "no retry of the one that is under way"
    unit.let_go(end)
    assert unit.next_request() is None


def test_a_successor_that_is_not_taken_pushes_out_the_oldest_one_only() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    hops = [Request(f"{HOST}/{number}") for number in range(MOST_OFFERED + 2)]
    for hop in hops:
        unit.enqueue.mark_successor(hop, page)
    assert all(map(unit.enqueue_request, hops))
    assert [unit.node.pages[hop.url] is not None for hop in hops] == [False] * 2 + [True] * MOST_OFFERED


def test_a_child_that_is_not_taken_pushes_out_the_oldest_one_only() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    children = [Request(f"{HOST}/{number}") for number in range(MOST_OFFERED + 2)]
    for child in children:
        unit.enqueue.mark_child(child, page)
        assert not unit.enqueue.is_known(child)
    assert all(map(unit.enqueue_request, children))
    assert [unit.node.pages[child.url] is not None for child in children] == [False] * 2 + [True] * MOST_OFFERED


def test_what_an_errback_yields_has_the_same_nonce_when_its_page_fails_again() -> None:
    """Its meta is that of the page which has failed: what that says is no mark of the copy."""
    nonces = []
    for _ in range(2):
        unit = Unit()
        unit.enqueue_request(Request(URL, dont_filter=True, meta={SEED: True}))
        page = unit.take()
        copies = [page.replace(dont_filter=True, meta={**page.meta, "retry_times": 2, SEED: True}) for _ in range(2)]
        for copy in copies:
            unit.mark_errback_child(copy, page)
            assert unit.enqueue_request(copy)
        nonces.append([copy.meta[NONCE] for copy in copies])
        assert all(unit.node.pages[copy.url] is not None for copy in copies)
    assert nonces[0] == nonces[1] and len({*nonces[0], "seed"}) == 3


def test_what_the_errback_of_a_page_without_a_host_yields_is_fetched_each_time() -> None:
    unit = Unit()
    unit.enqueue_request(Request("file:///gone", meta={SEED: True}))
    page = unit.take()
    copies = [Request(URL, dont_filter=True, meta={"retry_times": 1}) for _ in range(2)]
    for copy in copies:
        unit.mark_errback_child(copy, page)
    assert all(map(unit.enqueue_request, copies))


def test_a_copy_of_a_page_that_the_engine_is_asked_for_is_no_retry_of_it() -> None:
    """A pipeline or an extension has made it: what its meta says is that of the page."""
    unit = Unit()
    unit.enqueue_request(Request(URL, dont_filter=True))
    page = unit.take()
    copies = [page.replace(dont_filter=True, meta={**page.meta, "retry_times": 1}) for _ in range(2)]
    assert all(map(unit.enqueue_request, copies))
    unit.let_go(page)
    assert unit.enqueue_request(copies[0].copy())
    assert len(unit) == 3


def test_the_outcome_of_a_page_is_told() -> None:
    unit = Unit()
    for path in ("ok", "404", "error", "callback"):
        unit.enqueue_request(Request(URL + path))
    ok, missing, error, callback = (unit.take() for _ in range(4))
    assert not unit.dequeue.outcome(Response(ok.url), ok)
    assert not unit.dequeue.outcome(Response(missing.url, status=404), missing)
    assert not unit.dequeue.outcome(failure_of(TimeoutError("late")), error)
    unit.spider_error(failure_of(ValueError("bug")), Response(callback.url, request=callback))
    unit.flights.get(ok).fetched = True  # type: ignore[union-attr]
    told = [unit.let_go(request)[1:] for request in (ok, missing, error, callback)]
    assert told == [
        (ok.url, None, True),
        (missing.url, "http/404", False),
        (error.url, "exception/TimeoutError", False),
        (callback.url, "callback/ValueError", False),
    ]
    assert unit.stat("failed/http/404") == 1


def test_a_withdrawn_page_goes_back_and_the_spider_is_not_told() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    flight = unit.flights.get(page)
    assert flight is not None
    unit.gate.take_out(flight)
    assert unit.enqueue_request(page.replace(dont_filter=True)), "a user's middleware may retry whatever fails"
    assert unit.dequeue.outcome(failure_of(RuntimeError("withdrawn")), page)
    assert unit.let_go(page) == ("put_back", URL)
    assert not len(unit.parts.kept), "all of it is in the frontier"
    assert unit.take().url == URL


def test_a_page_that_arrived_although_it_was_to_be_cancelled_has_arrived() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    page = unit.take()
    unit.gate.take_out(unit.flights.get(page))  # type: ignore[arg-type]
    assert not unit.dequeue.outcome(Response(URL), page)
    assert unit.let_go(page)[0] == "ended"


def test_what_scrapy_lets_go_of_that_is_not_ours_is_nothing() -> None:
    unit = Unit()
    unit.hooks.removed(Request(URL))
    assert unit.node.calls == []


def test_what_cannot_travel_is_the_same_object_here() -> None:
    unit = Unit()
    request = Request(URL, callback=lambda response: None)
    unit.enqueue_request(request)
    out = unit.take()
    assert out is request
    unit.gate.take_out(unit.flights.get(out))  # type: ignore[arg-type]
    unit.let_go(out)
    assert unit.take() is request
    assert unit.stat("codec/untravelled/callback") == 1


def test_above_the_bound_the_oldest_are_as_if_they_had_travelled(caplog: pytest.LogCaptureFixture) -> None:
    unit = Unit()
    requests = [Request(f"{URL}{n}", meta={"f": print, "n": n}) for n in range(3)]
    for request in requests:
        unit.enqueue_request(request)
    assert unit.stat("codec/originals_dropped") == 1
    assert "Too many requests" in caplog.text
    assert [unit.take() for _ in range(2)] == requests[1:]
    assert ("ended", f"{URL}0", "codec/meta", False) in unit.node.calls
    assert "lacks what could not travel to this agent: meta['f']" in caplog.text


@pytest.mark.parametrize("error", [None, ValueError("callback")])
def test_a_page_that_fails_without_its_errback_failed_for_want_of_it(error: ValueError | None) -> None:
    unit = Unit()
    unit.node.discover("h1.example", Entry(1, URL, 0, 0, '{"errback":"<lost>"}'))
    out = unit.take()
    if error is None:
        assert not unit.dequeue.outcome(failure_of(ConnectionError()), out)
        assert unit.let_go(out)[2] == "codec/errback"
    else:  # which is not for the errback
        page = Response(URL, request=out)
        assert not unit.dequeue.outcome(page, out)
        unit.spider_error(failure_of(error), page)
        assert unit.let_go(out)[2] == "callback/ValueError"


def test_of_very_many_pages_that_could_not_travel_the_first_are_errors_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unit = Unit()
    for number in range(MOST_TOLD + 5):
        unit.node.discover("h1.example", Entry(number, f"{URL}{number}", 0, 0, '{"lost":["meta","meta[1]"]}'))
    assert unit.next_request() is None
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == MOST_TOLD
    assert unit.stat("failed/codec/meta") == MOST_TOLD + 5


def test_an_entry_that_cannot_be_decoded_fails_and_the_next_one_is_taken() -> None:
    unit = Unit()
    unit.node.discover("h1.example", Entry(1, URL, 0, 0, '{"callback":"gone"}'))
    unit.enqueue_request(Request(URL + "next"))
    assert unit.take().url == URL + "next"
    assert ("ended", URL, "codec/callback", False) in unit.node.calls


def test_urls_that_are_too_long_are_dropped_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    unit = Unit(max_url_length=64)
    assert not any(unit.enqueue_request(Request(URL + "x" * 64)) for _ in range(2))
    assert unit.stat("scheduler/dropped/url_too_long") == 2
    assert len(caplog.records) == 1


def test_links_that_a_filter_refuses_are_dropped_before_anything_else() -> None:
    unit = Unit(filters=("scope(stay=host)", "schemes(http)"))
    assert unit.enqueue_request(Request(URL, meta={SEED: True}))
    page = unit.take()
    for url, taken in ((f"{HOST}/a", True), ("http://h2.example/", False), ("ftp://h1.example/", False)):
        request = Request(url)
        unit.enqueue.mark_child(request, page)
        assert unit.enqueue_request(request) is taken
    assert [entry.url for _, entry, _ in unit.found()] == [URL, f"{HOST}/a"]
    assert (unit.stat("filtered/scope"), unit.stat("filtered/schemes")) == (1, 1)
    assert unit.stat("scheduler/local") == unit.stat("scheduler/duplicates") == 0


def test_seeds_retries_and_redirects_are_not_filtered() -> None:
    unit = Unit(filters=("length(1)",))
    assert unit.enqueue_request(Request(URL, meta={SEED: True}))
    page = unit.take()
    assert unit.enqueue_request(page.replace(dont_filter=True)), "a retry"
    assert unit.enqueue_request(Request(f"{HOST}/b", meta={"redirect_urls": [URL]}))
    copied = Request(f"{HOST}/c", meta={"redirect_urls": [URL]})
    unit.enqueue.mark_child(copied, page)
    assert not unit.enqueue_request(copied), "a link, though its page has given it the mark of a redirect"
    assert not unit.enqueue_request(Request(f"{HOST}/d")), "found on no known page"
    assert unit.stat("filtered/length") == 2


def test_a_scope_may_judge_redirects() -> None:
    unit = Unit(filters=("scope(domains=h1.example, redirects=yes)",))
    assert unit.enqueue_request(Request(f"{HOST}/b", meta={"redirect_urls": [URL]}))
    assert not unit.enqueue_request(Request("http://h2.example/", meta={"redirect_urls": [URL]}))


def test_what_is_too_large_to_travel_is_said_and_left_to_the_node(caplog: pytest.LogCaptureFixture) -> None:
    for unit in (Unit(max_letter_bytes=16_384), Unit(max_letter_bytes=16_384, redis_url="redis://h")):
        assert unit.enqueue_request(Request(URL, method="POST", body="x" * 20_000))
    assert [record.getMessage().count("UBI_MAX_LETTER_BYTES") for record in caplog.records] == [1]


def test_local_requests_come_first_and_keep_the_crawl_open() -> None:
    unit = Unit()
    unit.enqueue_request(Request(URL))
    assert unit.enqueue_request(Request("data:,x"))
    assert not unit.enqueue_request(Request("data:,x"))
    unit.start_ended()
    unit.hooks.idle(False)
    assert not unit.node.agent.end.start_exhausted
    local = unit.take()
    assert local.url == "data:,x"
    assert not unit.node.agent.end.start_over, "its callback may still find pages"
    assert not unit.node.agent.end.start_exhausted
    unit.hooks.removed(local)
    assert unit.node.agent.end.start_exhausted
    assert unit.take().url == URL


def test_local_requests_leave_places_to_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any page may have thousands of links to an FTP server that never answers."""
    monkeypatch.setattr("scrapy_ubi.adapter.scheduling.hostless.MANY_WAITING", 4)
    monkeypatch.setattr("scrapy_ubi.adapter.scheduling.hostless.MOST_WAITING", 5)
    unit = Unit()
    unit.node.crowded = False
    unit.enqueue_request(Request(URL))
    assert not unit.start_waits
    taken = [unit.enqueue_request(Request(f"ftp://h.example/{number}")) for number in range(6)]
    assert taken == [True] * 5 + [False]
    assert unit.stat("scheduler/dropped/local") == 1
    assert unit.start_waits
    most = unit.crawler.settings.getint("CONCURRENT_REQUESTS") // 4
    out = [unit.take() for _ in range(most + 1)]
    assert [request.url for request in out].index(URL) == most
    unit.hooks.removed(out[0])
    assert unit.take().url.startswith("ftp://")


def test_in_a_trial_the_request_handed_out_is_the_one_that_came() -> None:
    """Scrapy's shell says who is told of a page when the request has come in already."""
    trial = Trial()
    trial.close()
    unit = Unit(trial)
    request = Request(URL)
    unit.enqueue_request(request)
    request.callback = print
    assert unit.take() is request
    again = request.replace(dont_filter=True)
    assert unit.enqueue_request(again), "a retry"
    again.callback = repr
    unit.let_go(request)
    assert unit.take() is again
