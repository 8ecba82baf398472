"""The page of real agents: `scrapy ubi web` beside three of them, one of which is killed; and UBI_WEB of a lone one."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands.test_ubi import Shell
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, read_until, until_joined
from tests.support.server import Server
from tests.support.site import Site, links

pytestmark = pytest.mark.processes

HOME, SLOW, SAD = "http://h1.example/", "http://h1.example/slow", "http://h2.example/sad"
TOKEN = "the-token-of-this-test"
AGENTS = ("a1", "a2", "a3")
SAME = {
    "hosts?sort=host": "hosts --sort host --limit 50",
    "host?host=h1.example": "host h1.example",
    f"url?url={SLOW}": f"url {SLOW}",
    f"owner?url={HOME}": f"owner {HOME}",
    "failed": "failed --limit 50",
    "inbox?agent=a1": "inbox a1",
    "settings": "settings --changed",
}
MOVING = {"next", "age", "live"}


class Page:
    """Speaks to a server as its page does."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}api/{path}", timeout=LIMIT) as answer:
            return json.load(answer)

    def post(self, path: str, token: str = TOKEN, **body: Any) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"{self.url}api/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked, timeout=LIMIT) as answer:
            return json.load(answer)

    def until(self, path: str, holds: Callable[[Any], Any]) -> Any:
        """What is read, once it holds. While a host changes hands no agent may know of it: that is looked at again."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                seen = self.get(path)
                if holds(seen):
                    return seen
            except urllib.error.HTTPError as error:
                seen = f"{path}: {error}, {error.read()!r}"
            except AssertionError as error:
                seen = f"{path}: {error}"
            assert time.monotonic() < end, seen
            time.sleep(0.2)


def url_of(process: Running, before: str) -> str:
    """Where it says that it is."""
    line = next(line for line in read_until(process, before).splitlines() if before in line)
    return next(word for word in line.split() if word.startswith("http://"))


def test_three_agents_seen_from_a_browser(
    tmp_path: Path, site: Site, one_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    site.page(HOME, links(SLOW, SAD))
    site.page(SLOW, "slow")
    project, shell = Project(tmp_path, site.proxy), Shell(capsys, {"UBI_REDIS_URL": one_server.url})
    (tmp_path / "token").write_text(TOKEN)
    redis = ("-s", f"UBI_REDIS_URL={one_server.url}")
    quick = ("-s", "UBI_FAILURE_TIMEOUT=4", "-s", "UBI_LEASE_TIMEOUT=2")
    agents: dict[str, Running] = {}
    with ExitStack() as stack:
        held = stack.enter_context(site.hold(SLOW))
        web = stack.enter_context(project.start("ubi", "web", "--port", "0", "--token-file", "token", *redis))
        try:
            page = Page(url_of(web, "is at http://"))
            with until_joined(site, HOME, one_server, 3):
                for name in AGENTS:
                    agents[name] = project.start("crawl", "walk", "-s", f"UBI_AGENT_ID={name}", *quick, *redis)
            assert held.arrived.wait(LIMIT)
            seen = page.until("crawl", lambda now: len([one for one in now["agents"] if one["working"]]) == 3)
            assert seen["crawl"] == "bot:walk"
            page.until("hosts", lambda now: now["total"] == 2)

            # what it reads is what the commands say (but for the project's own settings, which are not the shell's)
            for path, words in SAME.items():
                page.until(path, lambda seen, words=words: _still(seen) == _still(shell.json(*words.split())))

            # what it changes the agents hear
            owner = page.get(f"owner?url={HOME}")["owner"]
            assert page.post("set", values={"UBI_HOST_DELAY": 0.1}, host="h1.example")["behind"] == []
            with pytest.raises(urllib.error.HTTPError) as refused:
                page.post("pause", token="another-token-that-is-wrong")
            assert refused.value.code == 401
            refused.value.close()
            assert page.post("pause")["behind"] == []
            page.until("crawl", lambda now: now["paused"])  # it is read once in two seconds
            page.post("resume")

            # one that is killed is seen to be dead
            lost = next(name for name in AGENTS if name != owner)
            agents[lost].kill()
            seen = page.until(
                "crawl", lambda now: {one["agent"]: one["state"] for one in now["agents"]}[lost] == "dead"
            )
            assert (lost, "dead") in {(event["agent"], event["what"]) for event in seen["events"]}
            held.release()
            for name in AGENTS:
                if name != lost:
                    output, _ = agents[name].communicate(timeout=LIMIT)
                    assert agents[name].returncode == 0 and "Traceback" not in output, output
            page.until("crawl", lambda now: now["finished"])
        finally:
            for one in [*agents.values(), web]:
                one.kill()
                one.communicate()


def _still(document: Any) -> Any:
    """Without what moves by itself."""
    if isinstance(document, dict):
        return {name: _still(value) for name, value in document.items() if name not in MOVING}
    return [_still(one) for one in document] if isinstance(document, list) else document


def test_a_lone_agent_without_redis_shows_itself(tmp_path: Path, site: Site) -> None:
    site.page(HOME, links(SLOW, f"{HOME}waits"))
    site.page(SLOW, "slow")
    site.page(f"{HOME}waits", "waits")
    project = Project(tmp_path, site.proxy)
    (tmp_path / "token").write_text(TOKEN)
    with site.hold(SLOW) as held:
        options = ("-s", "UBI_WEB=127.0.0.1:0", "-s", "UBI_WEB_TOKEN_FILE=token", "-s", "UBI_STORES=items")
        agent = project.start("crawl", "walk", *options)
        try:
            page = Page(url_of(agent, "can be seen at http://"))
            assert held.arrived.wait(LIMIT)
            assert page.get("about")["source"] == "agent"
            seen = page.until("crawl", lambda now: now["measures"]["totals"]["queued"] == 1)
            assert [one["state"] for one in seen["agents"]] == ["crawling"]
            [row] = page.get("host?host=h1.example")["agents"]
            assert ([one["url"] for one in row["queue"]], row["state"]) == ([f"{HOME}waits"], "busy")
            assert page.get(f"url?url={SLOW}")["where"] == "in flight"
            assert page.post("pause")["behind"] == []
            held.release()
            page.until("crawl", lambda now: now["paused"])
            items = page.until("items", lambda now: now["items"])
            assert items["missing"] == {} and "h1.example" in items["items"][0]["item"]
            assert "seeds" not in page.get("about")["verbs"]  # without Redis none come
            page.post("resume", wait=False)
            output, _ = agent.communicate(timeout=LIMIT)
            assert agent.returncode == 0 and "Traceback" not in output, output
        finally:
            agent.kill()
            agent.communicate()
