"""Agents that are killed, paused or cut off: their hosts go on elsewhere, one request at a time.

Only what a lost agent had fetched may be fetched again: the pages of its last flushes, of which nobody has heard. The
web answers slowly here and no host is left alone between two requests, so that two agents at one host would be seen.
"""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol.beat import LOSSY
from tests.faults.conftest import FOUR, MakeGroup
from tests.support.disks import unwritten
from tests.support.group import Verdict
from tests.support.proxy import Cable

pytestmark = [pytest.mark.processes, pytest.mark.faults]

LATENCY = 0.15  # s


@pytest.mark.parametrize("spider", ["walk", "plain"])
def test_the_hosts_of_an_agent_that_was_killed_go_on(make_group: MakeGroup, spider: str) -> None:
    """The others notice; nothing is left of it, not even its disk."""
    group = make_group(LATENCY)
    group.start(*FOUR, spider=spider)
    group.until_served(0.3)
    incarnation = group.beats()["a1"].incarnation
    group.kill("a1", wipe=True)
    group.until_replaced("a1")
    verdict = group.end().judge(lost=["a1"])
    assert all(incarnation in beat.dead for name, beat in group.beats().items() if name != "a1")
    assert verdict.stats["duplicates"] <= verdict.stats["agents"]["a1"]


def test_an_agent_that_was_killed_may_return_at_once_or_later(make_group: MakeGroup) -> None:
    """As the same agent, found by its disk, in another incarnation."""
    group = make_group(LATENCY, UBI_REPLICATION=2)  # as many are lost at once
    group.start(*FOUR)
    group.until_served(0.2)
    group.kill("a1", "a2")
    group.start("a1")  # nobody has noticed
    group.until_replaced("a2")
    group.start("a2")
    group.until_served(1)
    group.end().judge(lost=["a1", "a2"])


@pytest.mark.parametrize("fast", [False, True])
def test_an_agent_that_was_paused_finds_its_heirs_and_keeps_off(make_group: MakeGroup, fast: bool) -> None:
    group = make_group(LATENCY, UBI_FAST=fast)
    group.start(*FOUR)
    group.until_served(0.2)
    group.pause("a1")
    group.until_replaced("a1")  # so the failure timeout has passed
    group.resume("a1")
    verdict = group.end().judge(lost=["a1"])
    assert group.counters()["a1"]["rejoins"] == 1
    assert verdict.stats["duplicates"] <= verdict.stats["agents"]["a1"]


def test_an_agent_that_was_cut_off_from_redis_keeps_off(make_group: MakeGroup) -> None:
    with Cable(make_group.server.port) as cable:
        group = make_group(LATENCY)
        group.start("a0", "a2", "a3")
        group.start("a1", UBI_REDIS_URL=cable.url)
        group.until_served(0.2)
        cable.cut()
        group.until_replaced("a1")
        cable.heal()
        group.end().judge(lost=["a1"])
        assert group.counters()["a1"]["rejoins"] == 1


def test_a_callback_that_blocks_everything_else_costs_nobody_its_life(make_group: MakeGroup) -> None:
    """For longer than the lease, and than the failure timeout: beats have a thread of their own."""
    group = make_group()
    group.start("a0", "a2", "a3")
    group.start("a1", spider="sleeper", arguments={"seconds": "7"})
    verdict = group.end().judge()
    assert "awake" in verdict.logs["a1"]
    assert not any(beat.dead for beat in group.beats().values())
    assert {name: (c["rejoins"], c["fences"]) for name, c in group.counters().items()} == dict.fromkeys(FOUR, (0, 0))


def test_mail_for_those_who_were_killed_is_thrown_away(make_group: MakeGroup) -> None:
    """It must not pass for news: it may tell of pages that were done, and nobody knows their links."""
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.2)
    group.pause("a1")
    group.until(lambda: group.waiting("a1") >= 4, "letters in the inbox of one that does not read them")
    group.kill(*FOUR)
    left = unwritten([group.place / name for name in FOUR], group.web.visits())
    group.start(*FOUR)
    verdict = group.end().judge(unwritten=left)
    assert "letters for an earlier process of this agent were thrown away" in verdict.logs["a1"]


LOST = "This crawl has lost 2 agents (a1, a2), more than its copies make up for (UBI_REPLICATION = 1)"


