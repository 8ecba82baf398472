"""A Redis at its memory limit, with the policy to refuse: the agents wait for room, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from redis import OutOfMemoryError

from tests.faults.conftest import FOUR, MakeGroup
from tests.support.group import CRAWL
from tests.support.server import Server

pytestmark = [pytest.mark.processes, pytest.mark.faults]

ROOMY = "64mb"
LITTLE, FEW = 32, 125  # MB; records that wait to be sent with so little memory, before an agent stops


def test_a_full_redis_slows_the_crawl_down_until_it_has_room(make_group: MakeGroup) -> None:
    with Server(make_group.server.kind, options=("--maxmemory", "8mb", "--maxmemory-policy", "noeviction")) as server:
        make_group.server = server
        group = make_group(latency=0.05, UBI_MEMORY_MB=LITTLE)
        group.start(*FOUR)
        group.until_served(0.2)
        fill(server)
        group.until(lambda: states(group.profiles()) == {"blocked"}, "all blocked")
        group.until(lambda: has_stopped(group.counters()), "a stop")
        assert "raise its maxmemory" in status(server)
        # All of them beat on, though nothing else is taken.
        before = {name: beat.counter for name, beat in group.beats().items()}
        group.until(
            lambda: all(beat.counter > before[name] + 12 for name, beat in group.beats().items()),
            "beats for longer than the failure timeout",
        )
        assert group.web.count() < len(group.truth)
        with server.client() as client:
            client.config_set("maxmemory", ROOMY)
        verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    for name, text in verdict.logs.items():
        assert text.count("Redis is full and takes no mail") == 1, name
        assert text.count("Redis has room again") == 1, name
        assert "'ubi/writes_refused': " in text and "'ubi/fences': 0" in text, name


def fill(server: Server) -> None:
    """Somebody else's data, until nothing more goes in: large pieces first, then small ones; then none at all."""
    with server.client() as client:
        for size in (100_000, 1_000, 10):
            try:
                while True:
                    client.rpush("ballast", os.urandom(size))
            except OutOfMemoryError:
                pass
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)  # what is deleted makes no room


def has_stopped(counters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether no agent loads anything: what waits for room has a bound, or nothing is left that it may load."""
    stopped = not any(one["in_flight"] for one in counters.values())
    return stopped and any(one["outbox"] >= FEW for one in counters.values())


def states(profiles: dict[str, dict[str, object]]) -> set[object]:
    return {profile["state"] for profile in profiles.values()}


def status(server: Server) -> str:
    """What `scrapy ubi status` says."""
    command = [sys.executable, "-m", "scrapy", "ubi", "status", "--redis-url", server.url, "--crawl", CRAWL]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
