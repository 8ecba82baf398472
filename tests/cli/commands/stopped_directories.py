"""Directories of stopped agents, written by hand: what the tests of the commands on them have in common."""

from __future__ import annotations

import json
from pathlib import Path

from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.protocol.host import Entry, Failure
from tests.cli.monitor.by_hand import CRAWL


def directory(path: Path, agent: str = "a1", name: str = CRAWL) -> Path:
    """The directory of an agent with three hosts: one waits, one is done but for a failure, one has both."""
    path.mkdir(parents=True)
    (path / "agent.json").write_text(json.dumps({"agent": agent, "crawl": name}))
    frontier = open_frontier(path)
    for host, waiting, done in (("h1.example", 3, 1), ("h2.example", 0, 2), ("h3.example", 1, 0)):
        entries = [Entry(key * 7 + len(host), f"http://{host}/{key}", 1) for key in range(waiting + done)]
        state, _ = frontier.add(host, entries)
        frontier.add_done(state, [entry.key for entry in entries[:done]])
        if host == "h2.example":
            frontier.fail(Failure(host, entries[0], "http/500", 1_700_000_000.0))
    frontier.flush()
    frontier.close()
    return path


def with_facts(path: Path, facts: dict[str, object]) -> None:
    """Keep this of the crawl in a directory."""
    frontier = open_frontier(path)
    frontier.flush([ledger.crawl_row(facts)])
    frontier.close()


def facts_of(path: Path) -> dict[str, object]:
    """What is kept of the crawl in a directory."""
    frontier = open_frontier(path)
    try:
        return ledger.load_crawl(frontier.store)
    finally:
        frontier.close()
