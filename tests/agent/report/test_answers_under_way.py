"""Answers are made in pieces: how much is looked at in each turn of the loop, whatever the number of hosts."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scrapy_ubi.agent.report.answers_under_way import ENDED, MOST_A_TURN, Answer, AnswersUnderWay, Steps
from scrapy_ubi.agent.report.host_answers import COPY, OWNER, PIECE, ROW
from scrapy_ubi.agent.report.queries import SORTS, Question, Source, answer, steps
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.host import Entry, Failure, HostState

HOSTS = 4_001


class Counted(MemoryFrontier):
    """A frontier that counts the failures which are looked at."""

    looked = 0

    def failures(self, host: str | None = None) -> Iterator[Failure]:
        for failure in super().failures(host):
            self.looked += 1
            yield failure


def frontier(hosts: int) -> Counted:
    """One of so many hosts, of which each third has a failure."""
    made = Counted(delay=1.0)
    for number in range(hosts):
        host = f"h{number * 7919 % hosts:05}.example"
        made.add(host, [Entry(key, f"http://{host}/{key}", 1, 0, "") for key in range(1 + number % 3)])
        if number % 3 == 0:
            made.fail(Failure(host, Entry(99, f"http://{host}/gone", 1, 0, ""), "http/404", float(number)))
    return made


LARGE = frontier(HOSTS)  # which takes long to make, and is only looked at


class Agent:
    """An agent, and its loop, turned by hand."""

    def __init__(self, of: Counted = LARGE) -> None:
        self.frontier = of
        self.looked = 0
        self.turns: deque[Callable[[], None]] = deque()
        self.made = AnswersUnderWay(self.turns.append)
        self.source = Source(
            "a1",
            self.frontier,
            100.0,
            self.role,
            lambda state: False,
            lambda state: "",
            lambda host, key: "",
            lambda failure: True,
        )

    def role(self, state: HostState) -> str:
        self.looked += 1
        return COPY if state.waiting == 1 else OWNER

    def question(self, ask: str, **more: Any) -> Question:
        return Question.parse(Question(ask, 1.0, **more).text())

    def begin(self, number: str, ask: str, **more: Any) -> None:
        self.made.start_answer(number, steps(self.question(ask, **more), self.source))

    def run(self) -> list[int]:
        """What each turn has looked at, until nothing is left to be done."""
        counts = []
        self.turns.appendleft(self.made.work)
        while self.turns:
            before = self.looked + self.frontier.looked
            self.turns.popleft()()
            assert len(self.turns) <= 1
            counts.append(self.looked + self.frontier.looked - before)
        return counts


@pytest.mark.parametrize("sort", SORTS)
def test_no_turn_looks_at_more_than_a_piece_of_the_hosts(sort: str) -> None:
    agent = Agent()
    agent.begin("1", "hosts", sort=sort, limit=100)
    turns = agent.run()
    assert max(turns) <= MOST_A_TURN + PIECE
    assert sum(turns) >= HOSTS and len(turns) > HOSTS // (MOST_A_TURN + PIECE)
    made = json.loads(agent.made.ready()["1"])
    assert made == answer(agent.question("hosts", sort=sort, limit=100), agent.source)
    assert (len(made["rows"]), made["total"]) == (100, sum(state.waiting > 1 for state in agent.frontier.states()))


def test_rows_count_as_more_than_a_look() -> None:
    agent = Agent(frontier(1000))
    agent.begin("1", "hosts", copies=True, limit=1000)
    looked = agent.run()
    assert max(looked[1:]) <= 2 * (MOST_A_TURN // ROW + 1)  # its role, and its failure
    assert len(json.loads(agent.made.ready()["1"])["rows"]) == 1000


def test_failures_come_in_pieces_too() -> None:
    agent = Agent()
    agent.begin("1", "failed", limit=7)
    assert max(agent.run()) <= MOST_A_TURN + PIECE
    made = json.loads(agent.made.ready()["1"])
    assert made["total"] == (HOSTS + 2) // 3
    assert [row["when"] for row in made["rows"]] == sorted((row["when"] for row in made["rows"]), reverse=True)


def test_shards_are_sought_in_pieces() -> None:
    agent = Agent(frontier(3000))
    for shard in range(3):
        agent.frontier.add(f"big.example#{shard}", [Entry(1, "http://big.example/", 1, 0, "")])
    agent.begin("1", "host", host="big.example")
    turns = agent.run()
    assert len(turns) > 3000 // (MOST_A_TURN + PIECE) + 2  # the last ones with a row each
    assert [row["host"] for row in json.loads(agent.made.ready()["1"])["rows"]] == [
        f"big.example#{n}" for n in range(3)
    ]


def test_hosts_that_come_and_go_meanwhile_do_no_harm() -> None:
    agent = Agent(frontier(2000))
    agent.begin("1", "hosts", limit=500, copies=True)
    agent.made.work()
    for state in agent.frontier.states()[::2]:
        agent.frontier.drop(state.host)
    agent.frontier.add("new.example", [Entry(1, "http://new.example/", 1, 0, "")])
    agent.run()
    assert len(json.loads(agent.made.ready()["1"])["rows"]) == 500


def small(looked: int = 0) -> Steps:
    yield looked
    return {"looked": looked}


def test_small_answers_are_ready_at_once_and_large_ones_in_their_turn() -> None:
    agent = Agent(frontier(0))
    for number in range(6):
        agent.made.start_answer(str(number), small())
    agent.made.work()
    assert [*agent.made.ready()] == [str(number) for number in range(MOST_A_TURN // ENDED)]
    agent.run()
    assert [*agent.made.ready()] == ["4", "5"]
    agent.made.start_answer("6", small(MOST_A_TURN))
    agent.made.start_answer("7", small())
    agent.made.work()
    agent.made.work()  # the next exchange has come: the rest has its turn already
    assert agent.made.ready() == {}
    agent.run()
    assert [*agent.made.ready()] == ["6", "7"]


def test_what_is_asked_for_no_longer_is_not_gone_on_with() -> None:
    agent = Agent()
    agent.begin("1", "hosts")
    agent.begin("2", "url", host="h00001.example", key="0" * 16)
    agent.made.work()
    agent.made.keep({"2"})
    assert len(agent.run()) <= 2
    assert [*agent.made.ready()] == ["2"]


def test_one_that_fails_does_not_hold_up_the_others() -> None:
    def fails() -> Steps:
        yield MOST_A_TURN
        raise LookupError

    agent = Agent(frontier(0))
    agent.made.start_answer("1", fails())
    agent.made.start_answer("2", small())
    agent.made.work()
    with pytest.raises(LookupError):
        agent.turns.popleft()()
    agent.run()
    ready: dict[str, Answer] = {number: json.loads(text) for number, text in agent.made.ready().items()}
    assert ready == {"2": {"looked": 0}}
