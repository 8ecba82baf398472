"""Which pages a crawl fetches: filters, traps, spellings of one page, robots.txt."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Spider
from scrapy.http import Response

from tests.crawls.ring import AGENTS, HOSTS, Walk, ring
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, Visit, links


class Long(Spider):
    name = "long"
    start_urls = (
        f"{HOSTS[0]}/" + "x" * 70_000,
        f"{HOSTS[0]}/" + "y" * 5000,
        f"{HOSTS[0]}/",
        "http://h0.example:99999/",
    )

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_urls_that_are_too_long_or_broken_are_no_obstacle(site: Site) -> None:
    home, long = f"{HOSTS[0]}/", f"{HOSTS[0]}/" + "y" * 5000
    site.page(home)
    site.page(long)
    outcomes = crawl(Long, site.proxy, settings={"URLLENGTH_LIMIT": 0})
    assert items_of(outcomes) == [{"url": home}, {"url": long}]
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


@AGENTS
@pytest.mark.parametrize("chain", [["visited", "depth(9)"], ["depth(9)", "visited"]])
def test_known_links_may_be_dropped_by_the_chain(site: Site, agents: int, chain: list[str]) -> None:
    urls = ring(site)
    outcomes = crawl(Walk, site.proxy, agents, settings={"UBI_FILTERS": chain})
    assert site.urls() == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/filtered/visited") > len(urls)
