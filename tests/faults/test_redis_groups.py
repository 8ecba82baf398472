"""Crawls by way of a Redis Cluster, and of servers that Sentinels watch, while these change: real processes.

Whatever happens to the servers, each page is fetched once, by one agent at a time, and no agent is declared dead but
one that was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from demo.graph import Graph
from tests.conftest import KINDS, no_server
from tests.support.cut_proxy import CutProxy
from tests.support.group import Group, Verdict
from tests.support.redis_groups import Cluster, Watched
from tests.support.server import Server
from tests.support.web import DemoWeb

pytestmark = [pytest.mark.processes, pytest.mark.faults]

THREE = ("a0", "a1", "a2")
LATENCY = 0.05  # s
FAILOVERS, BETWEEN = 15, 600  # requests: some 20 s, so that it takes five minutes


class Looked:
    """Stands for the server that holds the crawl now, where a test looks."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.holds: Any = None

    def client(self) -> redis.Redis:
        server: Server = self.holds()
        return server.client()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    if not KINDS:
        no_server()
    with ExitStack() as opened:
        yield opened


def group_by(
    stack: ExitStack, place: Path, servers: Cluster | Watched, pages: int = 600, latency: float = LATENCY
) -> tuple[Group, Looked]:
    """Agents of a crawl of so many pages of 60 hosts by way of these servers, which are started."""
    stack.callback(servers.stop)
    servers.start()
    looked = Looked(servers.url)
    web = stack.enter_context(DemoWeb(Graph(seed=5, hosts=60, pages=pages), latency))
    group = Group(place, web, looked, "all")  # type: ignore[arg-type]
    stack.callback(group.close)
    return group, looked


def none_was_declared_dead(group: Group, *names: str) -> None:
    assert {name: group.counters()[name]["rejoins"] for name in names} == dict.fromkeys(names, 0)


def loaded_again(verdict: Verdict) -> set[str]:
    """Pages whose load was ended when a lease ended, and whose answer was under way: the same agent has loaded them
    again."""
    again = {url for url, names in verdict.fetchers().items() if len(names) == 2 and names[0] == names[1]}
    withdrawn = re.findall(r"gate.Withdrawn': (\d+)", "".join(verdict.logs.values()))
    assert len(again) <= sum(map(int, withdrawn))
    return again


def test_a_cluster_whose_slot_moves_under_load_and_whose_master_is_killed(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=1)
    group, looked = group_by(stack, tmp_path, cluster)
    slot = group.keys.slot
    looked.holds = lambda: cluster.owner(slot)
    group.start(*THREE)
    for share in (0.15, 0.3):  # there, and on to another one
        group.until_served(share)
        old = cluster.owner(slot)
        cluster.move(slot, next(one for one in cluster.masters if one is not old))
        assert cluster.owner(slot) is not old
    group.until_served(0.5)
    killed = cluster.owner(slot)
    killed.kill()
    group.end().judge()
    assert cluster.owner(slot) in cluster.replicas, "which has no replica now"
    none_was_declared_dead(group, *THREE)


def test_a_master_is_killed_and_its_replica_promoted_by_sentinels(stack: ExitStack, tmp_path: Path) -> None:
    watched = Watched(KINDS[0], replicas=2)
    group, looked = group_by(stack, tmp_path, watched)
    looked.holds = watched.current
    group.start(*THREE)
    group.until_served(0.3)
    watched.master.kill()
    group.end().judge()
    assert watched.current() in watched.replicas
    none_was_declared_dead(group, *THREE)


def test_a_master_that_is_cut_off_with_an_agent_does_not_keep_that_one_at_work(
    stack: ExitStack, tmp_path: Path
) -> None:
    """The agent beside it reaches its master, which answers; the others, the replica and the Sentinels do not."""
    cables: list[CutProxy] = []

    def cable(port: int) -> int:
        cables.append(CutProxy(port))
        stack.callback(cables[0].close)
        return cables[0].port

    watched = Watched(KINDS[0], replicas=1, seen_at=cable)
    group, looked = group_by(stack, tmp_path, watched)
    looked.holds = lambda: watched.master
    beside = f"redis://127.0.0.1:{watched.master.port}/0?wait_replicas=1"
    group.start("a0", "a1")
    group.start("a2", UBI_REDIS_URL=beside)
    group.until_served(0.3)
    cables[0].cut()
    looked.holds = lambda: watched.replicas[0]
    group.until_replaced("a2")
    group.until(lambda: group.said("a2", "lack the beat"), "a2 says why its lease ends")
    group.kill("a2")
    verdict = group.end()
    verdict.judge(lost=["a2"], unwritten=loaded_again(verdict))
    none_was_declared_dead(group, "a0", "a1")


def failing_over(
    group: Group, current: Callable[[], Server], replaced: Callable[[Server], bool], whole: Callable[[], object]
) -> None:
    """The server that holds the crawl is killed again and again, and comes back, while three agents crawl: with some
    thirty requests a second, until all has been done."""
    group.start(*THREE)
    for turn in range(FAILOVERS):
        group.until(lambda turn=turn: group.web.count() > BETWEEN * (turn + 1), "requests since the last failover")
        killed = current()
        killed.kill()
        group.until(lambda killed=killed: replaced(killed), "another server takes the crawl over")
        killed.start()
        whole()
    group.web.hurry()
    verdict = group.end()
    verdict.judge(unwritten=loaded_again(verdict))
    none_was_declared_dead(group, *THREE)


def test_a_cluster_fails_over_again_and_again(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=1)
    group, looked = group_by(stack, tmp_path, cluster, pages=12_000, latency=1.5)
    slot = group.keys.slot
    looked.holds = lambda: cluster.owner(slot)

    def replaced(killed: Server) -> bool:
        try:
            return cluster.owner(slot).running
        except AssertionError:  # none yet
            return False

    failing_over(group, looked.holds, replaced, cluster.wait_until_whole)


def test_sentinels_promote_a_replica_again_and_again(stack: ExitStack, tmp_path: Path) -> None:
    watched = Watched(KINDS[0], replicas=2)
    group, looked = group_by(stack, tmp_path, watched, pages=12_000, latency=1.5)
    looked.holds = watched.current
    failing_over(group, watched.current, lambda killed: watched.current() is not killed, watched.wait_until_followed)
