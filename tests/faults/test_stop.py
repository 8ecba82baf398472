"""Agents that are told to stop: once, and they hand over first; twice, and they go at once."""

from __future__ import annotations

from threading import Thread

import pytest

from tests.faults.conftest import FOUR, MakeGroup
from tests.support.proxy import Cable

pytestmark = [pytest.mark.processes, pytest.mark.faults]

LONG = 600  # s, far beyond the limit of every wait here: who ends sooner has not waited for it


def test_told_once_an_agent_ends_its_loads_hands_over_and_says_so(make_group: MakeGroup) -> None:
    group = make_group(latency=0.15)
    group.start(*FOUR)
    group.until_served(0.2)
    group.stop("a1")
    group.until_ended("a1")
    group.until_settled("a0", "a2", "a3")
    verdict = group.end().judge()
    said = verdict.logs["a1"]
    for words in ("Closing spider (shutdown)", "No new request is sent", "Handing over", "Handed over in"):
        assert words in said
    assert not any(row["status"] == 0 for row in verdict.log if row["agent"] == "a1"), "no load is broken off"
    assert not any(beat.dead for beat in group.beats().values())


def test_a_drained_agent_hands_over_and_closes_and_its_successor_is_let_be(make_group: MakeGroup) -> None:
    group = make_group(latency=0.3)
    group.start(*FOUR)
    group.until_served(0.2)
    asked = group.drain("a1")
    assert (asked.returncode, asked.stdout.startswith("Agent a1 has left")) == (0, True), asked
    group.until_ended("a1")
    assert group.agents["a1"].popen.returncode == 0
    group.start("a1")  # another incarnation
    group.until_settled(*FOUR)
    verdict = group.end().judge()
    assert "Closing spider (drained)" in verdict.logs["a1"] and "Handed over in" in verdict.logs["a1"]
    assert verdict.stats["duplicates"] == 0
    assert not any(beat.dead for beat in group.beats().values())


def test_told_once_while_it_closes_anyway_an_agent_hands_over_all_the_same(make_group: MakeGroup) -> None:
    """Drained, or at a limit such as CLOSESPIDER_TIMEOUT: the one signal is the first."""
    group = make_group(latency=2.0, hosts=20, pages=80)
    group.start("a0", "a1", "a2")
    group.until(lambda: "a1" in group.web.stats()["agents"], "a page fetched by it")
    asked = Thread(target=group.drain, args=["a1"])
    asked.start()
    group.until(lambda: group.said("a1", "No new request is sent"), "that it closes")
    group.stop("a1")
    group.until_ended("a1")
    asked.join()
    verdict = group.end().judge()
    said = verdict.logs["a1"]
    assert "Received SIGTERM" in said and "Handed over in" in said and "Spider closed (drained)" in said
    assert not any(row["status"] == 0 for row in verdict.log if row["agent"] == "a1"), "no load is broken off"
    assert not any(beat.dead for beat in group.beats().values())


def test_told_twice_while_loads_run_an_agent_goes_at_once(make_group: MakeGroup) -> None:
    group = make_group(latency=2.0, hosts=20, pages=80)
    group.start("a0", "a1", "a2")
    group.until(lambda: "a1" in group.web.stats()["agents"], "a page fetched by it")
    group.stop("a1")
    group.until(lambda: group.said("a1", "No new request is sent"), "the first signal heard")
    group.stop("a1")
    group.until_ended("a1")
    verdict = group.end().judge(lost=["a1"])
    assert "ends immediately, without handing over" in verdict.logs["a1"]
    assert "Handing over" not in verdict.logs["a1"]
    assert any(row["status"] == 0 for row in verdict.log if row["agent"] == "a1"), "it has not waited for its loads"
    assert group.beats()["a1"].flags == ""


@pytest.mark.parametrize("reactor", [True, False])
def test_told_twice_while_it_hands_over_an_agent_goes_at_once(make_group: MakeGroup, reactor: bool) -> None:
    """Also when Redis does not answer, which it would wait for."""
    with Cable(make_group.server.port) as cable:
        group = make_group(latency=0.15, UBI_LEAVE_TIMEOUT=LONG)
        group.start("a0", "a2", "a3")
        group.start("a1", UBI_REDIS_URL=cable.url, TWISTED_REACTOR_ENABLED=reactor)
        group.until_served(0.2)
        cable.cut()
        group.stop("a1")
        group.until(lambda: group.said("a1", "Handing over"), "that it hands over")
        group.stop("a1")
        group.until_ended("a1")
        verdict = group.end().judge(lost=["a1"])
    assert "ends immediately, without handing over" in verdict.logs["a1"]
    assert "Handed over" not in verdict.logs["a1"]
