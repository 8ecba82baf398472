"""A crawl that people change while an agent is away, and Redis forgets."""

from __future__ import annotations

import pytest

from tests.faults.conftest import MakeGroup

pytestmark = [pytest.mark.processes, pytest.mark.faults]


def test_three_agents_hear_it_one_after_it_was_away_and_redis_has_forgotten(make_group: MakeGroup) -> None:
    group = make_group(latency=0.1, hosts=20, pages=80)
    group.start("a0", "a1", "a2")
    group.until_served(0.15)
    group.kill("a2")
    group.steer("pause", "--no-wait")
    mark = group.steer("set", "UBI_HOST_DELAY=0.01", "CONCURRENT_REQUESTS=9", "--no-wait")["mark"]
    group.until(lambda: {group.profiles()[name].get("live") for name in ("a0", "a1")} == {mark}, "two know")
    with group.server.client() as client:
        client.flushall()
    group.start("a2")
    group.until(lambda: [one.get("live") for one in group.profiles().values()] == 3 * [mark], "all know")
    group.until(lambda: {one["state"] for one in group.profiles().values()} == {"paused"}, "all paused")
    group.until(lambda: not any(one["in_flight"] for one in group.counters().values()), "loads ended")
    served, before = group.web.count(), {name: beat.counter for name, beat in group.beats().items()}
    group.until(lambda: all(beat.counter > before[name] + 4 for name, beat in group.beats().items()), "beats")
    assert group.web.count() == served < len(group.truth)
    assert group.steer("resume")["behind"] == []
    verdict = group.end().judge(lost=["a2"])
    assert all("The running crawl is changed" in text for text in verdict.logs.values())
