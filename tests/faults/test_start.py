"""The first page comes without a wait where Redis is known to have forgotten nothing (decision 0119); else it waits,
and says why. Who waits says so in its log: no test here measures a time."""

from __future__ import annotations

import re

import pytest

from scrapy_ubi.agent.group.join import WHY_WAIT
from scrapy_ubi.transport.redis_keys import WATCHED_KEY
from scrapy_ubi.transport.watched import NEW
from tests.faults.conftest import MakeGroup
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

WAITS = "No agent is at work yet"
SMALL = {"hosts": 6, "pages": 60}


def waits(group: Group, name: str) -> str:
    """Why this agent has said that it waits, "" where it has not."""
    said = re.findall(rf"{WAITS}.* is known: (.*)\.$", group.agents[name].log.read_text(errors="replace"), re.MULTILINE)
    return said[-1] if said else ""


def watched_group(make_group: MakeGroup, latency: float = 0.005) -> Group:
    """A group at a Redis that is known, as one has waited there, begun to fetch and was killed; its disk is lost."""
    group = make_group(latency, **SMALL)
    group.start("first")
    group.until_served(0.1)
    assert waits(group, "first") == WHY_WAIT[NEW]
    return group


def test_a_crawl_of_another_name_and_one_that_was_killed_begin_at_once(make_group: MakeGroup) -> None:
    """The one that was killed is named at the end, as its disk has not come back (decision 0151)."""
    group = watched_group(make_group, 0.05)
    group.kill("first")
    group.start("other", UBI_CRAWL="other")
    group.until_served(0.2)
    assert not waits(group, "other")
    group.kill("other")
    group.start("again")
    group.until(lambda: "again" in {row["agent"] for row in group.web.log()}, "a page of the third")
    assert not waits(group, "again")
    verdict = group.end()
    assert verdict.exits == {"again": 1} and verdict.stats["violations"] == 0
    assert "has lost 1 agent (first)" in verdict.logs["again"]
    assert {url for url, names in verdict.fetchers().items() if "again" in names} >= group.truth


def test_two_that_come_together_begin_at_once_and_fetch_nothing_twice(make_group: MakeGroup) -> None:
    group = watched_group(make_group)
    group.end().judge()
    group = group.__class__(group.place / "second", group.web, group.server, UBI_CRAWL="second")
    group.place.mkdir()
    before = len(group.web.log())
    group.start("b0", "b1")
    verdict = group.end()
    group.close()
    assert not any(WAITS in text for text in verdict.logs.values())
    assert not any(verdict.exits.values())
    fetched = [f"http://{row['host']}{row['path']}" for row in group.web.log()[before:] if row["kind"] == "page"]
    assert len(fetched) == len(set(fetched)) and group.truth >= set(fetched)
    assert verdict.stats["violations"] == 0


@pytest.mark.parametrize("loss", ["flushed", "started again with its data", "failed over"])
def test_after_a_loss_it_waits_and_says_why(make_group: MakeGroup, loss: str) -> None:
    group = watched_group(make_group, 0.05)
    group.kill("first")
    server = group.server
    with server.client() as client:
        assert client.exists(WATCHED_KEY)
        client.save()
    try:
        if loss == "flushed":
            server.flush()
        elif loss == "started again with its data":
            server.kill()
            server.start()
        else:
            with server.client() as client:
                client.replicaof("127.0.0.1", server.port)
                client.replicaof("NO", "ONE")
        group.start("second", UBI_CRAWL="second")  # of another name: the beat of the first is no sign of life there
        group.until(lambda: "second" in {row["agent"] for row in group.web.log()}, "a page of the second")
        assert waits(group, "second") == WHY_WAIT[NEW]
        verdict = group.end()
        assert verdict.exits == {"second": 0} and verdict.stats["violations"] == 0
    finally:
        server.forget_file()


def test_redis_forgets_and_a_newcomer_waits_for_one_that_cannot_beat(make_group: MakeGroup) -> None:
    """The paused one holds its lease while Redis forgets it, for as long as the newcomer waits at most."""
    group = watched_group(make_group, 0.05)
    group.until_served(0.3)
    group.pause("first")
    group.server.flush()
    group.start("second")
    group.until(lambda: waits(group, "second"), "the wait of the second")
    group.resume("first")
    group.until_settled("first", "second")
    group.end().judge(lost=["first"])
