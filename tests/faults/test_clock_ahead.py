"""Agents whose clock was an hour, or a day, ahead, and is right when they start again: what they left waits for
nothing. The clock is that of the process (libfaketime)."""

from __future__ import annotations

import signal

import pytest

from tests.faults.conftest import MakeGroup
from tests.support.group import needs_faketime

pytestmark = [pytest.mark.processes, pytest.mark.faults, needs_faketime]

SAID = "as a clock was ahead: they count as set now"
ENDS = pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
LEADS = pytest.mark.parametrize("lead", ["+1h", "+1d"])


@ENDS
@LEADS
def test_an_agent_alone_goes_on_at_once(make_group: MakeGroup, end: signal.Signals, lead: str) -> None:
    group = make_group(latency=0.05, hosts=6, pages=60, UBI_REDIS_URL=None, UBI_HOST_DELAY=0.2)
    group.start("a0", clock=lead)
    group.until_served(0.3)
    if end is signal.SIGKILL:
        group.kill("a0")
    else:
        group.stop("a0")
        group.until_ended("a0")
    group.start("a0")
    group.until_ended("a0")  # the limit of this wait is much less than what the clock was ahead
    assert group.said("a0", SAID)
    assert not group.truth - group.web.fetched(), "all is fetched"


@ENDS
@LEADS
def test_pages_that_are_visited_again_are_so_in_time(make_group: MakeGroup, end: signal.Signals, lead: str) -> None:
    group = make_group(
        latency=0.01, hosts=4, pages=40, UBI_REDIS_URL=None, UBI_HOST_DELAY=0.05, UBI_RECRAWL="every(10s, rounds=2)",
    )  # fmt: skip
    group.start("a0", clock=lead)
    group.until_served(1.0)
    if end is signal.SIGKILL:
        group.kill("a0")
    else:
        group.stop("a0")
        group.until_ended("a0")
    group.start("a0")
    group.until_ended("a0")
    assert group.said("a0", SAID)


@LEADS
def test_what_one_that_is_ahead_has_handed_to_others_waits_for_nothing_there(make_group: MakeGroup, lead: str) -> None:
    group = make_group(latency=0.02, hosts=20, pages=200, UBI_HOST_DELAY=0.2)
    group.start("a0", clock=lead)
    group.start("a1")
    group.until_served(0.2)
    group.kill("a0")
    group.until_ended("a1")
    group.start("a0")
    group.until_ended("a0")
    assert not group.truth - group.web.fetched(), "all is fetched"
