"""What the lines of a robots.txt mean: RFC 9309, Google's cases by which Protego differs, and garbage."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from protego import Protego

from scrapy_ubi.policy.robots import text

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
    verdict = bool(whole(body).can_fetch(url, text.asked_as(agent)))
    assert reduced.can_fetch(url, agent) is verdict
    return verdict


def test_a_user_agent_line_ends_at_the_first_space() -> None:
    body = "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n"
    assert allowed(body, "/x/y", "Foo")
    assert allowed("User-agent: Foo Bar\nDisallow: /x", "/x", "Other")
    assert not allowed("User-agent: foo bar\nDisallow: /x", "/x", "Foo")


CONTXBOT = "Mozilla/5.0 (compatible;contxbot/1.0)"
MYBOT = "Mozilla/5.0 (compatible; mybot/1.0; +http://mybot.example/bot.html)"


@pytest.mark.parametrize(
    "agent", [MYBOT, FOO, "Mozilla/5.0 (X11; Linux x86_64)", "mybot", "Scrapy/2.19 (+https://scrapy.org)"]
)
def test_a_line_that_is_the_whole_of_another_bots_user_agent_is_not_ours(agent: str) -> None:
    """As with plain Protego, and with Google's parser, which looks for the crawler's product in it."""
    body = f"User-agent: {CONTXBOT}\nDisallow: /x\nUser-agent: *\nDisallow: /y\n"
    assert allowed(body, "/x", agent) and not allowed(body, "/y", agent)
    assert not allowed(body, "/x", CONTXBOT) and allowed(body, "/y", CONTXBOT)


@pytest.mark.parametrize(
    ("line", "agent", "fits"),
    [
        ("mybot", MYBOT, True),
        ("MyBot/1.0", MYBOT, True),
        ("my", MYBOT, True),  # a word that begins so: Protego's rule
        ("mybot crawler", MYBOT, True),  # Google's first space, with our product
        ("Mozilla/5.0", MYBOT, True),  # its own words, as Protego has it
        ("Mozilla Firefox", MYBOT, False),
        ("compatible crawlers", MYBOT, False),
        ("http client", MYBOT, False),
        ("bot of mine", MYBOT, False),
        ("Scrapy", "Scrapy/2.19 (+https://scrapy.org)", True),
        ("Scrapy/2.19", "Scrapy/2.19 (+https://scrapy.org)", True),
        ("Scrapy/1.8", "Scrapy/2.19 (+https://scrapy.org)", False),
        ("Scrapy spiders", "Scrapy/2.19 (+https://scrapy.org)", True),
        ("Scrapy-Cluster of all", "Scrapy/2.19 (+https://scrapy.org)", False),
        ("foo bar", "foo-bot/1", False),  # its product is foo-bot
        ("foo-bot bar", "foo-bot/1", True),
        ("foo*bar x", "foobar", True),
        ("foo/1 bar", "foo/1", False),  # the first word is no product token
        ("* bar", "whoever", True),  # Google: for everybody
        ("*", "", True),
    ],
)
def test_whom_a_user_agent_line_fits(line: str, agent: str, fits: bool) -> None:
    assert allowed(f"User-agent: {line}\nDisallow: /x\n", "/x", agent) is not fits


def test_groups_of_one_product_are_one_also_where_a_line_says_more() -> None:
    body = "User-agent: foo\nDisallow: /1\n\nUser-agent: Foo Bar\nDisallow: /2\n\nUser-agent: *\nDisallow: /3\n"
    for agent in ("foo", "Foo/2.0"):
        assert [allowed(body, path, agent) for path in ("/1", "/2", "/3")] == [False, False, True]
    assert [allowed(body, path, "foobar") for path in ("/1", "/2", "/3")] == [False, True, True]


@pytest.mark.parametrize(
    ("agent", "product"),
    [
        (MYBOT, "mybot"),
        ("Scrapy/2.19 (+https://scrapy.org)", "scrapy"),
        ("Foo-Bot_x", "foo-bot_x"),
        (" foo bar", "foo"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:1) Gecko/1 Firefox/1", ""),
        ("Mozilla/5.0 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://x) Chrome/1", "googlebot"),
        ("Mozillabot/1", "mozillabot"),
        ("", ""),
        ("1foo", ""),
    ],
)
def test_the_product_of_a_user_agent(agent: str, product: str) -> None:
    assert text.product(agent) == product


def test_a_crawl_delay_is_that_of_those_named_above_it() -> None:
    body = "User-agent: slurp\nCrawl-delay: 10\n\nUser-agent: bing\nCrawl-delay: 20\n\nUser-agent: *\nDisallow: /x\n"
    delays = {agent: whole(body).crawl_delay(agent) for agent in ("slurp", "bing", "mybot")}
    assert delays == {"slurp": 10, "bing": 20, "mybot": None}
    assert not allowed(body, "/x", "slurp"), "it ends no group (RFC 9309)"


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
    assert whole(body).crawl_delay(text.asked_as(agent)) == Protego.parse(text.reduce(robots, agent)).crawl_delay(agent)


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
    """But for the order of a group's user agents."""
    once = text.put_together(text.take_apart(body))
    assert once is not None
    twice = text.put_together(text.take_apart(once))
    assert twice is not None and sorted(twice.split()) == sorted(once.split())