def test_a_crawl_that_lost_more_than_its_copies_says_so_at_its_end(make_group: MakeGroup) -> None:
    """In the last line of the log, by the exit status, and in the report; also an agent that came after the loss."""
    group = make_group(LATENCY)
    group.start("a0", "a1", "a2")
    group.until_settled("a0", "a1", "a2")
    group.until_served(0.3)
    group.kill("a1", "a2", wipe=True)
    group.until(lambda: group.beats()["a0"].dead, "the deaths seen")
    group.start("a3")
    verdict = group.end()
    assert verdict.exits == {"a0": 1, "a3": 1}, verdict.logs
    for log in verdict.logs.values():
        assert "Closing spider (finished)" in log
        assert sum(LOST in line and " ERROR: " in line for line in log.splitlines()) == 1
    assert {counters["lost_agents"] for counters in group.counters().values()} == {0, 2}
    status, report = group.report()
    assert status == 0 and "2 agents" in report, report
    served = group.web.count()
    group.start("a0", "a3")  # as by a supervisor, which starts again whoever fails
    verdict = group.end()
    assert verdict.exits == {"a0": 0, "a3": 0}, verdict.logs
    assert group.web.count() == served, "nothing is fetched anew"
    assert all(log.count("and agents were lost (a1, a2): nothing is fetched") == 1 for log in verdict.logs.values())
    assert {counters["lost_agents"] for counters in group.counters().values()} == {0, 2}


def test_an_agent_that_is_lost_alone_is_what_copies_are_for(make_group: MakeGroup) -> None:
    group = make_group(LATENCY)
    group.start("a0", "a1", "a2")
    group.until_settled("a0", "a1", "a2")
    group.until_served(0.3)
    group.kill("a1", wipe=True)
    verdict = group.end().judge(lost=["a1"])
    assert not any("has lost" in log for log in verdict.logs.values())
    assert not any(counters["lost_agents"] for counters in group.counters().values())


def test_agents_that_come_back_with_their_disks_are_not_lost(make_group: MakeGroup) -> None:
    """More than there are copies: what they knew is there again at the end."""
    group = make_group(LATENCY)
    group.start("a0", "a1", "a2")
    group.until_settled("a0", "a1", "a2")
    group.until_served(0.2)
    group.kill("a1", "a2")
    group.until(lambda: len(group.beats()["a0"].dead) == 2, "the deaths seen")
    group.start("a1", "a2")
    verdict = group.end().judge(lost=["a1", "a2"])
    assert LOSSY in "".join(beat.flags for beat in group.beats().values()), "they were too many"
    assert not any("has lost" in log for log in verdict.logs.values())


def _says_no_loss(verdict: Verdict) -> None:
    assert not any("has lost" in log for log in verdict.logs.values())


@pytest.mark.parametrize("agents", [3, 6, 12])
def test_one_that_is_killed_before_the_first_page_is_no_loss(make_group: MakeGroup, agents: int) -> None:
    """All have just begun: each knows the seeds, and nobody anything else."""
    names = [f"a{number}" for number in range(agents)]
    group = make_group(LATENCY, UBI_START_WAIT=max(6, 2 * agents))
    group.start(*names)
    group.until(lambda: len(group.beats()) == agents, "all joined")
    group.kill("a1", wipe=True)
    assert not group.web.log(), "before any page"
    _says_no_loss(group.end().judge(lost=["a1"]))


def test_who_comes_back_misses_nobody_whose_death_was_made_good(make_group: MakeGroup) -> None:
    """The others have made the copies again, twice, and were there all the time."""
    group = make_group(LATENCY * 2)
    group.start("a0", "a1", "a2", "a3")
    group.until_settled("a0", "a1", "a2", "a3")
    group.until_served(0.1)
    group.kill("a1")
    group.until_settled("a0", "a2", "a3")
    group.kill("a2", wipe=True)
    group.until_settled("a0", "a3")
    group.start("a1")
    _says_no_loss(group.end().judge(lost=["a1", "a2"]))


def test_of_two_that_were_killed_one_is_back_and_another_has_left(make_group: MakeGroup) -> None:
    group = make_group(LATENCY * 2)
    group.start("a0", "a1", "a2", "a3")
    group.until_settled("a0", "a1", "a2", "a3")
    group.until_served(0.1)
    group.kill("a1", "a2")
    group.until_settled("a0", "a3")
    group.start("a4")
    group.until_settled("a0", "a3", "a4")
    group.stop("a3")
    group.until_ended("a3")
    group.start("a1")
    verdict = group.end().judge(lost=["a1", "a2", "a3"])
    _says_no_loss(verdict)


def test_of_all_that_were_killed_one_does_not_come_back(make_group: MakeGroup) -> None:
    """It cannot have gone on without the others: its last words are of the view that they know."""
    group = make_group(LATENCY)
    group.start("a0", "a1", "a2")
    group.until_settled("a0", "a1", "a2")
    group.until_served(0.2)
    group.kill("a0", "a1", "a2")
    group.start("a0", "a2")
    _says_no_loss(group.end().judge(lost=["a0", "a1", "a2"]))
