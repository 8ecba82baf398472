"""An agent that is killed in the middle of its crawl, and started again: each page is collected, once (P9)."""

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

SETTINGS = {
    "UBI_STORES": "items(size=5000)",
    "UBI_START_WAIT": 0,  # this Redis forgets nothing
    "CONCURRENT_REQUESTS": 4,
}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("store", "needs", "kept"), [("items", "scrapy", "url"), ("markdown", "html_to_markdown", "markdown")]
)
def test_an_agent_that_is_killed_and_goes_on(
    tmp_path: Path, one_server: Server, store: str, needs: str, kept: str
) -> None:
    pytest.importorskip(needs)
    with DemoWeb(Graph(seed=5, hosts=8, pages=80), 0.01) as web:
        settings = SETTINGS | {"UBI_REDIS_URL": None, "UBI_STORES": f"{store}(size=5000)"}
        group = Group(tmp_path, web, one_server, **settings)
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
    pages = [json.loads(line) for line in collected(tmp_path / "a0", store=store)]
    assert Counter(page["url"] for page in pages) == dict.fromkeys(wanted, 1)
    assert all(page[kept] for page in pages)


@pytest.mark.processes
@pytest.mark.parametrize("apart", [False, True], ids=["start together", "start one after the other has ended"])
def test_an_agent_whose_disk_is_lost_with_its_outputs(tmp_path: Path, one_server: Server, apart: bool) -> None:
    with DemoWeb(Graph(seed=6, hosts=8, pages=70), 0.03) as web:
        group = Group(tmp_path, web, one_server, UBI_REDIS_URL=one_server.url, **SETTINGS)
        try:
            group.start_together("a0", "a1", "a2")
            group.until(lambda: web.count() > 35, "some pages")
            # Who has most: how hosts are shared out is not for this test to say.
            gone = Counter(row["agent"] for row in web.log()).most_common(1)[0][0]
            left = sorted({"a0", "a1", "a2"} - {gone})
            group.kill(gone, wipe=True)
            group.end()
            lost = {f"http://{row['host']}{row['path']}" for row in web.log() if row["agent"] == gone}
            stopped = [part for name in left for part in ("--dir", str(tmp_path / name))]
            asked = group.requeue("--outputs-of", gone, *stopped)
            for names in (left[:1], left[1:]) if apart else (left,):
                group.start(*names)
                verdict = group.end()
        finally:
            group.close()
        rows = web.log()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    assert asked["requeued"] > 0
    assert len([url for url, by in verdict.fetchers().items() if len(by) > 1]) >= asked["requeued"] // 2
    assert {url for url, by in verdict.fetchers().items() if len(by) > 1} <= lost
    wanted = {f"http://{row['host']}{row['path']}" for row in rows if row["kind"] == "page" and row["status"] == 200}
    found = Counter(json.loads(line)["url"] for line in collected(*(tmp_path / name for name in left)))
    assert found == dict.fromkeys(wanted, 1)
