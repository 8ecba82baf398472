"""The normal form: spellings that are one, spellings that stay apart, and the laws for any text whatever."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes, urlsplit

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scrapy_ubi.urls import normal, normal_form

# Text that looks like a URL, with everything in it that a step is there for.
PIECES = r"""
/ // /./ /../ . .. %2e %2E%2e % %%34%31 %7e %2f %c3%BC %00 %zz %25 ? ?? # & = a=1 ; : :80 :443 @ u:p@ \ | ^ ` { } [ ]
' " < > ü 日本 + * a B xn-- 0x7f 1.2 index.html
""".split()
GOOD_HOSTS = """
h1.example H1.Example h1.example. h1.example:80 h1.example:443 u:p@h1.example ü.example xn--tda.example h_1 1.2.3.4 1.2
0x7f.1 [::1] [::ffff:1.2.3.4]:80 - 9 a.b.c.d.e.f ab--c.example faß.de h1.example:8080
""".split()
BAD_HOSTS = ["", "a..b", "a,b", "a%2eb", "@h", "h@", "xn--a", "h.5.", "a" * 64, ".".join(["a" * 60] * 5), "\ud800"]
rests = st.lists(st.sampled_from([*PIECES, " ", "\t", "\n", "\0"]) | st.text(st.characters(codec="utf-8")), max_size=8)
good_urls = st.builds(
    lambda scheme, host, rest: "".join([scheme, host, *rest[:1], *rest]),
    st.sampled_from(["http://", "https://", "HTTP://", " hTTps://"]),
    st.sampled_from(GOOD_HOSTS),
    rests.map(lambda rest: ["/", *rest] if rest else []),
)
url_like = good_urls | st.builds(
    lambda scheme, host, rest: "".join([scheme, host, *rest]),
    st.sampled_from(["http://", "https://", "http:", "http:/", "http:///", "ftp://", "\x01http://"]),
    st.sampled_from(GOOD_HOSTS + BAD_HOSTS),
    rests,
)
usual = st.from_regex(normal.USUAL, fullmatch=True)


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        # scheme and host in lower case, default port, final dot, empty path
        (
            ["http://h1.example", "HTTP://H1.EXAMPLE/", "http://h1.example:80", "http://h1.example.:80/"],
            "http://h1.example/",
        ),
        (["https://h1.example", "https://h1.example:443/", "https://h1.example:/"], "https://h1.example/"),
        (["http://h1.example:0443/"], "http://h1.example:443/"),
        (["https://h1.example:80"], "https://h1.example:80/"),
        # IDNA, in either spelling, with any of its dots
        (
            ["http://bücher.example/", "http://BÜCHER.example/", "http://xn--bcher-kva.example"],
            "http://xn--bcher-kva.example/",
        ),
        (["http://bücher。example/"], "http://xn--bcher-kva.example/"),
        # addresses
        (["http://127.0.0.1/", "http://127.1/", "http://0x7f.1/", "http://2130706433"], "http://127.0.0.1/"),
        (["http://[::1]/", "http://[0:0::0:1]:80"], "http://[::1]/"),
        # dot segments, also escaped; not what only looks like one
        (
            ["http://h/a/b", "http://h/x/../a/b", "http://h/a/./b", "http://h/../a/b", "http://h/a/%2E/b"],
            "http://h/a/b",
        ),
        (["http://h/a/", "http://h/a/.", "http://h/a/b/..", "http://h/a/b/%2e%2E"], "http://h/a/"),
        (["http://h/...", "http://h/%2e%2e%2e"], "http://h/..."),
        (["http://h/.well-known/x"], "http://h/.well-known/x"),
        (["http://h/a/y", "http://h/a/.x/../y", "http://h/a/.x/.%2e/y", "http://h/a/.x/.././../a/y"], "http://h/a/y"),
        (["http://h//.x/", "http://h//.x/.", "http://h//.x/y/..", "http://h//.x/./"], "http://h//.x/"),
        (["http://h/a/.x/?b/../c", "http://h/a/.x/.?b/../c"], "http://h/a/.x/?b/../c"),
        (["http://h/", "http://h/a/.x/../..", "http://h//.x/../../.."], "http://h/"),
        (["http://h/a?b=/../c"], "http://h/a?b=/../c"),
        # escapes
        (
            ["http://h/p~1.html", "http://h/%701.html".replace("701", "70~1"), "http://h/p%7E1%2ehtml"],
            "http://h/p~1.html",
        ),
        (["http://h/a%2Fb", "http://h/a%2fb"], "http://h/a%2Fb"),
        (["http://h/%C3%BC?%C3%BC", "http://h/ü?ü", "http://h/%c3%bc?%c3%bC"], "http://h/%C3%BC?%C3%BC"),
        (["http://h/a b?c d", "http://h/a%20b?c%20d"], "http://h/a%20b?c%20d"),
        (["http://h/a+b?c+d"], "http://h/a+b?c+d"),
        (["http://h/100%", "http://h/100%25"], "http://h/100%25"),
        (["http://h/%zz?%", "http://h/%25zz?%25"], "http://h/%25zz?%25"),
        (["http://h/%%34%31"], "http://h/%2541"),
        (["http://h/%2541"], "http://h/%2541"),
        (["http://h/a|b?c[]={1}", "http://h/a%7Cb?c%5B%5D=%7b1%7D"], "http://h/a%7Cb?c%5B%5D=%7B1%7D"),
        ([r"http://h/a\b", "http://h/a%5cb"], "http://h/a%5Cb"),
        (["http://h/%FF%fe"], "http://h/%FF%FE"),
        # fragment, empty query, what is around and inside
        (
            ["http://h/a", "http://h/a#", "http://h/a#b?c", "http://h/a?", "http://h/a?#b", " http://h/a\n"],
            "http://h/a",
        ),
        (["http://h/a\tb\r\nc", "\0\x1f http://h/abc \0"], "http://h/abc"),
        (["http://h/a??"], "http://h/a??"),
        (["http://h?", "http://h#", "http://h/?#?"], "http://h/"),
        (["http://h?a#b"], "http://h/?a"),
        # user and password stay
        (["http://user:p%40ss@h1.example:80/", "http://%75ser:p%40ss@H1.example./"], "http://user:p%40ss@h1.example/"),
        (["http://@h/", "http://:@h/"], "http://h/"),
        (["http://a@b@h/"], "http://a%40b@h/"),
    ],
)
def test_spellings_of_one_url(spellings: list[str], expected: str) -> None:
    assert [normal_form(spelling) for spelling in spellings] == [expected] * len(spellings)


@pytest.mark.parametrize(
    "urls",
    [
        ["http://h/", "https://h/", "http://h:8080/", "http://www.h/", "http://u@h/"],
        ["http://h/a", "http://h/a/", "http://h/A", "http://h//a", "http://h/a?b", "http://h/a;b", "http://h/a%3Bb"],
        ["http://h/?a=1&b=2", "http://h/?b=2&a=1", "http://h/?a=1&b=2&", "http://h/?a=1;b=2", "http://h/?a=1&b=2&c="],
        ["http://h/?a+b", "http://h/?a%20b", "http://h/?a%2Bb"],
        ["http://h/", "http://h/index.html", "http://h/default.htm"],
        ["http://h/it's", "http://h/it%27s"],
    ],
)
def test_urls_that_stay_apart(urls: list[str]) -> None:
    assert len({normal_form(url) for url in urls}) == len(urls)
    assert None not in map(normal_form, urls)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "h1.example",
            "//h1.example/",
            "/a",
            "?a",
            "#a",
            "http:",
            "http://",
            "http://?",
            "http://#a",
            "http:///",
        ),
        *(
            "mailto:a@h.example",
            "javascript:alert(1)",
            "ftp://h/",
            "file:///etc/passwd",
            "data:text/html,x",
            "about:blank",
        ),
        *("httpx://h/", "http//h/", "http://h:99999/", "http://h:a/", "http://a b/", "http://u@/", "http://u@:80/"),
        # no host that DNS could have
        *("http://a..b/", "http://.a/", "http://a.b../", "http://./", "http://a,b/", "http://a!b/", "http://(h)/"),
        *("http://" + "a" * 64 + "/", "http://" + ".".join(["a" * 63] * 4) + "/", "http://xn--a/", "http://a.5/"),
        *("http://[::g]/", "http://[::1%25eth0]/", "http://256.1.1.1/", "http://h\0/"),
        # what browsers repair and others do not
        *("http:///h/a", "http:/h/a", "http:h/a", r"http:\\h\a", r"http:/\h/a", "http://h%2eexample/", r"http://h\a"),
        # no text
        *("http://h/\ud800", "http://\udfff/"),
    ],
)
def test_what_has_no_normal_form(text: str) -> None:
    assert normal_form(text) is None


def test_a_backslash_does_not_move_a_url_to_another_host() -> None:
    r"""Browsers end the host at the `\`, Scrapy's requests at the `@`: agents and downloader must mean one host."""
    assert normal_form("http://good.example\\@evil.example/") == "http://good.example%5C@evil.example/"


@given(st.one_of(url_like, st.text()))
@example("http://h/%%34%31")
@example("http://1.2.3../")
@example("http://h/a?%")
@example("http://h/?'#")
@example("http://h//.x/.")
def test_never_raises_and_is_idempotent(text: str) -> None:
    form = normal_form(text)
    if form is not None:
        assert normal_form(form) == form


@given(good_urls)
def test_what_a_normal_form_looks_like(text: str) -> None:
    form = normal_form(text)
    assert form is not None and form.isascii() and form.isprintable()
    assert re.fullmatch(
        r"https?://(?:[^/@]+@)?(?:[a-z0-9_.-]{1,253}|\[[0-9a-f:]+\])(?::[0-9]+)?/[^# <>\"\\^`{|}\[\]]*", form
    )
    assert not re.search(r"%(?![0-9A-F]{2})", form)
    parts = urlsplit(form)
    assert not {".", ".."} & set(parts.path.split("/"))
    assert parts.query or not form.endswith("?")
    assert parts.port != {"http": 80, "https": 443}[parts.scheme]


