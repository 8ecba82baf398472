"""From the bytes of a robots.txt to what is known of it, whatever the parser makes of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.robotstxt import ProtegoRobotParser, RobotParser
from scrapy.settings import Settings

from scrapy_ubi.adapter.robots.rules import MOST_DELAY, Parsers, authority_of
from scrapy_ubi.policy.robots import text
from scrapy_ubi.policy.robots.record import MOST_RULES, digest

NOW = 1_800_000_000.0
URL = "http://h.example/no"


class Odd(RobotParser):
    """Says of a delay what the text says, and raises where that is not allowed."""

    def __init__(self, body: bytes) -> None:
        self._said = body.decode()
        if self._said == "cannot be read":
            raise RuntimeError(self._said)

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Odd:
        return cls(robotstxt_body)

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        raise RuntimeError("nobody knows")

    def crawl_delay(self, user_agent: str | bytes) -> Any:
        return self._said or None


class Case:
    """Parsers of a class, and how often one raised."""

    def __init__(self, parser: type[RobotParser] = ProtegoRobotParser) -> None:
        self.broken = 0
        crawler: Any = SimpleNamespace(settings=Settings({"ROBOTSTXT_PARSER": parser}), spider=None)
        self.parsers = Parsers(crawler, self._count)

    def _count(self) -> None:
        self.broken += 1


@pytest.fixture
def odd() -> Case:
    return Case(Odd)


def delay_of(case: Case, body: str) -> float:
    known, _ = case.parsers.read(body.encode(), "bot", NOW)
    return known.record.delay


@pytest.mark.parametrize(
    ("said", "delay"),
    [("2.5", 2.5), ("0", 0.0), ("-3", 0.0), ("nan", 0.0), ("1e300", MOST_DELAY), ("inf", MOST_DELAY), ("soon", 0.0)],
)
def test_a_delay_is_a_number_of_seconds_within_a_bound(odd: Case, said: str, delay: float) -> None:
    assert delay_of(odd, said) == delay
    if said != "inf":  # which is no number to Protego
        assert delay_of(Case(), f"User-agent: *\nCrawl-delay: {said}\n") == delay
    assert odd.broken == (said == "soon")


def test_a_parser_that_raises_has_said_nothing(odd: Case) -> None:
    known, _ = odd.parsers.read(b"cannot be read", "bot", NOW)
    assert (known.parser, known.record.delay, known.record.known) == (None, 0.0, True)
    assert odd.parsers.allows(known, URL, "bot")
    known, _ = odd.parsers.read(b"", "bot", NOW)
    assert known.parser is not None and odd.parsers.allows(known, URL, "bot")
    assert odd.broken == 2


@pytest.mark.parametrize("length", [MOST_RULES, MOST_RULES + 1])
def test_rules_travel_up_to_a_length(length: int) -> None:
    parsers = Case().parsers
    path = "/no" + "x" * (length - len("-/no"))
    known, _ = parsers.read(f"User-agent: *\nDisallow: {path}\n".encode(), "bot", NOW)
    assert (known.record.rules is None) == (length > MOST_RULES)
    if known.record.rules is not None:
        restored = parsers.restore(known.record)
        assert restored.agent == digest("bot")
        assert not parsers.allows(restored, f"http://h.example{path}", "bot")
        assert parsers.allows(restored, URL, "bot")


@pytest.mark.parametrize("most", [4, 3])
def test_where_the_whole_is_too_much_a_parser_holds_for_who_asked(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(text, "MOST_PAIRS", most)
    parsers = Case().parsers
    known, _ = parsers.read(b"User-agent: a\nUser-agent: bot\nDisallow: /no\nDisallow: /x\n", "bot", NOW)
    assert known.agent == (digest("bot") if most < 4 else None)
    assert not parsers.allows(known, URL, "bot")
    assert not parsers.allows(known, "http://h.example/y/../no", "bot"), "to a server that is the same"


@pytest.mark.parametrize("most", [text.MOST_PAIRS, 0], ids=["whole", "for who asked"])
def test_who_is_meant_is_asked_of_the_parser_and_of_rules_that_have_travelled(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(text, "MOST_PAIRS", most)
    parsers = Case().parsers
    mine = "Mozilla/5.0 (compatible; mybot/1.0; +http://mybot.example/)"
    body = (
        b"User-agent: Mozilla/5.0 (compatible;contxbot/1.0)\nCrawl-delay: 9\nAllow: /\n\n"
        b"User-agent: mybot spider\nCrawl-delay: 4\nDisallow: /no\n"
    )
    known, _ = parsers.read(body, mine, NOW)
    for each in (known, parsers.restore(known.record)):
        assert not parsers.allows(each, URL, mine) and parsers.allows(each, "http://h.example/y", mine)
    assert known.record.delay == 4.0


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("http://user:word@H.example:80/x?y", "http://h.example"),
        ("https://h.example:443", "https://h.example"),
        ("https://h.example:80/", "https://h.example:80"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("ftp://h.example/", None),
        ("data:,x", None),
        ("file:///tmp/x", None),
        ("http:///x", None),
    ],
)
def test_a_robots_txt_is_that_of_scheme_host_and_port(url: str, authority: str | None) -> None:
    assert authority_of(Request(url)) == authority
