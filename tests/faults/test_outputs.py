"""Outputs and crashes (P9): agents are killed, started again or not, join and leave; then what is collected are the
items of plain Scrapy, each once.

The moments are drawn; each test prints its seed, and how to see the same again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scrapy_ubi.outputs.part_files import OUT, read_record
from tests.faults.conftest import MakeGroup
from tests.support.group import LIMIT, Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

SEED = int(os.environ.get("OUTPUT_SEED", random.randrange(1_000_000)))
STORES = "items(size=30000),larm(size=200000)"
SETTINGS = {"UBI_STORES": STORES, "UBI_HEARTBEAT_INTERVAL": 0.125, "CONCURRENT_REQUESTS": 4}


def drawn(what: str) -> random.Random:
    """Moments for this test."""
    print(f"{what}: OUTPUT_SEED={SEED} pytest tests/faults/test_outputs.py")
    return random.Random(f"{SEED} {what}")


def collect(group: Group, kind: str, *options: str) -> list[bytes]:
    """The lines that `scrapy ubi collect` gives of all directories of agents."""
    dirs = [part for path in sorted(group.place.glob("a?")) for part in ("--dir", str(path))]
    file = group.place / f"collected.{kind}"
    command = [sys.executable, "-m", "scrapy", "ubi", "collect", kind, "-o", str(file), *dirs, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=group.place, check=False)
    assert done.returncode == 0, done.stderr
    return file.read_bytes().splitlines(keepends=True)


def urls(lines: list[bytes]) -> Counter[str]:
    return Counter(json.loads(line)["url"] for line in lines)


def documents(group: Group) -> set[str]:
    """The URLs that give an item in plain Scrapy: each one."""
    return {url for url in group.truth if "/go/" not in url and "/gone/" not in url}


def check(group: Group) -> None:
    """Every page's item, once."""
    found, wanted = urls(collect(group, "items")), Counter(documents(group))
    assert found == wanted, (wanted - found, found - wanted)


def test_one_agent_that_is_killed_again_and_again(make_group: MakeGroup) -> None:
    group, draws = make_group(hosts=20, pages=400, latency=0.01, UBI_REDIS_URL=None, **SETTINGS), drawn("alone")
    for share in sorted(draws.uniform(0.05, 0.8) for _ in range(3)):
        group.start("a0")
        before = group.web.count()
        group.until(lambda before=before: group.web.count() > before, "a page")
        group.until_served(share)
        group.kill("a0")
    group.start("a0")
    group.end()
    check(group)


def test_three_agents_that_are_all_killed_again_and_again(make_group: MakeGroup) -> None:
    group, draws = make_group(hosts=20, pages=400, latency=0.01, **SETTINGS), drawn("three")
    names = ("a0", "a1", "a2")
    for share in sorted(draws.uniform(0.05, 0.8) for _ in range(3)):
        group.start(*names)
        before = group.web.count()
        group.until(lambda before=before: group.web.count() > before, "a page")
        group.until_served(share)
        group.kill(*names)
    group.start(*names)
    assert set(group.end().exits.values()) == {0}
    check(group)


def test_one_killed_for_good_one_that_leaves_and_one_that_joins(make_group: MakeGroup) -> None:
    group, draws = make_group(latency=0.03, hosts=20, **SETTINGS), drawn("turnover")
    group.start("a0", "a1", "a2")
    group.until_served(draws.uniform(0.05, 0.3))
    group.kill("a1")
    group.start("a3")
    group.until_served(draws.uniform(0.3, 0.6))
    group.stop("a2")
    group.until_ended("a2")
    assert set(group.end().exits.values()) == {0}
    check(group)


def test_one_that_comes_back_after_the_end_ends_it_too_and_the_next_start_is_another_run(make_group: MakeGroup) -> None:
    group, draws = make_group(latency=0.02, hosts=20, pages=300, **SETTINGS), drawn("late")
    group.start("a0", "a1")
    group.until_served(draws.uniform(0.2, 0.6))
    group.kill("a1")
    assert set(group.end().exits.values()) == {0}
    check(group)
    run, before = read_record(group.place / "a0" / OUT)["run"], group.web.count()
    group.start("a1")
    verdict = group.end()
    assert "ended while this agent was away" in verdict.logs["a1"] and group.web.count() == before
    check(group)
    group.start("a1")
    group.end()
    now = read_record(group.place / "a1" / OUT)["run"]
    assert now != run and group.web.count() > before
    check(group)  # the new run, by a1 alone
    assert urls(collect(group, "items", "--run", run)) == Counter(documents(group))
    assert list(Path(group.place / "a1").glob("out-*"))
