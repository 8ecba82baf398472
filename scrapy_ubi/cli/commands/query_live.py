"""Living agents are asked: a question into the crawl's control hash, their answers out of a hash of its own.

Rules of this module:

* Asked are the agents that take part, or the one that is named. Who cannot be asked (it is silent, or has published
  nothing yet) is not waited for, and is named.
* The question is taken away when all have answered, when the time is over, and when the person presses Ctrl-C.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scrapy_ubi.agent.report.queries import BadQuestion, Question
from scrapy_ubi.cli.commands import signing
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, listed
from scrapy_ubi.cli.monitor.answers import Answer, read_answer
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiError
from scrapy_ubi.transport.redis_keys import ASK, RedisKeys

ID_BYTES = 8
LOOK_EVERY = 0.05  # seconds
LONGEST_REASON = 400  # characters of why an agent's answer is missing, with its name; its remedy comes last
GRACE = 60.0  # seconds by which clocks may differ before an agent takes a question for an old one


class UbiNotAsked(UbiError):
    """What is asked is nothing that an agent answers; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by agent, and why there is none of the others; `trouble` is what else was wrong."""

    by_agent: Mapping[str, Answer]
    missing: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""

    @property
    def complaint(self) -> str:
        """One sentence about those who did not answer; '' when all did."""
        if not self.missing:
            return self.trouble
        why = listed((f"{name} ({reason})" for name, reason in sorted(self.missing.items())), LONGEST_REASON)
        return f"What some agents know is missing: {why}. {self.trouble}".rstrip()


def living(status: CrawlStatus) -> list[AgentStatus]:
    """The agents that can answer."""
    return [agent for agent in status.agents if agent.working and agent.profile is not None]


def ask(to: RedisConnection, status: CrawlStatus, question: Question, timeout: float) -> Answers:
    """What the living agents answer within `timeout` seconds. Raises UbiUnavailable, UbiNotAsked."""
    asked = [agent.name for agent in living(status) if question.agent in ("", agent.name)]
    missing = {agent.name: agent.state for agent in status.agents if _is_missed(agent, question, asked)}
    keys, number = RedisKeys(status.crawl), secrets.token_hex(ID_BYTES)
    text = _checked(replace(question, expires=round(status.now + timeout + GRACE, 3)).text())
    fields: dict[Any, Any] = signing.control_fields(to, status, {ASK + number: text})
    with to.explained():
        try:
            to.client.hset(keys.control, mapping=fields)
            raw = _wait(to, keys.answers(number), asked, timeout)
        finally:
            to.client.hdel(keys.control, ASK + number)
            to.client.delete(keys.answers(number))
    found = {}
    for name in asked:
        answer = read_answer(name, question.ask, raw[name]) if name in raw else f"no answer within {timeout:g} s"
        if isinstance(answer, str):
            missing[name] = answer
        else:
            found[name] = answer
    return Answers(found, missing)


def _checked(text: str) -> str:
    """A question that agents take: any other would be a dead letter at each of them. Raises UbiNotAsked."""
    try:
        Question.parse(text)
    except BadQuestion as error:
        raise UbiNotAsked(f"The agents take no such question: {error}.") from None
    return text


def _is_missed(agent: AgentStatus, question: Question, asked: list[str]) -> bool:
    """Whether an agent is meant that cannot be asked. The hosts of those that are gone others have; only who asks for
    such a one by name misses it."""
    meant = not agent.gone and agent.state != "finished" if not question.agent else agent.name == question.agent
    return meant and agent.name not in asked


def _wait(to: RedisConnection, key: str, asked: list[str], timeout: float) -> dict[str, bytes]:
    """Agent -> its answer, when all have answered or the time is over."""
    end = time.monotonic() + timeout
    raw: dict[str, bytes] = {}
    while left := [name for name in asked if name not in raw]:  # an answer may have a megabyte: each is read once
        raw |= _fields(to.client.hmget(key, left), left)
        if len(raw) == len(asked) or time.monotonic() > end:
            break
        time.sleep(LOOK_EVERY)
    return raw


def _fields(values: Any, names: list[str]) -> dict[str, bytes]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
