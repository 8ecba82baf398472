"""What each path answers, over a crawl in memory: the commands' documents, pages of hosts, changes, live events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from aiohttp import ClientError, web
from aiohttp.test_utils import TestClient

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.steering.live_entries import LiveTable
from scrapy_ubi.agent.steering.runtime import refusal
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.web import live_stream, reader
from scrapy_ubi.web.readings import READINGS
from scrapy_ubi.web.verbs import VERBS
from tests.cli.monitor.by_hand import CRAWL
from tests.web.served import RIGHT, Crawl, run

Client = TestClient[Any, Any]

HOSTILE = "<img src=x onerror=alert(1)>.example"


def row(host: str, queued: int) -> dict[str, Any]:
    usual = {"state": "waiting", "role": "owner", "done": 0, "failed": 0, "next": 0.5, "error": ""}
    return {"host": host, "queued": queued, "learned": "", "loads": "", **usual}


def hosts(agent: str, question: Question) -> dict[str, Any]:
    """Agents with some hosts each, who answer as agents do."""
    rows = [row(f"{agent}-{number}.example", number) for number in range(1, 4)] + [row(HOSTILE, 9)]
    rows = [one for one in rows if question.search in one["host"]]
    rows.sort(key=lambda one: (-one["queued"], one["host"]))
    if question.after:
        number, _, name = question.after.partition(" ")
        rows = [one for one in rows if (-one["queued"], one["host"]) > (float(number), name)]
    rows = [one for one in rows if agent == "a1" or one["host"] != HOSTILE]
    return {"agent": agent, "ask": "hosts", "total": len(rows), "cut": False, "rows": rows[: question.limit]}


async def read(client: Client, path: str, **query: Any) -> Any:
    answer = await client.get(f"/api/{path}", params=query)
    assert answer.status == 200, await answer.text()
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    return await answer.json()


async def change(client: Client, path: str, status: int = 200, **body: Any) -> Any:
    answer = await client.post(f"/api/{path}", data=json.dumps(body), headers=RIGHT)
    assert answer.status == status, await answer.text()
    return await answer.json()


def test_the_crawl_at_one_look() -> None:
    crawl = Crawl(["a1", "a2", "a3"])
    crawl.agent("a3", state="left", updated=1_000.0)
    crawl.agent("a0", state="blocked")

    async def test(client: Client) -> None:
        seen = await read(client, "crawl")
        assert (seen["crawl"], seen["state"], seen["settled"], seen["agents_total"]) == (CRAWL, "running", True, 4)
        assert [one["agent"] for one in seen["agents"]] == ["a0", "a1", "a2", "a3"]  # what needs attention comes first
        first = seen["agents"][1]
        assert (first["pages"], first["queued"], first["failed"], first["machine"]) == (100, 40, 3, "machine-1")
        assert abs(sum(one["share"] or 0 for one in seen["agents"]) - 1) < 1e-9
        assert [one["fair"] for one in seen["agents"][:3]] == [1 / 3] * 3
        assert "speeds" not in seen["measures"]
        whats = {(one["what"], one["agent"]) for one in seen["events"]}
        assert {("joined", "a1"), ("left", "a3"), ("blocked", "a0")} <= whats
        about = await read(client, "about")
        assert (about["crawl"], about["changes"]) == (CRAWL, True)

    run(test, crawl)


def test_how_it_went_by_the_agents_timelines_or_as_it_was_seen() -> None:
    def timelines(agent: str, question: Question) -> dict[str, Any]:
        assert (question.ask, question.span) == ("history", 600.0)
        begin = int(time.time()) - 100
        rows = [{"time": begin + 10 * n, "pages": 50 * n, "queued": 7, "state": "crawling"} for n in range(11)]
        events = [{"time": begin, "what": "joined", "who": agent}]
        return {"agent": agent, "ask": "history", "step": 0, "rows": rows, "events": events}

    async def told(client: Client) -> None:
        history = await read(client, "history", minutes=10)
        assert (history["source"], history["missing"]) == ("agents", {})
        assert {len(point) for point in history["points"]} == {len(history["fields"])}
        assert history["points"][-1][1] == 1000 and max(point[3] or 0 for point in history["points"]) == 14
        assert {(one["what"], one["agent"]) for one in history["events"]} == {("joined", "a1"), ("joined", "a2")}

    async def seen(client: Client) -> None:
        history = await read(client, "history", minutes=10)
        assert (history["source"], len(history["points"])) == ("server", 1)
        assert len(history["points"][0]) == len(history["fields"])

    run(told, Crawl(), answering=timelines)
    with patch.object(reader, "PATIENCE", 0.1):
        run(seen, Crawl())


def test_the_ring_is_bounded_and_adds_up() -> None:
    async def test(client: Client) -> None:
        ring = await read(client, "ring")
        assert [one["agent"] for one in ring["agents"]] == ["a1", "a2"]
        assert (len(ring["sectors"]), set(ring["sectors"])) == (720, {0, 1})
        share = ring["sectors"].count(0) / 720
        assert abs(share - ring["agents"][0]["share"]) < 0.05

    run(test, Crawl())


def test_hosts_come_page_by_page_and_are_searched() -> None:
    async def test(client: Client) -> None:
        first = await read(client, "hosts", limit=3)
        assert [one["host"] for one in first["hosts"]] == [HOSTILE, "a1-3.example", "a2-3.example"]
        assert (first["total"], first["sort"]) == (7, "queued")
        second = await read(client, "hosts", limit=3, after=first["after"])
        assert [one["host"] for one in second["hosts"]] == ["a1-2.example", "a2-2.example", "a1-1.example"]
        third = await read(client, "hosts", limit=3, after=second["after"])
        assert ([one["host"] for one in third["hosts"]], third["after"]) == (["a2-1.example"], None)
        found = await read(client, "hosts", search="A2-")
        assert (found["total"], found["search"]) == (3, "a2-")
        raw = await (await client.get("/api/hosts")).text()
        assert json.loads(raw)["hosts"][0]["host"] == HOSTILE

    run(test, Crawl(), answering=hosts)


def test_letters_that_wait_and_those_set_aside() -> None:
    crawl = Crawl()
    crawl.post("a1", "http://h1.example/<script>")
    crawl.shelf.dead["a1"].append({b"reason": b"no JSON", b"head": b"\x80"})

    async def test(client: Client) -> None:
        inbox = await read(client, "inbox", agent="a1")
        assert (inbox["total"], inbox["letters"][0]["hosts"]) == (1, {"h1.example": 1})
        dead = await read(client, "dead", agent="a1")
        assert (dead["total"], dead["dead"][0]["reason"]) == (1, "no JSON")
        answer = await client.get("/api/inbox?agent=a9")
        assert answer.status == 404
        assert "There is no agent 'a9'" in (await answer.json())["error"]["message"]

    run(test, crawl)


def test_changes_are_the_commands() -> None:
    crawl = Crawl()

    async def test(client: Client) -> None:
        assert (await change(client, "pause", wait=False))["set"] == [{"name": "pause", "host": "", "value": True}]
        assert (await read(client, "crawl"))["paused"]
        said = await change(client, "set", values={"UBI_HOST_DELAY": 2}, host="H1.example", wait=False)
        assert said["set"] == [{"name": "UBI_HOST_DELAY", "host": "h1.example", "value": 2.0}]
        settings = await read(client, "settings")
        assert {(one["name"], one["value"]) for one in settings["changed"]} == {
            ("pause", True),
            ("UBI_HOST_DELAY", 2.0),
        }
        assert {"name", "value", "host", "kind", "choices", "help"} == settings["live"][0].keys()
        await change(client, "unset", names=["UBI_HOST_DELAY"], host="h1.example", wait=False)
        await change(client, "resume", wait=False)
        assert (await read(client, "settings"))["changed"] == []
        refused = await change(client, "set", 409, values={"UBI_PARTITION": "domain"})
        assert refused["error"]["kind"] == "refused" and "UBI_PARTITION" in refused["error"]["message"]
        await change(client, "unset", 400)
        asked = await change(client, "drain", agent="a1")
        assert (asked["agent"], asked["state"]) == ("a1", "asked")
        assert crawl.shelf.control[b"drain:a1"]
        await change(client, "drain", 404, agent="a9")
        seeded = await change(client, "seeds", urls=["http://a.example/"], priority=7)
        assert (seeded["sent"], len(crawl.shelf.seeds.waiting)) == (1, 1)
        wrong = await change(client, "seeds", 400, urls=["http://b.example/", "", "no URL at all", "ftp://c.example/"])
        assert wrong["error"]["kind"] == "bad_request"
        assert "line 3" in wrong["error"]["message"] and "no URL at all" in wrong["error"]["message"]
        assert len(crawl.shelf.seeds.waiting) == 1, "nothing of it is sent"
        crawl.shelf.seeds.answers.append(
            {b"seed": b"1-0", b"said": b"OK", b"url": b"http://a.example/", b"id": b"no. 1"}
        )
        crawl.shelf.seeds.answers.append({b"seed": b"2-0", b"said": b"OK"})  # of an agent of before
        told = await read(client, "seeds")
        assert told["waiting"] == 1
        assert [(one["url"], one["name"]) for one in told["answers"]] == [("", ""), ("http://a.example/", "no. 1")]
        await change(client, "requeue", 400)

    run(test, crawl)


def knows(*hosts: str) -> Callable[[str, Question], dict[str, Any]]:
    """Agents of which the first knows these hosts."""

    def answering(agent: str, question: Question) -> dict[str, Any]:
        shown = [host for host in hosts if host == question.host or (question.search and question.search in host)]
        more = {"notes": {}, "queue": [], "in_flight": [], "failures": []} if question.ask == "host" else {}
        rows = [{**row(host, 1), **more} for host in shown if agent == "a1"]
        return {"agent": agent, "ask": question.ask, "total": len(rows), "cut": False, "rows": rows}

    return answering


@pytest.mark.parametrize(
    "host, said",
    [
        ("shop.example", ""),
        ("shopp.example", "did you mean 'shop.example'?"),
        ("sho.exampel", "did you mean 'shop.example'?"),
        ("nobody.invalid", "none has a name like that."),
    ],
)
def test_who_says_something_of_a_host_that_nobody_knows_is_told_so_and_which_is_near(host: str, said: str) -> None:
    crawl = Crawl()

    async def heard() -> None:
        """Be agents that hear what is said at once."""
        while True:
            table = LiveTable(refusal)
            table.merge({name.decode(): value.decode() for name, value in crawl.shelf.control.items()})
            for name in ("a1", "a2"):
                crawl.agent(name, live=table.mark)
            await asyncio.sleep(0.02)

    async def test(client: Client) -> None:
        hearing = asyncio.create_task(heard())
        for verb, more in (("set", {"values": {"UBI_HOST_DELAY": 3}}), ("pause", {})):
            done = await change(client, verb, host=host, **more)
            assert [one["host"] for one in done["set"]] == [host], "it is kept: it may be met"
            told = done.get("complaint", "")
            assert told.endswith(said) and (f"No agent knows host '{host}' yet" in told) == bool(said)
        hearing.cancel()

    run(test, crawl, answering=knows("shop.example", "news.example"))


def test_requeue_is_asked_of_the_agents() -> None:
    def answering(agent: str, question: Question) -> dict[str, Any]:
        return {"agent": agent, "ask": "requeue", "requeued": 2, "unfit": 0, "more": False}

    async def test(client: Client) -> None:
        assert (await change(client, "requeue", reason="http/503"))["requeued"] == 4

    crawl = Crawl()
    run(test, crawl, answering=answering)
    assert [(one.ask, one.reason) for one in crawl.asked] == [("requeue", "http/503")]


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("hosts?limit=0", 400, "bad_request"), ("hosts?limit=201", 400, "bad_request"),
        ("hosts?limit=1&limit=2", 400, "bad_request"), ("hosts?what=1", 400, "bad_request"),
        ("hosts?sort=size", 400, "bad_request"), ("hosts?after=x", 400, "bad_request"),
        ("hosts?after=nan%20h", 400, "bad_request"), ("inbox", 400, "bad_request"), ("url?url=", 400, "bad_request"),
        ("host?host=%00", 400, "bad_request"), ("nothing", 404, "not_found"), ("pause", 405, "method"),
        ("owner?url=mailto:x", 404, "not_found"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(path: str, status: int, kind: str) -> None:
    async def test(client: Client) -> None:
        answer = await client.get(f"/api/{path}")
        said = await answer.json()
        assert (answer.status, said["error"]["kind"], said["error"]["status"]) == (status, kind, status), said

    run(test, Crawl())


def test_a_crawl_that_is_not_there_is_said_and_waited_for() -> None:
    crawl = Crawl([])

    async def test(client: Client) -> None:
        answer = await client.get("/api/crawl")
        assert (answer.status, (await answer.json())["error"]["kind"]) == (404, "not_found")
        crawl.agent("a1")
        assert (await read(client, "crawl"))["agents_total"] == 1

    run(test, crawl)


def test_every_path_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/web-api.md").read_text(encoding="utf-8")
    for name in READINGS:
        assert f"/api/{name}" in text, name
    for name in VERBS:
        assert f"`/api/{name}`" in text, name


# -- live


async def messages(answer: Any, number: int) -> list[dict[str, Any]]:
    """The next messages of a stream."""
    found: list[dict[str, Any]] = []
    event = ""
    while len(found) < number:
        line = (await answer.content.readline()).decode().strip()
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        if line.startswith("data: "):
            found.append({"event": event, **json.loads(line.removeprefix("data: "))})
    return found


def test_one_reading_serves_all_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 1000.0)
    looks: list[int] = []

    def counted(*given: Any) -> Any:
        looks.append(1)
        return read_figures(*given)

    monkeypatch.setattr(live_stream, "read_figures", counted)

    async def test(client: Client) -> None:
        async with client.get("/api/events") as one, client.get("/api/events") as two:
            assert one.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            [first], [other] = await messages(one, 1), await messages(two, 1)
            assert first == other and first["event"] == "crawl" and first["agents_total"] == 2
        await read(client, "crawl")
        assert len(looks) == 1

    run(test, Crawl())


def test_events_come_live_as_long_as_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 0.05)
    crawl = Crawl()

    async def test(client: Client) -> None:
        live = client.app_of_ours.live  # type: ignore[attr-defined]
        assert live.resting
        async with client.get("/api/events") as one:
            await messages(one, 1)
            assert not live.resting
            crawl.agent("a3")
            while (seen := (await messages(one, 1))[0])["agents_total"] != 3:
                pass
            assert ("joined", "a3") in {(event["what"], event["agent"]) for event in seen["events"]}
            crawl.shelf.agents.clear()
            crawl.shelf.beats.clear()
            while (seen := (await messages(one, 1))[0])["event"] != "trouble":
                pass
            assert seen["error"]["status"] == 404
            crawl.agent("a1")  # each message is written, and so it is noticed that nobody reads any longer
        while not live.resting:
            await asyncio.sleep(0.01)

    run(test, crawl)


def test_a_fault_of_ours_does_not_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 0.05)
    faults = iter([True, True])

    def breaks(*given: Any) -> Any:
        if next(faults, False):
            raise ZeroDivisionError
        return read_figures(*given)

    monkeypatch.setattr(live_stream, "read_figures", breaks)

    async def test(client: Client) -> None:
        async with client.get("/api/events") as answer:
            seen = await messages(answer, 3)
        assert [one["event"] for one in seen] == ["trouble", "trouble", "crawl"]
        assert seen[0]["error"]["kind"] == "fault" and "ZeroDivision" not in str(seen)

    run(test, Crawl())


def test_only_so_many_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "MOST_VIEWERS", 1)

    async def test(client: Client) -> None:
        async with client.get("/api/events") as one:
            await messages(one, 1)
            two = await client.get("/api/events")
            assert (two.status, (await two.json())["error"]["kind"]) == (503, "busy")
            assert two.headers["Retry-After"]

    run(test, Crawl())


def test_a_viewer_that_does_not_read_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 0.05)
    monkeypatch.setattr("scrapy_ubi.web.web_app.PATIENCE", 0.1)
    written: list[bytes] = []
    write = web.StreamResponse.write

    async def stuck(self: web.StreamResponse, data: bytes) -> None:
        written.append(data)
        await (write(self, data) if len(written) < 3 else asyncio.Event().wait())

    monkeypatch.setattr(web.StreamResponse, "write", stuck)

    async def test(client: Client) -> None:
        live = client.app_of_ours.live  # type: ignore[attr-defined]
        async with client.get("/api/events") as answer:
            await messages(answer, 1)
            assert live.viewers == 1
            while live.viewers:
                await asyncio.sleep(0.02)
            with pytest.raises((ClientError, ConnectionError)):
                await answer.content.read()

    run(test, Crawl())
