"""Outputs of pages that are visited again: each visit once, the latest alone, and what archives say of them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse
from scrapy.settings import Settings

from scrapy_ubi import item_id
from scrapy_ubi.cli.commands.collect import run
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.choice import Claim, chosen
from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.visit_names import VisitName, read_visit_name
from scrapy_ubi.outputs.warc.met import NOT_MODIFIED, PROFILE
from tests.outputs.kept import Kept, collected
from tests.outputs.test_warc import check, records
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site, Visit

HOST = "http://a.example"
BODY = "<a href=/plain>one</a><p>" + "words of a page " * 100


def latest(*directories: Path) -> tuple[list[str], Any]:
    collector = Collector(find_outputs(directories), "items", "jsonl", latest=True)
    lines = [line for records in collector.pages() for data in records for line in data.decode().splitlines()]
    return lines, collector.tally


@given(st.text("abc0123456789.+~", min_size=1, max_size=8), st.integers(1, (1 << 32) - 1))
def test_names_of_visits_read_back(page: str, visit: int) -> None:
    if visit > 1 or read_visit_name(page) == VisitName(page):
        assert read_visit_name(str(VisitName(page, visit))) == VisitName(page, visit)


def test_a_page_that_is_visited_once_has_the_name_that_it_had() -> None:
    assert str(VisitName("0123456789abcdef")) == "0123456789abcdef"
    for name in ("p", "p~", "p~1", "p~0", "p~x", "p~99999999999", "local.ab.2"):
        assert read_visit_name(name) == VisitName(name)


def test_each_visit_counts_once_and_the_latest_alone_where_that_is_asked(tmp_path: Path) -> None:
    one, two = Kept(tmp_path / "a"), Kept(tmp_path / "b", agent="b")
    one.page("p", "p1")
    one.page("q", "q1")
    one.page("p~2", "p2")
    two.page("p~2", "p2")  # after a crash by an heir as well
    two.page("p~10", "p10", "p10 more")
    two.page("q~2", "error", kind="failed")
    for kept in (one, two):
        kept.flush()
        kept.close()
    assert sorted(collected(tmp_path / "a", tmp_path / "b")) == ["error", "p1", "p10", "p10 more", "p2", "q1"]
    lines, tally = latest(tmp_path / "a", tmp_path / "b")
    assert lines == ["p10", "p10 more", "q1"]  # of q the last visit that did not fail
    assert (tally.pages, tally.older) == (2, 3)


def test_a_page_that_has_no_items_any_more_has_none_among_the_latest(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("p", "p1")
    kept.page("p~2")
    kept.page("q", "q1")
    kept.flush()
    kept.close()
    assert collected(tmp_path) == ["p1", "q1"]
    assert latest(tmp_path)[0] == ["q1"]


def test_attempts_of_the_latest_visit_count_and_those_of_others_do_not(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.page("p", "old", kind="again")
    kept.page("p", "old too", attempt=1)
    kept.page("p~2", "new", kind="again")
    kept.page("p~2", "new too", attempt=1)
    kept.flush()
    kept.close()
    assert latest(tmp_path)[0] == ["new", "new too"]
    assert chosen([Claim("ok", 0, 0, 0), Claim("again", 1 << 31, 0, 1)]) == [Claim("ok", 0, 0, 0)]


def test_latest_is_for_items_and_links(tmp_path: Path) -> None:
    opts = Namespace(kind="warc", output="x", dir=[str(tmp_path)], run=None, crawl=None, latest=True)
    with pytest.raises(UbiError, match="--latest is for items and links: warc has a record of each visit"):
        run(Settings(), opts)


class Walk(Spider):
    """Four pages, an item each."""

    name = "walk"
    custom_settings = {"ITEM_PIPELINES": {"tests.outputs.test_visits.Names": 1}}  # noqa: RUF012
    names: list[str]

    async def start(self) -> Any:
        self.names = []
        for path in ("tagged", "plain", "new", "emptied"):
            yield Request(f"{HOST}/{path}")

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        if response.text:
            yield {"url": response.url, "visit": response.meta["ubi_visit"]}


class Names:
    """Notes what items are called."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Names:
        names = cls()
        names.crawler = crawler  # type: ignore[attr-defined]
        return names

    def process_item(self, item: Any) -> Any:
        crawler = self.crawler  # type: ignore[attr-defined]
        crawler.spider.names.append(item_id(crawler, item))
        return item


