"""The scorers of the package: what they say of a link, and that a batch says what batches of one say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls.scores import LinkBatch, ScoreChain
from scrapy_ubi.urls.scores.score_chain import SUITE

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC).timestamp()
HOST = "https://h.example"


def batch(*urls: str, anchors: tuple[str, ...] | None = None, depth: int = 0) -> LinkBatch:
    return LinkBatch(urls, anchors or ("",) * len(urls), depth, "", NOW)


def score(text: str, url: str, anchor: str = "", depth: int = 0) -> int:
    return ScoreChain.read([text]).scores(batch(url, anchors=(anchor,), depth=depth))[0]


@pytest.mark.parametrize(
    ("path", "anchor", "points"),
    [
        ("/crawling/", "", 10),
        ("/a", "A Crawler", 10),
        ("/CRAWL", "crawl crawl", 10),
        ("/recrawl", "", 0),
        ("/web_crawl", "", 10),
        ("/web-archive/crawl", "", 20),
        ("/", "web\n archives", 10),
        ("/%63rawl", "", 10),
        ("/webarchive", "", 0),
        ("/" + "a" * 3000 + "/crawl", "", 0),
    ],
)
def test_keywords(path: str, anchor: str, points: int) -> None:
    assert score('keywords(crawl, "Web  Archive")', HOST + path, anchor) == points


def test_keywords_of_other_scripts_and_weights() -> None:
    assert score("keywords(größe, weight=-2.4)", f"{HOST}/Gr%C3%B6%C3%9Fen") == -2
    assert score("keywords(crawl, crawler, weight=3)", f"{HOST}/crawler") == 6
    assert ScoreChain.read([("keywords", "a,b", {"weight": 4})]).scores(batch(f"{HOST}/a,b")) == [4]


def test_depth() -> None:
    assert [score("depth(-1.5)", HOST, depth=depth) for depth in (0, 1, 4)] == [0, -2, -6]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/docs/", "/docs/a", True),
        ("/docs/", "/my/docs/a", False),
        ("*/tag/", "/my/tag/a", True),
        ("/*.pdf$", "/a.pdf", True),
        ("/*.pdf$", "/a.pdf?x", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a*a$", "/a", False),
        ("*", "", True),
        ("/*?page", "/a?page", True),
        ("/docs", "#/docs", False),
    ],
)
def test_path(pattern: str, path: str, matches: bool) -> None:
    assert score(f"path({pattern}=5)", HOST + path) == 5 * matches


def test_paths_add_up() -> None:
    assert score("path(/docs/=5, */tag/=-7)", f"{HOST}/docs/tag/x") == -2
    assert ScoreChain.read([("path", {"/docs/": 5, "/x": 1})]).scores(batch(f"{HOST}/docs/")) == [5]


@pytest.mark.parametrize(
    ("path", "points"),
    [
        ("/2026/11/27/x", 100),
        ("/2026-11-28", 100),  # tomorrow, somewhere
        ("/2026-11-29", 0),
        ("/2027/", 0),
        ("/20251127.html", 50),
        ("/2026/", 100),
        ("/2026/11", 100),
        ("/2025/11/30", 50),
        ("/2024/11/27", 25),
        ("/2025_02_31", 30),
        ("/120261127", 0),
        ("/x?d=2026-11-27", 0),
        ("/x", 0),
    ],
)
def test_fresh(path: str, points: int) -> None:
    assert score("fresh(100)", HOST + path) == points


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("keywords()", "lacks keywords"),
        ("keywords(a, weight=much)", "give a number from -1,000,000 to 1,000,000"),
        ("keywords(a, weigth=1)", "its arguments are weight="),
        ("depth", "has the argument '': give a number"),
        ("depth(nan)", "'nan'"),
        ("depth(1, 2)", "2 values"),
        ("path(docs=5)", "begin it with /"),
        ("path(/docs/)", "without a number"),
        ("path(/docs/=5, 6)", "2 values"),
        ("fresh(10, days=0)", "from 0.01 to 100,000"),
        ("keyword(a)", "the scorers are depth, file, fresh, keywords, path"),
        ("keywords(", "give scorers such as"),
        (7, "is no scorer"),
        ("no.such.module", "cannot be loaded"),
        ("math.pi", "cannot be called"),
        ("math.fsum(1)", "name a class"),
        ("fractions.Fraction(x)", "cannot be made"),
    ],
)
def test_what_is_malformed_is_said_with_the_setting_and_the_remedy(entry: object, says: str) -> None:
    with pytest.raises(UbiSettingError) as raised:
        ScoreChain.read([entry])
    assert "UBI_SCORE" in str(raised.value) and says in str(raised.value)


LINKS = st.lists(
    st.tuples(
        st.text(max_size=40) | st.text("crawl/2026-11%/?#", max_size=40).map(lambda text: HOST + text),
        st.text("crawl x", max_size=20),
    ),
    max_size=6,
)
CHAIN = ["keywords(crawl, l, weight=1.5)", "depth(-1)", "path(/c=5, *2=0.5)", "fresh(10)"]


@given(links=LINKS, depth=st.integers(0, 9))
def test_many_links_get_what_each_gets_alone(links: list[tuple[str, str]], depth: int) -> None:
    chain = ScoreChain.read(CHAIN)
    together = LinkBatch([url for url, _ in links], [anchor for _, anchor in links], depth, "", NOW)
    alone = [chain.scores(LinkBatch([url], [anchor], depth, "", NOW))[0] for url, anchor in links]
    assert chain.scores(together) == alone


def test_hostile_links_are_scored_at_once() -> None:
    """Going back at each place would take minutes."""
    chain = ScoreChain.read([*CHAIN, "path(*a*a*a*a*a*b=1)", 'keywords("a a a a a b")'])
    for bad in ("a" * 100_000, "a " * 50_000, "2026/" * 20_000, "%61" * 30_000):
        assert len(chain.scores(batch(*[f"{HOST}/{bad}"] * 5, anchors=(bad,) * 5))) == 5


def test_the_suite_is_documented_by_name() -> None:
    assert set(SUITE) == {"keywords", "depth", "path", "fresh", "file"}
