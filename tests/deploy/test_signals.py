"""What a service manager sees of agents: real processes, started by the recipes' own command lines, sent their signals.

Rules of this module:

* The platform is stood for by what it does: starts a command, sends a signal, looks at the exit status.
* Each test starts few processes, and holds one page of the web so that the crawl cannot end before its time.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.recipes import agent, document, unit, unit_command
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project
from tests.support.server import Server
from tests.support.site import Site, links

pytestmark = pytest.mark.processes

HOST = "http://h1.example"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        running.page(f"{HOST}/", links(f"{HOST}/a", "http://h2.example/", "http://h3.example/"))
        for url in (f"{HOST}/a", "http://h2.example/", "http://h3.example/"):
            running.page(url, "text")
        yield running


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    return Project(tmp_path, site.proxy)


@pytest.fixture
def units(project: Project, one_server: Server) -> Iterator[Callable[[str], Unit]]:
    """Starts instances of the unit; what still runs at the end is killed."""
    started: list[Unit] = []

    def start(instance: str) -> Unit:
        started.append(Unit(project, instance, one_server.url))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(LIMIT)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Unit:
    """An instance of the unit, as systemd runs it: its command, its signals, and what becomes of its end."""

    def __init__(self, project: Project, instance: str, url: str) -> None:
        self.directives = unit()
        state = project.place / "state"
        self.directory = state / "scrapy-ubi" / instance
        self._project = project
        words = unit_command(instance, {"H": "machine", "S": str(state)}, {"CRAWL_SPIDER": "walk"})
        self._words = (*words[1:], "-s", f"UBI_REDIS_URL={url}")
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)  # StateDirectory
        self.starts += 1
        log = ("-s", f"LOG_FILE={self._log}")
        self.process: Running = self._project.start(*self._words, *log)
        if self.process.stdout is not None:
            self.process.stdout.close()  # it logs into the file

    @property
    def _log(self) -> Path:
        return self._project.place / f"{self.directory.name}-{self.starts}.log"

    def log(self) -> str:
        """What the process that was started last has logged."""
        return self._log.read_text() if self._log.exists() else ""

    def said(self, text: str) -> bool:
        return text in self.log()

    def stop(self) -> int:
        """What `systemctl stop` does. The exit status; SIGKILL must not be needed."""
        self.process.send_signal(signal.Signals[self.directives["KillSignal"]])
        return self.process.wait(float(self.directives["TimeoutStopSec"]))

    def would_start_again(self) -> bool:
        """What Restart=on-failure does about the end of the process (systemd.service(5), table 1)."""
        assert self.directives["Restart"] == "on-failure"
        number = self.process.wait(LIMIT)
        clean = {0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE}
        return number not in clean


def test_a_unit_comes_back_after_a_crash_leaves_when_told_and_stays_away_after_the_end(
    site: Site, units: Callable[[str], Unit]
) -> None:
    with site.hold(f"{HOST}/a") as held:
        one = units("1")
        until(lambda: one.said("has joined crawl"))
        identity = (one.directory / "agent.json").read_text().split('"incarnation"')[0]
        assert '"machine-1"' in identity
        one.process.kill()
        assert one.would_start_again()
        one.start()
        until(lambda: one.said("has joined crawl"))
        assert (one.directory / "agent.json").read_text().startswith(identity)
        two = units("2")
        until(lambda: two.said("Other agents: 1."))  # Scrapy's engine may not run yet
        assert two.stop() == 0
        assert two.said("Agent machine-2 has left (reason: shutdown)"), two.log()
        assert not two.would_start_again()
        held.release()
        assert not one.would_start_again()
    assert one.said("Closing spider (finished)") and one.process.returncode == 0
    one.start()  # a boot of the machine, later
    assert not one.would_start_again() and one.said("The crawl of this name is finished")
    assert not one.said("Crawled (200)")


def test_a_unit_that_cannot_start_is_a_failure(project: Project, site: Site) -> None:
    words = unit_command("1", {"H": "machine", "S": str(project.place)}, {"CRAWL_SPIDER": "walk"})
    status, output = project.run(*words[1:], "-s", "UBI_REDIS_URL=redis://127.0.0.1:1", "-s", "UBI_REDIS_WAIT=0")
    assert status == 1 and not site.visits, output


STANDS_FOR_SCRAPY = """#!/bin/sh
# What an agent does, as far as the pod's shell sees it: 0 at its end, and 0 when it has left after SIGTERM.
trap 'echo left > left; exit 0' TERM
echo "$@" > started
while [ ! -e finish ]; do sleep 0.05; done
exit "$(cat finish)"
"""


MOMENT = "agent=$!"  # the shell has started the agent, and does not know its number yet


@pytest.mark.parametrize(("finish", "status"), [("0", 0), ("1", 1), ("", 143)], ids=["finished", "failed", "told"])
@pytest.mark.parametrize("early", [False, True], ids=["", "in the moment of the start"])
def test_the_shell_of_a_batch_pod_tells_an_eviction_from_the_end(
    tmp_path: Path, finish: str, status: int, early: bool
) -> None:
    program = tmp_path / "scrapy"
    program.write_text(STANDS_FOR_SCRAPY)
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CRAWL_SPIDER": "walk", "INDEX": "3"}
    sh, c, text = agent(document("kubernetes/batch.yaml", "Job"))["command"]
    assert text.count(MOMENT) == 1
    if early:
        text = text.replace(MOMENT, f"while [ ! -e go ]; do sleep 0.02; done; {MOMENT}")
    pod = subprocess.Popen([sh, c, text], cwd=tmp_path, env=environment)
    try:
        until(lambda: (tmp_path / "started").exists() and bool((tmp_path / "started").read_text()))
        if finish:
            (tmp_path / "finish.new").write_text(finish)
            (tmp_path / "finish.new").rename(tmp_path / "finish")
        else:
            pod.terminate()
        (tmp_path / "go").touch()
        assert pod.wait(LIMIT) == status
    finally:
        pod.kill()
        pod.wait(LIMIT)
        (tmp_path / "finish").write_text("0")  # an agent that was not told ends as well
    assert (tmp_path / "left").exists() == (not finish), "it was given the time to leave"
    assert "UBI_AGENT_ID=agent-3" in shlex.split((tmp_path / "started").read_text())