def tagged(visit: Visit) -> Page:
    asked = {name.lower(): value for name, value in visit.headers.items()}
    headers = {"ETag": '"one"'}
    return Page("", 304, headers) if asked.get("if-none-match") == '"one"' else Page(BODY + "tagged", 200, headers)


def crawled(site: Site, place: Path, **settings: Any) -> Outcome:
    site.page(f"{HOST}/tagged", tagged)
    site.page(f"{HOST}/plain", BODY + "plain")
    site.page(f"{HOST}/new", lambda visit: Page(f"{BODY} {visit.number}"))
    site.page(f"{HOST}/emptied", lambda visit: Page(BODY if visit.number == 1 else ""))
    (outcome,) = crawl(
        Walk, site.proxy, 1,
        {
            "UBI_RECRAWL": "every(1s, rounds=2)", "UBI_DIR": str(place),
            "UBI_STORES": ["items", "warc", "larm", "graph", "index"], **settings,
        },
    )  # fmt: skip
    assert outcome.reason == "finished"
    return outcome


def test_outputs_of_a_crawl_whose_pages_are_visited_again(site: Site, tmp_path: Path) -> None:
    outcome = crawled(site, tmp_path)
    visits = Counter((item["url"].rpartition("/")[2], item["visit"]) for item in map(json.loads, collected(tmp_path)))
    assert visits == dict.fromkeys([("tagged", 1), ("plain", 1), ("new", 1), ("new", 2), ("new", 3), ("emptied", 1)], 1)
    last = Counter((item["url"].rpartition("/")[2], item["visit"]) for item in map(json.loads, latest(tmp_path)[0]))
    assert last == {("tagged", 1): 1, ("plain", 1): 1, ("new", 3): 1}
    names = outcome.crawler.spider.names  # type: ignore[union-attr]
    assert len(set(names)) == len(names) == 6
    assert sum(name.endswith("~2-0") for name in names) == sum(name.endswith("~3-0") for name in names) == 1
    _check_archive(tmp_path)
    for kind, pages in (("links", 6), ("graph", 4), ("index", 4), ("warc", 4 * 3)):
        _check_collected(kind, pages, tmp_path)


def _check_archive(place: Path) -> None:
    """304 and equal content are revisits, of a record that is there."""
    (path,) = place.glob("out/warc/*.warc.gz")
    check(path)
    found = [one for one in records(path) if one.kind in ("response", "revisit")]
    dates = {(one.head["WARC-Target-URI"], one.head["WARC-Date"]): one for one in found if one.kind == "response"}
    profiles = Counter()
    for one in found:
        if one.kind != "revisit":
            continue
        profiles[one.head["WARC-Target-URI"].rpartition("/")[2], one.head["WARC-Profile"]] += 1
        first = dates[one.head["WARC-Refers-To-Target-URI"], one.head["WARC-Refers-To-Date"]]
        assert one.head["WARC-Refers-To"] == first.head["WARC-Record-ID"]
        assert one.head["WARC-Payload-Digest"] == first.head["WARC-Payload-Digest"]
        assert not one.body
    assert profiles == {("tagged", NOT_MODIFIED): 2, ("plain", PROFILE): 2}


def _check_collected(kind: str, pages: int, place: Path) -> None:
    output = place / f"all-{kind}{'.db' if kind == 'index' else '.warc.gz' if kind == 'warc' else ''}"
    opts = Namespace(
        kind=kind, output=str(output), dir=[str(place)], run=None, crawl=None, latest=False, hosts=False,
        crawled_only=False,
    )  # fmt: skip
    report = run(Settings(), opts)
    assert report.document["pages"] == pages, kind
    if kind == "warc":
        check(output)


def test_with_always_each_visit_has_its_items(site: Site, tmp_path: Path) -> None:
    crawled(site, tmp_path, UBI_RECRAWL="every(1s, rounds=2, call=always)", UBI_STORES=["items"])
    visits = Counter(json.loads(line)["visit"] for line in collected(tmp_path))
    assert visits == {1: 4, 2: 3, 3: 3}
