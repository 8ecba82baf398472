"""`scrapy ubi collect duplicates`, in this process; and what an agent that starts again knows."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.judged import DUPLICATE_OF, Judged
from scrapy_ubi.cli.commands import collect
from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.errors import UbiError
from scrapy_ubi.outputs.duplicates.duplicate_record import BadLine, Compared, line_of, read_line
from scrapy_ubi.outputs.duplicates.duplicates_store import known
from scrapy_ubi.outputs.duplicates.judge import Judge
from tests.outputs.duplicates.kept import agent
from tests.outputs.duplicates.planted import Plants, response_of


def command(*arguments: str, **settings: str) -> QueryReport:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    return collect.run(Settings(settings), parser.parse_args(["collect", "duplicates", *arguments]))


def test_groups_are_lines_of_json(tmp_path: Path) -> None:
    pages, output = list(Plants(3).web(40)), tmp_path / "duplicates.jsonl"
    place = agent(tmp_path / "a", pages)
    done = command("--dir", str(place), "-o", str(output))
    groups = [json.loads(line) for line in output.read_text().splitlines()]
    kinds = Counter(group["kind"] for group in groups)
    assert kinds == {"exact": 10, "near": 20} and done.document["groups"] == 30
    assert (done.document["exact"], done.document["near"], done.document["pages"]) == (10, 20, 70)
    assert done.lines[0].endswith(
        "30 groups of duplicates among 70 pages; copies beside the first ones: 10 exact, 20 near."
    )
    assert not list(tmp_path.glob("ubi-*"))
    for arguments, near in ((("--near", "0"), "near(3)"), ((), "exact")):
        done = command("--dir", str(place), "-o", str(output), *arguments, UBI_DUPLICATES=near)
        assert (done.document["exact"], done.document["near"]) == (10, 0)


def test_where_nothing_was_kept_a_sentence_says_so(tmp_path: Path) -> None:
    place = agent(tmp_path / "a", [])
    with pytest.raises(UbiError, match=r"There (is nothing|are no outputs)"):
        command("--dir", str(place), "-o", str(tmp_path / "out"))


def test_an_agent_that_starts_again_knows_the_pages_that_are_done(tmp_path: Path) -> None:
    pages = list(Plants(3).web(8))
    place = agent(tmp_path / "a", pages[:1])
    judge = Judge(3, "mark", lambda stat: None, lambda what, host: None)
    judge.restore((page.host, page.url, page.judged) for page in known(place / "out"))
    response = response_of(pages[1])
    assert response.request is not None
    judge.judge(Flight(response.request, "host"), response)
    assert response.request.meta[DUPLICATE_OF] == pages[0].url


def test_lines_are_read_as_they_were_written() -> None:
    page = Compared(
        "a.example", "http://a.example/", 200, Judged(bytes(20), 7, bytes(256), "near", "http://a.example/1")
    )
    assert read_line(line_of(page)) == page
    for line in (b"", b"\xff\n", line_of(page).replace(b"near", b"far"), line_of(page)[:50], b"\t" * 7):
        with pytest.raises(BadLine):
            read_line(line)
