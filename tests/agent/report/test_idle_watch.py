"""When the log hears why nothing is fetched, and what the status says meanwhile."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import IdleReason, reason
from scrapy_ubi.agent.report.idle_watch import LOGGED, QUIET, IdleWatch, one_host
from scrapy_ubi.ground.clock import unix
from tests.cli.monitor.by_hand import profile


class Quiet:
    """A watch whose reason, and whether something was fetched, the test says."""

    def __init__(self) -> None:
        self.pages, self.why = 0, reason(kinds.DELAY, ("a.example",))
        self.watch = IdleWatch("a1", lambda: self.pages, self.find, self.profiles)
        self.now = 0.0

    def find(self, now: float) -> IdleReason | None:
        return self.why

    async def profiles(self) -> dict[str, str]:
        return {}

    def passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.watch.check_idle(self.now)
            self.now += 1.0


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Quiet:
    caplog.set_level(logging.INFO, "scrapy_ubi")
    return Quiet()


def test_people_may_ask_after_some_seconds_and_no_reason_is_left_once_it_fetches(quiet: Quiet) -> None:
    quiet.passes(int(QUIET))
    assert quiet.watch.reason is None
    quiet.passes(2)
    assert quiet.watch.reason == quiet.why
    quiet.pages += 1
    quiet.passes(1)
    assert quiet.watch.reason is None


def test_the_log_hears_of_a_reason_once_and_then_ever_more_seldom(
    quiet: Quiet, caplog: pytest.LogCaptureFixture
) -> None:
    quiet.passes(int(LOGGED) + 1)
    assert len(caplog.messages) == 1
    quiet.passes(59)
    assert len(caplog.messages) == 1
    quiet.passes(3600)
    assert len(caplog.messages) <= 10


def test_a_host_with_a_long_delay_does_not_fill_the_log(quiet: Quiet, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(120):  # an hour, a page each 30 s
        quiet.passes(30)
        quiet.pages += 1
    assert 1 <= len(caplog.messages) <= 10


def test_another_reason_is_said_at_once(quiet: Quiet, caplog: pytest.LogCaptureFixture) -> None:
    quiet.passes(15)
    quiet.why = reason(kinds.PAUSED)
    quiet.passes(1)
    assert [("delay" in one, "paused" in one) for one in caplog.messages] == [(True, False), (False, True)]


def test_a_moment_between_two_reasons_is_none(quiet: Quiet, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):  # a host whose robots.txt is asked for every 15 s, and never comes
        quiet.why = reason(kinds.ROBOTS, ("mute.example",))
        quiet.passes(15)
        before, quiet.why = quiet.watch.reason, reason(kinds.READY, ("mute.example",))
        quiet.passes(1)
        assert quiet.watch.reason == before
    assert not any("has not asked" in one for one in caplog.messages)
    quiet.passes(2)
    assert "has not asked" in caplog.messages[-1] and quiet.watch.reason == quiet.why


def test_what_ends_in_a_moment_is_no_reason_but_where_it_stays(quiet: Quiet, caplog: pytest.LogCaptureFixture) -> None:
    """Such as a short delay, where a host was just taken over from an agent that is gone."""
    quiet.why = reason(kinds.HANDOVER, ("a.example",))
    quiet.passes(15)
    quiet.why = reason(kinds.DELAY, ("a.example",), until=unix() + 0.02)
    quiet.passes(1)
    assert not any("the delay" in one for one in caplog.messages)
    quiet.passes(1)
    assert "the delay" in caplog.messages[-1]


def one_host_profile(hosts: int = 1) -> dict[str, str]:
    slowest = {"host": "big.example", "queued": 9, "delay": 1.0}
    counters = {"hosts": hosts, "slowest": slowest}
    return {
        "a1": json.dumps(profile("a1", counters={"hosts": 0})),
        "a2": json.dumps(profile("a2", counters=counters)),
        "a3": json.dumps(profile("a3", counters={"hosts": 0})),
    }


def test_an_idle_agent_of_a_crawl_of_one_host_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scrapy_ubi")

    async def run() -> None:
        async def profiles() -> dict[str, str]:
            return one_host_profile()

        watch = IdleWatch("a1", lambda: 0, lambda now: reason(kinds.OTHERS, ("a2", "a3")), profiles)
        for now in range(600):
            watch.check_idle(float(now))
            await asyncio.sleep(0)
        assert watch.reason is not None and watch.reason.kind == kinds.ONE_HOST

    asyncio.run(run())
    said = [one for one in caplog.messages if "one-big-site" in one]
    assert len(said) == 1
    assert "this crawl has one host, big.example, owned by a2; this agent waits with nothing to do" in said[0]


def test_a_crawl_of_two_hosts_is_none_of_one_host() -> None:
    assert one_host("a1", one_host_profile(2)) is None
    assert one_host("a1", {"a2": "not JSON"}) is None
