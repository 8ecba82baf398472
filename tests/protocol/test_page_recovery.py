"""Page recovery as UbiCrawler has it (Boldi, Codenotti, Santini, Vigna, 2002, section 5.1.1): a page that was crawled
is not fetched again as long as no more than t agents were started since then, whatever the number that crashed.

There an agent that takes over a host asks the t next-nearest agents whether one of them has fetched the page. Here the
done mark was with t successors before, and every change of view brings it to t successors again
(docs/explanation/protocol.md#view-change); so it holds for crashes one after the other, or t at once, with everybody
settled in between. UbiCrawler needs the bound on starts because a newcomer pushes those who know out of reach; here
newcomers are told when they come.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.village import Village, page

HOSTS, PAGES = ("h1.example", "h2.example"), 3


def crawled(agents: int, replication: int) -> Village:
    """A group in which every page of these hosts was fetched, and everybody has settled."""
    village = Village(*(f"a{number}" for number in range(agents)), replication=replication)
    found_again(village)
    village.until(lambda: len(village.crawl()) == 0 and not any(len(agent.outbox) for agent in village.agents.values()))
    village.settle()
    return village


def found_again(village: Village) -> None:
    """Every agent comes upon every page."""
    for agent in village.agents.values():
        for host in HOSTS:
            for number in range(PAGES):
                agent.discovery.discover(host, page(host, number))


def fetched_while_settling(village: Village) -> list[str]:
    """Every agent comes upon every page, and is eager to fetch it, from now until all have settled."""
    found_again(village)
    fetched = []
    for _ in range(15):
        village.turn()
        fetched += village.crawl()
    village.settle()
    return fetched + village.crawl()


@pytest.mark.parametrize("t", [1, 2, 3])
@settings(max_examples=25)
@given(data=st.data())
def test_ubicrawler_section_5_1_1_page_recovery(t: int, data: st.DataObject) -> None:
    village = crawled(data.draw(st.integers(1, 5), "agents"), t)
    starts = data.draw(st.integers(0, t), "starts")
    while starts or (len(village.agents) > 1 and data.draw(st.booleans(), "another crash")):
        if starts and (len(village.agents) == 1 or data.draw(st.booleans(), "a start")):
            starts -= 1
            village.start(f"b{starts}")
        else:
            most = min(t, len(village.agents) - 1)
            for _ in range(data.draw(st.integers(1, most), "crashes at once")):
                village.kill(data.draw(st.sampled_from(sorted(village.agents)), "who"))
        assert fetched_while_settling(village) == []
    for host in HOSTS:
        assert any(len(village.state(name, host).done) == PAGES for name in village.agents)
