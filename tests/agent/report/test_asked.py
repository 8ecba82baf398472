"""A running node answers what lies in the control hash, and takes in again what failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.agent.profile.profile import still_failed
from scrapy_ubi.agent.report import answers_under_way
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.ground import clock
from scrapy_ubi.settings.crawl_caps import CrawlCaps
from scrapy_ubi.transport.shelf import Shelf
from tests.agent.crawler import SETTINGS, crawl, entry
from tests.agent.groups import Alone
from tests.agent.limited import limited
from tests.transport.worlds import until

FAR = 1e12  # unix seconds: a question that does not expire


class Asked(Alone):
    """A node, and a person who asks."""

    @property
    def shelf(self) -> Shelf:
        return self.hub.shelf(SETTINGS.crawl)

    async def ask(self, number: int, text: str) -> dict[str, Any]:
        """The node's answer to the question in this text."""
        name = f"{number:016x}"
        self.shelf.control[f"ask:{name}".encode()] = text.encode()
        await until(lambda: self.shelf.answers[name])
        return json.loads(self.shelf.answers[name][b"a"])

    async def fail(self, url: str) -> None:
        """This page is found, and fails for good."""
        assert self.node.discover(*entry(url))
        await until(lambda: self.frontier_has(url))
        visit = self.node.next_visit()
        assert visit is not None
        self.node.end_visit(visit, failed="http/503")

    def frontier_has(self, url: str) -> bool:
        ready = self.node.frontier.next_ready()
        return ready is not None and ready <= clock.now()


def test_a_node_answers_and_takes_in_again_what_failed() -> None:
    async def run() -> None:
        asked = Asked()
        await asked.ready()
        url = "http://h0.example/1"
        host, one = entry(url)
        await asked.fail(url)
        failed = await asked.ask(1, Question("failed", FAR).text())
        assert [(row["url"], row["reason"]) for row in failed["rows"]] == [(url, "http/503")]
        where = Question("url", FAR, host=host, key=f"{one.key:016x}").text()
        assert (await asked.ask(2, where))["where"] == "failed"
        assert (await asked.ask(3, Question("requeue", FAR, reason="http").text()))["requeued"] == 1
        history = await asked.ask(9, Question("history", FAR, limit=100).text())
        assert (history["agent"], history["rows"][0]["time"] > 0) == ("a", True)
        assert [event["what"] for event in history["events"]][:1] == ["joined"]
        (row,) = (await asked.ask(4, Question("hosts", FAR).text()))["rows"]
        assert (row["role"], row["state"], row["queued"], row["done"], row["failed"]) == ("owner", "waiting", 1, 1, 0)
        visit = asked.node.next_visit()
        assert visit is not None
        assert visit.entry.url == url and visit.entry.key != one.key
        assert (await asked.ask(5, where))["where"] == "done"  # the first try
        again = Question("url", FAR, host=host, key=f"{visit.entry.key:016x}").text()
        assert (await asked.ask(6, again))["where"] == "in flight"
        asked.node.end_visit(visit)
        told = asked.node.counters()
        assert (told["failed"], told["requeued"]) == ({"http/503": 1}, {"http/503": 1})
        assert still_failed(told["failed"], told["requeued"]) == {}, "failed, then fetched"
        await asked.node.leave("test")

    crawl(run)


def test_a_long_answer_comes_of_many_turns_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asked = Asked()
        await asked.ready()
        for number in range(30):
            asked.node.discover(*entry(f"http://h{number}.example/1"))
        made = await asked.ask(1, Question("hosts", FAR, sort="host", limit=30).text())
        assert len(made["rows"]) == 30
        asked.shelf.control[b"ask:" + b"0" * 16] = Question("hosts", FAR).text().encode()
        await asked.node.leave("test")  # whatever has not been made by then is left

    monkeypatch.setattr(answers_under_way, "MOST_A_TURN", 1)
    crawl(run)


def test_no_limit_of_known_urls_refuses_what_failed() -> None:
    async def run() -> None:
        asked = Asked(**limited(crawl_limits=CrawlCaps(known=1), known=1))
        await asked.ready()
        await asked.fail("http://h0.example/1")
        await until(lambda: asked.node.status.crawl_limits.refuses_depth(0))
        assert not asked.node.discover(*entry("http://h0.example/2"))
        made = await asked.ask(1, Question("requeue", FAR, everything=True).text())
        assert (made["requeued"], made["unfit"]) == (1, 0)
        visit = asked.node.next_visit()
        assert visit is not None
        asked.node.end_visit(visit)
        await asked.node.leave("test")

    crawl(run)


def test_when_the_crawl_is_over_nothing_goes_in_again() -> None:
    async def run() -> None:
        asked = Asked()
        await asked.ready()
        await asked.fail("http://h0.example/1")
        asked.node.agent.end.start_exhausted = True
        await until(lambda: asked.node.over)
        made = await asked.ask(1, Question("requeue", FAR, everything=True).text())
        assert (made["requeued"], made["unfit"]) == (0, 1)
        await asked.node.leave("test")

    crawl(run)


def test_what_is_no_question_is_a_dead_letter() -> None:
    async def run() -> None:
        asked = Asked()
        await asked.ready()
        assert "not JSON" in (await asked.ask(1, "{"))["refused"]
        await until(lambda: asked.shelf.dead["a"])
        assert asked.shelf.dead["a"][0][b"reason"] == b"no question: not JSON"
        await until(lambda: not any(name.startswith(b"ask:") for name in asked.shelf.control))
        assert asked.node.counters()["dead_letters"] == 1
        await asked.node.leave("test")

    crawl(run)


def test_a_store_that_turns_out_damaged_stops_the_agent() -> None:
    async def run() -> None:
        asked = Asked()
        await asked.ready()

        def damaged(host: str | None = None) -> Any:
            raise StoreDamaged("file", "bad")

        asked.node.frontier.failures = damaged  # type: ignore[method-assign]
        asked.shelf.control[b"ask:" + b"0" * 16] = Question("failed", FAR).text().encode()
        await until(lambda: asked.log.fatal)
        assert "file is damaged (bad)" in asked.log.fatal[0]
        await asked.node.leave("test")

    crawl(run)
