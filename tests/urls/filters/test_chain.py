"""The chain: reading it, its texts, and what it answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls.filters import FilterChain, UrlFilter, parse
from scrapy_ubi.urls.filters.chain import SUITE
from scrapy_ubi.urls.filters.scope import Scope
from scrapy_ubi.urls.filters.simple import Length
from tests.urls.filters.links import Broken, Forgetful, Words, link
from tests.urls.test_normal import url_like

HERE = "tests.urls.filters.links"

HOSTS = st.lists(
    st.builds(
        "{}{}.example".format, st.sampled_from(["", "-"]), st.text("abcä-", min_size=1, max_size=5).map("x{}y".format)
    ),
    min_size=1,
    max_size=3,
)
REGEX = st.lists(st.sampled_from(["a", "(a|b)", "a, b", '"', r"\.x$", "x{1,2}", " ", "^http="]), min_size=1, max_size=3)
MINUS = st.lists(st.sampled_from(["-pdf", "-ZIP", "-7z"]), min_size=1)
NUMBERS = st.integers(2, 100)
FILTERS: st.SearchStrategy[UrlFilter] = st.one_of(
    st.integers(1, 65_536).map(Length),
    st.lists(st.sampled_from(["http", "HTTPS", "s3", "view-source"]), min_size=1).map(
        lambda names: SUITE["schemes"](*names)
    ),
    MINUS.map(lambda names: SUITE["extensions"](*names)),
    st.integers(0, 1_000_000).map(SUITE["depth"]),
    st.builds(
        Scope,
        hosts=HOSTS | st.just([]),
        domains=HOSTS,
        allow=REGEX | st.just([]),
        deny=REGEX | st.just([]),
        stay=st.sampled_from(["", "host", "domain"]),
        redirects=st.booleans(),
    ),
    st.builds(SUITE["traps"], repeats=NUMBERS | st.just(0), segments=NUMBERS, query=NUMBERS, combinations=NUMBERS),
    st.lists(st.sampled_from(["sort", "session", "calendar"])).map(lambda kinds: SUITE["known_paths"](*kinds)),
    st.builds(Words, st.text(), st.text(), case=st.text()),
)


@given(FILTERS)
def test_the_text_of_a_filter_parses_back(judge: UrlFilter) -> None:
    assert parse(str(judge)) == judge
    assert hash(parse(str(judge))) == hash(judge)


@given(st.lists(FILTERS, max_size=4))
def test_the_texts_of_a_chain_read_as_the_setting_make_an_equal_chain(judges: list[UrlFilter]) -> None:
    chain = FilterChain.read(judges)
    assert list(FilterChain.read([*map(str, chain)])) == judges == list(FilterChain.read([str(chain)]))


@given(FILTERS, url_like | st.text(), st.integers(0, 2**31), url_like | st.text())
def test_no_filter_raises_whatever_the_link(judge: UrlFilter, url: str, depth: int, page: str) -> None:
    found = link(url, depth=depth, page=page)
    judge.seed(found)
    if found.normal or judge.hostless:
        assert isinstance(judge.refuses(found), str)


@given(url_like | st.text())
def test_a_chain_answers_whatever_the_link(url: str) -> None:
    errors: list[Exception] = []
    chain = FilterChain.read(
        ["schemes(http, https)", "length(100)", "traps", "known_paths", "scope(deny=x)", "depth(1)"]
    )
    chain.on_error = lambda judge, error: errors.append(error)
    refusal = chain.refusal(link(url))
    assert refusal is None or refusal.why
    assert not errors


def test_the_three_ways_to_write_a_filter() -> None:
    chain = FilterChain.read(
        [
            "length(2048)",
            ("length", 2048),
            Length(2048),
            ("scope", {"allow": [r"^http://a, b"], "redirects": True}),
            (f"{HERE}.Words", "x", {"case": "no"}),
            f"{HERE}.Words(x, case=no)",
        ]
    )
    first, second, third, scope, fourth, fifth = chain
    assert first == second == third
    assert str(scope) == 'scope(allow="^http://a, b", redirects=yes)'
    assert fourth == fifth == Words("x", case="no") != Words("x")
    assert len(chain) == 6 and repr(first) == "<length(2048)>"


def test_the_first_that_refuses_decides() -> None:
    chain = FilterChain.read(["depth(1)", "length(30)"])
    refusal = chain.refusal(link("http://a.example/" + "x" * 30, depth=2))
    assert refusal is not None and (str(refusal.filter), refusal.why) == ("depth(1)", "deeper")
    assert chain.refusal(link("http://a.example/", depth=1)) is None


def test_what_has_no_host_is_judged_by_schemes_only() -> None:
    chain = FilterChain.read(["length(3)", "depth(0)", "scope(hosts=a.example)", "schemes(http, data)"])
    assert chain.refusal(link("data:,long", depth=1)) is None
    refusal = chain.refusal(link("mailto:x"))
    assert refusal is not None and refusal.why == "mailto"


def test_redirects_are_judged_by_those_that_say_so() -> None:
    chain = FilterChain.read(["length(3)", "scope(hosts=a.example, redirects=yes)"])
    assert chain.refusal(link("http://a.example/"), redirect=True) is None
    refusal = chain.refusal(link("http://b.example/"), redirect=True)
    assert refusal is not None and refusal.filter.name == "scope"


def test_a_filter_that_raises_is_reported_and_passed_over() -> None:
    told = []
    chain = FilterChain([Broken(), Length(3)], on_error=lambda judge, error: told.append((judge.name, str(error))))
    refusal = chain.refusal(link("http://a.example/"))
    assert refusal is not None and refusal.filter.name == "length"
    chain.seed(link("http://a.example/"))
    assert told == [("broken", "broken")] * 2
    assert FilterChain([Broken()]).refusal(link("http://a.example/")) is None


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ("length", "whole number from 1"),
        ("length(x)", "whole number from 1"),
        ("length(1, 2)", "give one"),
        ("length(most=5)", "it takes none with a key"),
        ("length(0)", "whole number from 1"),
        ("lenght(5)", "the filters are depth, extensions"),
        ("length(5", "belongs there"),
        ("schemes", "name some"),
        ("schemes(http:)", "name some"),
        ("extensions(-pdf, html)", "those not wanted"),
        ("extensions(.pdf)", "without dots"),
        ("extensions", "without dots"),
        ("depth(-1)", "whole number from 0"),
        ("scope", "give hosts"),
        ("scope(host=a)", "hosts=, domains="),
        ("scope(a.example)", "hosts=, domains="),
        ("scope(hosts=http://a.example)", "without scheme"),
        ("scope(stay=here)", "stay=host or stay=domain"),
        ("scope(deny=x, redirects=maybe)", "redirects=yes"),
        ('scope(allow="(")', "no regular expression"),
        ("scope(file=/nowhere/at/all)", "one host name a line"),
        ("traps(repeats=1)", "whole number from 2"),
        ("traps(5)", "repeats=, segments=, query=, combinations="),
        ("known_paths(nothing)", "calendar, session, sort"),
        ("no.such.module.Filter", "class that can be imported"),
        (f"{HERE}.Nothing", "class that can be imported"),
        (f"{HERE}.NO_FILTER", "subclass of scrapy_ubi.urls.filters.UrlFilter"),
        (f"{HERE}.Forgetful(x)", "arguments() return"),
        (f"{HERE}.Forgetful(x, y)", "arguments that it takes"),
        (Forgetful, "give texts"),
        (3, "give texts"),
        ((), "give texts"),
        (("length", 2.5), "whole numbers"),
        (("scope", {"hosts": [None]}), "whole numbers"),
        (("scope", {3: "a"}), "names of arguments"),
        (Length(0), "whole number from 1"),
    ],
)
def test_what_does_not_hold_is_an_error_with_its_remedy(entry: Any, remedy: str) -> None:
    with pytest.raises(UbiSettingError) as caught:
        FilterChain.read(["depth(3)", entry])
    text = str(caught.value)
    assert text.startswith("UBI_FILTERS has ") and remedy in text
    assert repr(entry)[:30] in text and "\n" not in text


def test_a_local_class_has_no_text_that_parses_back() -> None:
    class Local(UrlFilter):
        """Nobody can import it."""

    with pytest.raises(UbiSettingError, match="UBI_FILTERS"):
        FilterChain.read([Local()])


def test_a_filter_given_as_an_object_is_not_shared_among_crawls() -> None:
    given = Scope(stay="host")
    (first,), (second,) = FilterChain.read([given]), FilterChain.read([given])
    first.seed(link("http://a.example/"))
    assert first.refuses(link("http://b.example/")) == "host"
    assert second.refuses(link("http://b.example/")) == given.refuses(link("http://b.example/")) == ""


def test_a_subclass_of_the_suite_has_a_dotted_name() -> None:
    assert str(Own(5)) == f"{__name__}.Own(5)"


class Own(Length):
    """A user's own length."""
