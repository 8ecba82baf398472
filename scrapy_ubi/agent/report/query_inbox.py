"""The query inbox of a living agent: questions that people write into the crawl's control hash, and its answers.

A question is a field `ask:<id>` of the control hash, which every agent reads twice a second; the answer goes into a
hash of its own, `ubi:{<crawl>}:<id>:answers`, agent -> JSON, which expires by itself. Rules of this module:

* A question is answered once by each agent that it is meant for. Who asked takes the field away again.
* One that has expired by the wall clock is left alone. An agent that has seen a field for `LASTING` seconds, by its
  own clock, removes it: so no wrong clock takes a question away from the others, and none stays without end.
* What is no question is removed, counted as a dead letter, and answered with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from scrapy_ubi.agent.report.answers_under_way import AnswersUnderWay, Later, Steps
from scrapy_ubi.agent.report.host_answers import MOST_REASON
from scrapy_ubi.agent.report.queries import BadQuestion, Question
from scrapy_ubi.transport import Fields
from scrapy_ubi.transport.redis_keys import ASK

LASTING = 300.0  # seconds; no command waits for an answer as long
MOST_AT_ONCE = 4  # questions begun after one exchange
MOST_KNOWN = 1000  # fields remembered; more are a flood, and are removed unread
ID = re.compile(r"[0-9a-f]{16}")


class QueryInbox:
    """Reads the control hash for `agent`. `answer` makes an answer, step by step; `wall` is unix seconds; `later` calls
    a function in the next turn of the loop."""

    def __init__(
        self, agent: str, answer: Callable[[Question], Steps], wall: Callable[[], float], later: Later
    ) -> None:
        self._agent = agent
        self._answer = answer
        self._wall = wall
        self._seen: dict[str, float] = {}  # field -> when it was first seen
        self._waiting: list[str] = []  # fields not yet looked at
        self._made = AnswersUnderWay(later)
        self._replies: dict[str, str] = {}  # why something was refused
        self._forget: dict[str, None] = {}  # each once, however long nothing can be removed
        self._refused: list[Fields] = []

    def read_questions(self, control: Mapping[str, str], now: float) -> None:
        """Answer what is new in the control hash, at this time (s, the agent's clock)."""
        asked = {name: text for name, text in control.items() if name.startswith(ASK)}
        if not asked and not self._seen:
            return
        for name in self._seen.keys() - asked.keys():
            del self._seen[name]
        self._waiting = [name for name in self._waiting if name in asked]
        for name in asked:
            since = self._seen.get(name)
            if since is None and len(self._seen) < MOST_KNOWN:
                self._seen[name] = now
                self._waiting.append(name)
            elif since is None or now - since > LASTING:
                self._forget[name] = None
        now_waiting, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        self._made.keep({name.removeprefix(ASK) for name in asked})
        for name in now_waiting:
            self._take(name, asked[name])
        self._made.work()

    def _take(self, name: str, text: str) -> None:
        number = name.removeprefix(ASK)
        if not ID.fullmatch(number):
            self._refuse(name, text, "no id of a question: 16 hex digits")
            return
        try:
            question = Question.parse(text)
        except BadQuestion as error:
            self._refuse(name, text, f"no question: {error}")
            self._replies[number] = json.dumps({"agent": self._agent, "refused": str(error)[:MOST_REASON]})
            return
        if question.agent in ("", self._agent) and self._wall() <= question.expires:
            self._made.start_answer(number, self._answer(question))

    def _refuse(self, name: str, text: str, reason: str) -> None:
        self._forget[name] = None
        self._refused.append({"reason": reason, "from": "control", "size": str(len(text)), "head": f"{name}={text}"})

    def replies(self) -> dict[str, str]:
        """Id -> answer, of all that were made since the last call."""
        replies, self._replies = {**self._replies, **self._made.ready()}, {}
        return replies

    def fields_to_remove(self) -> list[str]:
        """Fields of the control hash to be removed, since the last call."""
        forget, self._forget = self._forget, {}
        return list(forget)

    def refused(self) -> list[Fields]:
        """What was no question since the last call, as dead letters."""
        refused, self._refused = self._refused, []
        return refused
