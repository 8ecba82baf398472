"""What the lines of a robots.txt mean: RFC 9309, Google's cases by which Protego differs, and garbage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from scrapy_ubi.robots import text

FOO = "Mozilla/5.0 (compatible; Foobot/1.0; +http://foo.example)"
AGENTS = ["foo", "FooBot", FOO, "bar/2", "baz"]


def whole(body: str) -> Protego:
    """The parser that is asked about any user agent."""
    put = text.put_together(text.take_apart(text.decode(body.encode())))
    assert put is not None
    return Protego.parse(put)


def allowed(body: str, path: str, agent: str = "FooBot") -> bool:
    """The verdict, by the whole text and by what of it concerns this agent: they agree."""
    url = f"http://h.example{path}"
    reduced = Protego.parse(text.reduce(text.take_apart(text.decode(body.encode())), agent))
    verdict = bool(whole(body).can_fetch(url, agent))
    assert reduced.can_fetch(url, agent) is verdict
    return verdict


def test_a_user_agent_line_ends_at_the_first_space() -> None:
    body = "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n"
    assert allowed(body, "/x/y", "Foo")
    assert allowed("User-agent: Foo Bar\nDisallow: /x", "/x", "Other")
    assert not allowed("User-agent: foo bar\nDisallow: /x", "/x", "Foo")


@pytest.mark.parametrize("between", ["Unknown: line", "Sitemap: /s.xml", "Crawl-delay: 5", "garbage", ""])
def test_only_rules_end_the_user_agents_of_a_group(between: str) -> None:
    body = f"User-agent: FooBot\n{between}\nUser-agent: BarBot\nDisallow: /x\n"
    assert not allowed(body, "/x", "FooBot")
    assert not allowed(body, "/x", "BarBot")
    assert allowed(body, "/x", "BazBot")


@pytest.mark.parametrize("rule", ["Disallow: /y", "Allow: /y", "Disallow:", "disallow /y"])
def test_rules_end_the_user_agents_of_a_group(rule: str) -> None:
    body = f"User-agent: FooBot\n{rule}\nUser-agent: BarBot\nDisallow: /x\n"
    assert allowed(body, "/x", "FooBot")
    assert not allowed(body, "/x", "BarBot")


def test_groups_of_one_agent_are_one_and_rules_outside_are_none() -> None:
    body = "disallow: /foo\nUser-agent: a\nDisallow: /1\nUser-agent: b\nDisallow: /2\nUser-agent: a\nDisallow: /3\n"
    assert not allowed(body, "/1", "a") and not allowed(body, "/3", "a")
    assert allowed(body, "/2", "a") and allowed(body, "/foo", "a")


def test_the_longest_token_of_an_agent_counts_and_none_without_one() -> None:
    body = "User-agent: *\nDisallow: /all\nUser-agent: foo\nDisallow: /foo\nUser-agent: foobot\nDisallow: /foobot\n"
    assert not allowed(body, "/foobot", FOO) and allowed(body, "/foo", FOO)
    assert not allowed(body, "/all", "Bar/1 xfoobot")
    assert not allowed(body, "/foo", "my foo*")
    assert allowed("User-agent: foo\nDisallow: /", "/", "Bar")
    assert allowed("User-agent: foo\n\nUser-agent: *\nDisallow: /", "/", "Bar") is False


@pytest.mark.parametrize("agent", ["my-foobot/1.0", "my_foobot", "1foobot", "Mozilla/5.0 (compatible; my-foobot)"])
def test_a_token_within_a_word_is_another_agents(agent: str) -> None:
    assert allowed("User-agent: foobot\nDisallow: /", "/", agent)
    assert not allowed("User-agent: foobot\nDisallow: /", "/", f"{agent} foobot")


def test_a_user_agent_line_that_names_none_begins_a_group_of_nobody() -> None:
    body = "User-agent: FooBot\nDisallow: /x\nUser-agent:\nDisallow: /y\n"
    assert not allowed(body, "/x") and allowed(body, "/y") and allowed(body, "/y", "BarBot")
    assert not allowed("User-agent:\nUser-agent: FooBot\nDisallow: /x", "/x"), "another one may follow it"
    assert allowed("User-agent: **\nDisallow: /x", "/x")


def test_an_agent_with_a_group_without_rules_may_fetch_everything() -> None:
    body = "User-agent: *\nDisallow: /\n\nUser-agent: FooBot\nDisallow:\n"
    assert allowed(body, "/x") and not allowed(body, "/x", "Bar")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\r\n"])
def test_line_ends_and_the_byte_order_mark(end: str) -> None:
    assert not allowed(f"\ufeffUser-agent: FooBot{end}Disallow: /x{end}", "/x/y")


@pytest.mark.parametrize("space", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c", "\x00"])
def test_nothing_else_ends_a_line(space: str) -> None:
    assert allowed(f"User-agent: FooBot\nDisallow: /x{space}Disallow: /\n", "/y")


def test_what_protego_forgives_is_forgiven() -> None:
    assert not allowed("useragent FooBot\ndissallow: /x # not this\n", "/x")
    assert not allowed("User agent : FooBot\n  DISALLOW :/x\n", "/x")
    assert allowed("user-agent: FooBot\nDisallow: /x#y\nfoo: /y\n<html>", "/y")


def test_a_crawl_delay_and_sitemaps_are_found() -> None:
    body = "Sitemap: http://h.example/1.xml\nUser-agent: *\nCrawl-delay: 2.5\nsite-map:/2.xml\n"
    assert whole(body).crawl_delay("x") == 2.5
    assert Protego.parse(text.reduce(text.take_apart(body), "x")).crawl_delay("x") == 2.5
    assert text.take_apart(body).sitemaps == ["http://h.example/1.xml", "/2.xml"] == list(whole(body).sitemaps)
    assert len(text.take_apart("sitemap: /x\n" * 500).sitemaps) == text.MOST_SITEMAPS
    assert text.take_apart("Sitemap:\nSitemap: # /1.xml\nSitemap: /2.xml").sitemaps == ["/2.xml"]


def test_of_a_longer_text_the_beginning_counts_up_to_a_whole_line() -> None:
    line = b"Disallow: /abc\n"
    body = line * (text.MOST_BYTES // len(line) + 5)
    cut = text.beginning(body, stopped=False)
    assert text.MOST_BYTES - len(line) < len(cut) <= text.MOST_BYTES and cut.endswith(b"\n")
    assert text.beginning(b"Allow: /x\nDisallow: /", stopped=True) == b"Allow: /x\n", "the rest was /private, say"
    assert text.beginning(b"Disallow: /", stopped=False) == b"Disallow: /"
    assert text.beginning(b"x" * 10, stopped=True) == b""


def test_lines_of_any_length_count_up_to_a_bound() -> None:
    path = "/x/" + "a" * text.MOST_LINE
    assert not allowed(f"User-agent: FooBot\nDisallow: {path}/qux\n", path + "/fux")


def test_a_rule_of_many_asterisks_takes_no_time_to_speak_of() -> None:
    rules = Protego.parse("User-agent: *\nDisallow: /" + "*1" * 12 + "*Z\n")  # Protego before 0.6.2: hours
    assert rules.can_fetch("http://h.example/" + "1" * 2_000, "bot")
    assert not rules.can_fetch("http://h.example/" + "1" * 2_000 + "Z", "bot")


def test_thousands_of_agents_times_thousands_of_rules_are_not_multiplied() -> None:
    body = "".join(f"user-agent: b{number}\n" for number in range(5000)) + "disallow: /x\n" * 5000
    robots = text.take_apart(body)
    assert text.put_together(robots) is None
    assert not Protego.parse(text.reduce(robots, "b7")).can_fetch("http://h.example/x", "b7")


@pytest.mark.parametrize(
    "body",
    [
        b"allow: a" + b" " * 200_000 + b"b",
        b" " * 500_000,
        b"\n" * 500_000,
        (b"allow: " + b"a " * 8000 + b"\n") * 30,
        b"user agent" * 50_000,
        b"".join(b"user-agent: b%d\ndisallow: /\n" % number for number in range(3000)),
    ],
    ids=["spaces", "blank", "lines", "words", "no colon", "groups"],
)
def test_hostile_texts_take_linear_time(body: bytes) -> None:
    text.reduce(text.take_apart(text.decode(body)), "FooBot")  # quadratic, it would hang


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_whatever_the_bytes_there_is_a_result(body: bytes) -> None:
    robots = text.take_apart(text.decode(text.beginning(body, stopped=True)))
    put = text.put_together(robots)
    assert put is not None
    Protego.parse(put).can_fetch("http://h.example/x", "FooBot")
    assert isinstance(text.reduce(robots, "FooBot"), str)


@st.composite
def robots_texts(draw: st.DrawFn) -> str:
    agent = st.sampled_from(["*", "foo", "foobot", "bar", "foo bar", "Foo*"])
    path = st.sampled_from(["/", "/a", "/a/b", "/*b", "/a$", ""])
    line = st.one_of(
        agent.map(lambda name: f"User-agent: {name}"),
        path.map(lambda value: f"Disallow: {value}"),
        path.map(lambda value: f"Allow: {value}"),
        st.sampled_from(["Crawl-delay: 3", "Sitemap: /s", "Foo: bar", "", "# x"]),
    )
    return "\n".join(draw(st.lists(line, max_size=12)))


@given(
    robots_texts(), st.sampled_from(["foo", "FooBot", FOO, "bar/2", "baz"]), st.sampled_from(["/", "/a", "/a/b", "/c"])
)
def test_what_concerns_an_agent_is_what_the_whole_says_to_it(body: str, agent: str, path: str) -> None:
    allowed(body, path, agent)
    robots = text.take_apart(body)
    assert whole(body).crawl_delay(agent) == Protego.parse(text.reduce(robots, agent)).crawl_delay(agent)


@settings(max_examples=50)
@given(robots_texts(), st.sampled_from(AGENTS), st.sampled_from(["/", "/a", "/a/b", "/c"]))
def test_rules_travel_shortened(body: str, agent: str, path: str) -> None:
    reduced = text.reduce(text.take_apart(body), agent)
    travelled = text.lengthen(text.shorten(reduced))
    for parser in (Protego.parse(reduced), Protego.parse(travelled)):
        assert parser.can_fetch(f"http://h.example{path}", agent) is allowed(body, path, agent)
    assert text.shorten("user-agent:*\ndisallow:/a:b\ncrawl-delay:3\nallow:/\n") == "-/a:b\n+/"


@given(st.text())
def test_whatever_has_travelled_is_rules(short: str) -> None:
    Protego.parse(text.lengthen(short)).can_fetch("http://h.example/x", "x")


@settings(max_examples=50)
@given(robots_texts())
def test_putting_together_is_idempotent(body: str) -> None:
    once = text.put_together(text.take_apart(body))
    assert once is not None and text.put_together(text.take_apart(once)) == once
