"""Rules as people write them: what they give, and the sentence, with file and line, for what does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.patterns.page_rules import FACTS_BESIDE_FIELDS, USUAL_FACTS
from scrapy_ubi.cli.patterns.rules_error import UbiRulesError
from scrapy_ubi.cli.patterns.rules_reader import read_rules
from scrapy_ubi.cli.patterns.rules_source import MOST_BYTES, RulesSource, read_file, read_json

WHOLE = """\
[crawl]
start = ["site.example", "https://b.example/x"]
hosts = ["site.example", "*.b.example", "-ads.b.example"]
max_depth = 3
max_pages = 100
delay = 0.5
obey_robots = false
contact = "mailto:me@site.example"

[follow]
allow = "/docs/"
deny = ["\\\\.cgi$"]
css = "main"
xpath = ["//nav"]

[collect]
allow = ["/docs/[0-9]+"]
page = ["url", "accuracy"]
errors = true

[fields.title]
css = ["h1", "title"]

[fields.links]
xpath = "//a/@href"
many = true
required = true

[fields.body]
xpath = "//main"
exclude = ".//aside"
text = false

[keywords]
words = ["crawl", "web site"]
accuracy = 50
min_count = 2
"""


def written(place: Path, text: str) -> str:
    path = place / "rules.toml"
    path.write_text(text)
    return str(path)


def complaint(place: Path, text: str) -> str:
    """What is said of this file, without the directory that it is in."""
    name = written(place, text)
    with pytest.raises(UbiRulesError) as raised:
        read_file(name).rules()
    return str(raised.value).removeprefix(f"{place}/")


def test_everything_can_be_said(tmp_path: Path) -> None:
    rules = read_file(written(tmp_path, WHOLE)).rules()
    assert rules.crawl.start == ("http://site.example/", "https://b.example/x")
    assert rules.crawl.hosts == ("site.example", "*.b.example", "-ads.b.example")
    assert (rules.crawl.max_depth, rules.crawl.max_pages, rules.crawl.delay) == (3, 100, 0.5)
    assert not rules.crawl.obey_robots and rules.crawl.contact == "mailto:me@site.example"
    assert (rules.follow.allow, rules.follow.deny) == (("/docs/",), ("\\.cgi$",))
    assert (rules.follow.css, rules.follow.xpath) == (("main",), ("//nav",))
    assert rules.collect.allow[0].search("http://a.example/docs/12") and rules.collect.errors
    assert rules.columns == ["url", "accuracy", "title", "links", "body"]
    title, links, body = rules.fields
    assert len(title.patterns) == 2 and title.text and not title.many and not title.required
    assert links.many and links.required
    assert len(body.exclude) == 1 and not body.text
    assert rules.keywords is not None and rules.keywords.words == ("crawl", "web site")
    assert (rules.keywords.accuracy, rules.keywords.min_count) == (50.0, 2)


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    rules = read_file(written(tmp_path, '[crawl]\nstart = "a.example"')).rules()
    assert rules.collect.page == USUAL_FACTS and rules.fields == () and rules.keywords is None
    assert rules.crawl.max_depth is None and rules.crawl.delay is None and rules.crawl.obey_robots
    with_field = read_file(written(tmp_path, "[fields.a]\ncss = 'a'\n[keywords]\nwords = 'a'")).rules()
    assert with_field.collect.page == (*FACTS_BESIDE_FIELDS, "accuracy")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[crawl]\nstart = \n", "rules.toml:2: this is not TOML: Invalid value."),
        ("[crawl]\nstart = 'a'\nstart = 'b'", "rules.toml:3: this is not TOML: Cannot overwrite a value."),
        ("[crawl]\nx = 'a", "rules.toml:2: this is not TOML: "),
        ("[folow]\n", "rules.toml:1: 'folow' is no key: did you mean follow?"),
        ("\n[crawl]\nmax_dept = 3", "rules.toml:3: 'max_dept' is no key of [crawl]: did you mean max_depth?"),
        ("[crawl]\nzzz = 3", "rules.toml:2: 'zzz' is no key of [crawl]: there are start, hosts, max_depth, max_pages"),
        ("[crawl]\nmax_depth = '3'", "rules.toml:2: crawl.max_depth is '3': write a whole number from 0 on."),
        ("[crawl]\nmax_depth = true", "rules.toml:2: crawl.max_depth is true: write a whole number from 0 on."),
        ("[crawl]\ndelay = nan", "rules.toml:2: crawl.delay is nan: write a number from 0 to 86400."),
        ("[crawl]\nobey_robots = 1", "rules.toml:2: crawl.obey_robots is 1: write true or false."),
        ("[crawl]\nstart = 1979-05-27", "rules.toml:2: crawl.start is a date: write a text in quotes, or a list"),
        ("[crawl]\nstart = ['a.example',\n 3]", "rules.toml:3: crawl.start[1] is 3: write a text in quotes."),
        ("[crawl]\nstart = 'ftp://a/'", "rules.toml:2: crawl.start 'ftp://a/' is no address of a page: write http://"),
        ("[crawl]\nhosts = 'http://a/'", "rules.toml:2: crawl.hosts 'http://a/' is no host: write site.example,"),
        ("[crawl]\ncontact = 'me'", "rules.toml:2: crawl.contact is 'me': write an http:// or mailto: address."),
        ("crawl = 3", "rules.toml:1: crawl is 3, no table: write [crawl] above its keys."),
        (
            "[follow]\nallow = [\n 'a',\n '(b'\n]",
            "rules.toml:4: follow.allow[1] '(b' is no regular expression (missing ), unterminated subpattern at",
        ),
        ("[follow]\ncss = 'a >'", "rules.toml:2: follow.css 'a >' is no CSS selector (Expected selector, got <EOF"),
        ("[follow]\nxpath = '//a/@href'", "rules.toml:2: follow.xpath '//a/@href' selects no elements."),
        ("[fields.a]\nxpath = '//a['", "rules.toml:2: fields.a.xpath '//a[' is no XPath (Invalid expression)."),
        (
            "[fields.a]\nxpath = 'lenght(.)'",
            "rules.toml:2: fields.a.xpath 'lenght(.)' has the unknown function lenght()",
        ),
        ("[fields]\na = 'h1'", "rules.toml:2: fields.a is 'h1', no table: write [fields.a] above its keys."),
        ("[fields.a]\nmany = true", "rules.toml:1: fields.a has no pattern: give xpath or css."),
        ("[fields.a]\ncss='a'\nxpath='b'", "rules.toml:1: fields.a has both xpath and css: give xpath or css."),
        ("[fields.a]\ncss=[]", "rules.toml:2: fields.a.css is empty: write a pattern."),
        ("[fields.a]\ncss='a'\nmanny=true", "rules.toml:3: 'manny' is no key of [fields.a]: did you mean many?"),
        ("[fields.a]\ncss='a'\nexclude='a::text'", "rules.toml:3: fields.a.exclude 'a::text' selects no elements."),
        ('[fields."a b"]\ncss="a"', "rules.toml:1: fields.a b is no name of a field: use letters, digits, _ and -"),
        ("fields = {a = {css = '('}}", "rules.toml:1: fields.a.css '(' is no CSS selector"),
        ("[keywords]\naccuracy = 5", "rules.toml:1: keywords.words has no word: write a list of words."),
        ("[keywords]\nwords = ['a', '-']", "rules.toml:2: keywords.words[1] '-' has no letter or digit."),
        (
            "[keywords]\nwords='a'\naccuracy=101",
            "rules.toml:3: keywords.accuracy is 101: write a number from 0 to 100.",
        ),
        (
            "[collect]\npage = ['titel']",
            "rules.toml:2: collect.page[0] 'titel' is nothing that is known of a page: did",
        ),
    ],
)
def test_what_does_not_hold_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert complaint(tmp_path, text).startswith(said)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_bytes(b"[crawl]\n# \xff\n")
    with pytest.raises(UbiRulesError, match=r"rules.toml:2: this is no UTF-8 text\."):
        read_file(str(tmp_path / "rules.toml"))
    with pytest.raises(UbiRulesError, match=r"none\.toml cannot be read"):
        read_file(str(tmp_path / "none.toml"))
    (tmp_path / "rules.toml").write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(UbiRulesError, match="has more than"):
        read_file(str(tmp_path / "rules.toml"))


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_bytes(b"\xef\xbb\xbf[crawl]\r\nmax_depth = 2\r\n")
    assert read_file(str(tmp_path / "rules.toml")).rules().crawl.max_depth == 2


def test_an_option_takes_the_place_of_a_key_and_is_named_where_it_does_not_hold(tmp_path: Path) -> None:
    source = read_file(written(tmp_path, WHOLE))
    source.put("crawl", "max_depth", 1, "--max-depth")
    assert source.rules().crawl.max_depth == 1
    source.put("follow", "allow", ["a", "("], "--follow")
    with pytest.raises(UbiRulesError, match=r"^--follow: follow.allow\[1\] '\(' is no regular expression"):
        source.rules()


def test_agents_read_what_the_command_has_read(tmp_path: Path) -> None:
    source = read_file(written(tmp_path, WHOLE))
    path = tmp_path / "rules.json"
    path.write_text(source.as_json())
    assert repr(read_json(path).columns) == repr(source.rules().columns)
    assert read_json(path).crawl == source.rules().crawl
    path.write_text("[")
    with pytest.raises(UbiRulesError, match="cannot be read"):
        read_json(path)


def test_the_mark_tells_rules_apart_that_give_other_items() -> None:
    def mark(**crawl: object) -> str:
        return RulesSource({"crawl": {"start": ["a.example"], **crawl}}).mark

    assert mark() == mark(max_pages=3, delay=1.0)
    assert (
        len({mark(), mark(max_depth=1), mark(hosts=["*"]), RulesSource({"crawl": {"start": ["b.example"]}}).mark}) == 4
    )


names = st.sampled_from(
    ["crawl", "follow", "collect", "fields", "keywords", "start", "allow", "css", "words", "a", "page"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("a(/[*:@$'\x00", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)


@given(st.dictionaries(names, anything, max_size=4))
def test_any_document_gives_rules_or_a_sentence(document: dict[str, object]) -> None:
    try:
        read_rules(document, lambda _: "x:1")
    except UbiRulesError as error:
        assert str(error).startswith("x:1: ") and "\n" not in str(error)
