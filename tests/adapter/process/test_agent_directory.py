"""The agent's directory: one identifier, one process, and what ran there before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_ubi.adapter.process import agent_directory
from scrapy_ubi.adapter.process.agent_directory import (
    COMMAND,
    AgentDirectory,
    AgentLock,
    held_since,
    new_agent_id,
    take_lock,
)
from scrapy_ubi.cli.commands.directories import locked
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.settings import SETTINGS, UbiSettings, read_value


def unnamed(tmp_path: Path) -> UbiSettings:
    return UbiSettings(crawl="c", dir=tmp_path / "c")


def given(tmp_path: Path, agent_id: str | None = None, crawl: str = "c") -> UbiSettings:
    return UbiSettings(crawl=crawl, dir=tmp_path / "d", agent_id=agent_id, dir_given=True)


def test_an_identifier_is_made_once_and_kept(tmp_path: Path) -> None:
    first = AgentDirectory.open(unnamed(tmp_path))
    first.close()
    again = AgentDirectory.open(unnamed(tmp_path))
    assert (again.agent_id, again.path) == (first.agent_id, tmp_path / "c")
    assert json.loads((again.path / "agent.json").read_text())["agent"] == first.agent_id


def test_a_made_identifier_is_a_valid_name() -> None:
    row = next(row for row in SETTINGS if row.name == "agent_id")
    name = new_agent_id()
    assert read_value(row, name) == name


def test_a_host_name_of_odd_characters_gives_a_valid_name(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in SETTINGS if row.name == "agent_id")
    monkeypatch.setattr("socket.gethostname", lambda: "Jürgen's {machine} " * 9)
    assert read_value(row, new_agent_id())


def test_a_second_process_takes_the_next_directory(tmp_path: Path) -> None:
    agents = [AgentDirectory.open(unnamed(tmp_path)) for _ in range(3)]
    assert [agent.path for agent in agents] == [tmp_path / "c", tmp_path / "c" / "1", tmp_path / "c" / "2"]
    assert len({agent.agent_id for agent in agents}) == 3
    agents[1].close()
    assert AgentDirectory.open(unnamed(tmp_path)).agent_id == agents[1].agent_id


def test_an_agent_and_a_command_wait_for_a_command_that_reads(tmp_path: Path) -> None:
    read = AgentLock(tmp_path / "c", COMMAND)
    done = threading.Timer(0.1, read.release)
    done.start()
    agent = AgentDirectory.open(unnamed(tmp_path))  # and does not take the next directory
    assert agent.path == tmp_path / "c"
    with pytest.raises(BlockingIOError):
        take_lock(tmp_path / "c", COMMAND)
    agent.close()
    done.join()
    first, second = [take_lock(tmp_path / "c", COMMAND)], []
    waits = threading.Thread(target=lambda: second.append(take_lock(tmp_path / "c", COMMAND)))
    waits.start()
    first.pop().release()
    waits.join(10)
    assert second


def test_a_command_that_reads_for_long_is_not_taken_for_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_directory, "COMMAND_WAIT", 0.0)
    lock = AgentLock(tmp_path, COMMAND)
    with (
        pytest.raises(UbiDirectoryError, match=f"being read by another command .process {os.getpid()}."),
        locked(tmp_path),
    ):
        pass
    lock.release()


def test_named_agents_have_directories_of_their_own(tmp_path: Path) -> None:
    settings = UbiSettings(crawl="c", dir=tmp_path / "c", agent_id="a1")
    agent = AgentDirectory.open(settings)
    assert (agent.path, agent.agent_id) == (tmp_path / "c" / "a1", "a1")
    with pytest.raises(UbiDirectoryError, match=f"in use by another running agent .process {os.getpid()}."):
        AgentDirectory.open(settings)


def test_a_jobdir_in_use_is_named_so(tmp_path: Path) -> None:
    settings = UbiSettings.from_scrapy({"JOBDIR": str(tmp_path / "job"), "UBI_CRAWL": "c"})
    agent = AgentDirectory.open(settings)
    with pytest.raises(UbiDirectoryError, match=r"job \(JOBDIR\) is in use .* give each process a JOBDIR of its own"):
        AgentDirectory.open(settings)
    agent.close()


def test_a_chosen_directory_in_use_is_refused(tmp_path: Path) -> None:
    held = AgentDirectory.open(given(tmp_path))
    with pytest.raises(UbiDirectoryError, match="UBI_DIR"):
        AgentDirectory.open(given(tmp_path))
    held.close()
    assert AgentDirectory.open(given(tmp_path)).agent_id == held.agent_id


def test_the_lock_falls_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from scrapy_ubi.adapter.process.agent_directory import AgentDirectory;"
        "from scrapy_ubi.settings import UbiSettings;"
        f"AgentDirectory.open(UbiSettings(crawl='c', dir=Path({str(tmp_path / 'd')!r}), dir_given=True));"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UbiDirectoryError, match=str(process.pid)):
            AgentDirectory.open(given(tmp_path))
        process.kill()
        process.wait()
    AgentDirectory.open(given(tmp_path))


def test_a_worker_that_outlives_its_agent_does_not_hold_the_directory(tmp_path: Path) -> None:
    """Of multiprocessing by fork: after kill -9 of the agent it waits for work for ever."""
    code = (
        "import os, sys; from pathlib import Path; from scrapy_ubi.adapter.process.agent_directory import "
        "AgentDirectory;"
        "from scrapy_ubi.settings import UbiSettings;"
        f"held = AgentDirectory.open(UbiSettings(crawl='c', dir=Path({str(tmp_path / 'd')!r}), dir_given=True));"
        "os.fork() or print('forked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        with pytest.raises(UbiDirectoryError, match=str(process.pid)):  # the worker has not let go of it for the agent
            AgentDirectory.open(given(tmp_path))
        process.kill()
        process.wait()
        AgentDirectory.open(given(tmp_path))


def test_a_spider_may_change_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = AgentDirectory.open(UbiSettings(crawl="c", dir=Path(".ubi") / "c"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    agent.record_incarnation("00c0ffee")
    assert agent.path == tmp_path / ".ubi" / "c"
    assert "00c0ffee" in (agent.path / "agent.json").read_text()


def test_the_incarnation_before_is_known(tmp_path: Path) -> None:
    first = AgentDirectory.open(given(tmp_path))
    assert first.predecessor is None
    first.record_incarnation("00c0ffee")
    first.close()
    second = AgentDirectory.open(given(tmp_path))
    assert second.predecessor == "00c0ffee"
    assert second.agent_id == first.agent_id


def test_in_a_copy_nobody_has_run_before(tmp_path: Path) -> None:
    """The process that runs in the original may live: holding the copy's lock says nothing of it."""
    first = AgentDirectory.open(given(tmp_path))
    first.record_incarnation("00c0ffee")
    shutil.copytree(first.path, tmp_path / "copy")
    copy = AgentDirectory.open(replace(given(tmp_path), dir=tmp_path / "copy"))
    assert (copy.agent_id, copy.predecessor) == (first.agent_id, None)
    copy.record_incarnation("00000002")
    copy.close()
    again = AgentDirectory.open(replace(given(tmp_path), dir=tmp_path / "copy"))
    assert again.predecessor == "00000002"


