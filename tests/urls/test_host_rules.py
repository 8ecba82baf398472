"""The host resolver: LARM's three kinds of rules, where they act, and that owners and normal forms never disagree."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.urls import HostRules, Normaliser, normal_form, partition_key
from scrapy_ubi.urls.host_rules import KEPT, name_of, read_properties, read_rules
from scrapy_ubi.urls.normaliser import PRESETS, STEPS
from tests.urls.test_normal import url_like

LARM_FILE = r"""
# as LARM's help shows it
! also a comment
synonym(www1,host,com) = host,com
startsWith(www,) = ,
   endsWith(host1,com):host,com

synonym(s-a.uni.example) \
    = www.s-a.uni.example
"""


def rules(*texts: str) -> HostRules:
    read = read_rules(texts)
    assert read is not None
    return read


def key(url: str, of: HostRules) -> str | None:
    return partition_key(url, "host", of)


@pytest.mark.parametrize(
    ("host", "resolved"),
    [
        ("www1.host.com", "host.com"),
        ("www.host.com", "host.com"),
        ("www.host1.com", "host.com"),
        ("a.host1.com", "a.host.com"),
        ("s-a.uni.example", "www.s-a.uni.example"),
        ("www.s-a.uni.example", "www.s-a.uni.example"),  # to and fro in one pass
        ("h.example", "h.example"),
    ],
)
def test_a_file_of_larm_s(host: str, resolved: str) -> None:
    read = read_properties(LARM_FILE)
    assert read is not None
    assert read.resolve(host) == resolved
    assert key(f"http://{host}:8080/a", read) == f"{resolved}:8080"


def test_dots_and_commas_are_alike_and_so_is_the_list() -> None:
    lines = ["startsWith(www{0}) = ", "endsWith({0}a{0}example) = {0}example", "synonym(x{0}example) = y{0}example"]
    as_dots, as_commas = ([line.format(dot) for line in lines] for dot in ".,")
    assert rules(*as_dots) == rules(*as_commas) == read_properties("\r\n".join(as_commas))
    assert rules(*as_dots).name.startswith("3 rules, ")


def test_the_order_is_beginning_end_synonym() -> None:
    of = rules("synonym(a.example) = b.example", "endsWith(.org) = .example", "startsWith(www.) =")
    assert of.once("www.a.org") == "b.example"
    # A synonym is looked for last: that of a host which a pattern has changed is not met.
    of = rules("synonym(www.a.example) = b.example", "startsWith(www.) =")
    assert of.once("www.a.example") == of.resolve("www.a.example") == "a.example"


def test_the_first_that_fits_is_taken() -> None:
    of = rules("startsWith(www.a.) = x.", "startsWith(www.) =", "endsWith(.example) = .one", "endsWith(e) = two")
    assert of.once("www.a.h.example") == "x.h.one"
    assert of.once("www.b.h.example") == "b.h.one"


@pytest.mark.parametrize(
    ("texts", "host", "resolved"),
    [
        (["startsWith(www.) = "], "www.www.h", "h"),
        (["startsWith(www.) = "], "www", "www"),
        (["startsWith(a) = aa"], "a.h", "a.h"),  # never settles
        (["startsWith(a.) = b.", "startsWith(b.) = a."], "a.h", "a.h"),
        (["endsWith(.h) = ..h"], "a.h", "a.h"),  # no host name
        (["endsWith(h) = "], "h", "h"),
        (["startsWith(h) = " + "a" * 64], "h", "h"),
        (["startsWith(1) = 2", "endsWith(1) = 2"], "1.1", "2.2"),
        (["endsWith(-) = a"], "[1::1]", "[1::1]"),
        (["synonym(a) = b", "synonym(b) = c"], "a", "c"),
        (["synonym(h.example) = www.h.example", "startsWith(www.) ="], "www.h.example", "www.h.example"),
        (["synonym(1.2.3.4) = h", "synonym([::1]) = h"], "[::1]", "h"),
        (["synonym(BÜCHER.example) = h.Example."], "xn--bcher-kva.example", "h.example"),
    ],
)
def test_what_a_host_resolves_to(texts: list[str], host: str, resolved: str) -> None:
    assert rules(*texts).resolve(host) == resolved


def test_synonyms_are_one_in_the_normal_form_and_patterns_only_share_an_owner() -> None:
    of = rules("startsWith(www.) =", "synonym(h1.example) = h2.example")
    normalise = Normaliser(PRESETS["safe"], of)
    assert (
        normalise("http://u@h1.example.:8080/a#b")
        == "http://u@h2.example:8080/a"
        == normalise("http://u@h2.example:8080/a")
    )
    assert normalise("http://www.h.example/") == "http://www.h.example/"
    assert key("http://www.h.example/", of) == key("http://h.example/", of) == "h.example"
    assert key("http://www.h1.example/", of) == key("https://h1.example/", of) == "h2.example"
    assert normalise("http://www.h1.example/") == "http://www.h1.example/"


@pytest.mark.parametrize("normal", ["safe", "larm"])
def test_a_synonym_with_a_star_joins_all_that_it_fits(normal: str) -> None:
    of = rules("synonym(www.*) = *", "synonym(*.mirror.example) = *.example", "synonym(a.example) = b.example")
    normalise = Normaliser(PRESETS[normal], of)
    for one, other in (
        ("http://www.cnn.com/", "http://cnn.com/"),
        ("http://www.www.cnn.com:8080/", "http://cnn.com:8080/"),
        ("http://x.mirror.example/", "http://x.example/"),
        ("http://www.a.mirror.example/", "http://b.example/"),  # one synonym after the other
    ):
        assert normalise(one) == normalise(other)
        assert key(one, of) == key(other, of)
    for kept in ("http://www.com/", "http://wwwx.h.example/", "http://mirror.example/", "http://[::1]/"):
        assert normalise(kept) == kept, "nothing would be left, or it does not fit"


def test_a_synonym_with_a_star_makes_larm_s_patterns_join_pages() -> None:
    of = rules("startsWith(www,) =", "synonym(www,*) = *")
    normalise = Normaliser(PRESETS["larm"], of)
    assert normalise("http://www.cnn.com/") == normalise("http://cnn.com/") == "http://cnn.com/"


def test_a_pattern_goes_before_a_synonym_in_the_normal_form_too() -> None:
    of = rules("startsWith(www.) =", "synonym(www.a.example) = b.example")
    assert Normaliser(PRESETS["safe"], of)("http://www.a.example/") == "http://www.a.example/"


def test_the_domain_is_that_of_the_resolved_host() -> None:
    of = rules("synonym(www.site.co.uk) = www.site.com")
    assert partition_key("http://www.site.co.uk:81/", "domain", of) == "site.com"
    assert partition_key("http://a.site.co.uk/", "domain", of) == "site.co.uk"


labels = st.sampled_from(["a", "b", "www", "h1", "example"])
hosts = st.lists(labels, min_size=1, max_size=3).map(".".join)
parts = st.one_of(hosts, hosts.map("{}.".format), hosts.map(".{}".format), st.sampled_from(["", ".", "a", "w"]))
some_rules = st.lists(
    st.one_of(
        st.builds("startsWith({}) = {}".format, parts, parts),
        st.builds("endsWith({}) = {}".format, parts, parts),
        st.builds("synonym({}) = {}".format, hosts, hosts),
        st.builds("synonym({}*) = {}*".format, parts, parts),
        st.builds("synonym(*{}) = *{}".format, parts, parts),
    ),
    min_size=1,
    max_size=6,
)


@given(some_rules, hosts, st.frozensets(st.sampled_from(STEPS)))
@example(["synonym(a) = b.a", "startsWith(b.) = "], "a", frozenset(STEPS))
@example(["synonym(www.a) = b", "startsWith(www.) = "], "www.a", frozenset(STEPS))
def test_every_set_of_rules_is_idempotent_and_normal_forms_keep_their_owner(
    texts: list[str], host: str, steps: frozenset[str]
) -> None:
    try:
        of = rules(*texts)
    except ValueError:
        return
    assert of.resolve(of.resolve(host)) == of.resolve(host)
    assert of.same(of.same(host)) == of.same(host)
    normalise = Normaliser(steps, of)
    for url in (f"http://{host}/A?", f"https://u@{host}.:81#"):
        form = normalise(url)
        assert form is not None and normalise(form) == form
        for by in ("host", "domain"):
            assert partition_key(form, by, of) == partition_key(url, by, of) is not None


@given(url_like)
def test_a_url_with_rules_is_none_where_it_is_none_without(text: str) -> None:
    of = rules("startsWith(h) = www.h", "endsWith(e) = .", "synonym(h_1) = 1.2.3.4", "synonym(1.2.3.4) = [::2]")
    normalise = Normaliser(PRESETS["safe"], of)
    form = normalise(text)
    assert (form is None) == (normal_form(text) is None) == (key(text, of) is None)
    if form is not None:
        assert normalise(form) == form and key(form, of) == key(text, of)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("startswith(a) = b", "rule 1, 'startswith(a) = b', is no rule"),
        ("synonym(a) = b c", "is no rule"),
        ("synonym a = b", "is no rule"),
        ("startsWith() = b", "fits every host"),
        ("endsWith(/) = b", "'/' is no part of a host name"),
        ("startsWith(ü) = u", "written xn--"),
        ("synonym(a) = ", "'' is no host name"),
        ("synonym(a:80) = b", "'a:80' is no host name"),
        ("synonym(a/b) = c", "'a/b' is no host name"),
        ("synonym(u@a) = c", "'u@a' is no host name"),
        ("synonym(a..b) = c", "'a..b' is no host name"),
        ("synonym(*a*) = *", "'*a*' has no star at its beginning or end, or more than one"),
        ("synonym(a*b) = *", "'a*b' has no star"),
        ("synonym(a*) = b", "'b' has no star"),
        ("synonym(a*) = *b", "has its stars at different ends"),
        ("synonym(*) = a*", "fits every host"),
        ("synonym(a/*) = *", "'a/' is no part of a host name"),
        ("", "rule 1, '', is no rule"),
    ],
)
def test_what_is_no_rule(text: str, what: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_rules([text])
    assert what in str(caught.value)


def test_rules_that_contradict_each_other() -> None:
    with pytest.raises(ValueError, match=r"line 2.*contradicts"):
        read_properties("synonym(a) = b\nsynonym(A) = c")
    with pytest.raises(ValueError, match="circle"):
        rules("synonym(a) = b", "synonym(b) = c", "synonym(c) = a")
    assert rules("synonym(a) = b", "synonym(a) = b", "synonym(c) = c").resolve("a") == "b"


def test_no_rules_are_none() -> None:
    assert read_rules([]) is None and read_properties("# nothing\n\n") is None
    assert name_of(None) == "none"


def test_the_name_tells_rules_apart_but_not_the_order_of_synonyms() -> None:
    names = {
        rules(*texts).name
        for texts in (
            ["startsWith(a) = b"],
            ["endsWith(a) = b"],
            ["synonym(a) = b"],
            ["startsWith(a) = b", "startsWith(ab) = c"],
            ["startsWith(ab) = c", "startsWith(a) = b"],
        )
    }
    assert len(names) == 5
    assert rules("synonym(a) = b", "synonym(c) = d").name == rules("synonym(c) = d", "synonym(a) = b").name


def test_what_is_remembered_is_bounded() -> None:
    assert rules("startsWith(a) = b").resolve.cache_parameters()["maxsize"] == KEPT
