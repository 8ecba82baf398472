"""The sentences of why nothing is fetched, and what is read of them from others."""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import SENTENCES, IdleReason, read_reason, reason, sentence
from scrapy_ubi.ground.untrusted.checks import Malformed

NOW = 1_700_000_000.0
HOSTILE = "\x1b[2J\u202e"


@pytest.mark.parametrize("kind", SENTENCES)
@pytest.mark.parametrize("names", [(), ("a.example",), tuple(f"h{n}.example" for n in range(9)), (HOSTILE,)])
def test_every_reason_has_a_sentence_fit_to_be_seen_with_and_without_names(kind: str, names: tuple[str, ...]) -> None:
    for why in (
        reason(kind, names),
        reason(kind, names, until=NOW + 600, since=NOW - 30, more=HOSTILE),
    ):
        said = sentence(why, NOW)
        assert said.startswith("Nothing is fetched: ") and said.endswith(".") and said.isprintable(), said
        assert "  " not in said and " ," not in said, said
        assert read_reason(json.loads(json.dumps(why.as_json()))) == why


def test_it_says_how_many_more_there_are_and_until_when() -> None:
    names = tuple(f"h{n}.example" for n in range(5))
    said = sentence(reason(kinds.RESTS, names, 70, until=NOW + 590, more="retry-after"), NOW)
    assert "h0.example, h1.example, h2.example and 67 more hosts: asked for a pause (Retry-After)" in said
    assert ", the first until " in said and "(10 min more)" in said


@pytest.mark.parametrize(
    "wrong",
    [
        "x",
        {"kind": "odd"},
        {"kind": "delay", "names": ["a"] * 4},
        {"kind": "delay", "names": ["a" * 101]},
        {"kind": "delay", "names": 3},
        {"kind": "delay", "until": "soon"},
        {"kind": "delay", "number": -1},
        {"kind": "delay", "more": "x" * 201},
        {"kind": "delay", "until": 1e30},
    ],
)
def test_a_reason_that_does_not_hold_is_refused(wrong: object) -> None:
    with pytest.raises(Malformed):
        read_reason(wrong)


def test_no_reason_is_none() -> None:
    assert read_reason(None) is None
    assert IdleReason("delay").as_json() == {"kind": "delay"}
