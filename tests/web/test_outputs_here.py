"""What the page says of outputs: pages of each store, the copies found last, of files as the writer leaves them, and
the items of agents whose directories lie anywhere on this machine; and of those that cannot be seen."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from scrapy_ubi.adapter.process.agent_directory import AgentLock
from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.outputs import part_files
from scrapy_ubi.outputs.collector import Out
from scrapy_ubi.outputs.duplicates.duplicate_record import Compared, line_of
from scrapy_ubi.web import live_stream, outputs_here
from scrapy_ubi.web.outputs_here import PageCounts, is_index, newest_copies
from tests.cli.monitor.by_hand import CRAWL
from tests.web.served import Crawl, run

Client = TestClient[Any, Any]

LINE = b"0123456789abcdef 0 ok jsonl:0:20\n"


def test_pages_are_counted_once_and_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, index = PageCounts(), tmp_path / "p.idx.open"
    index.write_bytes(LINE * 10)
    counts.look()
    assert counts.count_lines(index, index.stat().st_size) == 10
    monkeypatch.setattr(outputs_here, "MOST_READ", 0)  # from now on nothing may be read
    counts.look()
    assert counts.count_lines(index, index.stat().st_size) == 10
    index.rename(tmp_path / "p.idx")
    assert counts.count_lines(tmp_path / "p.idx", 10 * len(LINE)) == 10
    (tmp_path / "p.idx").write_bytes(LINE * 25)
    assert counts.count_lines(tmp_path / "p.idx", 25 * len(LINE)) is None
    monkeypatch.setattr(outputs_here, "MOST_READ", len(LINE) * 10)
    for expected in (None, 25):
        counts.look()
        assert counts.count_lines(tmp_path / "p.idx", 25 * len(LINE)) == expected
    (tmp_path / "p.idx").write_bytes(LINE * 3)
    counts.look()
    assert counts.count_lines(tmp_path / "p.idx", 3 * len(LINE)) == 3
    assert counts.count_lines(tmp_path / "sealed-meanwhile.idx.open", 100) is None


def test_which_files_are_indexes() -> None:
    assert all(is_index(name) for name in ("a.idx", "a.idx.open", "a/idx", "a/idx.open"))
    assert not any(is_index(name) for name in ("a.jsonl", "idx.jsonl", "a.idx.short"))


def judged(url: str, kind: str, first: str = "") -> bytes:
    return line_of(Compared("h.example", url, 200, Judged(b"d" * 20, 60, b"", kind, first)))


def test_the_copies_found_last(tmp_path: Path) -> None:
    store = tmp_path / "duplicates"
    store.mkdir()
    old, new = store / "a.tsv", store / "b.tsv.open"
    old.write_bytes(judged("http://h.example/old", "exact", "http://h.example/"))
    many = [
        judged(f"http://h.example/{number}", "near" if number % 2 else "", "http://h.example/0")
        for number in range(3000)
    ]
    new.write_bytes(b"".join(many) + b"half a li")
    os.utime(old, (1, 1))
    found = newest_copies([tmp_path, tmp_path / "nothing"])
    assert len(found) == outputs_here.MOST_COPIES
    assert found[0] == {"url": "http://h.example/2999", "kind": "near", "first": "http://h.example/0"}
    assert found[1]["url"] == "http://h.example/2997"
    json.dumps(found)


def test_stores_with_a_directory_for_each_part_count_as_well(tmp_path: Path) -> None:
    for name, data in (
        ("items/c-1.jsonl", b"{}\n"),
        ("items/c-1.idx", LINE),
        ("items/c-2.jsonl.open", b"{}\n{}\n"),
        ("items/c-2.idx.open", LINE * 2),
        ("larm/c-1/links.log", b"x" * 100),
        ("larm/c-1/idx", LINE * 4),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    outputs_here.COUNTS.look()
    rows = {row["store"]: row for row in outputs_here.stores(Out(tmp_path, "c", "a1", "r", 0.0, False))}
    assert [(row["pages"], row["bytes"], row["parts"], row["open_parts"]) for row in rows.values()] == [
        (3, 9 + 3 * len(LINE), 2, 2),
        (4, 100 + 4 * len(LINE), 2, 0),
    ]


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
    long, odd = b"x" * (2 * outputs_here.TAIL_OF_ITEMS), b"\xff\x00</script><script>\xe2\x80\xae"
    told = items_of(tmp_path, monkeypatch, directory(tmp_path / "a", "a1", long, b"y" * 9_000, odd))
    first, second, *rest = told["items"]
    assert first["item"] == odd.decode("utf-8", "replace") and not first["cut"]
    assert (len(second["item"]), second["cut"], second["bytes"]) == (outputs_here.MOST_ITEM, True, 9_000)
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
