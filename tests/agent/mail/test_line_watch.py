"""What follows from how far Redis is: bounds of this agent's mail, and a line in the log; nothing that the group
agrees on."""

from __future__ import annotations

import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.agent.mail.line_watch import LEAST_EASY, LOOKS, LineWatch
from scrapy_ubi.agent.mail.unsent import Unsent
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.lane import MOST_RESEND, MOST_WINDOW
from scrapy_ubi.transport import Line, Outgoing


def watch(config: Config | None = None) -> tuple[LineWatch, Agent, Any]:
    agent = Agent("a", "a", config or Config(), MemoryFrontier(), lambda: "00000001", 0.0)
    transport: Any = SimpleNamespace(line=Line())
    return LineWatch(agent, transport), agent, transport


def test_a_redis_that_is_near_changes_nothing_and_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    made, agent, transport = watch()
    transport.line = Line(0.0004, 3.0)
    with caplog.at_level(logging.INFO):
        for _ in range(3 * LOOKS):
            made.look()
    assert agent.outbox.bounds == agent.config.bounds and not caplog.records
    assert (made.easy, made.part) == (LEAST_EASY, math.inf)


def test_a_redis_that_is_far_stretches_what_waits_for_it_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    made, agent, transport = watch()
    transport.line = Line(0.2, 6.0)
    with caplog.at_level(logging.INFO):
        for _ in range(3 * LOOKS):
            made.look()
            transport.line = Line(0.21, 6.0)
    bounds = agent.outbox.bounds
    assert agent.config.bounds.window < bounds.window <= MOST_WINDOW
    assert agent.config.bounds.resend < bounds.resend <= MOST_RESEND
    assert made.easy == 1.0 and made.part < math.inf
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("Redis is 200 ms away: mail waits up to 6.0 s for its answer")
    assert "UBI_LEASE_TIMEOUT (10 s) and UBI_FAILURE_TIMEOUT (15 s) stay" in said


def test_what_is_derived_has_bounds_and_goes_back_when_redis_is_near_again() -> None:
    made, agent, transport = watch()
    transport.line = Line(30.0, 6.0)
    made.look()
    assert agent.outbox.bounds.window == MOST_WINDOW and agent.outbox.bounds.resend <= MOST_RESEND
    transport.line = Line(0.0001, 3.0)
    made.look()
    assert agent.outbox.bounds.window == agent.config.bounds.window


def test_a_lease_too_short_for_the_line_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    made, _, transport = watch(Config(lease_timeout=2.0, failure_timeout=3.0))
    transport.line = Line(0.2, 3.0)
    with caplog.at_level(logging.INFO):
        for _ in range(LOOKS):
            made.look()
    assert "A UBI_FAILURE_TIMEOUT of 6 s (alike for all agents) leaves room" in caplog.text


def test_over_a_long_line_letters_leave_in_parts_and_in_their_order() -> None:
    _, agent, _ = watch()
    unsent = Unsent(agent, 1000)
    letters = tuple((f"b{number}", {"body": "x" * 100}) for number in range(7))
    unsent.out = Outgoing(letters=letters, profile="p")
    parts = []
    while unsent.out is not None:
        part = unsent.part(unsent.out, 250.0)
        parts.append([receiver for receiver, _ in part.letters])
        assert unsent.taken(0.0, 0.1, LEAST_EASY) is (unsent.out is not None)
    assert parts == [["b0", "b1"], ["b2", "b3"], ["b4", "b5"], ["b6"]]
    unsent.out = Outgoing(letters=letters)
    assert len(unsent.part(unsent.out, 10.0).letters) == 1, "one at least"
    assert len(unsent.part(unsent.out).letters) == 7
