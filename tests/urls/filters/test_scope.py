"""Scope: hosts, domains, files, the seeds' own, expressions."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.urls.filters import parse
from tests.urls.filters.links import link, why


def test_hosts_are_those_on_any_port() -> None:
    text = "scope(hosts=a.example, B.example)"
    for url in ("http://a.example/x", "https://A.example:8080/", "http://u:p@b.example./"):
        assert why(text, url) == ""
    for url in ("http://www.a.example/", "http://a.example.org/", "http://a.example@c.example/"):
        assert why(text, url) == "host"


def test_domains_are_those_and_what_is_below() -> None:
    text = "scope(domains=a.example)"
    assert why(text, "http://a.example/") == why(text, "http://x.y.a.example/") == ""
    assert why(text, "http://xa.example/") == "host"


def test_a_name_with_a_minus_is_never_wanted() -> None:
    text = "scope(domains=a.example, -ads.a.example, hosts=-b.a.example)"
    assert why(text, "http://www.a.example/") == why(text, "http://x.b.a.example/") == ""
    for host in ("ads.a.example", "x.ads.a.example", "b.a.example"):
        assert why(text, f"http://{host}/") == "host"
    assert why("scope(domains=-ads.example)", "http://any.example/") == ""
    assert why("scope(domains=-ads.example)", "http://x.ads.example/") == "host"


def test_a_file_of_domains(tmp_path: Path) -> None:
    path = tmp_path / "top million.txt"
    path.write_text("1,a.example\n2,b.example\n")
    text = f'scope(file="{path}", hosts=c.example)'
    assert why(text, "http://www.a.example/") == why(text, "http://c.example/") == ""
    assert why(text, "http://d.example/") == "host"
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("stay", "url", "passes"),
    [
        ("host", "http://www.a.co.uk:81/x", True),
        ("host", "http://shop.a.co.uk/", False),
        ("domain", "http://shop.a.co.uk/", True),
        ("domain", "http://b.co.uk/", False),
    ],
)
def test_staying_where_the_page_is(stay: str, url: str, passes: bool) -> None:
    assert (why(f"scope(stay={stay})", url, page="http://www.a.co.uk/page") == "") is passes


def test_staying_where_the_seeds_are() -> None:
    scope = parse("scope(stay=domain)")
    assert scope.refuses(link("http://b.example/")) == "", "nothing to compare with"
    scope.seed(link("http://www.b.co.uk/"))
    page = "http://a.example/"
    assert scope.refuses(link("http://shop.b.co.uk/", page=page)) == ""
    assert scope.refuses(link("http://c.co.uk/", page=page)) == "host"
    assert scope.refuses(link("http://c.co.uk/")) == "host"
    assert scope.refuses(link("http://b.co.uk/")) == ""


def test_a_page_that_is_no_url_is_none_to_stay_with() -> None:
    assert why("scope(stay=host)", "http://a.example/", page="\ud800") == "host"


def test_staying_adds_to_what_is_wanted() -> None:
    text = "scope(stay=host, hosts=cdn.example, domains=-a.example)"
    assert why(text, "http://b.example/", page="http://b.example/") == ""
    assert why(text, "http://cdn.example/", page="http://b.example/") == ""
    assert why(text, "http://a.example/", page="http://a.example/") == "host"


def test_expressions_are_searched_for_in_the_normal_form() -> None:
    text = r"scope(allow=^https?://a\.example/docs/, /help/, deny=\.cgi$)"
    assert why(text, "http://A.example:80/%64ocs/x") == ""
    assert why(text, "http://b.example/help/") == ""
    assert why(text, "http://b.example/x") == "allow"
    assert why(text, "http://a.example/docs/x.cgi") == "deny"
    assert why("scope(deny=/x)", "http://a.example/y") == ""


def test_redirects_are_judged_when_the_scope_says_so() -> None:
    assert not parse("scope(hosts=a.example)").redirects
    scope = parse("scope(hosts=a.example, redirects=yes)")
    assert scope.redirects
    assert str(scope) == "scope(hosts=a.example, redirects=yes)"
