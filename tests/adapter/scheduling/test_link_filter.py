"""The filter chain between requests and the frontier."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from pathlib import Path

import pytest
from scrapy import Request

from scrapy_ubi.adapter.scheduling.link_filter import LONGEST, FilterLog, LinkFilter, Noted
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.filters import FilterChain, Link, UrlFilter

PAGE = "http://a.example/page"
REFUSED = Noted(1_700_000_000.5, "traps", "repeats", "http://a.example/a/a/a", 3, "http://a.example/a/a")


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


def test_a_refusal_is_a_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    log = FilterLog(path)
    log.note(REFUSED)
    log.note(REFUSED._replace(url="http://a.example/\ud800\n" + "x" * 5000, page=""))
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {
        "time": "2023-11-14T22:13:20.500+00:00",
        "filter": "traps",
        "why": "repeats",
        "url": "http://a.example/a/a/a",
        "depth": 3,
        "page": "http://a.example/a/a",
    }
    assert len(second["url"]) == LONGEST and second["page"] == ""
    assert log.unwritten == 0


def test_it_is_written_while_the_crawl_goes_on_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    path.write_text("before\n")
    log = FilterLog(path)
    log.note(REFUSED)
    limit = threading.Event()
    for _ in range(1000):
        if path.stat().st_size > len("before\n"):
            break
        limit.wait(0.01)
    assert len(path.read_text().splitlines()) == 2
    log.close()


def test_many_are_written_in_their_order(tmp_path: Path) -> None:
    log = FilterLog(tmp_path / "refused.jsonl")
    for number in range(5000):
        log.note(REFUSED._replace(depth=number))
    log.close()
    lines = (tmp_path / "refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["depth"] for line in lines] == list(range(5000))


def test_what_does_not_fit_is_counted_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "refused.jsonl"
    log = FilterLog(path, most_bytes=100)
    log.note(REFUSED)
    log.close()
    assert (path.read_text(), log.unwritten) == ("", 1)
    assert caplog.text.count("UBI_FILTER_LOG") == 1


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    log = FilterLog(tmp_path / "refused.jsonl", most_waiting=0)
    log.note(REFUSED)
    log.close()
    assert log.unwritten == 1


def test_no_more_of_a_url_waits_than_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Noted] = []
    monkeypatch.setattr(FilterLog, "_write", lambda self, batch: waited.extend(batch))
    log = FilterLog(tmp_path / "refused.jsonl")
    log.note(REFUSED._replace(url="x" * 100_000, page="y" * 100_000))
    log.close()
    assert [(len(noted.url), len(noted.page)) for noted in waited] == [(LONGEST, LONGEST)]


def test_a_full_disk_is_said_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    log = FilterLog(Path("/dev/full"))
    log.note(REFUSED)
    log.close()
    assert log.unwritten == 1
    assert "No space left" in caplog.text


def test_a_file_that_cannot_be_written_is_an_error_of_the_setting(tmp_path: Path) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_FILTER_LOG is .*No such file"):
        FilterLog(tmp_path / "no" / "directory")
