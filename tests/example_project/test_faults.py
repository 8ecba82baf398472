"""What the demo does to its agents at which moment, and what it says of the consequences."""

from __future__ import annotations

from typing import Any

from demo.faults import Faults
from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.protocol.beat import NEW, Beat


class Stage:
    """Keeps what is done and said."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.rows: list[dict[str, Any]] = []

    def kill(self, name: str) -> None:
        self.done.append(("kill", name))

    def start(self, name: str) -> None:
        self.done.append(("start", name))

    def log(self) -> list[dict[str, Any]]:
        return self.rows

    def tell(self, line: str) -> None:
        self.said.append(line)


def crawl(new: str = "", **states: str) -> CrawlStatus:
    """Agents in these states; all have fetched something, and have seen a view complete, but for one."""
    counts = {"pages": 9, "hosts": 4}
    return CrawlStatus(
        "demo",
        tuple(
            AgentStatus(
                name, state, Profile(name, counts=counts), Beat("0" * 8, 0, 64, "", flags=NEW if name == new else "")
            )
            for name, state in states.items()
        ),
    )


def row(host: str, agent: str, start: float) -> dict[str, Any]:
    return {"host": host, "agent": agent, "start": start}


def test_the_whole_story() -> None:
    stage = Stage()
    faults = Faults(stage, 100, "a2", "a4", "5")
    stage.rows = [row("h1", "a2", 1.0), row("h2", "a2", 1.0), row("h3", "a2", 1.0), row("h3", "a1", 2.0)]
    group = crawl(a1="crawling", a2="crawling", a3="crawling")
    faults.act(39, group, 9.0)
    assert stage.done == []
    assert not faults.waiting
    faults.act(41, group, 10.0)
    assert stage.said == ["a2 killed (SIGKILL) at 41 of 100 pages, at work on 2 hosts"]
    faults.act(59, group, 11.0)
    faults.follow(group, 11.0)
    faults.act(60, group, 12.0)
    faults.act(61, group, 12.5)
    assert stage.done == [("kill", "a2"), ("start", "a4")]
    assert stage.said[1:] == ["a4 started at 60 of 100 pages"]
    stage.rows.append(row("h3", "a1", 13.0))  # was not the victim's any more
    group = crawl(a1="crawling", a2="dead", a3="crawling", a4="crawling")
    faults.follow(group, 15.5)
    stage.rows.append(row("h2", "a3", 15.75))
    faults.follow(group, 16.0)
    faults.follow(group, 17.0)
    assert stage.said[2:] == [
        "a2 is declared dead, 5.5 s after the kill; agents with copies get its hosts",
        "a4 fetches as well, 3.5 s after its start: 4 hosts are its own now",
        "a3 fetches from these hosts, 5.8 s after the kill",
    ]
    assert not faults.waiting


def test_an_agent_is_not_killed_before_it_takes_part() -> None:
    stage = Stage()
    faults = Faults(stage, 100, "a2", "a4", "5")
    faults.act(90, crawl(a1="crawling"), 1.0)
    assert stage.done == []
    faults.act(91, crawl(a1="crawling", a2="crawling"), 2.0)
    faults.act(92, crawl(a1="crawling", a2="crawling"), 3.0)
    assert stage.done == [("kill", "a2"), ("start", "a4")]


def test_an_agent_is_not_killed_while_only_it_has_what_it_knows() -> None:
    stage = Stage()
    faults = Faults(stage, 100, "a2", "a4", "5")
    faults.act(40, crawl(a2="crawling"), 1.0)
    faults.act(45, crawl(a1="crawling", a2="crawling", a3="crawling", new="a3"), 2.0)
    assert stage.done == []
    faults.act(50, crawl(a1="crawling", a2="crawling", a3="crawling", new="a2"), 3.0)
    assert stage.done == [("kill", "a2")]


def test_what_will_happen_is_announced_with_the_time_out() -> None:
    said = Faults(Stage(), 100, "a2", "a4", "5").announce()
    assert "40% of the pages a2" in said and "60% a4" in said and "UBI_FAILURE_TIMEOUT" in said
