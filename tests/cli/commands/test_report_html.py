"""`scrapy ubi report --html` and the history behind it, from the directories of stopped agents and from living ones."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ubi.agent.report.timeline import Event, Sample, line_of
from scrapy_ubi.agent.report.timeline_file import TIMELINE
from scrapy_ubi.cli.commands.crawl_history import history
from scrapy_ubi.protocol.ring import Ring
from tests.cli.commands.stopped_directories import directory, with_facts
from tests.cli.commands.test_ubi import Shell
from tests.cli.monitor.by_hand import CRAWL

NOW = 1_700_000_000


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The directories of two agents that have stopped, each with a copy of all hosts, and with its timeline."""
    for number, agent in enumerate(("a1", "a2")):
        path = directory(tmp_path / ".ubi" / CRAWL / agent, agent)
        counters = {"agent": {"done": 3, "forwarded": 2, "letters_sent": 1}, "pages": 3, "failed": {"http/500": 1}}
        with_facts(path, {"agent": agent, "run": "7", "finished": True, "spider": "web", "counters": counters})
        samples = [Sample(NOW + at, pages=at * (number + 1), state="crawling") for at in range(0, 120, 10)]
        moments = [*samples, Event(NOW + number, "joined", agent), Event(NOW + 60 + number, "dead", "a3")]
        (path / TIMELINE).write_text("".join(f"{line_of(one)}\n" for one in moments) + '{"time":17000', "utf-8")
    return tmp_path


def test_the_page_is_made_from_directories(shell: Shell, stopped: Path) -> None:
    assert shell("report", "--html", "r.html") == 0, shell.err
    assert "The report of crawl demo:web is in r.html." in shell.out
    text = (stopped / "r.html").read_text("utf-8")
    assert "Pages and queue over time" in text
    assert text.count(">h1.example</text>") == 1  # though two have it
    assert ">dead</td>" in text
    assert not list(stopped.glob("*.part"))


def test_hosts_of_which_several_have_as_much_are_shared_out_by_the_ring(shell: Shell, stopped: Path) -> None:
    agents = {one["agent"]: one["profile"]["counters"]["hosts"] for one in shell.json("report")["agents"]}
    ring = Ring.of({"a1": 200, "a2": 200})
    owners = [ring.owner(f"h{number}.example") for number in (1, 2, 3)]
    assert agents == {agent: owners.count(agent) for agent in ("a1", "a2")}


def test_a_report_is_made_of_the_directories_that_are_named(
    shell: Shell, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = stopped / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    named = [str(stopped / ".ubi" / CRAWL / agent) for agent in ("a1", "a2")]
    assert [one["agent"] for one in shell.json("report", "--dir", named[0])["agents"]] == ["a1"]
    assert [one["agent"] for one in shell.json("report", "--dir", named[0], "--dir", named[1])["agents"]] == [
        "a1",
        "a2",
    ]
    assert shell("report", "--dir", named[0], "--html", "r.html") == 0, shell.err
    assert shell("report", "--dir", named[0], "--crawl", "another") == 1
    assert "not of the crawl another" in shell.err
    assert shell("report", "--dir", "nowhere") == 1
    assert "is no agent's directory" in shell.err


def test_a_file_that_cannot_be_written_is_one_sentence(shell: Shell, stopped: Path) -> None:
    assert shell("report", "--html", "nowhere/r.html") == 1
    assert "nowhere/r.html cannot be written (No such file or directory)." in shell.err


def test_a_directory_without_a_timeline_is_shown_too(shell: Shell, tmp_path: Path) -> None:
    path = directory(tmp_path / ".ubi" / CRAWL)
    with_facts(path, {"agent": "a1", "run": "7", "finished": False, "spider": "web"})
    assert shell("report", "--html", "r.html") == 0, shell.err
    assert "Hosts by size" in (tmp_path / "r.html").read_text("utf-8")


def test_a_history_is_one_of_all_agents(shell: Shell, stopped: Path) -> None:
    opts = argparse.Namespace(redis_url=None, crawl=CRAWL, dir=[], agent="", timeout=5.0)
    made = history(Settings(), opts, points=100)
    assert (made["crawl"], made["lives"], made["missing"]) == (CRAWL, False, {})
    assert made["step"] == 10
    assert made["series"]["pages"][-1] == 330
    assert [(one["what"], one["who"], one["by"]) for one in made["events"]] == [
        ("joined", "a1", ["a1"]),
        ("joined", "a2", ["a2"]),
        ("dead", "a3", ["a1", "a2"]),
    ]
    assert set(made["agents"]) == {"a1", "a2"}
