"""Steps and presets: what each step takes for one, how compositions are written, the laws for every choice of steps."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form, partition_key
from scrapy_ubi.urls.normal import PATH_ESCAPES, reread
from scrapy_ubi.urls.normaliser import PRESETS, STEPS, TRIED, Normaliser, name_of, parse_steps
from scrapy_ubi.urls.steps import LOSSY, OF_ARGUMENTS, unchanged
from tests.urls.test_normal import BAD_HOSTS, GOOD_HOSTS, url_like, usual

larm = Normaliser(PRESETS["larm"])

# Text with everything in it that a lossy step is there for.
LOSSY_PIECES = (
    "/ // A b + %2B %2b %20 %24 $ %7E ~ , %2C ; @ : ! ' ( ) * & = ? index. INDEX.html default. Default.asp".split()
)
LOSSY_PIECES += "; ;; (S(a)) (X(1)S(b))/ %28S(a)%29/ /..; /.;a %2c %%32%46 %2%65 %%34%31 %3d== +=%20 %26".split()
LOSSY_PIECES += "sid=1 SID= ;jsessionid=A utm_a=1 Utm_=+ &fbclid=~ &b=2&a=1 &A=2&a=1 ;x=1 ;sid &&".split()
LOSSY_PIECES += "inde%78.html /index.php /x. %C3%9C %c3%bc %4 % %%32%34 %25 # .. /../ . [ | Z=%aA".split()
compositions = st.frozensets(st.sampled_from(STEPS))
lossy_urls = st.builds(
    lambda host, rest: f"http://{host}/{''.join(rest)}",
    st.sampled_from(GOOD_HOSTS + BAD_HOSTS[:3]),
    st.lists(st.sampled_from(LOSSY_PIECES), max_size=8),
)
texts = st.one_of(lossy_urls, url_like, usual, st.text())


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        # path case, and what keeps its case
        (["http://h/A/B.html", "http://H/a/b.HTML", "http://h/%41/b.html"], "http://h/a/b.html"),
        (["http://h/a?B=C"], "http://h/a?B=C"),
        (["http://h/%c3%9C/A", "http://h/Ü/a"], "http://h/%C3%9C/a"),
        (["http://h/%C3%BC", "http://h/ü"], "http://h/%C3%BC"),
        # a space in any spelling
        (["http://h/a b", "http://h/a+b", "http://h/a%20b"], "http://h/a%20b"),
        (["http://h/?q=a b", "http://h/?q=a+b", "http://h/?q=a%20b"], "http://h/?q=a%20b"),
        (["http://h/a%2bb?c%2Bd"], "http://h/a%2Bb?c%2Bd"),
        # all characters but the safe ones
        (["http://h/~u/a,b", "http://h/%7eu/a%2Cb"], "http://h/%7Eu/a%2Cb"),
        (["http://h/it's(a)*!:", "http://h/it%27s%28a%29%2A%21%3A"], "http://h/it%27s%28a%29%2A%21%3A"),
        (["http://h/$a", "http://h/%24a"], "http://h/$a"),
        (["http://h/a;b@c&d=e-f_g.h"], "http://h/a;b@c&d=e-f_g.h"),
        (["http://h/a%2Fb%3Bc%40d%26e%3Df"], "http://h/a%2Fb%3Bc%40d%26e%3Df"),
        (["http://h/?u=http://x/?y", "http://h/?u=http%3a%2f%2fx%2f%3fy"], "http://h/?u=http%3A%2F%2Fx%2F%3Fy"),
        # slashes
        (["http://h//a///b//", "http://h/a/b/"], "http://h/a/b/"),
        (["http://h/a?b//c"], "http://h/a?b%2F%2Fc"),
        # index pages, with a query or without
        (["http://h/", "http://h", "http://h/index.html", "http://h/INDEX.php", "http://h/default.asp?"], "http://h/"),
        (["http://h/a/", "http://h/a/index.html.de", "http://h/a//default.htm", "http://h/a/index."], "http://h/a/"),
        (["http://h/?a=1", "http://h/index.php?a=1"], "http://h/?a=1"),
        (["http://h/index", "http://h/Index"], "http://h/index"),
        (["http://h/myindex.html"], "http://h/myindex.html"),
        (["http://h/index.d/a"], "http://h/index.d/a"),
        # dot segments, which LARM left for later
        (["http://h/b", "http://h/a/../b", "http://h/a/./../b", "http://h/../B"], "http://h/b"),
        # https as http, each for itself; ports, user, fragment as in safe
        (["https://h/", "https://H:443//INDEX.html#x"], "https://h/"),
        (["http://Us:Pa+ss@h:8080/A"], "http://Us:Pa+ss@h:8080/a"),
    ],
)
def test_spellings_of_one_url_by_larm(spellings: list[str], expected: str) -> None:
    assert [larm(spelling) for spelling in spellings] == [expected] * len(spellings)


@pytest.mark.parametrize(
    "urls",
    [
        ["http://h/", "https://h/", "http://www.h/", "http://h:8080/"],
        ["http://h/a", "http://h/a/", "http://h/a?", "http://h/a?b", "http://h/a%2Fb"][:2],
        ["http://h/a b", "http://h/a%2Bb", "http://h/ab"],
        ["http://h/?a=1&b=2", "http://h/?b=2&a=1", "http://h/?A=1&b=2"],
    ],
)
def test_urls_that_stay_apart_by_larm(urls: list[str]) -> None:
    assert len({larm(url) for url in urls}) == len(urls)


@pytest.mark.parametrize(
    ("step", "url", "without", "with_it"),
    [
        ("fragment", "http://h/#!a", "http://h/#!a", "http://h/"),
        ("fragment", "http://h/#", "http://h/", "http://h/"),
        ("host-dot", "http://h.:80/", "http://h./", "http://h/"),
        ("escapes", "http://h/%7ea%2f%", "http://h/%7ea%2f%", "http://h/~a%2F%25"),
        ("unsafe", "http://h/a|b", "http://h/a|b", "http://h/a%7Cb"),
        ("empty-query", "http://h/?", "http://h/?", "http://h/"),
        ("plus", "http://h/+?+", "http://h/+?+", "http://h/%20?%20"),
        ("characters", "http://h/~?/:", "http://h/~?/:", "http://h/%7E?%2F%3A"),
        ("path-case", "http://h/A%2F?A", "http://h/A%2F?A", "http://h/a%2F?A"),
        ("query-case", "http://h/A?A%2F", "http://h/A?A%2F", "http://h/A?a%2F"),
        ("session", "http://h/a;sid=1?b&PHPSESSID=2&c", "http://h/a;sid=1?b&PHPSESSID=2&c", "http://h/a?b&c"),
        ("tracking", "http://h/a?utm_source=b&Gclid=c", "http://h/a?utm_source=b&Gclid=c", "http://h/a"),
        ("query-order", "http://h/?b=2&a&&b=1&", "http://h/?b=2&a&&b=1&", "http://h/?a&b=1&b=2"),
        ("path-escapes", "http://h/%2C%3b;", "http://h/%2C%3B;", "http://h/,%3B"),
        ("arguments", "http://h/?b=%20&a&", "http://h/?b=%20&a&", "http://h/?a=&b=+"),
        ("slashes", "http://h//a//", "http://h//a//", "http://h/a/"),
        ("index", "http://h/Index.html?a", "http://h/Index.html?a", "http://h/?a"),
    ],
)
def test_each_step_can_be_switched(step: str, url: str, without: str, with_it: str) -> None:
    assert Normaliser(PRESETS["safe"] - {step})(url) == without
    assert Normaliser(PRESETS["safe"] | {step})(url) == with_it


def test_every_step_has_a_case_above() -> None:
    cases = test_each_step_can_be_switched.pytestmark[0].args[1]
    assert {case[0] for case in cases} == set(STEPS)


@given(texts)
def test_safe_is_the_normal_form(text: str) -> None:
    assert Normaliser(PRESETS["safe"])(text) == normal_form(text)


def test_the_default_is_that_of_the_setting() -> None:
    assert Normaliser().name == UbiSettings().normalise == "scrapy"


@given(texts, compositions)
@example("http://h/%%34%31", frozenset({"escapes"}))
@example("http://h/%%34%31", frozenset({"characters"}))
@example("http://h/%%32%34", frozenset({"escapes", "characters"}))
@example("http://h/#%%34%31", frozenset({"escapes"}))
@example("http://h/a?#", frozenset({"fragment"}))
@example("http://h./?#a", frozenset({"empty-query"}))
@example("http://h/+//index.a//INDEX.b", frozenset(LOSSY))
@example("http://h/?%&B&1", frozenset({"query-case", "query-order"}))
@example("http://h/?B=1&a=1", frozenset({"query-case", "arguments"}))
@example("http://h/?sid&a+", frozenset({"session", "arguments", "plus"}))
@example("http://h/a/.;;sid=1", frozenset({"session", "path-escapes"}))
def test_every_composition_is_idempotent_and_never_raises(text: str, steps: frozenset[str]) -> None:
    normalise = Normaliser(steps)
    form = normalise(text)
    assert (form is None) == (normal_form(text) is None)
    if form is not None:
        assert form.isascii() and normalise(form) == form
        assert partition_key(form) == partition_key(text)


@given(lossy_urls, st.sampled_from(list(LOSSY)))
def test_every_lossy_step_is_idempotent_alone(url: str, name: str) -> None:
    path, _, query = url.removeprefix("http:/").partition("?")
    if url.isascii():
        once = LOSSY[name](path, query)
        assert LOSSY[name](*once) == once


@given(texts, compositions, st.sampled_from(STEPS))
def test_a_further_step_only_joins(text: str, steps: frozenset[str], step: str) -> None:
    """What is one without it is one with it: the form with the step is that of the form without. `path-escapes` reads
    some of what is no escape as one."""
    assume(step != PATH_ESCAPES or reread(text) == text)
    form, further = Normaliser(steps - {step})(text), Normaliser(steps | {step})
    if form is not None:
        assert further(form) == further(text)


@given(st.from_regex(r"http://h(?:/[A-Za-z0-9$._&;@=+,-]{0,6}){1,3}(?:\?[a-z0-9$._&;@=+-]{1,5})?", fullmatch=True))
@example("http://h/xindex.a")
@example("http://h/a/index.")
def test_what_is_passed_unchanged_no_step_would_change(url: str) -> None:
    path, _, query = url[len("http://h") :].partition("?")
    if unchanged(url, len("http://h")):
        for name, step in LOSSY.items():
            if name not in OF_ARGUMENTS:
                assert step(path, query) == (path, query)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("http://h/a;jsessionid=0F?b", "http://h/a?b"),
        ("http://h/a/;jsessionid=0F;SID=1", "http://h/a/"),
        ("http://h/a;sid=1;v=2", "http://h/a;sid=1;v=2"),
        ("http://h/a;sid=1/b", "http://h/a;sid=1/b"),
        ("http://h/a/.;sid=1", "http://h/a/.;sid=1"),  # what would be left is a dot segment
        ("http://h/;sid=1", "http://h/"),
        ("http://h/?sid", "http://h/?sid"),
        ("http://h/?ASPSESSIONIDQQ=1", "http://h/"),
        ("http://h/?consid=1&sid2=1", "http://h/?consid=1&sid2=1"),
        ("http://h/?s%69d=1#sid=2", "http://h/"),
        ("http://h/?&sid=1&", "http://h/?&"),
        ("http://h/?_sid=1&_SessionId=2&a", "http://h/?a"),
        ("http://h/app/(S(lit3py55t21z5v55vlm25s55))/a.aspx?b", "http://h/app/a.aspx?b"),
        ("http://h/(X(1)S(lit3))/a", "http://h/a"),
        ("http://h/(A(a-_)F(b.))/a", "http://h/a"),
        ("http://h/%28S%28abc%29%29/(s(d))/a", "http://h/a"),
        ("http://h/(lit3py55t21z5v55vlm25s55)/a", "http://h/a"),
        ("http://h/(S(a))", "http://h/(S(a))"),  # ASP.NET puts it before a path
        ("http://h/x(S(a))/(S())/(T(a))/(abc)/(S(a)b)/", "http://h/x(S(a))/(S())/(T(a))/(abc)/(S(a)b)/"),
        ("http://h/(S(a))/;sid=1", "http://h/"),
    ],
)
def test_what_counts_as_a_session(url: str, form: str) -> None:
    assert Normaliser(parse_steps("safe +session"))(url) == form


def test_what_the_lossy_steps_did_is_told() -> None:
    judged = Normaliser(parse_steps("larm +tracking")).judged
    assert judged("http://h./A//b?utm_id=1#c") == (
        "http://h/A//b?utm_id=1",
        "http://h/a/b",
        ("path-case", "tracking", "slashes"),
    )
    assert judged("http://h/a") == ("http://h/a", "http://h/a", ())
    assert judged("http:///") is None


def test_what_lossy_steps_change_is_counted() -> None:
    normalise = Normaliser(parse_steps("larm -plus"))
    for url in ("http://h/A", "http://h/a//INDEX.html", "http://h/a", "http://h/~", "mailto:a"):
        normalise(url)
    assert normalise.changed == {"characters": 1, "path-case": 2, "slashes": 1, "index": 1}
    assert Normaliser().changed == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("safe", "safe"),
        ("scrapy", "scrapy"),
        ("safe +arguments +path-escapes", "scrapy"),
        ("scrapy -path-escapes", "safe +arguments"),
        ("scrapy -arguments", "safe +path-escapes"),
        ("scrapy +slashes", "scrapy +slashes"),
        (["scrapy", "-fragment", "+session"], "scrapy -fragment +session"),
        ("larm +arguments", "larm +arguments"),
        ("learned +arguments", "learned +arguments"),
        (" larm ", "larm"),
        ("safe,+slashes, -fragment", "safe -fragment +slashes"),
        (["safe", "+slashes"], "safe +slashes"),
        ("larm -index +query-case", "larm +query-case -index"),
        ("safe +plus +characters +path-case +slashes +index", "larm"),
        ("fragment host-dot escapes unsafe empty-query", "safe"),
        (("fragment",), "safe -host-dot -escapes -unsafe -empty-query"),
        ("larm -path-case +path-case", "larm"),
        ("learned", "learned"),
        ("learned -www +index -fragment", "learned -fragment +index -www"),
        ("learned -www -path-case -session -tracking -slashes -index -query-order", "safe"),
    ],
)
def test_a_composition_has_one_name(text: str | list[str], name: str) -> None:
    assert name_of(parse_steps(text)) == name == Normaliser(parse_steps(text)).name


@given(compositions, st.frozensets(st.sampled_from(TRIED)))
def test_the_name_is_read_back(steps: frozenset[str], tried: frozenset[str]) -> None:
    both = steps | {f"?{step}" for step in tried - steps}
    assert parse_steps(name_of(both)) == both


def test_what_is_tried_does_not_change_the_normal_form() -> None:
    assert Normaliser(PRESETS["learned"]).function is normal_form


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "names no step"),
        ([], "names no step"),
        ("lamr", "'lamr' is no step"),
        ("slash", "did you mean 'slashes'"),
        ("safe slashes", "+slashes or -slashes"),
        ("safe +slash", "did you mean 'slashes'"),
        ("+slashes", "'+slashes' is no step, did you mean 'slashes'"),
        ("fragment larm", "must come first"),
        ("safe +larm", "must come first"),
        ([1], "'1' is no step"),
        ("safe +www", "'www' is no step"),
    ],
)
def test_what_is_no_composition(text: str | list[object], what: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_steps(text)
    assert what in str(caught.value)


def test_long_urls_take_time_in_proportion() -> None:
    for filler in ("a", "/", "A", "+", "%", "%24", "index.", "/index.", "default.", "~", "?", "#", "//."):
        for start in ("http://h.example/", "http://h.example/?"):
            larm(start + filler * (20_000 // len(filler)))
