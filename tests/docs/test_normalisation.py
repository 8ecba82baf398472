"""What docs/reference/url-normalisation.md says of our rules is so: steps, presets, every normal form in its tables."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from w3lib.url import canonicalize_url

from scrapy_ubi.urls import Normaliser, partition_key
from scrapy_ubi.urls.host_rules import read_properties
from scrapy_ubi.urls.normaliser import PRESETS, STEPS, parse_steps

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "url-normalisation.md").read_text()


def rows(first_column: str) -> list[list[str]]:
    """The cells of the table with that heading, backticks and all."""
    table = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|(?: --- \|)+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None, first_column
    return [re.split(r" \| ", line.strip("| ")) for line in table[1].splitlines()]


def bare(cell: str) -> str:
    return cell.strip("`")


def test_the_table_of_steps_is_ours() -> None:
    table = rows("step")
    assert [bare(row[0]) for row in table] == list(STEPS)
    for preset, column in (("scrapy", 3), ("safe", 4), ("larm", 5)):
        assert {bare(row[0]) for row in table if row[column] == "yes"} == PRESETS[preset]
    told = {"yes": "{}", "tried": "?{}"}
    learned = {told[row[6]].format(bare(row[0])) for row in table if row[6] in told}
    assert learned | {"?www"} == PRESETS["learned"]


@pytest.mark.parametrize(("preset", "column"), [("scrapy", 1), ("safe", 2), ("larm", 3)])
def test_the_normal_forms_beside_those_of_others_are_ours(preset: str, column: int) -> None:
    normalise = Normaliser(PRESETS[preset])
    assert [(bare(row[0]), bare(row[column])) for row in rows("URL")] == [
        (bare(row[0]), normalise(bare(row[0]))) for row in rows("URL")
    ]


@pytest.mark.skipif(not version("w3lib").startswith("2.5"), reason="the page speaks of w3lib 2.5")
def test_the_normal_forms_of_w3lib_are_its_own() -> None:
    for row in rows("URL"):
        url, shown = bare(row[0]), bare(row[5])
        assert canonicalize_url(url) == (url if shown == "as found" else shown)


def test_every_example_of_a_step_is_its_work() -> None:
    for row in rows("step"):
        only_this = Normaliser(frozenset({bare(row[0])}))
        example = re.match(r"`([^`]+)` (?:and `[^`]+` are|is) `([^`]+)`", row[2].replace(r"\|", "|"))
        assert example is not None, row
        url, expected = (
            part if "//h" in part else f"http://h{'' if part[0] == '/' else '/'}{part}" for part in example.groups()
        )
        assert only_this(url) == expected


def test_every_example_of_the_parser_is_its_work() -> None:
    parser = Normaliser(frozenset())
    for row in rows("the parser"):
        examples = re.findall(r"`([^`]+)` is `([^`]+)`", row[2].translate({ord("␣"): " ", ord("⏎"): "\n"}))
        assert examples, row
        for url, expected in (map(whole, example) for example in examples):
            assert parser(url) == expected


def whole(part: str) -> str:
    """A URL of which only the path, or only the host, is shown."""
    if "//" in part:
        return part
    return f"http://h{part}" if part.startswith("/") else f"http://{part}/"


def test_the_rules_for_hosts_shown_do_what_the_table_says() -> None:
    (block,) = re.findall(r"^```\n(# comments begin.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    rules = read_properties(block)
    assert rules is not None
    names = {
        "www.h.example": ("h.example", "www.h.example"),
        "a.mirror.example": ("a.example", "a.mirror.example"),
        "old.example": ("new.example", "new.example"),
        "old.example:8080": ("new.example:8080", "new.example:8080"),
    }
    for name, (owned, same) in names.items():
        url = f"http://{name}/"
        assert partition_key(url, "host", rules) == owned
        assert Normaliser(PRESETS["safe"], rules)(url) == f"http://{same}/"


def test_every_composition_shown_can_be_read() -> None:
    for row in rows("value"):
        parse_steps(bare(row[0]))
