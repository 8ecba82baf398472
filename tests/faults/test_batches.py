"""Pipelines that write in batches, and agents that are killed: with `ubi_flush_items` no page that is done lacks its
items in the database, whenever the process ends.

The moments are drawn; each test prints its seed, and how to see the same again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.conftest import MakeGroup
from tests.faults.test_feeds import documents, drawn, kill_now_and_then

pytestmark = pytest.mark.processes

FEW = {"UBI_HEARTBEAT_INTERVAL": 0.125, "CONCURRENT_REQUESTS": 4}
ALONE, TWO = ("a0",), ("a0", "a1")


def settings(pipeline: str, database: Path, names: tuple[str, ...]) -> dict[str, object]:
    alone = {"UBI_REDIS_URL": None} if names == ALONE else {}
    pipelines = f'{{"faulty.batches.{pipeline}": 1}}'
    return {"ITEM_PIPELINES": pipelines, "BATCHES_DATABASE": str(database), **FEW, **alone}


def in_database(path: Path) -> Counter[str]:
    with closing(sqlite3.connect(path)) as database:
        return Counter(url for (url,) in database.execute("SELECT url FROM items"))


@pytest.mark.parametrize(
    ("pipeline", "names"),
    [
        pytest.param("FlushedBatches", ALONE, id="alone"),
        pytest.param("AwaitedBatches", ALONE, id="alone, in a thread", marks=pytest.mark.faults),
        pytest.param("FlushedBatches", TWO, id="two", marks=pytest.mark.faults),
        pytest.param("AwaitedBatches", TWO, id="two, in a thread", marks=pytest.mark.faults),
    ],
)
def test_no_item_of_a_batch_is_lost(
    make_group: MakeGroup, tmp_path: Path, pipeline: str, names: tuple[str, ...]
) -> None:
    group = make_group(hosts=20, pages=400, latency=0.01, **settings(pipeline, tmp_path / "items.db", names))
    kill_now_and_then(group, drawn(f"{pipeline} {names}"), names)
    found = in_database(tmp_path / "items.db")
    assert documents(group) <= found.keys()
    if pipeline == "AwaitedBatches":
        assert set(found.values()) == {1}


@pytest.mark.faults
def test_what_an_agent_had_told_others_to_be_done_is_in_the_database(make_group: MakeGroup, tmp_path: Path) -> None:
    """Its disk is gone: nobody will fetch those pages again."""
    group = make_group(latency=0.05, **settings("FlushedBatches", tmp_path / "items.db", ("a0", "a1", "a2")))
    group.start("a0", "a1", "a2")
    group.until_served(drawn("wiped").uniform(0.2, 0.7))
    group.kill("a1", wipe=True)
    verdict = group.end()
    assert set(verdict.exits.values()) == {0}, verdict.logs
    assert documents(group) <= in_database(tmp_path / "items.db").keys()


@pytest.mark.faults
def test_an_agent_that_leaves_has_written_its_last_batch(make_group: MakeGroup, tmp_path: Path) -> None:
    group = make_group(hosts=20, pages=200, latency=0.02, **settings("FlushedBatches", tmp_path / "items.db", ALONE))
    group.start("a0")
    group.until_served(0.4)
    group.stop_all()
    done = documents(group)
    assert done <= in_database(tmp_path / "items.db").keys()
    group.start("a0")
    verdict = group.end().judge()
    assert verdict.truth and documents(group) <= in_database(tmp_path / "items.db").keys()
