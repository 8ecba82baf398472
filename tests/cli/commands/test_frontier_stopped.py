"""`scrapy ubi hosts | url | failed | requeue | reset` on the directories of agents that have stopped."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from scrapy_ubi.adapter.process.agent_directory import AgentLock
from scrapy_ubi.agent.crawl.finished_run import REQUEUED
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.protocol.host import Entry, Failure, Notes
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.cli.commands.stopped_directories import directory, facts_of, with_facts
from tests.cli.commands.test_frontier_live import until
from tests.cli.commands.test_ubi import Shell
from tests.cli.monitor.by_hand import CRAWL, CrawlByHand
from tests.support.project import LIMIT, Project, until_joined
from tests.support.server import Server
from tests.support.site import Page, Site, Visit, links

HOME, GONE, SAD = "http://h1.example/", "http://h1.example/gone", "http://h2.example/sad"
OPTIONS = ["-s", "RETRY_TIMES=0", "-s", "ROBOTSTXT_OBEY=False"]


@pytest.fixture
def site() -> Iterator[Site]:
    def sad_at_first(visit: Visit) -> Page:
        return Page("", 503) if visit.number == 1 else Page(links(f"{HOME}found"))

    with Site() as running:
        running.page(HOME, links(GONE, SAD))
        running.page(SAD, sad_at_first)
        running.page(f"{HOME}found", "found")
        yield running


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    return Project(tmp_path, site.proxy)


def crawl(project: Project, *options: str) -> str:
    return crawl_together(project, options)[0]


def crawl_together(
    project: Project, *agents: tuple[str, ...], begin: AbstractContextManager[None] | None = None
) -> list[str]:
    """Start agents with these options, within `begin`, until all have ended; their logs."""
    with begin or nullcontext():
        running = [project.start("crawl", "walk", *OPTIONS, *options) for options in agents]
    try:
        logs = [process.communicate(timeout=LIMIT)[0] for process in running]
        for process, log in zip(running, logs, strict=True):
            assert process.returncode == 0 and "Traceback" not in log, log
        return logs
    finally:
        for process in running:
            process.kill()
            process.communicate()


# -- real crawls -----------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_finished_crawl_of_one_agent_is_looked_into_and_goes_on_with_what_failed(
    shell: Shell, project: Project, site: Site
) -> None:
    crawl(project)
    rows = {row["host"]: row for row in shell.json("hosts")["hosts"]}
    assert {host: (row["state"], row["done"], row["failed"]) for host, row in rows.items()} == {
        "h1.example": ("idle", 2, 1),
        "h2.example": ("idle", 1, 1),
    }
    assert shell("hosts") == 0
    assert shell.out.startswith("crawl bot:walk, 1 agent (stopped): 2 hosts\n")
    assert (shell.json("url", HOME)["where"], shell.json("url", HOME)["status"]) == ("done", 200)
    data = shell.json("url", GONE)
    assert (data["where"], data["reason"], data["owner"]) == ("failed", "http/404", rows["h1.example"]["agent"])
    assert {row["url"] for row in shell.json("failed")["failed"]} == {GONE, SAD}

    data = shell.json("requeue", "--reason", "http/503")
    assert (data["requeued"], data["lives"]) == (1, False)
    assert shell.json("hosts", "--limit", "1")["hosts"][0]["queued"] == 1
    output = crawl(project)
    assert "Going on with the crawl" in output and "Closing spider (finished)" in output
    assert site.urls() == {HOME: 1, GONE: 1, SAD: 2, f"{HOME}found": 1}
    assert [row["url"] for row in shell.json("failed")["failed"]] == [GONE]


@pytest.mark.processes
def test_a_finished_crawl_of_several_goes_on_as_well(
    shell: Shell, project: Project, site: Site, one_server: Server
) -> None:
    shell.settings["UBI_REDIS_URL"] = one_server.url
    agents = [("-s", f"UBI_REDIS_URL={one_server.url}", "-s", f"UBI_AGENT_ID={name}") for name in ("a1", "a2")]
    crawl_together(project, *agents, begin=until_joined(site, HOME, one_server, 2))
    assert shell.json("status")["state"] == "finished"
    assert {row["agent"] for row in shell.json("hosts")["hosts"]} == {"a1", "a2"}
    assert shell("requeue", "--host", "h2.example") == 0, shell.err
    assert "1 failed request is queued again" in shell.out
    for output in crawl_together(project, *agents, begin=until_joined(site, SAD, one_server, 2)):
        assert "Going on with the crawl" in output, output
    assert site.urls() == {HOME: 1, GONE: 1, SAD: 2, f"{HOME}found": 1}

    # and is forgotten: the next start begins anew
    with one_server.client() as client:
        CrawlByHand(client, "other").agent("a1")
        assert shell("reset", "--yes", "--crawl", "bot:walk") == 0, shell.err
        assert shell.out == "Crawl bot:walk is forgotten.\n"
        assert {key.split(b":")[1] for key in client.scan_iter(match="ubi:*")} == {b"{other}", b"watched"}
    assert not (project.place / ".ubi" / "bot:walk").exists()
    crawl(project, *agents[0])
    assert site.urls()[HOME] == 2


@pytest.mark.processes
def test_an_agent_that_runs_without_redis_has_to_be_stopped_first(shell: Shell, project: Project, site: Site) -> None:
    with site.hold(HOME) as held:
        running = project.start("crawl", "walk", *OPTIONS)
        try:
            until(held.arrived.is_set)
            for arguments in (("hosts",), ("requeue", "--all"), ("reset", "--yes")):
                assert shell(*arguments) == 1
                assert f"is in use by a running agent (process {running.pid})" in shell.err
            held.release()
            assert running.wait(60) == 0
        finally:
            running.kill()
            running.communicate()


# -- directories written by hand -------------------------------------------------------------------------------------


def test_directories_are_found_named_and_summed_up(shell: Shell, tmp_path: Path) -> None:
    directory(tmp_path / ".ubi" / CRAWL, "a1")
    directory(tmp_path / ".ubi" / CRAWL / "1", "a2")
    directory(tmp_path / "elsewhere", "a3")
    assert shell.json("hosts")["total"] == 6
    assert shell.json("hosts", "--dir", "elsewhere")["total"] == 3
    both = shell.json("hosts", "--dir", "elsewhere", "--dir", f".ubi/{CRAWL}", "--sort", "host")
    assert [(row["host"], row["agent"]) for row in both["hosts"]][:2] == [("h1.example", "a1"), ("h1.example", "a3")]
    assert {row["agent"] for row in shell.json("hosts", "--agent", "a2")["hosts"]} == {"a2"}
    assert shell("hosts", "--agent", "a9") == 1
    assert shell.err == "scrapy ubi: None of these directories is of agent 'a9'.\n"
    assert shell.json("hosts", "-s", "UBI_DIR=elsewhere")["total"] == 3
    assert shell.json("hosts", "-s", "JOBDIR=elsewhere")["total"] == 3


def test_a_directory_that_is_named_twice_is_asked_once(shell: Shell, tmp_path: Path) -> None:
    place = directory(tmp_path / "d")
    with_facts(place, {"finished": True})
    assert shell.json("requeue", "--all", "--dir", "d", "--dir", str(place))["requeued"] == 1
    assert facts_of(place)["finished"] is False


def test_two_directories_of_one_agent_are_not_asked(shell: Shell, tmp_path: Path) -> None:
    for name in (CRAWL, f"{CRAWL}/1"):
        directory(tmp_path / ".ubi" / name)
    assert shell("requeue", "--all") == 1
    assert shell.err == (
        f"scrapy ubi: .ubi/{CRAWL} and .ubi/{CRAWL}/1 are both of agent 'a1', so one is a copy: name with --dir those "
        "that are meant.\n"
    )
    assert shell.json("failed", "--dir", f".ubi/{CRAWL}")["total"] == 1


def test_of_directories_of_several_crawls_those_of_the_named_one_are_asked(shell: Shell, tmp_path: Path) -> None:
    directory(tmp_path / "d", name="one")
    directory(tmp_path / "e", name="two")
    at = ("--dir", "d", "--dir", "e")
    assert shell("failed", *at) == 1
    assert shell.err.endswith("2 crawls: one, two; name one with --crawl.\n")
    assert shell.json("failed", *at, "--crawl", "two")["crawl"] == "two"
    assert shell("requeue", "--all", *at, "--crawl", "tow") == 1
    assert shell.err == "scrapy ubi: None of these directories is of crawl 'tow'; did you mean 'two'?\n"
    assert shell.json("failed", "--dir", "d", "-s", "UBI_CRAWL=two")["crawl"] == "one"


def test_answers_fit_and_nothing_is_cut_off_where_names_are_as_long_as_may_be(shell: Shell, tmp_path: Path) -> None:
    names = [f"{number:x>64}" for number in (1, 2, 3)]
    for name in names:
        directory(tmp_path / name, name, "c" * 64)
    at = [word for name in names for word in ("--dir", name)]
    key = int(shell.json("url", SAD, *at)["key"], 16)
    frontier = open_frontier(tmp_path / names[0])
    reason = "exception/AnErrorWithSuchALongName"
    frontier.add("h2.example", [Entry(key, SAD, 1)])
    frontier.fail(Failure("h2.example", Entry(key, SAD, 1), reason, 1.0))
    frontier.flush()
    frontier.close()
    for words in (["hosts", "--limit", "1"], ["failed"], ["url", SAD], ["requeue", "--all"]):
        assert shell(*words, *at) == 0
        assert max(map(len, shell.out.splitlines())) <= 100
        assert words[0] != "url" or reason in shell.out
        assert words[0] != "requeue" or all(name in shell.out for name in names)


def test_what_waits_in_a_directory_has_a_place(shell: Shell, tmp_path: Path) -> None:
    place = directory(tmp_path / "d")
    url = "http://h9.example/waits"
    first = shell.json("url", url, "--dir", "d")
    assert (first["where"], first["owner"]) == ("unknown", "a1")
    frontier = open_frontier(place)
    frontier.add("h9.example", [Entry(1, "http://h9.example/1", 1), Entry(int(first["key"], 16), url, 2, -5)])
    frontier.flush()
    frontier.close()
    data = shell.json("url", url, "--dir", "d")
    assert (data["where"], data["depth"], data["priority"], data["before"]) == ("queued", 2, -5, 1)


def test_what_is_requeued_in_a_directory_has_failed_no_longer(shell: Shell, tmp_path: Path) -> None:
    """The report, and the last lines of the next start, tell what is still failed."""
    path = directory(tmp_path / "d")
    counters: dict[str, object] = {"pages": 6, "failed": {"http/500": 1, "http/404": 2}, "requeued": {"http/404": 1}}
    with_facts(path, {"run": "r1", "finished": True, "counters": counters})
    assert shell.json("report", "--dir", "d")["measures"]["failed"] == {"http/500": 1, "http/404": 1}
    assert shell.json("requeue", "--all", "--dir", "d")["requeued"] == 1
    facts = facts_of(path)
    assert facts["finished"] is False
    assert facts["counters"] == counters | {"requeued": {"http/404": 1, "http/500": 1}}
    assert shell.json("report", "--dir", "d")["measures"]["failed"] == {"http/404": 1}


@pytest.mark.parametrize("counters", [None, "garbage", {}, {"failed": "x"}, {"failed": {}, "requeued": [1]}])
def test_requeue_goes_on_beside_counters_that_do_not_hold(shell: Shell, tmp_path: Path, counters: object) -> None:
    path = directory(tmp_path / "d")
    with_facts(path, {"run": "r1", "counters": counters})
    assert shell.json("requeue", "--all", "--dir", "d")["requeued"] == 1


def test_requeue_in_a_directory_chooses(shell: Shell, tmp_path: Path) -> None:
    directory(tmp_path / "d")
    at = ("--dir", "d")
    for choice in (("--reason", "http/404"), ("--host", "h1.example"), ("--url", "http://h2.example/1")):
        assert shell.json("requeue", *choice, *at)["requeued"] == 0
    assert shell.json("requeue", "--url", "http://h2.example/0", "--reason", "http", *at)["requeued"] == 1
    assert shell.json("failed", *at)["total"] == 0
    rows = {row["host"]: row for row in shell.json("hosts", *at)["hosts"]}
    assert (rows["h2.example"]["queued"], rows["h2.example"]["done"], rows["h2.example"]["state"]) == (1, 2, "resting")
    assert shell("requeue", *at) == 2
    assert "Nothing is chosen: " in shell.err
    assert shell("requeue", "--all", "--host", "h1.example", *at) == 2
    assert "--all and a choice exclude each other" in shell.err


@pytest.mark.parametrize("host", ["h2.example", "H2.Example", "HTTP://h2.example", "http://h2.example/0"])
def test_a_host_is_chosen_however_it_is_spelled(shell: Shell, tmp_path: Path, host: str) -> None:
    directory(tmp_path / "d")
    assert shell.json("failed", "--host", host, "--dir", "d")["total"] == 1
    assert shell.json("requeue", "--host", host, "--dir", "d")["requeued"] == 1


@pytest.mark.parametrize("what", ["failed", "requeue"])
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--url", "nonsense", "--url 'nonsense' is not an absolute http or https URL"),
        ("--host", "no host", "--host 'no host' is no host: "),
        ("--host", "ftp://h2.example/", "--host 'ftp://h2.example/' is no host: "),
    ],
)
def test_what_can_be_no_failure_is_refused(
    shell: Shell, tmp_path: Path, what: str, option: str, value: str, said: str
) -> None:
    directory(tmp_path / "d")
    assert shell(what, option, value, "--dir", "d") == 1
    assert shell.err.startswith(f"scrapy ubi: {said}")


def test_a_host_that_was_given_up_is_shown_and_requeue_brings_it_back(shell: Shell, tmp_path: Path) -> None:
    rests = f'{{"until":[{time.time() + 3000:.0f},"health"]}}'
    with closing(open_frontier(directory(tmp_path / "d"))) as frontier:
        for host, text in (("h2.example", '{"end":"host/dead"}'), ("h3.example", rests)):
            state = frontier.find(host)
            assert state is not None
            frontier.note(state, Notes(7, text))
        frontier.flush()
    rows = {row["host"]: row["state"] for row in shell.json("hosts", "--dir", "d")["hosts"]}
    assert (rows["h2.example"], rows["h3.example"]) == ("ended", "excluded")
    assert shell.json("requeue", "--host", "h2.example", "--dir", "d")["requeued"] == 1
    rows = {row["host"]: row["state"] for row in shell.json("hosts", "--dir", "d")["hosts"]}
    assert (rows["h2.example"], rows["h3.example"]) == ("resting", "excluded")


@pytest.mark.parametrize(
    ("control", "finished"),
    [
        ({"run": "r1"}, False),  # something was requeued on another machine
        ({"run": "r1", "finished": "r1 a2"}, True),
        ({"run": "r2"}, True),
        ({}, True),
    ],
)
def test_where_nothing_failed_a_directory_follows_the_others(
    shell: Shell, tmp_path: Path, one_server: Server, control: dict[str, str], finished: bool
) -> None:
    place = directory(tmp_path / "d")
    facts = {"run": "r1", "finished": True, "settings": {"partition": "host"}}
    with_facts(place, facts)
    with one_server.client() as client:
        if control:
            client.hset(RedisKeys(CRAWL).control, mapping=control)
        none = ("--reason", "robots", "--redis-url", one_server.url)
        assert shell.json("requeue", "--dir", "d", *none)["requeued"] == 0
        assert facts_of(place) == {**facts, "finished": finished}
        if "finished" not in control:
            return
        assert shell.json("requeue", "--dir", "d", "--all", "--redis-url", one_server.url)["requeued"] == 1
        assert facts_of(place) == {**facts, "finished": False, REQUEUED: True}
        assert client.hgetall(RedisKeys(CRAWL).control) == {b"run": b"r1"}


def test_what_is_requeued_in_vain_is_said(shell: Shell, tmp_path: Path, one_server: Server) -> None:
    with_facts(directory(tmp_path / "d"), {"run": "r1", "finished": True})
    with one_server.client() as client:
        client.hset(RedisKeys(CRAWL).control, mapping={"run": "r2", "past": "r0 r1"})
        assert shell("requeue", "--dir", "d", "--all", "--redis-url", one_server.url) == 1
    assert "queued again" in shell.out
    assert "directories of an earlier run of this crawl (r1)" in shell.err
    assert shell("requeue", "--dir", "d", "--all", "--redis-url", "redis://127.0.0.1:1") == 0
    assert "0 failed requests" in shell.out


def test_what_decides_where_a_url_belongs_is_kept_in_the_directory(shell: Shell, tmp_path: Path) -> None:
    with_facts(directory(tmp_path / "d"), {"run": "r1", "settings": {"partition": "domain", "replicas": 7}})
    assert shell.json("url", "http://www.h1.example.co.uk/x", "--dir", "d")["host"] == "example.co.uk"


@pytest.mark.parametrize("kept", [{}, {"normaliser": "larm"}, {"normaliser": "of another version"}])
def test_what_makes_two_urls_one_is_kept_in_the_directory(shell: Shell, tmp_path: Path, kept: dict[str, str]) -> None:
    with_facts(directory(tmp_path / "d"), {"run": "r1", "settings": {"partition": "host", **kept}})
    keys = {shell.json("url", f"http://h1.example{path}", "--dir", "d")["key"] for path in ("/a", "/A", "//a")}
    assert len(keys) == (1 if kept.get("normaliser") == "larm" else 3)


def test_one_directory_of_several_that_cannot_be_read_is_named(shell: Shell, tmp_path: Path) -> None:
    directory(tmp_path / "good", "a1")
    directory(tmp_path / "held", "a2")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "agent.json").write_text(json.dumps({"agent": "a3", "crawl": CRAWL}))
    lock = AgentLock(tmp_path / "held")
    try:
        assert shell("hosts", "--dir", "good", "--dir", "held", "--dir", "empty") == 1
    finally:
        lock.release()
    assert "h1.example" in shell.out
    assert "What some agents know is missing: a2 (" in shell.err and "a3 (There is no store in empty" in shell.err
    assert shell("hosts", "--dir", "empty") == 1
    assert shell.out == "" and "There is no store in empty" in shell.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is no agent's directory: there is no agent.json in it."),
        ("[]", "is damaged: it does not name an agent and a crawl."),
        ('{"agent":1,"crawl":"x"}', "is damaged: it does not name an agent and a crawl."),
    ],
)
def test_what_is_no_agents_directory(shell: Shell, tmp_path: Path, text: str | None, said: str) -> None:
    (tmp_path / "d").mkdir()
    if text is not None:
        (tmp_path / "d" / "agent.json").write_text(text)
    for arguments in (("hosts",), ("reset", "--yes")):
        assert shell(*arguments, "--dir", "d") == 1
        assert said in shell.err and shell.err.count("\n") == 1


def test_a_directory_that_nobody_lets_us_look_into_is_named(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory(tmp_path / "disk")
    (tmp_path / "disk" / "lost+found").mkdir()
    closed = "lost+found"
    is_file = Path.is_file

    def as_somebody_else(path: Path, **options: bool) -> bool:  # for root every directory is open
        if path.parent.name == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return is_file(path, **options)

    monkeypatch.setattr(Path, "is_file", as_somebody_else)
    assert shell("hosts", "-s", "UBI_DIR=disk") == 0, shell.err
    closed = "disk"
    for arguments in (("hosts",), ("url", "http://h1.example/"), ("failed",), ("reset", "--yes")):
        assert shell(*arguments, "-s", "UBI_DIR=disk") == 1
        assert shell.err == "scrapy ubi: disk/agent.json cannot be read (Permission denied).\n"


def test_a_directory_that_nobody_lets_us_list_hides_no_agent_silently(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory(tmp_path / ".ubi" / CRAWL / "1")
    listed = Path.iterdir

    def as_somebody_else(path: Path) -> Iterator[Path]:  # for root every directory is open
        if path.name == CRAWL:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    assert shell("hosts") == 0
    monkeypatch.setattr(Path, "iterdir", as_somebody_else)
    for arguments in (("hosts",), ("failed", "--crawl", CRAWL), ("reset", "--yes")):
        assert shell(*arguments) == 1
        assert shell.err == f"scrapy ubi: The directory .ubi/{CRAWL} cannot be read (Permission denied).\n"


def test_a_damaged_store_is_an_error_that_names_the_file(shell: Shell, tmp_path: Path) -> None:
    place = directory(tmp_path / "d")
    for file in [
        *(place / "store").glob("*.sst"),
        *(place / "store").glob("*.log"),
        *(place / "store").glob("MANIFEST*"),
        *(place / "store").glob("rows.sqlite"),
    ]:
        file.write_bytes(b"\0" * 100)
    assert shell("hosts", "--dir", "d") == 1
    assert shell.err.startswith("scrapy ubi: The store in d cannot be used: ") and shell.err.count("\n") == 1
    assert shell("reset", "--yes", "--dir", "d") == 0, shell.err
    assert not place.exists()


def test_an_index_that_cannot_be_read_is_an_error(shell: Shell, tmp_path: Path) -> None:
    seen = directory(tmp_path / "d") / "seen"
    seen.unlink()
    seen.mkdir()
    assert shell("hosts", "--dir", "d") == 1
    assert shell.err == "scrapy ubi: The store in d cannot be used: Is a directory\n"


def test_nothing_there(shell: Shell, one_server: Server, tmp_path: Path) -> None:
    assert shell("hosts") == 1
    assert shell.err.startswith(
        "scrapy ubi: UBI_REDIS_URL is not set, and no agent's directory is here (looked at .ubi)"
    )
    assert shell("hosts", "--crawl", "x", "--redis-url", one_server.url) == 1
    assert "There is no crawl 'x'" in shell.err and "(looked at .ubi/x)" in shell.err
    assert shell("reset", "--crawl", "x", "--redis-url", one_server.url) == 1
    assert shell.err == "scrapy ubi: There is nothing of a crawl 'x', in Redis or in a directory here.\n"


# -- status and report -----------------------------------------------------------------------------------------------

FACTS: dict[str, object] = {
    "agent": "a1",
    "run": "77",
    "finished": False,
    "settings": {"partition": "host", "replicas": 200, "replication": 1, "normaliser": "safe", "host_rules": "none"},
    "spider": "web",
    "origin": {"spider_class": "p.Web", "arguments_mark": "01", "arguments": {"site": "a"}},
    "counters": {"agent": {"done": 5, "links": 9}, "pages": 6, "failed": {"http/500": 1}, "seconds": 3.0},
}


def test_figures_of_stopped_agents_are_read_from_their_directories(shell: Shell, tmp_path: Path) -> None:
    """Each keeps copies of the other's hosts: they are counted once."""
    for agent in ("a1", "a2"):
        with_facts(directory(tmp_path / ".ubi" / CRAWL / agent, agent), {**FACTS, "agent": agent})
    data = shell.json("status")
    assert shell.err == ("scrapy ubi: These figures are from the directories of stopped agents here, not from Redis.\n")
    assert (data["crawl"], data["state"], data["run"], data["arguments"]) == (CRAWL, "stopped", "77", [{"site": "a"}])
    assert [(one["agent"], one["state"], one["working"]) for one in data["agents"]] == [
        ("a1", "left", False),
        ("a2", "left", False),
    ]
    report = shell.json("report")["measures"]
    totals = report["totals"]
    assert (totals["hosts"], totals["unique"], totals["queued"], totals["known"]) == (3, 3, 4, 7)
    assert (totals["pages"], totals["done"], totals["links"], report["failed"]) == (12, 10, 18, {"http/500": 2})
    assert shell("agents") == 0 and shell.out.startswith(f"crawl {CRAWL}: stopped, 0 of 2 agents at work")


