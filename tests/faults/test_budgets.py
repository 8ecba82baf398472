"""Budgets of hosts through a kill and a join, by the web's own log: no host gives more than its budget and what was
under way, none is stopped before, and each is told to be complete, once by its identity.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import pytest

from demo.record import TRY_AGAIN
from tests.faults.conftest import MakeGroup
from tests.support.group import Group
from tests.support.receivers import Follower

pytestmark = [pytest.mark.processes, pytest.mark.faults]

PAGES, BYTES = 6, 12_000
OF_A_CRASH = 1.5  # s; what a killed agent has loaded in them others may not have heard of
NAMES = ("a0", "a1", "a2")
MORE = {"RETRY_TIMES": 0, "ROBOTSTXT_OBEY": False}


def complete(follower: Follower) -> list[dict[str, Any]]:
    """What was told of hosts last, each identity once: a link from elsewhere opens a host again."""
    lines = [json.loads(line) for line in follower.out.read_text().splitlines()]
    hosts = [line for line in lines if "host" in line]
    assert len({line["id"] for line in hosts}) == len(hosts)
    assert all("item" in line for line in lines if line not in hosts)
    return [*{line["host"]["host"]: line["host"] for line in hosts}.values()]


def loads(group: Group) -> dict[str, list[dict[str, Any]]]:
    """The web's log by host."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in group.web.log():
        found[row["host"]].append(row)
    return found


def size_of(group: Group, row: dict[str, Any]) -> int:
    """Bytes of what was answered: the web always answers the same."""
    opener = build_opener(ProxyHandler({"http": group.web.proxy}), Stays())
    try:
        return len(opener.open(f"http://{row['host']}{row['path']}", timeout=10).read())
    except HTTPError as error:
        return len(error.read())


class Stays(HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


def crawled(make_group: MakeGroup, agents: int, limits: str) -> tuple[Group, list[dict[str, Any]], float]:
    """A crawl with these limits, of three agents one of which is killed, or of one; when that was."""
    group = make_group(
        latency=0.02, hosts=20, pages=400, UBI_HOST_LIMITS=limits, UBI_STORES="stream(hosts=yes),items", **MORE
    )
    follower = Follower(group, "--from", "start", "--until-end")
    follower.until_there(group)
    names = NAMES[:agents]
    group.start_together(*names)
    killed = 0.0
    if agents > 1:
        group.until(lambda: group.web.count() > 60, "60 requests")
        group.kill("a1")
        killed = max((row["start"] for row in group.web.log() if row["agent"] == "a1"), default=0.0)
        group.until_replaced("a1")
        group.start("a3")
    group.end()
    assert follower.popen.wait(120) == 0, follower.err.read_text()
    return group, complete(follower), killed


@pytest.mark.parametrize("agents", [1, 3])
def test_no_host_gives_more_pages_than_its_budget(make_group: MakeGroup, agents: int) -> None:
    group, told, killed = crawled(make_group, agents, f"pages={PAGES}")
    by_host = loads(group)
    assert {one["host"] for one in told} == by_host.keys(), "each host is told to be complete, and no other"
    for host, rows in by_host.items():
        lost = [row for row in rows if row["agent"] == "a1" and row["start"] > killed - OF_A_CRASH]
        assert len({row["path"] for row in rows}) <= PAGES + len(lost if agents > 1 else ()), (host, rows)
    for one in told:
        distinct = len({row["path"] for row in by_host[one["host"]]})
        assert one["complete"] == "all" or distinct >= PAGES, one
        assert one["complete"] in ("all", "limit/host_pages")


@pytest.mark.parametrize("agents", [1, 3])
def test_no_host_gives_more_bytes_than_its_budget(make_group: MakeGroup, agents: int) -> None:
    group, told, killed = crawled(make_group, agents, f"bytes={BYTES}")
    by_host = loads(group)
    assert {one["host"] for one in told} == by_host.keys()
    ended = 0
    for one in told:
        rows = by_host[one["host"]]
        rows = [row for row in rows if row["status"] != TRY_AGAIN]  # its page goes back to the queue, and costs nothing
        sizes = [size_of(group, row) for row in rows]
        late = [row["agent"] == "a1" and row["start"] > killed - OF_A_CRASH for row in rows]
        extra = sum(size for size, is_late in zip(sizes, late, strict=True) if is_late) if agents > 1 else 0
        assert sum(sizes) < BYTES + max(sizes) + extra, (one, sizes)
        if one["complete"] != "all":
            ended += 1
            assert one["complete"] == "limit/host_bytes" and sum(sizes) >= BYTES, (one, sizes)
    assert ended
