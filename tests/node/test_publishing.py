"""A profile is published every two seconds, and where counting takes long, seldomer."""

from __future__ import annotations

import json

from scrapy_ubi.node.profile import PUBLISH
from scrapy_ubi.node.publishing import COUNTING, Publishing
from tests.node.parts import Part


class Agent(Part):
    """`takes`: how long making a profile takes (s)."""

    def __init__(self, takes: float = 0.0) -> None:
        super().__init__()
        self.takes = takes
        self.publishing = Publishing(self.crawl, self.state, self.clock)

    def state(self) -> str:
        self.now += self.takes
        return "crawling"

    def is_due(self) -> bool:
        return self.publishing.profile() is not None


def test_a_profile_says_what_people_want_to_know() -> None:
    agent = Agent()
    told = json.loads(agent.publishing.profile() or "{}")
    assert (told["agent"], told["state"], told["incarnation"]) == ("a", "crawling", agent.crawl.agent.incarnation)
    assert told["counters"]["pages"] == 0


def test_another_one_is_made_after_a_while() -> None:
    agent = Agent()
    assert [agent.is_due(), agent.is_due()] == [True, False]
    agent.now += PUBLISH
    assert agent.is_due()


def test_counting_takes_a_small_part_of_the_time_at_most() -> None:
    agent = Agent(takes=1.0)
    began = agent.now
    assert agent.is_due()
    agent.now = began + COUNTING - 0.5
    assert not agent.is_due()
    agent.now = began + COUNTING
    assert agent.is_due()


def test_one_that_is_wanted_anew_is_made_at_once() -> None:
    agent = Agent()
    assert agent.is_due() and agent.publishing.is_new
    agent.publishing.renew()
    assert not agent.publishing.is_new
    assert agent.is_due() and agent.publishing.is_new
