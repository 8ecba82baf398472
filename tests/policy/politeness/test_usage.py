"""Content-Usage and Content-Signal: examples of the drafts, and what is no statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.politeness.usage import combined, of_field, of_signal, text_of
from scrapy_ubi.policy.robots.record import MOST_USAGE, RobotsRecord, from_json, to_json
from scrapy_ubi.policy.robots.usage_rules import read, usage_of

BOT = "OurBot/1.0 (+https://bot.example)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train-ai=y, search=n", {"train-ai": "y", "search": "n"}),  # vocab, 6
        ('train-ai=y, train-ai, search=n, search="n"', {}),  # vocab, 6.5.1
        ("train-ai;allow=n, train-ai=y", {"train-ai": "y"}),  # vocab, 6.5.2
        ('train-ai;has;parameters="?"', {}),
        ("ai-use=n;why=1.5,other=(a b;c \"d\" ?1);e, x=:AAAA:, y=@1, z=%\"d\"", {"ai-use": "n"}),
        ("  search=y\t,\ttrain-ai=n  ", {"train-ai": "n", "search": "y"}),
        ("search=yes", {}),
        ("Search=y", {}),
        ("search=y,", {}),
        ("search=y search=n", {}),
        ("search=y, =n", {}),
        ("search= y", {}),
        ("search=(y", {}),
        ("", {}),
        ("search=y, " + "a=1, " * 2000 + "b", {}),
    ],
)  # fmt: skip
def test_content_usage(text: str, said: dict[str, str]) -> None:
    assert of_field(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("search=yes, ai-train=no", {"train-ai": "n", "search": "y"}),
        ("search=yes,ai-train=no,use=reference", {"train-ai": "n", "search": "y"}),
        ("AI-Input = Yes", {"ai-use": "y"}),
        ("ai-train=no, ai-train=yes", {"train-ai": "n"}),
        ("ai-train=maybe, =, ,search", {}),
    ],
)
def test_content_signal(text: str, said: dict[str, str]) -> None:
    assert of_signal(text) == said


def test_no_counts_before_yes() -> None:
    assert combined(({"search": "y"}, {"search": "n", "ai-use": "y"}, {"search": "y"})) == {
        "ai-use": "y",
        "search": "n",
    }


@given(st.text('aytrin-=;,() "\\:?@%1.*\t', max_size=60))
def test_any_text_is_read_and_what_is_said_is_said_again(text: str) -> None:
    said = of_field(text)
    assert of_field(text_of(said)) == said
    of_signal(text)


EXAMPLE = """User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: / train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: / train-ai=y
"""


def at(robots: str, path: str, agent: str = BOT) -> dict[str, str]:
    return usage_of(read(robots, agent), f"http://h.example{path}")


def test_the_example_of_the_draft() -> None:
    assert at(EXAMPLE, "/test") == {"train-ai": "n"}
    assert at(EXAMPLE, "/ai-ok/test") == {"train-ai": "y"}
    assert at(EXAMPLE, "/test", "ExampleBot/2.0") == {"train-ai": "y"}


@pytest.mark.parametrize(
    ("robots", "path", "said"),
    [
        ("User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /", "/x", {"train-ai": "n", "search": "y"}),
        ("Content-Signal: ai-train=no\nUser-agent: *\nAllow: /", "/x", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: train-ai=n", "/x", {"train-ai": "n"}),
        ("User-agent: *\ncontent-usage :\t/a\ttrain-ai=n # as ever", "/a/b", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: /a train-ai=n\nContent-Usage: /a train-ai=y", "/a", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: /a train-ai=n\nContent-Usage: /a/* search=n", "/a/b", {"search": "n"}),
        ("User-agent: *\nContent-Usage: /*.pdf$ train-ai=n", "/a/b.pdf", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: /*.pdf$ train-ai=n", "/a/b.pdf?x", {}),
        ("User-agent: *\nContent-Usage: /\u00e4 train-ai=n", "/%c3%a4/b", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: /?a=%2f train-ai=n", "/?a=%2F", {"train-ai": "n"}),
        ("User-agent: OurBot\nDisallow: /x\nUser-agent: *\nContent-Usage: / train-ai=n", "/", {}),
        ("User-agent: a\nUser-agent: OurBot\nContent-Usage: / train-ai=n", "/", {"train-ai": "n"}),
        ("User-agent: *\nContent-Usage: / train-ai=maybe\nContent-Usage: no", "/", {}),
        ("User-agent: *\nContent-Usage: /" + "*a" * 21 + " train-ai=n", "/" + "a" * 50, {}),
        ("", "/", {}),
    ],
)
def test_rules(robots: str, path: str, said: dict[str, str]) -> None:
    assert at(robots, path) == said


@given(st.text("/ab*$?", max_size=12), st.text("/ab?", max_size=12))
def test_a_pattern_fits_as_the_regular_expression_does(pattern: str, path: str) -> None:
    import re

    ends = pattern.endswith("$")
    expression = "".join(".*" if part == "*" else re.escape(part) for part in pattern.removesuffix("$"))
    fits = re.match(f"/{expression}{chr(92) + 'Z' if ends else ''}", f"/{path}") is not None
    said = at(f"User-agent: *\nContent-Usage: /{pattern} train-ai=n", f"/{path}")
    assert said == ({"train-ai": "n"} if fits else {})


def test_rules_travel_within_a_bound() -> None:
    many = "User-agent: *\n" + "".join(f"Content-Usage: /{n:030} train-ai=n\n" for n in range(1000))
    rules = read(many, BOT)
    assert 900 < len(rules) <= MOST_USAGE
    record = RobotsRecord(fetched=5.0, usage=rules)
    assert from_json(to_json(record), 10.0) == record
    assert "p" not in (to_json(RobotsRecord(fetched=5.0)) or {})
    assert from_json({"t": 5.0, "p": "x" * (MOST_USAGE + 1)}, 10.0) is None
    assert from_json({"t": 5.0, "p": ["/"]}, 10.0) is None
    assert usage_of("no rule\n/a junk\n/ train-ai=n", "http://h.example/b") == {"train-ai": "n"}