def test_a_directory_of_another_agent_or_crawl_is_refused(tmp_path: Path) -> None:
    AgentDirectory.open(given(tmp_path, "a1")).close()
    with pytest.raises(UbiDirectoryError, match="belongs to the agent 'a1', not to 'a2'"):
        AgentDirectory.open(given(tmp_path, "a2"))
    with pytest.raises(UbiDirectoryError, match="belongs to the crawl 'c', not to 'e'"):
        AgentDirectory.open(given(tmp_path, "a1", crawl="e"))
    assert AgentDirectory.open(given(tmp_path)).agent_id == "a1"


@pytest.mark.parametrize("before", ["c", "c:0123abcd"])
def test_a_directory_of_the_crawl_with_other_arguments_is_refused_with_the_reason(tmp_path: Path, before: str) -> None:
    AgentDirectory.open(given(tmp_path, crawl=before)).close()
    with pytest.raises(UbiDirectoryError, match=r"ends with a mark of the spider's arguments.*UBI_CRAWL to that"):
        AgentDirectory.open(given(tmp_path, crawl="c:4567abcd"))


def test_git_ignores_the_directories_that_were_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    AgentDirectory.open(UbiSettings(crawl="c", dir=Path(".ubi") / "c")).close()
    assert (tmp_path / ".ubi" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"agent": 1}', "\x80"])
def test_a_damaged_record_is_refused_and_the_directory_let_go(tmp_path: Path, text: str) -> None:
    AgentDirectory.open(given(tmp_path)).close()
    (tmp_path / "d" / "agent.json").write_text(text, encoding="latin-1")
    for _ in range(2):
        with pytest.raises(UbiDirectoryError, match="is damaged: remove it"):
            AgentDirectory.open(given(tmp_path))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("a file")
    with pytest.raises(UbiDirectoryError, match="set UBI_DIR"):
        AgentDirectory.open(given(tmp_path))


def test_whether_an_agent_has_a_directory_is_seen_without_touching_its_lock(tmp_path: Path) -> None:
    assert not held_since(tmp_path, 0.0), "nobody has ever had it"
    lock = AgentLock(tmp_path)
    taken = (tmp_path / "lock").stat().st_mtime
    assert held_since(tmp_path, taken - 1) and not held_since(tmp_path, taken + 1)
    lock.release()
    read = AgentLock(tmp_path, COMMAND)
    assert not held_since(tmp_path, taken - 1), "a command reads it"
    read.release()
    (tmp_path / "lock").write_text("4194999\n")  # beyond the numbers that processes have
    assert not held_since(tmp_path, taken - 1)


def test_without_flock_a_directory_is_held_by_one_process_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_ubi.adapter.process.agent_directory.fcntl", None)
    lock = AgentLock(tmp_path)
    with pytest.raises(BlockingIOError):
        AgentLock(tmp_path)
    lock.release()
    AgentLock(tmp_path).release()
