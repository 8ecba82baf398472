"""Crawls whose mail is in slots of a Redis Cluster, at several masters, while these change: real processes.

Whatever happens to a master that carries mail alone, each page is fetched once, by one agent at a time, and no agent is
declared dead, or loses its lease: beats do not go that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.graph import Graph
from scrapy_ubi.cli.commands import reset
from scrapy_ubi.cli.commands.redis_connection import RedisConnection
from scrapy_ubi.cli.monitor.inbox_text import read_inbox
from scrapy_ubi.cli.monitor.status import read_status
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.redis_keys import RedisKeys, hash_slot, mail_tags
from tests.conftest import KINDS, no_server
from tests.faults.test_redis_groups import LATENCY, group_by, loaded_again, none_was_declared_dead
from tests.support.group import CRAWL, Group
from tests.support.redis_groups import Cluster, ClusterNode
from tests.support.server import Server
from tests.support.web import DemoWeb

pytestmark = [pytest.mark.processes, pytest.mark.faults]

FOUR = ("a0", "a1", "a2", "a3")
SLOTS = 6


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    if not KINDS:
        no_server()
    with ExitStack() as opened:
        yield opened


def begun(stack: ExitStack, place: Path, cluster: Cluster, slots: int = SLOTS) -> Group:
    """Four agents that have begun."""
    group, looked = group_by(stack, place, cluster)
    looked.holds = lambda: cluster.owner(group.keys.slot)
    group.start(*FOUR, UBI_MAIL_SLOTS=slots)
    group.until_served(0.15)
    return group


def mail_slots(*agents: str) -> list[int]:
    """The hash slots in which the mail of these agents is."""
    keys = RedisKeys(CRAWL, SLOTS)
    return [hash_slot(keys.mail_tag(agent)) for agent in agents]


def for_mail_alone(group: Group, cluster: Cluster) -> ClusterNode:
    """A master that has mail of some agent, and not the crawl's own keys."""
    return next(node for node in map(cluster.owner, mail_slots(*FOUR)) if node is not cluster.owner(group.keys.slot))


def is_replaced(cluster: Cluster, slot: int, killed: Server) -> bool:
    """Whether another server holds that slot by now."""
    try:
        return cluster.owner(slot) is not killed
    except AssertionError:  # none yet
        return False


def nobody_was_cut_off(group: Group) -> None:
    none_was_declared_dead(group, *FOUR)
    assert {name: group.counters()[name]["fences"] for name in FOUR} == dict.fromkeys(FOUR, 0)


def test_a_master_of_mail_is_killed_and_its_replica_takes_over(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=1)
    group = begun(stack, tmp_path, cluster)
    killed = for_mail_alone(group, cluster)
    killed.kill()
    group.end().judge()
    assert any(cluster.owner(slot) in cluster.replicas for slot in mail_slots(*FOUR))
    nobody_was_cut_off(group)


def test_mail_slots_move_under_load(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=0)
    group = begun(stack, tmp_path, cluster)
    for slot in mail_slots("a0", "a1"):
        old = cluster.owner(slot)
        cluster.move(slot, next(one for one in cluster.masters if one is not old))
        assert cluster.owner(slot) is not old
    group.end().judge()
    nobody_was_cut_off(group)


def test_a_master_of_mail_loses_all_it_has(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=0)
    group = begun(stack, tmp_path, cluster)
    emptied = for_mail_alone(group, cluster)
    for share in (0.3, 0.5):
        group.until_served(share)
        emptied.flush()
    group.end().judge()
    nobody_was_cut_off(group)
    assert any(group.said(name, "The mail slot of this agent was emptied") for name in FOUR)


def test_a_master_of_mail_is_paused_and_goes_on(stack: ExitStack, tmp_path: Path) -> None:
    """The others go on meanwhile, and say so."""
    cluster = Cluster(KINDS[0], masters=3, replicas=0, node_timeout=60_000)
    group = begun(stack, tmp_path, cluster)
    paused = for_mail_alone(group, cluster)
    before = group.web.count()
    paused.pause()
    stack.callback(paused.resume)
    group.until(lambda: any(group.said(name, "is held back") for name in FOUR), "an agent says which mail waits")
    group.until(lambda: group.web.count() > before + 60, "requests while a master of mail is away")
    paused.resume()
    group.end().judge()
    nobody_was_cut_off(group)


def test_an_agent_with_another_number_of_mail_slots_is_refused(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=0)
    group = begun(stack, tmp_path, cluster)
    group.start("b", UBI_MAIL_SLOTS=1)
    group.until(lambda: group.said("b", "UBI_MAIL_SLOTS = 6, this one 1"), "the other agent is refused")
    group.agents.pop("b").popen.wait(60)
    group.end().judge()


def test_mail_is_spread_over_all_masters(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=0)
    group = begun(stack, tmp_path, cluster, slots=3)
    assert len({cluster.owner(hash_slot(tag)).port for tag in mail_tags(CRAWL, 3)}) == 3
    group.end().judge()


