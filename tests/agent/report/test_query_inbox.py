"""The desk: which fields of the control hash are questions to this agent, and what becomes of the others."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from scrapy_ubi.agent.report.answers_under_way import Steps
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.report.query_inbox import LASTING, MOST_AT_ONCE, MOST_KNOWN, QueryInbox

WALL = 1_700_000_000.0


class Clerk:
    """A desk whose answers say what was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.wall = WALL
        self.later: list[Callable[[], None]] = []
        self.desk = QueryInbox("a1", self.answer, lambda: self.wall, self.later.append)

    def answer(self, question: Question) -> Steps:
        self.asked.append(question)
        yield from ()
        return {"agent": "a1", "ask": question.ask}

    def look(self, control: dict[str, str], now: float = 0.0) -> dict[str, str]:
        self.desk.read_questions({"run": "1", "drain:a1": "00000000", **control}, now)
        return self.desk.replies()


def number(index: int) -> str:
    return f"{index:016x}"


def hosts(agent: str = "", expires: float = WALL + 60) -> str:
    return Question("hosts", expires, agent=agent).text()


def test_a_question_is_answered_once() -> None:
    clerk = Clerk()
    control = {"ask:" + number(1): hosts()}
    assert clerk.look(control) == {number(1): '{"agent": "a1", "ask": "hosts"}'}
    assert clerk.look(control) == {}
    assert clerk.asked == [Question("hosts", WALL + 60)]
    assert clerk.desk.fields_to_remove() == [] and clerk.desk.refused() == []


def test_a_question_to_another_agent_is_none_to_this_one() -> None:
    clerk = Clerk()
    assert clerk.look({"ask:" + number(1): hosts("a2"), "ask:" + number(2): hosts("a1")}).keys() == {number(2)}


def test_nobody_waits_for_the_answer_to_a_question_that_has_expired() -> None:
    clerk = Clerk()
    assert clerk.look({"ask:" + number(1): hosts(expires=WALL - 1)}) == {}
    assert clerk.desk.fields_to_remove() == []  # it may be this agent's clock that is wrong


def test_a_question_that_nobody_takes_away_is_removed_at_last() -> None:
    clerk = Clerk()
    control = {"ask:" + number(1): hosts()}
    clerk.look(control, 10.0)
    clerk.look(control, 10.0 + LASTING)
    assert clerk.desk.fields_to_remove() == []
    clerk.look(control, 11.0 + LASTING)
    assert clerk.desk.fields_to_remove() == ["ask:" + number(1)]


def test_what_cannot_be_removed_for_long_is_named_once() -> None:
    """Redis is full, or a replica: the control hash is looked at all the time, and nothing leaves."""
    clerk = Clerk()
    control = {"ask:" + number(index): hosts() for index in range(MOST_KNOWN + 5)}
    for look in range(100):
        clerk.look(control, LASTING * look)
    assert sorted(clerk.desk.fields_to_remove()) == sorted(control)
    assert clerk.desk.fields_to_remove() == []


def test_however_many_were_asked_and_taken_away_the_next_one_is_answered() -> None:
    clerk = Clerk()
    for index in range(MOST_KNOWN + 1):
        assert clerk.look({"ask:" + number(index): hosts()}).keys() == {number(index)}
    assert clerk.look({}) == {}
    assert clerk.desk.fields_to_remove() == []


def test_many_questions_take_their_turns() -> None:
    clerk = Clerk()
    control = {"ask:" + number(index): hosts() for index in range(3 * MOST_AT_ONCE)}
    answered = [len(clerk.look(control)) for _ in range(4)]
    assert answered == [MOST_AT_ONCE, MOST_AT_ONCE, MOST_AT_ONCE, 0]


def test_one_taken_away_before_its_turn_is_not_answered() -> None:
    clerk = Clerk()
    control = {"ask:" + number(index): hosts() for index in range(MOST_AT_ONCE + 1)}
    clerk.look(control)
    assert clerk.look({}) == {}
    assert len(clerk.asked) == MOST_AT_ONCE


def test_a_flood_of_questions_is_removed_unread() -> None:
    clerk = Clerk()
    control = {"ask:" + number(index): hosts() for index in range(MOST_KNOWN + 5)}
    clerk.look(control)
    assert len(clerk.desk.fields_to_remove()) == 5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("x" * 200_001, "longer than 200000 characters"),
        ('{"ask":"hosts"}', "lacks expires"),
        ('{"ask":"rm","expires":1}', "ask may not be 'rm'"),
        ('{"ask":["hosts"],"expires":1}', "ask may not be \"['hosts']\""),
        ('{"ask":"hosts","expires":NaN}', "expires may not be 'nan'"),
        ('{"ask":"hosts","expires":1,"sort":{}}', "sort may not be '{}'"),
        ('{"ask":"hosts","expires":1,"limit":1001}', "limit may not be '1001'"),
        ('{"ask":"hosts","expires":1,"limit":true}', "limit may not be 'True'"),
        ('{"ask":"hosts","expires":1,"agent":"a b"}', "agent may not be 'a b'"),
        ('{"ask":"hosts","expires":1,"__class__":1}', "unknown field '__class__'"),
        ('{"ask":"url","expires":1,"host":"h"}', "lacks host or key"),
        ('{"ask":"url","expires":1,"host":"h","key":"1"}', "key may not be '1'"),
        ('{"ask":"requeue","expires":1}', "chooses nothing, or both everything and something"),
        ('{"ask":"requeue","expires":1,"everything":true,"host":"h"}', "chooses nothing, or both"),
    ],
)
def test_what_is_no_question_is_refused_with_the_reason(text: str, reason: str) -> None:
    clerk = Clerk()
    field = "ask:" + number(1)
    (reply,) = clerk.look({field: text}).values()
    assert json.loads(reply)["refused"].startswith(reason)
    assert clerk.desk.fields_to_remove() == [field]
    (letter,) = clerk.desk.refused()
    assert reason in letter["reason"] and letter["size"] == str(len(text))
    assert clerk.asked == []


@pytest.mark.parametrize("name", ["ask:", "ask:1", "ask:" + "A" * 16, "ask:{" + "0" * 14 + "}", "ask:" + "0" * 17])
def test_what_has_no_proper_id_is_refused_without_an_answer(name: str) -> None:
    clerk = Clerk()
    assert clerk.look({name: hosts()}) == {}
    assert clerk.desk.fields_to_remove() == [name] and len(clerk.desk.refused()) == 1
    assert clerk.desk.refused() == []


def test_a_question_reads_as_it_was_written() -> None:
    for question in (
        Question("hosts", 1.5, agent="a1", sort="next", limit=1000, copies=True),
        Question("url", 1.0, host="h", key="0" * 16),
        Question("failed", 1.0, reason="http/404", host="h", url="http://h/", key="f" * 16),
        Question("requeue", 1.0, everything=True, before=2.5),
    ):
        assert Question.parse(question.text()) == question
