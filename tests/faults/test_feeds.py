"""Items and crashes: agents are killed in the middle, started again, and no page's item is missing from their feeds.

The moments are drawn; each test prints its seed, and how to see the same again. Doubles are allowed: a page that was
not done on any disk is fetched again.
"""

from __future__ import annotations

import csv
import json
import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults.conftest import MakeGroup
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

SEED = int(os.environ.get("FEED_SEED", random.randrange(1_000_000)))
ROUNDS = 3
FEW = {"UBI_HEARTBEAT_INTERVAL": 0.125, "CONCURRENT_REQUESTS": 4}


def drawn(what: str) -> random.Random:
    """Moments for this test."""
    print(f"{what}: FEED_SEED={SEED} pytest tests/faults/test_feeds.py")
    return random.Random(f"{SEED} {what}")


def kill_now_and_then(group: Group, draws: random.Random, names: tuple[str, ...], feed: str = "") -> None:
    """Start the agents and kill all of them, so many times; then let them finish."""
    for share in sorted(draws.uniform(0.05, 0.8) for _ in range(ROUNDS)):
        for name in names:
            group.start(name, feed=feed.format(name))
        before = group.web.count()
        group.until(lambda before=before: group.web.count() > before, "a page")
        group.until_served(share)
        group.kill(*names)
    for name in names:
        group.start(name, feed=feed.format(name))
    verdict = group.end()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    assert verdict.fetchers().keys() >= group.truth


def documents(group: Group) -> set[str]:
    """The URLs that give an item."""
    rows = group.web.log()
    return {f"http://{row['host']}{row['path']}" for row in rows if row["kind"] == "page" and row["status"] == 200}


def lines(place: Path, pattern: str) -> Iterable[str]:
    for path in place.glob(pattern):
        yield from path.read_text().splitlines()


def test_items_of_an_agent_alone(make_group: MakeGroup) -> None:
    group = make_group(hosts=20, pages=400, latency=0.01, UBI_REDIS_URL=None, **FEW)
    kill_now_and_then(group, drawn("alone"), ("a0",))
    assert documents(group) <= {*group.end().items}


def test_items_of_three_agents_that_append(make_group: MakeGroup) -> None:
    """To one file each: what a killed process has left of a line does not spoil the next one."""
    group = make_group(hosts=20, pages=400, latency=0.01, **FEW)
    kill_now_and_then(group, drawn("three"), ("a0", "a1", "a2"), feed="{}.jsonl")
    found = {json.loads(line)["url"] for line in lines(group.place, "a?.jsonl")}
    assert documents(group) <= found


def test_items_in_csv(make_group: MakeGroup) -> None:
    group = make_group(hosts=20, pages=400, latency=0.01, UBI_REDIS_URL=None, **FEW)
    kill_now_and_then(group, drawn("csv"), ("a0",), feed="{}.csv")
    with (group.place / "a0.csv").open(newline="") as file:
        found = {row[0] for row in csv.reader(file)}
    assert documents(group) <= found


def test_items_of_an_agent_that_was_killed_beside_others(make_group: MakeGroup) -> None:
    """Its feed stays, its disk does not: what the others know to be done is in it."""
    group = make_group(latency=0.05, **FEW)
    draws = drawn("beside")
    group.start("a0", "a1", "a2")
    group.until_served(draws.uniform(0.2, 0.7))
    group.kill("a1", wipe=True)
    verdict = group.end()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    assert documents(group) <= {*verdict.items}