def test_on_one_server_mail_in_slots_is_lost_and_sent_again_shown_and_forgotten(
    stack: ExitStack, tmp_path: Path
) -> None:
    server = stack.enter_context(Server(KINDS[0]))
    web = stack.enter_context(DemoWeb(Graph(seed=5, hosts=40, pages=400), LATENCY))
    group = Group(tmp_path, web, server, "all", UBI_MAIL_SLOTS=SLOTS)
    stack.callback(group.close)
    group.start(*FOUR)
    for share in (0.3, 0.6):
        group.until_served(share)
        server.flush()
    group.until_served(0.8)
    keys = RedisKeys(CRAWL, SLOTS)
    with server.client() as client:
        assert {keys.owner(key) for key in client.scan_iter(keys.mail_pattern)} >= {(name, "inbox") for name in FOUR}
    group.end().judge()
    with server.client() as client:
        client.xadd(keys.inbox("a0"), {"from": "a1", "body": "[]"})
        to = RedisConnection(client, address(server.url), "UBI_REDIS_URL")
        status = read_status(client, CRAWL)
        found = status.agent("a0")
        assert found is not None
        assert (found.mail_slots, found.inbox) == (SLOTS, 1)
        assert len(read_inbox(client, RedisKeys(CRAWL, found.mail_slots), "a0", 10).letters) == 1
        reset.delete_keys(to, CRAWL)
        assert [key for key in client.scan_iter("ubi:*") if key != b"ubi:watched"] == []


def test_masters_of_mail_fail_over_again_and_again(stack: ExitStack, tmp_path: Path) -> None:
    """Each in its turn, that of the crawl itself included, and comes back as a replica."""
    cluster = Cluster(KINDS[0], masters=3, replicas=1)
    group, looked = group_by(stack, tmp_path, cluster, pages=2_500, latency=0.5)
    looked.holds = lambda: cluster.owner(group.keys.slot)
    group.start(*FOUR, UBI_MAIL_SLOTS=SLOTS)
    for turn, slot in enumerate(mail_slots(*FOUR)):
        group.until(lambda turn=turn: group.web.count() > 300 * (turn + 1), "requests since the last failover")
        killed = cluster.owner(slot)
        killed.kill()
        group.until(
            lambda slot=slot, killed=killed: is_replaced(cluster, slot, killed), "another server takes the slot over"
        )
        killed.start()
        cluster.wait_until_whole()
    group.web.hurry()
    verdict = group.end()
    verdict.judge(unwritten=loaded_again(verdict))
    none_was_declared_dead(group, *FOUR)


def test_six_masters_fail_over_in_order_and_by_crashes_while_mail_slots_move(stack: ExitStack, tmp_path: Path) -> None:
    """Each kind by turns, at another master each time, while all fetch."""
    six = (*FOUR, "a4", "a5")
    cluster = Cluster(KINDS[0], masters=6, replicas=1)
    group, looked = group_by(stack, tmp_path, cluster, pages=3_000, latency=0.5)
    looked.holds = lambda: cluster.owner(group.keys.slot)
    group.start(*six, UBI_MAIL_SLOTS=SLOTS)
    for turn, slot in enumerate(mail_slots(*six)):
        group.until(lambda turn=turn: group.web.count() > 300 * (turn + 1), "requests since the last change")
        old = cluster.owner(slot)
        if turn % 3 == 0:
            cluster.fail_over(slot)
        elif turn % 3 == 1:
            cluster.move(slot, next(one for one in cluster.present if one is not old))
        else:
            old.kill()
            group.until(lambda slot=slot, old=old: is_replaced(cluster, slot, old), "another server has the slot")
            old.start()
            cluster.wait_until_whole()
        assert cluster.owner(slot) is not old
    group.web.hurry()
    verdict = group.end()
    verdict.judge(unwritten=loaded_again(verdict))
    none_was_declared_dead(group, *six)


def test_a_new_run_begins_with_empty_inboxes(stack: ExitStack, tmp_path: Path) -> None:
    cluster = Cluster(KINDS[0], masters=3, replicas=0)
    group, looked = group_by(stack, tmp_path, cluster, pages=200)
    looked.holds = lambda: cluster.owner(group.keys.slot)
    group.start(*FOUR, UBI_MAIL_SLOTS=SLOTS)
    group.end().judge()
    keys = RedisKeys(CRAWL, SLOTS)
    with cluster.owner(mail_slots("a0")[0]).client() as client:
        client.xadd(keys.inbox("a0"), {"from": "a1", "body": "[]", "run": "of long ago"})
    before = group.web.count()
    group.start("a1", "a2", UBI_MAIL_SLOTS=SLOTS)
    group.until(lambda: group.web.count() >= before + 200, "all is fetched again")
    group.until(lambda: all(agent.popen.poll() == 0 for agent in group.agents.values()), "they end by themselves")
    with cluster.owner(mail_slots("a0")[0]).client() as client:
        assert client.exists(keys.inbox("a0")) == 0
