"""scrapyd: three schedules of a spider are three agents of one crawl, and `cancel.json` lets one leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.compatibility.cases import World
from tests.compatibility.test_plugins import LIMIT, importable
from tests.compatibility.town import PRODUCTS, SHOPS, furnish
from tests.matrix.trial import AGENTS, Trial
from tests.support.server import Server, free_port
from tests.support.site import Site

pytestmark = pytest.mark.compatibility

HERE = Path(__file__).parent
FEEDS = '\nFEEDS = {"items-%(ubi_agent)s.jsonl": {"format": "jsonlines"}}\nROBOTSTXT_OBEY = False\n'


class Daemon:
    """A scrapyd in a project's directory."""

    def __init__(self, place: Path, proxy: str) -> None:
        port = free_port()
        text = (HERE.parents[1] / "docs/deploy/scrapyd/scrapyd.conf").read_text()
        (place / "scrapyd.conf").write_text(f"{text}\npoll_interval = 0.5\n".replace("6800", str(port)))
        self._url = f"http://127.0.0.1:{port}"
        with (place / "scrapyd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scrapyd"], cwd=place, stdout=log, stderr=log, env=_environment(proxy)
            )

    def ask(self, name: str, **fields: str) -> Any:
        """What it answers: to a POST where there are fields."""
        data = urlencode(fields).encode() if name in ("schedule", "cancel") else None
        query = "" if data else f"?{urlencode(fields)}"
        with urlopen(f"{self._url}/{name}.json{query}", data, timeout=LIMIT) as answer:
            return json.loads(answer.read())

    def answers(self) -> bool:
        try:
            return bool(self.ask("daemonstatus")["status"] == "ok")
        except OSError:
            return False

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT)


def _environment(proxy: str) -> dict[str, str]:
    return {**os.environ, "http_proxy": proxy, "no_proxy": "127.0.0.1"}


def _until(condition: Callable[[], object], what: str, log: Path) -> None:
    limit = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < limit, f"never: {what}\n{log.read_text()[-3000:]}"
        time.sleep(0.2)


@pytest.fixture
def world(one_server: Server) -> Iterator[World]:
    importable("scrapyd", ("scrapyd", "pkg_resources"))
    with Site() as site:
        furnish(site)
        yield World(site, one_server)


def test_schedules_are_agents_of_one_crawl(world: World, tmp_path: Path) -> None:
    trial = Trial("scrapyd", tmp_path, world.site, world.server.url, project=HERE / "projects/redis_pipeline")
    place = trial.place("scrapyd", f'{AGENTS}UBI_REDIS_URL = "{world.server.url}"\nITEM_PIPELINES = {{}}\n{FEEDS}')
    daemon = Daemon(place, world.site.proxy)
    log = place / "scrapyd.log"
    try:
        _until(daemon.answers, "scrapyd answers", log)
        with world.site.hold("http://shop0.example/") as held:
            jobs = [daemon.ask("schedule", project="default", spider="walk")["jobid"] for _ in range(3)]
            _until(lambda: len(daemon.ask("listjobs", project="default")["running"]) == 3, "three jobs run", log)
            _until(held.arrived.is_set, "the first page", log)
            with world.server.client() as client:
                _until(lambda: _agents(client) == 3, "three agents are there", log)
        _until(lambda: len(world.site.visits) > 10, "some pages", log)
        daemon.ask("cancel", project="default", job=jobs[0])
        _until(lambda: len(daemon.ask("listjobs", project="default")["finished"]) == 3, "all have ended", log)
    finally:
        daemon.close()
        trial.close()
    items = [json.loads(line) for feed in place.glob("items-*.jsonl") for line in feed.read_text().splitlines()]
    urls = Counter(item["url"] for item in items)
    assert len(urls) == 3 * SHOPS * PRODUCTS and set(urls.values()) == {1}, log.read_text()[-3000:]
    assert "Process died" not in log.read_text()


def _agents(client: Any) -> int:
    """How many agents have said that they are there."""
    return max((client.hlen(key) for key in client.scan_iter("ubi:*beats")), default=0)
