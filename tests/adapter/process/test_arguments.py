"""Sets of spider arguments: which are one, and what people see of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_ubi.adapter.process.arguments import HIDDEN, LONGEST_SHOWN, MOST_SHOWN, Arguments, arguments_of, given


def of(**named: Any) -> Arguments:
    return arguments_of((), named)


def test_no_arguments_have_no_mark() -> None:
    assert of() == Arguments() and not of().mark and not of().short


def test_the_mark_is_the_same_for_ever() -> None:
    """It is part of the names of crawls: those that are on disks must be found again."""
    assert of(site="a").mark == "73ace30abb5dbffa"


def test_order_does_not_count() -> None:
    assert of(x="1", y="2") == of(y="2", x="1")
    assert of(x={"a": 1, "b": 2}).mark == of(x={"b": 2, "a": 1}).mark


def test_sets_that_differ_have_marks_that_differ() -> None:
    sets = [
        *({}, {"x": "1"}, {"x": 1}, {"x": True}, {"x": None}, {"x": "None"}, {"x": ""}, {"y": "1"}, {"x": ["1"]}),
        *({"x": "1", "y": "2"}, {"x": "2", "y": "1"}, {"x": "1:y=2"}, {"x": "1, y=2"}, {"x=1:y": "2"}, {"x": '"1"'}),
        *({"x": "\udce4"}, {"x": "ä"}, {"x": {"y": "1"}}, {"x": object()}, {"x": of}, {"x": {1}}),
    ]
    marks = [of(**one).mark for one in sets] + [arguments_of(("1",), {}).mark, arguments_of(("2",), {}).mark]
    assert len(set(marks)) == len(marks)


def test_random_sets_are_one_only_where_they_are_equal() -> None:
    seed = random.randrange(10**6)
    choice = random.Random(seed)
    seen: dict[str, dict[str, str]] = {}
    for _ in range(100):
        pairs = [(choice.choice("abc"), choice.choice(("", "=", "a", "b", ":a", "a=b"))) for _ in range(3)]
        one = dict(pairs[: choice.randrange(4)])
        assert seen.setdefault(of(**one).mark, one) == one, f"seed {seed}"


def test_what_a_service_adds_does_not_count() -> None:
    """Scrapyd gives each process a `_job` of its own: they would never crawl together."""
    assert of(site="a", _job="1") == of(site="a", _job="2") == of(site="a")
    assert of(_job="1") == Arguments()


def test_an_object_without_a_text_is_named_and_counts_as_its_type() -> None:
    assert of(session=object()).unfit == ("session (builtins.object)",)
    assert of(session=object()).mark == of(session=object()).mark
    assert of(urls=["http://h.example/"], n=3, names={"a": None}).unfit == ()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("site", "a", "a"),
        ("n", 3, "3"),
        ("urls", ["http://h.example/"], '["http://h.example/"]'),
        ("keyword", "shoes", "shoes"),
        ("author", "Eco", "Eco"),
        ("compass", "north", "north"),
        ("password", "x1", HIDDEN),
        ("db_passwd", "x1", HIDDEN),
        ("apiKey", "x1", HIDDEN),
        ("API_KEY", "x1", HIDDEN),
        ("apikey", "x1", HIDDEN),
        ("key", 5, HIDDEN),
        ("auth", "x1", HIDDEN),
        ("authorization", "x1", HIDDEN),
        ("accesstoken", "x1", HIDDEN),
        ("client-secret", ["x1"], HIDDEN),
        ("login", {"user": "u", "password": "x1"}, f'{{"user": "u", "password": "{HIDDEN}"}}'),
        ("start", "http://u:x1@h.example/", f"http://{HIDDEN}@h.example/"),
        ("start", "http://h.example/?token=x1&page=2", f"http://h.example/?token={HIDDEN}&page=2"),
        ("session", object(), HIDDEN),
        ("pool", object(), "<builtins.object>"),
    ],
)
def test_people_see_values_but_no_secrets(name: str, value: Any, shown: str) -> None:
    assert dict(of(**{name: value}).shown) == {name: shown}


def test_what_is_shown_has_a_bound() -> None:
    many = of(**{f"a{number}": "x" * 1000 for number in range(100)})
    assert len(many.shown) == MOST_SHOWN
    assert {len(value) for value in many.shown.values()} == {LONGEST_SHOWN}
    assert {len(name) for name in of(**{"n" * 1000: "x"}).shown} == {LONGEST_SHOWN}


def test_what_is_shown_can_be_published() -> None:
    assert dict(of(x="\udce4", **{"\udcf6": ["\udcfc"]}).shown) == {"x": "\\udce4", "\\udcf6": '["\\udcfc"]'}


class Swallows(Spider):
    """Its arguments are nowhere to be seen later."""

    name = "swallows"

    def __init__(self, site: str, *rest: Any, **named: Any) -> None:
        super().__init__()
        named.clear()
        self.site = "another"
        self.found = None

    async def start(self) -> AsyncIterator[Any]:
        self.found = given(self.crawler)
        return
        yield


@pytest.mark.parametrize("way", ["crawl", "crawl_async"])
def test_arguments_are_known_as_they_were_given(way: str, tmp_path: Any) -> None:
    settings = {
        "ADDONS": {"scrapy_ubi.Addon": 500},
        "TWISTED_REACTOR_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "UBI_DIR": str(tmp_path),
    }
    crawler = Crawler(Swallows, settings)
    spiders = []

    async def run() -> None:
        if way == "crawl":
            await maybe_deferred_to_future(crawler.crawl("a", "b", depth="3"))
        else:
            await AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False}).crawl(crawler, "a", "b", depth="3")

    crawler.signals.connect(lambda spider: spiders.append(spider), signals.spider_closed, weak=False)
    asyncio.run(run())
    assert spiders[0].found == arguments_of(("a", "b"), {"depth": "3"})


def test_where_no_crawl_is_started_there_are_none() -> None:
    crawler = Crawler(Swallows, {"ADDONS": {"scrapy_ubi.Addon": 500}, "TWISTED_REACTOR_ENABLED": False})
    crawler._apply_settings()
    assert given(crawler) == Arguments()
