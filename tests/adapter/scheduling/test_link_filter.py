"""The filter chain between requests and the frontier."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import pytest
from scrapy import Request

from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.filters import FilterChain, Link, UrlFilter

PAGE = "http://a.example/page"


class Angry(UrlFilter):
    """Raises."""

    def refuses(self, link: Link) -> str:
        raise RuntimeError("no idea")


def make(*texts: object, log: Path | None = None) -> tuple[LinkFilter, Counter[str]]:
    counts = Counter[str]()
    return LinkFilter(FilterChain.read(texts), lambda name: counts.update([name]), log), counts


def test_no_filters_ask_nothing() -> None:
    assert LinkFilter.from_settings(UbiSettings(), print).idle
    assert not make("depth(1)")[0].idle


def test_a_refusal_is_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    filtering, counts = make("depth(1)", "extensions(-pdf)")
    with caplog.at_level(logging.INFO, "scrapy_ubi"):
        for number in range(3):
            assert filtering.refuses_request(Request(f"http://a.example/{number}.pdf"), PAGE, redirect=False)
        assert filtering.refuses_request(Request("http://a.example/", meta={"depth": 2}), "", redirect=False)
        assert not filtering.refuses_request(Request("http://a.example/", meta={"depth": 1}), PAGE, redirect=False)
    assert counts == {"ubi/filtered/extensions": 3, "ubi/filtered/depth": 1}
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert f"http://a.example/0.pdf, found on {PAGE}, is refused by the filter extensions(-pdf) (pdf)" in caplog.text


def test_requests_that_are_wanted_whatever_they_are_pass() -> None:
    filtering, counts = make("length(1)")
    assert not filtering.refuses_request(Request(PAGE, dont_filter=True), PAGE, redirect=False)
    assert not counts


def test_a_redirect_is_judged_by_filters_that_say_so() -> None:
    filtering, _ = make("length(1)", "scope(hosts=a.example, redirects=yes)")
    assert not filtering.refuses_request(Request("http://a.example/"), PAGE, redirect=True)
    assert filtering.refuses_request(Request("http://b.example/"), PAGE, redirect=True)


def test_filters_are_told_of_seeds() -> None:
    filtering, _ = make("scope(stay=host)")
    filtering.seed(Request("http://b.example/"))
    filtering.seed(Request("data:,x"))
    assert not filtering.refuses_request(Request("http://b.example/x"), PAGE, redirect=False)
    assert filtering.refuses_request(Request("http://c.example/x"), PAGE, redirect=False)


def test_every_refusal_is_in_the_log_with_its_page(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    filtering, _ = make("schemes(http)", log=path)
    filtering.refuses_request(Request("ftp://a.example/", meta={"depth": 4}), PAGE, redirect=False)
    filtering.close()
    (line,) = map(json.loads, path.read_text().splitlines())
    assert (line["filter"], line["why"], line["url"], line["depth"], line["page"]) == (
        "schemes",
        "ftp",
        "ftp://a.example/",
        4,
        PAGE,
    )


def test_a_filter_that_raises_lets_pass_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    filtering, counts = make(f"{__name__}.Angry")
    for _ in range(2):
        assert not filtering.refuses_request(Request(PAGE), PAGE, redirect=False)
    assert counts == {"ubi/filter_errors/angry": 2}
    assert caplog.text.count("Traceback") == 1 and "no idea" in caplog.text


def test_visited_asks_the_frontier_of_what_is_found_on_a_page() -> None:
    filtering, counts = make("visited", "depth(1)")
    asked: list[str] = []

    def is_known(request: Request) -> bool:
        asked.append(request.url)
        return request.url.endswith("known")

    known = Request("http://a.example/known")
    assert not filtering.refuses_request(known, PAGE, redirect=False), "not before it is a crawl's"
    filtering.ask_frontier(is_known)
    assert filtering.refuses_request(Request("http://a.example/known"), PAGE, redirect=False)
    assert not filtering.refuses_request(Request("http://a.example/new"), PAGE, redirect=False)
    assert counts == {"ubi/filtered/visited": 1}
    assert len(asked) == 2
    for page, redirect in (("", False), (PAGE, True)):
        assert not filtering.refuses_request(Request("http://a.example/known"), page, redirect=redirect)
    assert not filtering.refuses_request(Request("http://a.example/known", dont_filter=True), PAGE, redirect=False)
    assert len(asked) == 2
