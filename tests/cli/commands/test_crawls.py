"""Which crawl a command means, the list of crawls, and how old ones are forgotten."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_ubi.cli.commands.crawls import age
from scrapy_ubi.cli.commands.frontier_options import span
from scrapy_ubi.cli.commands.project import REMARK
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.transport.redis_keys import crawl_of
from tests.cli.commands.stopped_directories import directory
from tests.cli.commands.test_ubi import LIMIT, Shell
from tests.cli.monitor.by_hand import CrawlByHand
from tests.support.server import Server

MINE = "shop:walk"


@pytest.fixture
def crawls(one_server: Server) -> Iterator[dict[str, CrawlByHand]]:
    """Of project shop one that runs, one that is finished, one that was stopped two days ago; and two of others."""
    with one_server.client() as client:
        found = {
            name: CrawlByHand(client, name)
            for name in (MINE, f"{MINE}:00000001", f"{MINE}:00000002", "other:walk", "shop2:walk")
        }
        now = found[MINE].now()
        found[MINE].agent("a1")
        for name in (f"{MINE}:00000001", "other:walk"):
            found[name].agent("a1", {"state": "finished", "updated": now - 60}, flags="L")
            found[name].finish()
        found[f"{MINE}:00000002"].agent(
            "a1", {"state": "left", "updated": now - 2 * 86_400, "arguments": {"site": "b"}}, flags="L"
        )
        found["shop2:walk"].agent("a1", {"state": "left", "updated": now - 3 * 86_400}, flags="L")
        yield found


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_server: Server
) -> Shell:
    """In project shop."""
    (tmp_path / "scrapy.cfg").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return Shell(capsys, {"UBI_REDIS_URL": one_server.url, "BOT_NAME": "shop"})


def left(one_server: Server) -> set[str]:
    with one_server.client() as client:
        return {crawl_of(key.decode()) or "" for key in client.scan_iter(match="ubi:{*}:beats")}


def test_the_only_crawl_of_the_project_is_meant(shell: Shell, one_server: Server) -> None:
    with one_server.client() as client:
        CrawlByHand(client, "other:walk").agent("a1")
        assert shell.json("status")["crawl"] == "other:walk", "it is the only one of all"
        CrawlByHand(client, "shop2:walk").agent("a1")
        assert shell("status") == 1
        assert shell.err == (
            f"scrapy ubi: There is no crawl of this project (shop) in {one_server.url}: start one, or name one with "
            "--crawl; there are other:walk, shop2:walk.\n"
        )
        CrawlByHand(client, f"{MINE}:00000001").agent("a1")
        assert shell.json("status")["crawl"] == f"{MINE}:00000001"
        assert shell.json("status", "--crawl", "oth")["crawl"] == "other:walk", "the beginning of a name is enough"


def test_several_crawls_of_the_project_are_listed(
    shell: Shell, crawls: dict[str, CrawlByHand], one_server: Server
) -> None:
    assert shell("report") == 1
    assert shell.err == (
        f"scrapy ubi: There are 3 crawls of this project in {one_server.url}: {MINE}, {MINE}:00000001, "
        f"{MINE}:00000002; name one with --crawl.\n"
    )
    assert shell.json("status", "--crawl", MINE)["crawl"] == MINE, "a whole name before the beginnings of others"
    assert shell("status", "--crawl", f"{MINE}:") == 1


def test_crawls_lists_those_that_run_first_and_then_the_latest(shell: Shell, crawls: dict[str, CrawlByHand]) -> None:
    assert shell("crawls") == 0, shell.err
    lines = shell.out.splitlines()
    assert lines[0].startswith("5 crawls in redis://")
    assert [line.split()[:2] for line in lines[3:]] == [
        [MINE, "running"],
        ["other:walk", "finished"],
        [f"{MINE}:00000001", "finished"],
        [f"{MINE}:00000002", "stopped"],
        ["shop2:walk", "stopped"],
    ]
    assert lines[6].endswith("2 d 0 h ago  site=b"), lines
    data = shell.json("crawls", "--crawl", "shop:")
    assert data["total"] == 3
    first, second, third = data["crawls"]
    assert 0 <= first.pop("age") < 60 <= second.pop("age") < third.pop("age")
    assert first == {
        "crawl": MINE,
        "state": "running",
        "agents": 1,
        "working": 1,
        "pages": 100,
        "spiders": ["web"],
        "arguments": [],
    }
    assert (second["state"], third["state"], third["arguments"]) == ("finished", "stopped", [{"site": "b"}])


def test_no_crawls(shell: Shell) -> None:
    assert shell("crawls") == 0
    assert shell.out.startswith("0 crawls in redis://") and shell.out.count("\n") == 1
    assert shell.json("crawls")["crawls"] == []


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (("--finished",), {f"{MINE}:00000001"}),
        (("--older-than", "1d"), {f"{MINE}:00000002"}),
        (("--older-than", "30s"), {f"{MINE}:00000001", f"{MINE}:00000002"}),
        (("--finished", "--older-than", "1d"), set()),
    ],
)
def test_old_crawls_of_the_project_are_forgotten(
    shell: Shell, crawls: dict[str, CrawlByHand], one_server: Server, options: tuple[str, ...], gone: set[str]
) -> None:
    data = shell.json("reset", "--yes", *options)
    assert {one["crawl"] for one in data["crawls"]} == gone and data["deleted"] is bool(gone)
    assert left(one_server) == crawls.keys() - gone


def test_directories_of_old_crawls_go_too_and_one_is_asked_once(
    shell: Shell,
    crawls: dict[str, CrawlByHand],
    one_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = [directory(tmp_path / ".ubi" / name, name=name) for name in crawls]
    for answer, gone in (("n\n", 0), ("y\n", 2)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert shell("reset", "--older-than", "30s") == (0 if gone else 1)
        assert shell.err.count("will be deleted permanently") == 2 and shell.err.count("Forget them?") == 1
        assert sum(not place.exists() for place in places) == gone
        assert len(left(one_server)) == len(crawls) - gone


def test_outside_of_a_project_all_old_crawls_are_meant(
    shell: Shell, crawls: dict[str, CrawlByHand], one_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "scrapy.cfg").unlink()
    assert shell("reset", "--yes", "--finished") == 0
    assert left(one_server) == {MINE, f"{MINE}:00000002", "shop2:walk"}


def test_reset_means_no_crawl_of_another_project(shell: Shell, one_server: Server) -> None:
    with one_server.client() as client:
        CrawlByHand(client, "other:walk").agent("a1", {"state": "left"}, flags="L")
        assert shell("reset", "--yes") == 1
        assert "There is no crawl of this project (shop)" in shell.err
        assert left(one_server) == {"other:walk"}


@pytest.mark.parametrize(
    "words", [("--finished", "--crawl", "c"), ("--older-than", "1d", "--dir", "d"), ("--older-than", "1")]
)
def test_what_does_not_go_together_is_a_wrong_command_line(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("reset", "--yes", *words) == 2


def test_spans() -> None:
    assert [span(text) for text in ("5s", "90min", "12h", "7d")] == [5.0, 5400.0, 43_200.0, 604_800.0]


def test_the_age_of_a_crawl_nobody_has_told_of_is_not_known() -> None:
    assert age(CrawlStatus("c")) == math.inf


@pytest.mark.processes
def test_watch_waits_for_a_crawl_to_appear(one_server: Server, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scrapy", "ubi", "status", "--watch", "--json", "--redis-url", one_server.url]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    guard = threading.Timer(LIMIT, run.kill)
    guard.start()
    try:
        assert run.stdout is not None and run.stderr is not None
        said = run.stderr.readline()
        assert said.startswith("scrapy ubi: There is no crawl in ") and said.endswith("Waiting for it to begin.\n")
        with one_server.client() as client:
            by_hand = CrawlByHand(client)
            by_hand.agent("a1")
            assert json.loads(run.stdout.readline())["state"] == "running"
            by_hand.finish()
        assert json.loads(run.stdout.read().splitlines()[-1])["state"] == "finished"
        assert run.wait(LIMIT) == 0
    finally:
        guard.cancel()
        run.kill()
        run.communicate()


# -- the add-on is not on --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addons", "on"),
    [
        ({}, False),
        ({"scrapy_ubi.Addon": None}, False),
        ({"no.such.AddOn": 1}, False),
        ({"scrapy_ubi.Addon": 500}, True),
        ({"scrapy_ubi.addon.Addon": 500}, True),
        ('{"scrapy_ubi.Addon": 500}', True),
    ],
)
def test_that_the_add_on_is_not_on_in_this_project_is_said(
    shell: Shell, crawls: dict[str, CrawlByHand], tmp_path: Path, addons: object, on: bool
) -> None:
    shell.settings["ADDONS"] = addons
    assert shell("status", "--crawl", MINE, "--json") == 0
    assert shell.err == ("" if on else f"scrapy ubi: {REMARK}\n")
    assert json.loads(shell.out)["crawl"] == MINE
    (tmp_path / "scrapy.cfg").unlink()
    assert shell("status", "--crawl", MINE) == 0
    assert shell.err == ""


def test_an_add_on_derived_from_ours_is_ours(shell: Shell, crawls: dict[str, CrawlByHand]) -> None:
    from scrapy_ubi import Addon

    class Mine(Addon):  # type: ignore[misc, valid-type]
        """A user's."""

    shell.settings["ADDONS"] = {Mine: 500}
    assert shell("status", "--crawl", MINE) == 0
    assert shell.err == ""
