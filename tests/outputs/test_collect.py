"""What is collected: each page once, whichever agents have it, in an order of its own; in bounded memory."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ubi.adapter.process.agent_directory import AgentLock
from scrapy_ubi.cli.commands.collect import run
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.collector import UbiNothingCollected, find_outputs, is_held, runs_of
from scrapy_ubi.outputs.sorting import WAYS, Sorter
from tests.outputs.kept import Kept, collected


def agent(place: Path, *pages: tuple[str, ...], run: str = "run") -> Path:
    """The directory of an agent that has kept these pages: name, retries, kind, lines."""
    kept = Kept(place, agent=place.name)
    for name, attempt, kind, *lines in pages:
        kept.page(name, *lines, attempt=int(attempt), kind=kind)
    kept.flush(run)
    kept.close()
    return place


def test_a_page_of_two_agents_counts_once_and_whole(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", ("p", "0", "ok", "a1", "a2"), ("q", "0", "ok", "q"))
    two = agent(tmp_path / "b", ("r", "0", "ok", "r"), ("p", "0", "ok", "b1"))
    assert collected(one, two) == collected(two, one) == ["a1", "a2", "q", "r"]


def test_what_did_not_fail_counts_and_of_that_the_last_attempt(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", ("p", "3", "failed", "error"), ("q", "0", "ok", "early"))
    two = agent(tmp_path / "b", ("p", "0", "ok", "good"), ("q", "1", "ok", "late"))
    assert collected(one, two) == ["good", "late"]


def test_attempts_that_the_callback_has_asked_for_count_each_once(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", ("p", "0", "again", "first"), ("p", "1", "ok", "second"))
    two = agent(tmp_path / "b", ("p", "0", "again", "first"), ("p", "1", "again", "second"), ("p", "2", "again", "x"))
    assert collected(one, two) == ["first", "second"]
    assert collected(two) == ["first", "second", "x"]


def test_runs_do_not_mix(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", ("p", "0", "ok", "old"), run="one")
    two = agent(tmp_path / "b", ("p", "0", "ok", "new"), run="two")
    assert runs_of(find_outputs([one, two])) == ["two", "one"]
    assert collected(one, two, run="two") == ["new"]


def test_of_a_running_agent_what_is_sealed_counts(tmp_path: Path) -> None:
    lock = AgentLock(tmp_path)
    kept = Kept(tmp_path, size=4)
    kept.page("a", "full")
    kept.flush()
    kept.page("b", "x")
    kept.flush()
    assert is_held(tmp_path) and collected(tmp_path) == ["full"]
    lock.release()
    assert not is_held(tmp_path) and collected(tmp_path) == ["full", "x"]


def test_where_there_is_nothing_a_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(UbiNothingCollected, match="UBI_STORES"):
        collected(tmp_path)


def test_more_than_fits_into_memory_is_sorted(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draws = random.Random(seed)
    records = [((f"{draws.getrandbits(64):016x}", 0, -1, 2, n), bytes([n % 256]) * (n % 7)) for n in range(3000)]
    with Sorter(tmp_path, most=3000 * 200 // (WAYS * 3)) as sorter:
        for key, data in records:
            sorter.add(key, data)
        assert len(sorter.runs) > 2 * WAYS
        assert list(sorter) == sorted(records)
    assert not list(tmp_path.iterdir())


def command(place: Path, kind: str, *arguments: str) -> QueryReport:
    """What `scrapy ubi collect` answers, in this process."""
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    opts = parser.parse_args(["collect", kind, *arguments])
    return run(Settings({"UBI_DIR": str(place / "none")}), opts)


def test_the_command(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", ("p", "0", "ok", "1"), ("q", "0", "ok", "2"))
    two = agent(tmp_path / "b", ("p", "0", "ok", "1"))
    dirs, out = ["--dir", str(one), "--dir", str(two)], str(tmp_path / "out.jsonl")
    done = command(tmp_path, "items", *dirs, "-o", out)
    assert Path(out).read_text() == "1\n2\n" and not Path(f"{out}.part").exists()
    assert done.lines == [f"{out}: items of 2 pages, from 2 parts of 2 agents; 1 page there twice, counted once."]
    assert done.document["pages"] == 2 and done.document["doubles"] == 1 and done.document["run"] == "run"


def test_the_command_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = agent(tmp_path / "a", ("p", "0", "ok", "1"), run="earlier")
    two = agent(tmp_path / "b", ("p", "0", "ok", "2"), run="later")
    dirs, out = ["--dir", str(one), "--dir", str(two)], str(tmp_path / "out.jsonl")
    command(tmp_path, "items", *dirs, "-o", out)
    assert Path(out).read_text() == "2\n"
    assert "Left out are outputs of other runs of this crawl: earlier (--run)." in capsys.readouterr().err
    command(tmp_path, "items", *dirs, "-o", out, "--run", "earlier")
    assert Path(out).read_text() == "1\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["items", "--run", "none"], "There is no run 'none'"),
        (["links"], "nothing of the store 'larm'"),
        (["items", "--crawl", "other"], "There are no outputs of crawl 'other'"),
        (["items", "--dir", "nowhere", "--crawl", "none"], "name the agents' directories with --dir"),
    ],
)
def test_the_command_refuses_with_a_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    one = agent(tmp_path / "a", ("p", "0", "ok", "1"))
    out = tmp_path / "out.jsonl"
    with pytest.raises(UbiError, match=sentence):
        command(tmp_path, *arguments, "--dir", str(one), "-o", str(out))
    assert not out.exists() and not list(tmp_path.glob("*.part"))
