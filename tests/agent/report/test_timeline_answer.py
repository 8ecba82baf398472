"""What an agent answers about its history, and what is believed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.agent.report import timeline_answer
from scrapy_ubi.agent.report.queries import BadQuestion, Question
from scrapy_ubi.agent.report.timeline import Event, Sample, Timeline
from scrapy_ubi.cli.monitor.answers import read_answer

NOW = 1_800_000_000
LINE = Timeline(
    [Sample(NOW - at, pages=1000 - at, state="crawling") for at in range(0, 1000, 10)],
    [Event(NOW - 900, "joined", "a1"), Event(NOW - 5, "dead", "a2")],
)


def ask(**more: Any) -> dict[str, Any]:
    question = Question.parse(Question("history", 1.0, **more).text())
    return timeline_answer.answer(question, "a1", LINE, NOW)


def as_read(answer: dict[str, Any]) -> dict[str, Any] | str:
    return read_answer("a1", "history", json.dumps(answer).encode())


def test_an_answer_goes_as_far_back_as_it_is_asked_for() -> None:
    made = ask(span=60.0, limit=100)
    assert [row["time"] for row in made["rows"]] == list(range(NOW - 60, NOW + 1, 10))
    assert made["events"] == [{"time": NOW - 5, "what": "dead", "who": "a2"}]
    whole = ask(limit=100)
    assert (len(whole["rows"]), whole["step"], len(whole["events"])) == (100, 0, 2)


def test_an_answer_is_as_fine_as_it_is_asked_for() -> None:
    made = ask(limit=10)
    assert len(made["rows"]) <= 10
    assert made["step"] >= 99
    assert made["rows"][-1]["pages"] == 1000


def test_an_answer_is_read_as_it_was_made() -> None:
    made = ask(limit=50)
    assert as_read(made) == {name: made[name] for name in ("step", "events", "rows")}


@pytest.mark.parametrize(
    "change",
    [
        {"rows": None},
        {"rows": [7]},
        {"rows": [{"time": 5, "pages": "<img>"}]},
        {"rows": [{"time": 5}] * 1001},
        {"events": [{"time": 5, "what": "<script>"}]},
        {"events": [{"time": 5, "what": "dead", "who": "a"}] * 1001},
        {"events": {}},
        {"step": "1"},
        {"step": -1},
    ],
)
def test_an_answer_that_does_not_hold_is_not_believed(change: dict[str, Any]) -> None:
    assert isinstance(as_read(ask(limit=5) | change), str)


@pytest.mark.parametrize("span", [-1, "60", True, 2**60])
def test_a_span_that_is_none_is_no_question(span: object) -> None:
    with pytest.raises(BadQuestion):
        Question.parse(json.dumps({"ask": "history", "expires": 1, "span": span}))
