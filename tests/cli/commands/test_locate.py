"""Where a URL that a person types belongs, and which filter would refuse a link to it."""

from __future__ import annotations

import pytest

from scrapy_ubi.cli.commands.locate import Spot, host_of, spot
from scrapy_ubi.cli.monitor.url_owner import GroupSettings
from scrapy_ubi.urls import host_rules
from scrapy_ubi.urls.filters import FilterChain


def place(url: str, *filters: str) -> Spot:
    return spot(url, GroupSettings({}), 100, FilterChain.read(filters))


@pytest.mark.parametrize(
    ("url", "filters", "filtered"),
    [
        ("http://a.example/x.pdf", ["extensions(-pdf)"], "extensions"),
        ("http://a.example/x.pdf", [], ""),
        ("http://a.example/", ["depth(0)", "scope(stay=host)"], ""),
        ("http://a.example/" + "x" * 100, ["length(5)"], "url_too_long"),
        ("ftp://a.example/", [], "scheme"),
        ("ftp://a.example/", ["length(5)"], "scheme"),
        ("ftp://a.example/", ["schemes(http)"], "schemes"),
        ("nothing", ["schemes(http)"], "scheme"),
    ],
)
def test_the_filter_is_named(url: str, filters: list[str], filtered: str) -> None:
    assert place(url, *filters).filtered == filtered


@pytest.mark.parametrize(
    ("text", "group", "host"),
    [
        ("WWW.A.example:8080", GroupSettings({}), "www.a.example:8080"),
        ("[::1]", GroupSettings({}), "[::1]"),
        ("www.a.com", GroupSettings({}, partition="domain"), "a.com"),
        (
            "https://www.a.example/x",
            GroupSettings({}, rules=host_rules.read_rules(["startsWith(www.) ="])),
            "www.a.example",
        ),
        ("straße.example", GroupSettings({}), "strasse.example"),  # as requests have it, and so all agents
        ("", GroupSettings({}), None),
        ("a b", GroupSettings({}), None),
    ],
)
def test_a_host_is_known_in_any_spelling(text: str, group: GroupSettings, host: str | None) -> None:
    assert host_of(text, group) == host


def test_a_host_goes_by_the_rules_that_are_known() -> None:
    rules = host_rules.read_rules(["startsWith(www.) ="])
    assert host_of("www.a.example", GroupSettings({}, rules=rules, rules_name=host_rules.name_of(rules))) == "a.example"


def test_what_is_filtered_has_a_key_and_a_reason() -> None:
    found = place("http://a.example/x.pdf", "depth(3)", "extensions(-pdf, -zip)")
    assert (found.host, found.key) == ("a.example", place("http://a.example/x.pdf").key)
    assert found.why == "a link to it is refused by extensions(-pdf, -zip) (pdf)"
