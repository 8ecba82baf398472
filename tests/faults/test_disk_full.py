"""A disk that somebody else fills up in mid-crawl: its agent waits for room, and nothing is lost or fetched twice."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import ENGINES, MakeGroup
from tests.faults.test_full import status
from tests.outputs.kept import collected
from tests.support.disks import unwritten
from tests.support.group import Group

pytestmark = [pytest.mark.processes, pytest.mark.faults]

SIZE = 160  # MB: what a store sets aside for itself, the reserve, and a little
BEATS = 12  # in longer than the failure timeout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", str(place)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    if made.returncode:
        pytest.skip(f"nothing can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False, timeout=30)


def fill(disk: Path) -> Path:
    """Somebody's file that takes all there is."""
    file = disk / "ballast"
    with file.open("wb", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    ballast.write(os.urandom(size))
            except OSError:
                pass
    return file


def asked(group: Group, name: str) -> int:
    """How often the web was asked by this agent."""
    return sum(row["agent"] == name for row in group.web.log())


@ENGINES
def test_an_agent_whose_disk_is_full_waits_for_room(make_group: MakeGroup, small_disk: Path, engine: str) -> None:
    group = make_group(latency=0.05, UBI_STORE_ENGINE=engine)
    group.start("a0", UBI_DIR=small_disk / "agent")
    group.start("a1")
    group.until_served(0.2)
    ballast = fill(small_disk)
    group.until(lambda: blocked(group) == {"a0"}, "a0 blocked")
    group.until(lambda: not group.counters()["a0"]["in_flight"], "its loads to end")
    before, counter = asked(group, "a0"), group.beats()["a0"].counter
    group.until(lambda: group.beats()["a0"].counter > counter + BEATS, "beats for longer than the failure timeout")
    assert asked(group, "a0") == before, "nothing is fetched"
    assert len(group.web.visits()) < len(group.truth)
    said = status(group.server)
    assert "blocked" in said and "disk" in said
    ballast.unlink()
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    assert asked(group, "a0") > before
    log = verdict.logs["a0"]
    assert log.count("make room, and the crawl goes on") == log.count("The disk has room again.") == 1
    assert "'ubi/fences': 0" in log and "'ubi/rejoins': 0" in log


@ENGINES
def test_an_agent_killed_on_a_full_disk_is_refused_until_there_is_room_and_goes_on(
    make_group: MakeGroup, small_disk: Path, engine: str
) -> None:
    group = make_group(latency=0.05, hosts=20, pages=300, UBI_REDIS_URL=None, UBI_STORE_ENGINE=engine)
    directory = small_disk / "agent"
    group.start("a0", UBI_DIR=directory)
    group.until_served(0.3)
    ballast = fill(small_disk)
    group.until(lambda: group.said("a0", "make room, and the crawl goes on"), "a word of it")
    group.kill("a0")
    left = set(group.web.visits())
    log = group.place / "a0.log"
    log.rename(log.with_name("killed.log"))
    group.start("a0", UBI_DIR=directory, LOG_LEVEL="WARNING")
    assert group.agents.pop("a0").popen.wait() == 1
    said = log.read_text()
    assert said.startswith("scrapy_ubi: ") and "is full" in said and said.count("\n") == 1, said
    assert set(group.web.visits()) == left
    ballast.unlink()
    left = unwritten([directory], left)
    group.start("a0", UBI_DIR=directory)
    verdict = group.end().judge(unwritten=left)
    assert "Going on with the crawl in" in verdict.logs["a0"]


def quiet(group: Group, looks: int = 20) -> Callable[[], bool]:
    """A condition: nothing was asked for between so many looks."""
    seen: list[int] = []

    def look() -> bool:
        seen.append(asked(group, "a0"))
        return len(seen) > looks and len(set(seen[-looks:])) == 1

    return look


def blocked(group: Group) -> set[str]:
    """The agents that say they are."""
    return {name for name, profile in group.profiles().items() if profile["state"] == "blocked"}


def test_outputs_that_have_no_room_pause_the_crawl_as_the_frontier_does(
    make_group: MakeGroup, tmp_path: Path, small_disk: Path
) -> None:
    """`out` lies on a disk of its own, which is full: the frontier's is not."""
    group = make_group(latency=0.05, hosts=20, pages=1000, UBI_REDIS_URL=None, UBI_STORES="items")
    directory = tmp_path / "agent"
    directory.mkdir()
    (small_disk / "out").mkdir()
    (directory / "out").symlink_to(small_disk / "out")
    group.start("a0", UBI_DIR=directory)
    group.until_served(0.3)
    ballast = fill(small_disk)
    group.until(lambda: group.said("a0", "make room, and the crawl goes on"), "a word of it")
    group.until(quiet(group), "its loads to end")
    before = asked(group, "a0")
    assert before < len(group.truth)
    ballast.unlink()
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0 and asked(group, "a0") > before
    wanted = {f"http://{row['host']}{row['path']}" for row in group.web.log() if row["status"] == 200}
    found = [json.loads(line)["url"] for line in collected(directory)]
    assert len(found) == len(set(found)) and set(found) <= wanted
    assert set(found) == {url for url in group.truth if "/go/" not in url and "/gone/" not in url}
