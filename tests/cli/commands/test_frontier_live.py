"""`scrapy ubi hosts | url | failed | requeue | reset` on a crawl of real agents, while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.transport.redis_keys import ASK, RedisKeys
from tests.cli.commands.test_ubi import Shell
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, until_joined
from tests.support.server import Server
from tests.support.site import Held, Page, Site, Visit, links

pytestmark = pytest.mark.processes

CRAWL = "bot:walk"
HOME, SAD = "http://h1.example/", "http://h2.example/sad"
GONE, SLOW, WAITS = f"{HOME}gone", f"{HOME}slow", f"{HOME}waits"
# The wait: both agents are there before a host is visited, so that each host lies at its owner from the beginning.
SETTINGS = {"UBI_START_WAIT": 6, "RETRY_TIMES": 0, "ROBOTSTXT_OBEY": False}


def until(look: Callable[[], Any]) -> Any:
    """What `look` gives, as soon as it gives something."""
    end = time.monotonic() + LIMIT
    while not (found := look()):
        assert time.monotonic() < end, "what the test waits for did not come"
        time.sleep(0.1)
    return found


class Crawl:
    """Two agents at a web with a page that fails, one that fails at first, and one that is held."""

    def __init__(self, shell: Shell, project: Project, site: Site, server: Server, held: Held) -> None:
        self.shell, self.site, self.held, self.project, self.server = shell, site, held, project, server
        self.agents: list[Running] = []

    def start(self, name: str) -> None:
        """One more agent."""
        own = {**SETTINGS, "UBI_REDIS_URL": self.server.url, "UBI_AGENT_ID": name}
        options = [word for setting, value in own.items() for word in ("-s", f"{setting}={value}")]
        self.agents.append(self.project.start("crawl", "walk", *options))

    def end(self) -> None:
        """All pages are answered; the crawl ends by itself."""
        self.held.release()
        for agent in self.agents:
            output, _ = agent.communicate(timeout=LIMIT)
            assert agent.returncode == 0 and "Traceback" not in output, output


@pytest.fixture
def crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str], one_server: Server) -> Iterator[Crawl]:
    def sad_at_first(visit: Visit) -> Page:
        return Page("", 503) if visit.number == 1 else Page("better")

    with ExitStack() as stack:
        site = stack.enter_context(Site())
        site.page(HOME, links(GONE, SAD, SLOW, WAITS))
        site.page(SAD, sad_at_first)
        site.page(SLOW, "slow")
        site.page(WAITS, "waits")
        held = stack.enter_context(site.hold(SLOW))
        project = Project(tmp_path, site.proxy)
        shell = Shell(capsys, {"UBI_REDIS_URL": one_server.url})
        crawl = Crawl(shell, project, site, one_server, held)
        try:
            with until_joined(site, HOME, one_server, 2):
                crawl.start("a1")
                crawl.start("a2")
            assert held.arrived.wait(LIMIT)
            until(lambda: shell.json("failed")["total"] == 2)
            yield crawl
        finally:
            for agent in crawl.agents:
                agent.kill()
                agent.communicate()


def test_everything_that_can_be_asked(crawl: Crawl) -> None:
    shell = crawl.shell
    owner = shell.json("owner", HOME)["owner"]
    other = ({"a1", "a2"} - {owner}).pop()

    # hosts: the one with the held page is busy, and has one more to come
    data = shell.json("hosts")
    assert (data["crawl"], data["lives"], data["total"], data["missing"]) == (CRAWL, True, 2, {})
    first, second = data["hosts"]
    assert (first["host"], first["agent"], first["state"], first["queued"]) == ("h1.example", owner, "busy", 1)
    assert (first["failed"], first["error"]) == (1, "http/404")
    assert (second["host"], second["state"], second["error"]) == ("h2.example", "idle", "http/503")
    assert [row["host"] for row in shell.json("hosts", "--sort", "host", "--limit", "1")["hosts"]] == ["h1.example"]
    assert shell.json("hosts", "--copies")["total"] == 4
    assert shell("hosts") == 0
    assert shell.out.startswith(f"crawl {CRAWL}, 2 agents: 2 hosts\n\nhost ")

    # url: in each of its states, always with the owner
    for url, where in ((HOME, "done"), (SLOW, "in flight"), (WAITS, "queued"), (GONE, "failed"), (SAD, "failed")):
        data = shell.json("url", url)
        assert data["where"] == where, data
        said = shell.json("owner", url)
        assert (data["owner"], data["successors"]) == (said["owner"], said["successors"])
    assert shell.json("url", HOME)["status"] == 200
    assert shell.json("url", GONE)["reason"] == "http/404"
    waits = shell.json("url", WAITS)
    assert (waits["agent"], waits["depth"], waits["priority"], waits["before"]) == (owner, 1, 0, 0)
    assert shell("url", WAITS) == 0
    assert f"queued at {owner}: depth 1, priority 0; the next of its host; the host is busy" in shell.out
    assert f"queued at {other}, a copy" in shell.out
    assert shell.json("url", "http://h1.example/never")["where"] == "unknown"
    assert shell("url", "http://h1.example/never") == 0
    assert "unknown: no agent has met it" in shell.out and "dont_filter=True" in shell.out
    assert shell.json("url", "http://h1.example/" + "x" * 5000)["filter"] == "url_too_long"

    # failed: chosen by reason and host
    data = shell.json("failed")
    assert data["reasons"] == {"http/404": 1, "http/503": 1}
    assert {row["url"] for row in data["failed"]} == {GONE, SAD}
    assert [row["url"] for row in shell.json("failed", "--reason", "http/404")["failed"]] == [GONE]
    assert [row["url"] for row in shell.json("failed", "--host", "h2.example")["failed"]] == [SAD]
    assert shell.json("failed", "--reason", "http")["total"] == 2
    assert shell.json("failed", "--reason", "robots")["total"] == 0
    assert shell("failed") == 0
    assert "by reason: http/404 1, http/503 1" in shell.out

    # one agent only
    asked = shell.json("hosts", "--agent", other, "--copies")
    assert {row["agent"] for row in asked["hosts"]} == {other}
    assert shell("hosts", "--agent", "a3") == 1
    assert "no agent 'a3'" in shell.err

    # requeue: what is fetched again is a failure no more, and what succeeds is none
    assert shell("requeue", "--url", SAD) == 0
    assert "1 failed request is queued again" in shell.out
    until(lambda: crawl.site.urls()[SAD] == 2)
    assert [row["url"] for row in shell.json("failed")["failed"]] == [GONE]
    assert shell.json("requeue", "--reason", "http")["requeued"] == 1
    until(lambda: shell.json("hosts", "--sort", "host")["hosts"][0]["queued"] == 2)
    assert shell("requeue", "--all") == 0
    assert "0 failed requests are queued again" in shell.out

    # reset: not while agents live
    assert shell("reset", "--yes") == 1
    assert shell.err.startswith(f"scrapy ubi: Agents of crawl {CRAWL} live: a1, a2. Stop them first")

    # nothing is left behind
    with crawl.server.client() as client:
        keys = RedisKeys(CRAWL)
        assert not [name for name in client.hgetall(keys.control) if name.startswith(ASK.encode())]
        assert not [key for key in client.scan_iter(match=keys.pattern) if key.endswith(b":answers")]
    crawl.end()
    assert crawl.site.urls()[GONE] == 2
