"""The preset `scrapy`: what w3lib's `canonicalize_url` makes equal is one, golden cases, the short cut, its cost."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.request import fingerprint
from w3lib.url import canonicalize_url

from scrapy_ubi.adapter.requests.codec import host_name
from scrapy_ubi.adapter.requests.identity import site_of
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.canonical import arguments, canonical, canonical_form, odd_parts, path_escapes, usual_parts
from scrapy_ubi.urls.normal import PATH_ESCAPES, SAFE, by_steps
from scrapy_ubi.urls.normaliser import PRESETS, Normaliser
from tests.urls.test_normal import GOOD_HOSTS, good_urls, url_like, usual

# Few pieces, so that many of the URLs made of them are one to w3lib.
IN_PATH = """
/ // a A %41 %61 , %2C %2c : %3a %3A @ ; %3B %3b ;a . .. %2e %2E%2e % %% %2 %25 2 F 46 %32 %46 %2F %2f %20 + [ %5B ~
""".split()
IN_QUERY = """
& && a b A a1 = == a=1 b=2 a= %20 + %2B %2b %26 %3D %3d / %2F ; %3B %25 % %% 2 %32 %46 %41 ' %27 | [ %7E ~ ü
""".split()
IN_USER = ["", "u@", "u%21@", "u!@", "u:@", "u:p%40@", "u:%70%40@", "%75:p@"]
paths = st.lists(st.sampled_from(IN_PATH), max_size=5).map("".join)
queries = st.lists(st.sampled_from(IN_QUERY), max_size=6).map("".join)
urls = st.builds(
    lambda user, host, path, query, fragment: f"http://{user}{host}/{path}{query}{fragment}",
    st.sampled_from(IN_USER),
    st.sampled_from(["h", "H", "h:80", "[::1]", "[0:0::1]"]),
    paths,
    st.just("") | queries.map("?{}".format),
    st.sampled_from(["", "#", "#a?b"]),
)


def respelled(url: str, draw: random.Random) -> str:
    """Another spelling of a URL, which w3lib may or may not take for the same."""

    def escaped(text: str, most: float) -> str:
        return "".join(f"%{ord(c):02{draw.choice('xX')}}" if ord(c) < 128 and draw.random() < most else c for c in text)

    head, question, query = url.partition("?")
    start = head.index("/", 8) + 1
    parts = query.partition("#")[0].split("&")
    draw.shuffle(parts)
    while draw.random() < 0.3:
        parts.insert(draw.randrange(len(parts) + 1), "")
    parts = [part.removesuffix("=") if part.count("=") == 1 and draw.random() < 0.5 else part for part in parts]
    parts = [part.replace("+", "%20") if draw.random() < 0.5 else part for part in parts]
    parts = ["=".join(escaped(word, 0.1) for word in part.split("=", 1)) for part in parts]
    path = head[start:] + (";" if draw.random() < 0.1 else "")
    return f"{head[:start]}{escaped(path, 0.1)}{question}{'&'.join(parts)}"


def as_requested(url: str) -> str | None:
    try:
        return Request(url).url
    except ValueError:
        return None


def assert_one(group: list[str], of: Callable[[str], str] = canonicalize_url) -> None:
    """Those of these URLs that w3lib takes for one have one form."""
    forms: dict[str, tuple[str, str]] = {}
    for url in filter(None, map(as_requested, group)):
        form = canonical_form(url)
        if form is not None:
            first, url_of_first = forms.setdefault(of(url), (form, url))
            assert form == first, (url, url_of_first)
            assert canonical_form(form) == form
            assert form.isascii()


@settings(max_examples=300)
@given(st.lists(urls, min_size=2, max_size=12))
@example(["http://h/%%32%46", "http://h/%2F", "http://h/%%32%46;%"])
@example(["http://h/%%34%31", "http://h/%%341"])
@example(["http://h/a/..;b", "http://h/;b"])
@example(["http://h/a;", "http://h/a"])
@example(["http://h/?a=1&%61=2", "http://h/?a=2&&a=1"])
def test_what_w3lib_makes_equal_is_one(group: list[str]) -> None:
    assert_one(group)


@settings(max_examples=300)
@given(urls | good_urls, st.integers(0, 1 << 32))
def test_other_spellings_of_a_url_are_one_where_they_are_to_w3lib(url: str, seed: int) -> None:
    if "/" in url[8:]:
        draw = random.Random(seed)
        assert_one([url, *(respelled(url, draw) for _ in range(4))])


@given(st.lists(urls, min_size=2, max_size=6), st.sampled_from(["GET", "POST"]), st.sampled_from([b"", b"a=1"]))
def test_requests_of_one_fingerprint_have_one_form(group: list[str], method: str, body: bytes) -> None:
    assert_one(group, lambda url: fingerprint(Request(url, method=method, body=body)).hex())


def test_there_are_pairs_to_judge() -> None:
    """A law about nothing holds always: of random URLs of these pieces many are one to w3lib."""
    draw = random.Random(1)
    found = [f"http://h/?{''.join(draw.choices(IN_QUERY, k=3))}" for _ in range(2000)]
    requested = set(filter(None, map(as_requested, found)))
    canonical_texts = {canonicalize_url(url) for url in requested}
    assert len(canonical_texts) < 0.93 * len(requested)
    assert len(canonical_texts) >= len(set(map(canonical_form, requested))) > 0.7 * len(canonical_texts)


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        # arguments: their order, empty ones, without a value
        (["http://h/?a=1&b=2", "http://h/?b=2&a=1", "http://h/?&b=2&&a=1&"], "http://h/?a=1&b=2"),
        (["http://h/?c=3&b=5&b=2&a=50", "http://h/?a=50&b=2&b=5&c=3"], "http://h/?a=50&b=2&b=5&c=3"),
        (["http://h/?a", "http://h/?a=", "http://h/?&a"], "http://h/?a="),
        (["http://h/", "http://h/?", "http://h/?&", "http://h?&&#a"], "http://h/"),
        (["http://h/?=", "http://h/?&="], "http://h/?="),
        (["http://h/?a=1&a=1"], "http://h/?a=1&a=1"),
        (["http://h/?a1=1&a=1", "http://h/?a=1&a1=1"], "http://h/?a1=1&a=1"),  # in the order of their texts
        # spaces, escapes in arguments
        (["http://h/?q=a b", "http://h/?q=a+b", "http://h/?q=a%20b"], "http://h/?q=a+b"),
        (["http://h/?q=a%2bb", "http://h/?q=a%2Bb"], "http://h/?q=a%2Bb"),
        (["http://h/?u=http://x/?y", "http://h/?u=http%3A%2F%2fx/%3Fy"], "http://h/?u=http%3A%2F%2Fx%2F%3Fy"),
        (["http://h/?a=b=c", "http://h/?a=b%3Dc"], "http://h/?a=b%3Dc"),
        (["http://h/?a=b%26c"], "http://h/?a=b%26c"),
        (["http://h/?a=%zz", "http://h/?a=%25zz"], "http://h/?a=%25zz"),
        (["http://h/?ü", "http://h/?%c3%bc="], "http://h/?%C3%BC="),
        # escapes of a path
        (["http://h/a,b:c@d", "http://h/a%2Cb%3ac%40d"], "http://h/a,b:c@d"),
        (["http://h/it's(a)*!$&=+", "http://h/it%27s%28a%29%2A%21%24%26%3D%2B"], "http://h/it's(a)*!$&=+"),
        (["http://h/[a]|", "http://h/%5ba%5D%7c"], "http://h/%5Ba%5D%7C"),
        (["http://h/%2f%3b%3f%25%23", "http://h/%2F%3B%3F%25%23"], "http://h/%2F%3B%3F%25%23"),
        (["http://h/%%32%46", "http://h/%2F", "http://h/%2%46"], "http://h/%2F"),
        (["http://h/%%32%35"], "http://h/%25"),
        (["http://h/%25%32%46"], "http://h/%252F"),
        # parameters
        (["http://h/a;", "http://h/a"], "http://h/a"),
        (["http://h/a;b%2C"], "http://h/a;b%2C"),
        (["http://h/a/..;b", "http://h/;b"], "http://h/;b"),
        (["http://h/a/.;", "http://h/a/"], "http://h/a/"),
        (["http://h/a;/b"], "http://h/a;/b"),
        # user and password
        (["http://u%21:p%40@h/", "http://%75!:%70%40@H:80"], "http://u!:p%40@h/"),
        # as by the safe steps
        (["HTTP://H.:80/x/../%7ea#b", "http://h/~a"], "http://h/~a"),
    ],
)
def test_spellings_of_one_url(spellings: list[str], expected: str) -> None:
    assert [canonical_form(spelling) for spelling in spellings] == [expected] * len(spellings)


@pytest.mark.parametrize(
    "group",
    [
        ["http://h/", "https://h/", "http://www.h/", "http://h:8080/", "http://u@h/"],
        ["http://h/a", "http://h/a/", "http://h/A", "http://h//a", "http://h/a?b", "http://h/a;b", "http://h/a;;"],
        ["http://h/a+b", "http://h/a%20b", "http://h/a%252Bb"],
        ["http://h/?a=1&b=2", "http://h/?A=1&b=2", "http://h/?a=1;b=2", "http://h/?a=1%26b=2", "http://h/?a=1&a=1&b=2"],
        ["http://h/?q=a+b", "http://h/?q=a%2Bb", "http://h/?q=ab"],
        ["http://h/%2F", "http://h/%252F", "http://h//"],
    ],
)
def test_urls_that_stay_apart(group: list[str]) -> None:
    assert len({canonical_form(url) for url in group}) == len(group)


SCRAPY = Normaliser(PRESETS["scrapy"])
like_urls = st.one_of(url_like, urls, usual, st.text())


@given(like_urls)
@example("http://h/?a=1&b=2&c=3#d")
@example("http://h/?c=3&b=2&a=1&b=1")
@example("http://h/?a=/.")
@example("http://h/%20?%20=")
def test_the_short_cut_is_what_the_steps_give(text: str) -> None:
    form = by_steps(text, frozenset((*SAFE, PATH_ESCAPES)), look=False)
    expected = None if form is None else canonical(form)
    assert canonical_form(text) == SCRAPY(text) == expected
    assert (expected is None) == (normal_form(text) is None)


def test_the_short_cut_and_the_steps_agree_on_every_escape_and_character() -> None:
    for code in range(256):
        for piece in (f"%{code:02X}", f"%{code:02x}", chr(code)):
            for url in (f"http://h/a{piece}b/{piece}", f"http://h/?a{piece}b={piece}", f"http://h/?a&b={piece}"):
                form = by_steps(url, frozenset((*SAFE, PATH_ESCAPES)), look=False)
                assert canonical_form(url) == (None if form is None else canonical(form)), url


@given(like_urls)
@example("http://h/a;b")
@example("http://h.example/a?b=1#'")
def test_the_parts_of_a_link_are_those_of_its_forms(text: str) -> None:
    match = usual_parts(text)
    if match is None:
        return
    beginning, host, rest = match.groups()
    assert Request(text).url == text
    assert f"//{host}/" in text and normal_form(text) is not None
    assert str(canonical_form(text)).startswith(f"{beginning.partition('://')[0]}://{host}/")
    if rest is None and "/." not in text:
        assert canonical_form(text) == normal_form(text) == beginning


@given(like_urls | urls, st.sampled_from([canonical_form, normal_form]))
@example("http://u:%21@h:8080/a?b=1", canonical_form)
@example("HTTP://%21@0/", normal_form)
@example("HTTP://büher.example:22840/a;b?c", canonical_form)
def test_what_stands_before_a_path_is_written_in_one_way(text: str, form_of: Callable[[str], str | None]) -> None:
    match = odd_parts(text)
    if match is None:
        return
    before, beginning, rest = match.groups()
    site = site_of(before, form_of)
    if site is None:
        assert as_requested(text) is None or form_of(text) is None
        return
    tail = text[len(before) :]
    assert Request(text).url == site.url + tail
    assert host_name(Request(text).url) == site.name
    form = form_of(Request(text).url)
    assert form is not None and form.startswith(f"{site.normal}/")
    if rest is None and "/." not in beginning:
        assert form == site.normal + beginning


@given(st.one_of(queries, paths))
def test_each_step_is_idempotent(text: str) -> None:
    for step in (arguments, path_escapes):
        safe = str(normal_form(f"http://h/?{text}")).removeprefix("http://h/").removeprefix("?")
        path = str(normal_form(f"http://h/{text.replace('?', '')}")).removeprefix("http://h")
        once = step(safe if step is arguments else path)
        assert step(once) == once


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_hosts_are_those_of_the_safe_form(host: str) -> None:
    assert canonical_form(f"http://{host}/a?b=1") == normal_form(f"http://{host}/a?b=1")


def test_a_long_url_takes_time_in_proportion() -> None:
    for filler in ("a", "&", "=", "a=1&", "+", "%", "%%3", "%41", "%2C", ";", "/..", "/..;", ":", "?", "ü"):
        for start in ("http://h.example/", "http://h.example/?", "http://h.example/?a="):
            text = start + filler * (40_000 // len(filler))
            canonical_form(text)
            usual_parts(text)