def test_figures_of_a_finished_crawl_without_redis_stay(shell: Shell, tmp_path: Path) -> None:
    with_facts(directory(tmp_path / ".ubi" / CRAWL), {**FACTS, "finished": True})
    assert shell.json("status")["state"] == "finished"
    assert shell("report") == 0 and shell.out.startswith(f"crawl {CRAWL}: finished")


@pytest.mark.parametrize(
    "facts", [{}, {"counters": 3, "settings": 4, "origin": 5, "spider": "s"}, {"counters": {"agent": 1}}]
)
def test_figures_are_shown_of_whatever_was_kept(shell: Shell, tmp_path: Path, facts: dict[str, object]) -> None:
    with_facts(directory(tmp_path / ".ubi" / CRAWL), facts)
    assert shell.json("report")["measures"]["totals"]["unique"] == 3


def test_figures_that_were_not_kept_well_are_unreadable(shell: Shell, tmp_path: Path) -> None:
    with_facts(directory(tmp_path / ".ubi" / CRAWL), {**FACTS, "counters": {"pages": -1}})
    data = shell.json("status")
    assert (data["unreadable"], data["agents"][0]["state"]) == (1, "unreadable")
    assert "pages is not a count" in data["agents"][0]["unreadable"][0]


def test_a_redis_that_knows_nothing_of_a_crawl_is_no_end_of_its_figures(
    shell: Shell, tmp_path: Path, one_server: Server
) -> None:
    with_facts(directory(tmp_path / ".ubi" / CRAWL), FACTS)
    assert shell.json("status", "--redis-url", one_server.url)["state"] == "stopped"
    directory(tmp_path / ".ubi" / "other", name="other")
    assert shell("status", "--redis-url", one_server.url) == 1
    assert "Here are directories of 2 crawls: " in shell.err and "name one with --crawl" in shell.err
    assert shell.json("status", "--crawl", CRAWL, "--redis-url", one_server.url)["crawl"] == CRAWL


def test_an_agent_that_runs_without_redis_is_named_instead_of_figures(shell: Shell, tmp_path: Path) -> None:
    lock = AgentLock(directory(tmp_path / ".ubi" / CRAWL))
    try:
        assert shell("status") == 1
        assert "is in use by a running agent (process " in shell.err
    finally:
        lock.release()
