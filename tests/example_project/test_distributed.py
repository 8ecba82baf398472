"""Step 02 against step 01: the same spider gives the same items, whether one process crawls or several."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from demo.graph import Graph
from tests.support import preloaded
from tests.support.preloaded import Running
from tests.support.project import until_there
from tests.support.server import Server
from tests.support.web import DemoWeb

EXAMPLES = Path(__file__).resolve().parents[2] / "example_project"
LIMIT = 300.0  # seconds
HOME = "http://alder.example/"
AGENTS = ("a", "b", "c")

pytestmark = [pytest.mark.slow, pytest.mark.processes]


class Crawl:
    """Processes of one example step that crawl `web`, each with a directory and a log of its own below `directory`."""

    def __init__(self, step: str, web: DemoWeb, directory: Path) -> None:
        self._step = EXAMPLES / step
        self._web = web
        self._directory = directory
        self.processes: dict[str, Running] = {}

    def start(self, name: str, *options: str, items: str = "items-{}.jsonl") -> None:
        command = ["crawl", "pages", "-O", str(self._directory / items.format(name))]
        with (self._directory / f"{name}.log").open("wb") as log:
            self.processes[name] = preloaded.start(
                [*command, *options],
                cwd=self._step,
                env=os.environ | {"http_proxy": self._web.proxy, "no_proxy": ""},
                stdout=log,
                start_new_session=True,
            )

    def start_agent(self, name: str, redis_url: str) -> None:
        """An agent that beats often, and is given time: no page may be fetched again as a busy machine made it wait."""
        settings = {
            "UBI_REDIS_URL": redis_url,
            "UBI_AGENT_ID": name,
            "UBI_DIR": str(self._directory / name),
            "UBI_HEARTBEAT_INTERVAL": "0.5",
            "UBI_LEASE_TIMEOUT": str(LIMIT),
            "UBI_FAILURE_TIMEOUT": str(2 * LIMIT),
            "UBI_ROBOTS_TIMEOUT": str(LIMIT),
            "USER_AGENT": name,
        }
        options = [part for key, value in settings.items() for part in ("-s", f"{key}={value}")]
        self.start(name, *options, items="items-%(ubi_agent)s.jsonl")

    def wait(self) -> None:
        """Until all have ended by themselves, with exit status 0."""
        limit = time.monotonic() + LIMIT
        for name, process in self.processes.items():
            try:
                status: int | None = process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = None
            assert status == 0, f"{name} ended with {status}\n{self.logs()}"

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"{name}:\n" + (self._directory / f"{name}.log").read_text()[-3000:] for name in self.processes
        )

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def items(self) -> list[dict[str, object]]:
        """What all of them scraped, in no particular order."""
        lines = [line for path in self._directory.glob("items-*.jsonl") for line in path.read_text().splitlines()]
        return [json.loads(line) for line in lines]


def as_set(items: list[dict[str, object]]) -> set[str]:
    return {json.dumps(item, sort_keys=True) for item in items}


def test_several_agents_give_the_items_of_one_process(tmp_path: Path, one_server: Server) -> None:
    graph = Graph(seed=11, hosts=16, pages=96)
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    with DemoWeb(graph, latency=0.005) as web:
        before, after = Crawl("01_before", web, tmp_path / "one"), Crawl("02_distributed", web, tmp_path / "many")
        try:
            before.start("plain")
            before.wait()
            web.reset()
            # No page is answered until all have joined: an agent that comes when the crawl is over fetches nothing.
            with web.held():
                for name in AGENTS:
                    after.start_agent(name, one_server.url)
                until_there(one_server, len(AGENTS))
            after.wait()
        finally:
            before.end()
            after.end()
        stats = web.stats()
        assert web.fetched() == graph.reachable([HOME])
    assert (stats["duplicates"], stats["violations"], stats["robots_violations"]) == (0, 0, 0)
    assert as_set(after.items()) == as_set(before.items())
    assert len(after.items()) == 96
    assert set(stats["agents"]) == set(AGENTS)
