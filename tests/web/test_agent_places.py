"""Outputs and items of agents whose directories lie anywhere on this machine, and of those that cannot be seen."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from scrapy_ubi.adapter.process.agent_directory import AgentLock
from scrapy_ubi.outputs import part_files
from scrapy_ubi.web import last_items, live_stream
from tests.cli.monitor.by_hand import CRAWL
from tests.web.served import Crawl, run

Client = TestClient[Any, Any]


def directory(at: Path, agent: str, *items: bytes, crawl: str = CRAWL, rest: bytes = b"") -> Path:
    """An agent's directory with items in it."""
    store = at / "out" / "items"
    store.mkdir(parents=True)
    (at / "agent.json").write_text(json.dumps({"agent": agent, "crawl": crawl}))
    part_files.write_record(at / "out", {"crawl": crawl, "agent": agent, "run": "r1", "began": 1.0})
    if items or rest:
        (store / f"p-{agent}-1.jsonl.open").write_bytes(b"".join(item + b"\n" for item in items) + rest)
    return at


async def read(client: Client, path: str, status: int = 200, **query: Any) -> Any:
    answer = await client.get(f"/api/{path}", params=query)
    assert answer.status == status, await answer.text()
    return await answer.json()


def test_each_agent_of_this_machine_is_found_and_the_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = platform.node()
    crawl = Crawl(())
    places = {name: directory(tmp_path / "disk" / name, name, b'{"n": 1}') for name in ("a1", "a2")}
    other = directory(tmp_path / "other", "z", crawl="another:crawl")
    for name, path in places.items():
        crawl.agent(name, host_name=here, directory=str(path))
    crawl.agent("a3", host_name="elsewhere.example", directory="/data/a3")
    crawl.agent("a4", host_name=here, directory=str(tmp_path / "nothing"))
    crawl.agent("a5", host_name=here)
    crawl.agent("a6", host_name=here, directory=str(other))

    async def test(client: Client) -> None:
        told = await read(client, "outputs")
        assert {(one["agent"], one["store"]) for one in told["outputs"]} == {("a1", "items"), ("a2", "items")}
        assert told["missing"].keys() == {"a3", "a4", "a5", "a6"}
        assert "elsewhere.example" in told["missing"]["a3"]
        assert "no agent.json" in told["missing"]["a4"]
        assert "UBI_DIR" in told["missing"]["a5"]
        assert "another:crawl" in told["missing"]["a6"], "what Redis says of a directory is not believed"
        items = await read(client, "items")
        assert sorted(one["agent"] for one in items["items"]) == ["a1", "a2"] and items["hint"] is None
        assert "elsewhere.example" in (await read(client, "items", 404, agent="a3"))["error"]["message"]

    run(test, crawl)


def items_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path | None, **query: Any) -> Any:
    monkeypatch.chdir(tmp_path)
    crawl, told = Crawl(()), []
    crawl.agent("a1", host_name=platform.node(), directory=str(path or tmp_path / "nothing"))

    async def test(client: Client) -> None:
        told.append(await read(client, "items", **query))

    run(test, crawl)
    return told[0]


def test_the_last_items_come_newest_first_and_a_line_that_is_not_whole_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{{"n": {number}}}'.encode() for number in range(50)]
    told = items_of(tmp_path, monkeypatch, directory(tmp_path / "a", "a1", *lines, rest=b'{"n": 5'), limit=3)
    assert [one["item"] for one in told["items"]] == ['{"n": 49}', '{"n": 48}', '{"n": 47}']


def test_items_are_bounded_whatever_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long, odd = b"x" * (2 * last_items.TAIL), b"\xff\x00</script><script>\xe2\x80\xae"
    told = items_of(tmp_path, monkeypatch, directory(tmp_path / "a", "a1", long, b"y" * 9_000, odd))
    first, second, *rest = told["items"]
    assert first["item"] == odd.decode("utf-8", "replace") and not first["cut"]
    assert (len(second["item"]), second["cut"], second["bytes"]) == (last_items.MOST_ITEM, True, 9_000)
    assert rest == [], "a line whose begin is not in what is read is none"


@pytest.mark.parametrize("kept", [True, False])
def test_where_there_are_none_it_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    place = directory(tmp_path / "a", "a1") if kept else None
    told = items_of(tmp_path, monkeypatch, place)
    assert told["items"] == [] and "UBI_STORES = ['items']" in told["hint"]
    if not kept:
        assert "a1" in told["missing"]


def test_a_new_run_is_starting_from_the_moment_an_agent_has_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live_stream, "EVERY", 0.0)
    monkeypatch.setattr(live_stream, "SELDOM", 0.0)
    crawl, place = Crawl(()), directory(tmp_path / "disk", "a1")
    lock = AgentLock(place)
    taken = (place / "lock").stat().st_mtime
    crawl.shelf.control.update({b"run": b"77", b"finished": b"77 a1"})
    about = {"state": "finished", "host_name": platform.node(), "directory": str(place)}

    async def test(client: Client) -> None:
        crawl.agent("a1", **about, updated=taken + 5)
        crawl.shelf.beats.clear()
        seen = await read(client, "crawl")
        assert (seen["state"], seen["measures"]["totals"]["pages"]) == ("finished", 100), "it has just ended"
        crawl.agent("a1", **about, updated=taken - 5)
        crawl.shelf.beats.clear()
        for path in ("crawl", "status"):
            seen = await read(client, path)
            assert (seen["state"], seen["finished"], seen["agents"]) == ("starting", False, []), path
        assert (await read(client, "report"))["measures"]["totals"]["pages"] == 0
        lock.release()
        (place / "lock").write_text("4194999\n")
        assert (await read(client, "crawl"))["state"] == "finished", "it has ended again"

    run(test, crawl)
