"""A group of five agents is restarted under load, one after the other, each once the one before is ready."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

import pytest

from tests.faults.conftest import MakeGroup
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

FIVE = ("a0", "a1", "a2", "a3", "a4")
ANSWER = 5.0  # s


def is_ready(group: Group, name: str) -> bool:
    """What a rolling update asks."""
    address = group.profiles().get(name, {}).get("metrics")
    if not address:
        return False
    try:
        with urllib.request.urlopen(f"http://{address}/ready", timeout=ANSWER) as answer:
            return bool(answer.status == 200)
    except (urllib.error.HTTPError, OSError):
        return False


def test_five_agents_are_restarted_one_by_one_and_nothing_is_fetched_twice(make_group: MakeGroup) -> None:
    group = make_group(latency=1.0, hosts=80, pages=2600, UBI_METRICS="127.0.0.1:0")
    group.start_together(*FIVE)
    for name in FIVE:
        group.until(lambda name=name: is_ready(group, name), f"{name} to be ready")  # type: ignore[misc]
    begun = time.monotonic()
    for name in FIVE:
        print(f"{time.monotonic() - begun:.1f} s: {name} is stopped after {group.web.count()} of {len(group.truth)}")
        group.stop(name)
        group.until_ended(name)
        assert group.agents[name].popen.returncode == 0
        assert group.web.count() < len(group.truth), "the crawl goes on beside it"
        group.start(name)
        group.until(lambda name=name: is_ready(group, name), f"{name} to be ready again")  # type: ignore[misc]
    group.web.hurry()  # what is left need not take as long
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    assert group.web.fetched() >= group.truth
    assert not any(beat.dead for beat in group.beats().values()), "none was held dead"
    counters = group.counters().values()
    assert not any(one["rejoins"] or one["handoff_timeouts"] or one["fences"] for one in counters)
