"""The help of every sub-command fits a terminal of 80 columns."""

from __future__ import annotations

import argparse

import pytest

from scrapy_ubi.cli.commands.options import add_subcommands, filled

TEXT = """\
A paragraph of some words that
goes on, and on, here.

  name       what it means, in words that need more than one line of a terminal of eighty columns
             and a second line
  two words  another
Behind the list: a paragraph.
"""


def parsers() -> dict[str, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    (what,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(what.choices)


@pytest.mark.parametrize("columns", [80, 100])
def test_every_help_fits(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = parsers()
    assert "status" in found and "reset" in found
    long = {name: line for name, one in found.items() for line in one.format_help().splitlines() if len(line) > columns}
    assert not long


def test_lists_and_paragraphs_are_broken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert filled(TEXT).splitlines() == [
        "A paragraph of some words that goes on, and on, here.",
        "",
        "  name       what it means, in words that need more than one line of a",
        "             terminal of eighty columns and a second line",
        "  two words  another",
        "Behind the list: a paragraph.",
    ]
