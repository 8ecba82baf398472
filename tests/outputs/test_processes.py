"""An agent that is killed in the middle of its crawl, and started again: every page's item is collected, once (P9)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from demo.graph import Graph
from tests.outputs.kept import collected
from tests.support.group import Group
from tests.support.server import Server
from tests.support.web import DemoWeb

SETTINGS = {"UBI_REDIS_URL": None, "UBI_STORES": "items(size=5000)", "CONCURRENT_REQUESTS": 4}


@pytest.mark.processes
def test_an_agent_that_is_killed_and_goes_on(tmp_path: Path, one_server: Server) -> None:
    with DemoWeb(Graph(seed=5, hosts=8, pages=80), 0.01) as web:
        group = Group(tmp_path, web, one_server, **SETTINGS)
        try:
            group.start("a0")
            group.until_served(0.4)
            group.kill("a0")
            group.start("a0")
            verdict = group.end()
        finally:
            group.close()
        rows = web.log()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    wanted = {f"http://{row['host']}{row['path']}" for row in rows if row["kind"] == "page" and row["status"] == 200}
    assert Counter(json.loads(line)["url"] for line in collected(tmp_path / "a0")) == dict.fromkeys(wanted, 1)
