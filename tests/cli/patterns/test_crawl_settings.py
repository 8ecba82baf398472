"""Rules as settings of agents: the filter that keeps a crawl on its site, limits, the name of the crawl."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.cli.patterns.crawl_settings import crawl_name, filter_of, settings_of
from scrapy_ubi.cli.patterns.page_rules import PageRules
from scrapy_ubi.cli.patterns.rules_reader import read_rules
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import FilterChain, Link


def rules(start: Any = "http://site.example/", crawl: Any = None, **tables: Any) -> PageRules:
    return read_rules({"crawl": {"start": start, **(crawl or {})}, **tables}, lambda _: "rules")


def taken(made: PageRules, url: str, page: str = "http://site.example/", redirect: bool = False) -> bool:
    """Whether the crawl takes a link."""
    chain = FilterChain.read(UbiSettings.from_scrapy(Settings(settings_of(made))).filters)
    for start in made.crawl.start:
        chain.seed(Link(start, normal_form(start) or ""))
    return chain.refusal(Link(url, normal_form(url) or "", 1, page), redirect) is None


def test_by_default_a_crawl_stays_on_the_hosts_of_its_start_pages() -> None:
    made = rules(["http://site.example/", "https://www.b.example/x"])
    for url in ("https://site.example/a", "http://site.example:8080/", "http://www.site.example/", "http://b.example/"):
        assert taken(made, url), url
    for url in ("http://a.site.example/", "http://other.example/", "http://example/"):
        assert not taken(made, url) and not taken(made, url, redirect=True), url


def test_where_a_start_page_redirects_to_is_the_site_as_well() -> None:
    """The redirect of a start page is not judged; what is found there is."""
    made = rules()
    assert taken(made, "http://moved.example/a", page="http://moved.example/")
    assert not taken(made, "http://third.example/", page="http://moved.example/")


def test_hosts_as_they_are_written() -> None:
    made = rules(crawl={"hosts": ["docs.example", "*.b.example", "-ads.b.example"]})
    for url in ("http://docs.example/", "http://b.example/", "http://x.b.example/"):
        assert taken(made, url), url
    for url in ("http://site.example/", "http://ads.b.example/", "http://x.docs.example/"):
        assert not taken(made, url), url
    assert filter_of(rules(crawl={"hosts": ["*"]})) == ""
    anywhere = rules(crawl={"hosts": ["*", "-*.ads.example"]})
    assert taken(anywhere, "http://any.example/") and not taken(anywhere, "http://x.ads.example/")


def test_patterns_of_urls_to_follow() -> None:
    made = rules(follow={"allow": ["/docs/", r"\?page=\d+, \"x\""], "deny": r"\.cgi$"})
    assert taken(made, "http://site.example/docs/a") and not taken(made, "http://site.example/blog/")
    assert not taken(made, "http://site.example/docs/a.cgi") and not taken(made, "http://other.example/docs/")
    assert not taken(made, "http://site.example/login", redirect=True)


@pytest.mark.parametrize(
    "start", ["http://127.0.0.1:8000/", "http://localhost/", "http://[::1]:80/", "http://größe.example/"]
)
def test_any_start_page_is_its_own_site(start: str) -> None:
    made = rules(start)
    assert taken(made, f"{start}a", page=start) and not taken(made, "http://other.example/", page=start)
    assert NAME.fullmatch(crawl_name(made, "0123456789abcdef"))


def test_limits_and_politeness() -> None:
    found = settings_of(
        rules(crawl={"max_pages": 5, "delay": 0.5, "contact": "mailto:me@a.example", "obey_robots": False})
    )
    assert (
        found["UBI_CRAWL_LIMITS"] == "pages=5" and found["DOWNLOAD_DELAY"] == "0.5" and found["UBI_DELAY_FACTOR"] == "0"
    )
    assert found["UBI_BOT_PAGE"] == "mailto:me@a.example" and found["ROBOTSTXT_OBEY"] == "False"
    usual = settings_of(rules())
    assert usual["ROBOTSTXT_OBEY"] == "True" and "DOWNLOAD_DELAY" not in usual and "UBI_CRAWL_LIMITS" not in usual
    assert usual["FEED_EXPORT_FIELDS"] == "url,status,depth,title,text"


def test_the_name_of_a_crawl() -> None:
    assert crawl_name(rules(), "0123456789abcdef") == "site.example:01234567"
