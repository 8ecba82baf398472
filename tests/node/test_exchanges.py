"""When an agent's mail is exchanged out of turn."""

from __future__ import annotations

from scrapy_ubi.node.exchanges import Exchanges
from scrapy_ubi.node.publishing import Publishing
from scrapy_ubi.protocol.view import Beat
from tests.node.crawler import SETTINGS
from tests.node.parts import Part
from tests.support.views import ordered
from tests.support.village import page

MUCH = 5


def test_much_that_may_leave_makes_an_agent_hurry_and_what_is_under_way_does_not() -> None:
    part = Part()
    agent, config = part.crawl.agent, part.crawl.agent.config
    exchanges = Exchanges(
        part.crawl, Publishing(part.crawl, lambda: "", part.clock), MUCH, lambda post: None, part.clock
    )
    part.hold_lease()
    beat = Beat("2" * 8, 0, SETTINGS.replicas, "0" * 16, counter=1)
    agent.read(part.now, part.now, {"a": agent.beat, "b": beat})
    host = ordered("b", "a")

    def find(pages: int) -> bool:
        for _ in range(pages):
            agent.discover(host, page(host, agent.counters.links))
        exchanges.hurry = False
        exchanges.look_for_much()
        return exchanges.hurry

    assert not find(MUCH - 1)
    assert find(1)
    agent.drain(part.now)
    assert len(agent.outbox) == MUCH
    assert not find(MUCH - 1)
    for _ in range(config.bounds.window):
        find(1)
        agent.drain(part.now)
    assert not find(2 * MUCH), "the lane takes no more before something is acknowledged"
    agent._check()