# -- beside plain Protego, which Scrapy's own middleware asks

NAMES = ["*", "mybot", "MyBot/1.0", "my", "bot", "Mozilla", "Mozilla/5.0", CONTXBOT, MYBOT, "Scrapy", "Scrapy/2.19"]
NAMES += ["scrapy cluster", "mybot crawler", "compatible one", "foo*", ""]
PLAIN_AGENTS = [MYBOT, CONTXBOT, "mybot", "Scrapy/2.19 (+https://scrapy.org)", "Mozilla/5.0 (X11)", "other"]
OTHER_LINES = ["Crawl-delay: 3", "crawl delay 7", "Sitemap: /s", "Noindex: /a", "# x", "", "Host: h", "no line"]
LINE_PARTS = [*"aA: \t#*/", "allow", "disallow", "user-agent", "user agent", "crawl-delay", "x"]
PATHS = ["/", "/a", "/a/b", "/c", "/a%20b", "/index.html"]


@st.composite
def usual_texts(draw: st.DrawFn) -> str:
    """Texts that RFC 9309 and Protego group alike: each group has a rule at the end of its user-agent lines."""
    end = st.sampled_from(["\n", "\r\n", "\r"])
    space = st.sampled_from(["", " ", "\t"])
    rule = st.builds(
        lambda field, gap, path: f"{field}:{gap}{path}",
        st.sampled_from(["Disallow", "allow", "dissalow", "ALLOW "]), space, st.sampled_from([*PATHS, "/*b$", ""]),
    )  # fmt: skip
    other = st.sampled_from(OTHER_LINES)
    lines: list[str] = draw(st.lists(rule | other, max_size=2))
    for _ in range(draw(st.integers(0, 4))):
        spelling = draw(st.sampled_from(["User-agent: ", "user-agent:", "User agent "]))
        lines += [f"{spelling}{name}" for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))]
        lines += [draw(rule), *draw(st.lists(rule | other, max_size=4))]
    return "".join(line + draw(end) for line in lines)


def is_cut_by_google(body: str, agent: str) -> bool:
    """Whether a line of several words begins with this crawler's product (GoogleOnly_AcceptUserAgentUpToFirstSpace)."""
    product = text.product(agent)
    values = [line.partition(":")[2] or line[len("user agent ") :] for line in re.split(r"[\r\n]+", body)]
    return any(words[0].lower() == product for value in values if len(words := value.split()) > 1)


@settings(max_examples=300)
@given(usual_texts(), st.sampled_from(PLAIN_AGENTS), st.sampled_from(PATHS))
def test_the_verdict_is_plain_protegos_where_google_does_not_say_otherwise(body: str, agent: str, path: str) -> None:
    assume(not is_cut_by_google(body, agent))
    plain = Protego.parse(body)
    assert allowed(body, path, agent) is bool(plain.can_fetch(f"http://h.example{path}", agent))
    assert whole(body).crawl_delay(text.asked_as(agent)) == plain.crawl_delay(agent)
    assert list(whole(body).sitemaps) == list(plain.sitemaps)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINE_PARTS), max_size=8))
def test_a_line_is_read_as_plain_protego_reads_it(parts: list[str]) -> None:
    """After a group of everybody, and before one more rule."""
    body = f"User-agent: *\nDisallow: /a\n{''.join(parts)}\nDisallow: /x\n"
    plain = Protego.parse(body)
    assume("* " not in body and "*\t" not in body)  # for everybody, Google says
    assume(not is_cut_by_google(body, "a"))
    for path in ("/a", "/x", "/y"):
        assert allowed(body, path, "a") is bool(plain.can_fetch(f"http://h.example{path}", "a"))