@given(usual)
def test_the_short_cut_is_what_the_steps_give(text: str) -> None:
    assert normal_form(text) == normal.by_steps(text, look=False)


@given(st.one_of(url_like, st.text(), usual))
@example("http://xn--a.example/")
@example("http://h/%2D%2E%5F%7E%30%39%41%5A%61%7A?%27%2F%2C%3A%5B%60%7B%7F")
@example("http://h/%2C%2F%3A%40%5B%5E%60%7B%7F%80%FF?%C3%BC")
@example("http://h/%c3%2f?%")
@example("http://H:80/./%C3#a")
@example("http://h/.")
@example("http://1/")
@example("http://h/\n")
def test_the_short_cut_and_the_steps_agree_on_any_text(text: str) -> None:
    assert normal_form(text) == normal.by_steps(text, look=False)


@pytest.mark.parametrize("steps", [frozenset(normal.SAFE), *({step} for step in normal.SAFE), frozenset()])
def test_the_short_cut_and_the_steps_agree_on_every_escape(steps: frozenset[str]) -> None:
    for code in range(256):
        for escape in (f"%{code:02X}", f"%{code:02x}"):
            for url in (f"http://h/a{escape}b/{escape}", f"http://h/?{escape}b{escape}"):
                form = normal.by_steps(url, frozenset(steps), look=False)
                assert normal.by_steps(url, frozenset(steps)) == form
                assert not normal.is_usual(url) or form == url


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), min_size=1))
@example("%41", "%")
@example("a%2Fb", "+ +")
def test_escapes_keep_what_they_stand_for(path: str, query: str) -> None:
    """Whatever is escaped is still there, to the byte, in the normal form."""
    assume(path not in (".", ".."))
    form = normal_form(f"http://h.example/{quote(path, safe='')}?{quote(query, safe='')}")
    assert form is not None and form.startswith("http://h.example/")
    kept_path, _, kept_query = form.removeprefix("http://h.example/").partition("?")
    assert (unquote_to_bytes(kept_path), unquote_to_bytes(kept_query)) == (path.encode(), query.encode())


def test_the_lab_s_six_spellings() -> None:
    """What a crawl of the demo web meets."""
    host, path = "h0001.example", "/d1/p7.html"
    ways = [
        f"http://{host}{path}#s3",
        f"HTTP://{host.upper()}{path}",
        f"http://{host}:80{path}",
        f"http://{host}/x/..{path}",
    ]
    ways += [f"http://{host}{path.replace('/p', '/%70')}", f" http://{host}{path}\n"]
    assert {normal_form(way) for way in ways} == {f"http://{host}{path}"}


def test_a_long_url_takes_time_in_proportion() -> None:
    """A lot of anything is answered at once (to the square it would take minutes): no pattern goes back over it."""
    for filler in ("a", "/", ".", "a.", "/.", "@", "%", "%41", "?", "xn--", "-", "\\", "ü", " ", "\n"):
        for start in ("http://", "http://h.example/", "http://h.example/?", ""):
            normal_form(start + filler * (200_000 // len(filler)))
