"""Prometheus and probes are answered by the server of the page, without a token, under its other rules."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import TestClient

from tests.support.prometheus import Recorded
from tests.web.served import Crawl, run

Client = TestClient[Any, Any]


def test_all_agents_are_told_and_can_be_found() -> None:
    crawl = Crawl(["a1"])
    crawl.agent("a2", metrics="m2:9410")

    async def test(client: Client) -> None:
        answer = await client.get("/metrics")
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        told = Recorded(await answer.text())
        assert {labels["agent"] for _, labels, _ in told.find("ubi_pages_total", {})} == {"a1", "a2"}
        found = await (await client.get("/sd")).json()
        assert [one["targets"] for one in found] == [["m2:9410"]]
        assert (await client.get("/live")).status == 200

    run(test, crawl)


def test_a_group_is_ready_when_all_have_settled() -> None:
    crawl = Crawl(["a1", "a2"])

    async def test(client: Client) -> None:
        answer = await client.get("/ready", params={"agent": "a1"})
        text = await answer.text()
        assert (answer.status, text.split(":")[0]) in ((200, "ok\n"), (503, "Not now"))
        assert (await client.get("/ready", params={"agent": "nobody"})).status == 503

    run(test, crawl)


def test_the_rules_of_the_server_hold_for_these_pages() -> None:
    async def test(client: Client) -> None:
        for path in ("/metrics", "/sd", "/live", "/ready"):
            assert (await client.get(path, headers={"Host": "evil.example"})).status == 403
            answer = await client.post(path)
            assert answer.status == 405
            assert "Content-Security-Policy" in (await client.get(path)).headers

    run(test, Crawl())
