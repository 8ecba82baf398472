"""The wall clock of the machine is set anew in the middle of a crawl: what is measured by intervals does not notice."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support.project import LIMIT, Project
from tests.support.site import Held, Site, links

pytestmark = pytest.mark.processes

# Loaded before anything else: the wall clock of this process jumps as soon as a file is there.
JUMPING = """
    import os, time
    real, jump = time.time, float(os.environ["JUMP"])
    time.time = lambda: real() + (jump if os.path.exists(os.environ["JUMP_FILE"]) else 0.0)
"""


def jumping(project: Project, seconds: float, *arguments: str) -> subprocess.Popen[str]:
    (project.place / "clock").mkdir()
    (project.place / "clock" / "sitecustomize.py").write_text(textwrap.dedent(JUMPING))
    environment = {
        **project.environment,
        "PYTHONPATH": str(project.place / "clock"),
        "JUMP": str(seconds),
        "JUMP_FILE": str(project.place / "jump"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=project.place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until_asked(site: Site, url: str) -> None:
    end = time.monotonic() + LIMIT
    while not site.urls()[url]:
        assert time.monotonic() < end, f"nobody asked for {url}"
        time.sleep(0.02)


def arrived(held: Held) -> None:
    assert held.arrived.wait(LIMIT)


@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize("fast", ["False", "True"])
def test_a_jump_of_the_wall_clock_times_out_no_page_in_flight(tmp_path: Path, hours: int, fast: str) -> None:
    urls = {name: f"http://{name}.example/" for name in ("h1", "slow", "next", "last")}
    with Site() as site:
        site.page(urls["h1"], links(urls["slow"], urls["next"]))
        site.page(urls["slow"], "slow")
        site.page(urls["next"], links(urls["last"]))
        site.page(urls["last"], "last")
        project = Project(tmp_path, site.proxy)
        arguments = ["crawl", "walk", "-o", "items.jsonl", "-s", f"UBI_FAST={fast}", "-s", "DOWNLOAD_TIMEOUT=300"]
        with site.hold(urls["slow"]) as slow, site.hold(urls["next"]) as following:
            process = jumping(project, hours * 3600.0, *arguments)
            arrived(slow)
            arrived(following)
            (tmp_path / "jump").touch()
            following.release()
            until_asked(site, urls["last"])  # timers have been looked at since
            slow.release()
            output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    assert sorted(item["url"] for item in project.items()) == sorted(urls.values()), output
    assert site.urls()[urls["slow"]] == 1, output
