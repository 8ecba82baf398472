"""docs/how-to/troubleshooting.md quotes what the suite really says: each message's fixed words stand in the source.

Rules of this module:

* A message is what the first cell of a row quotes; ` ... ` stands for names and numbers. What Scrapy says itself is
  marked so, and not looked for.
* A text of the source is a constant or an f-string that is no docstring, with a mark for each value that is put in.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.test_house import quoted, rows
from tests.support.parsed import parsed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"
MESSAGES = [quoted(row[0])[0] for row in rows(PAGE.read_text()) if "Scrapy's own" not in row[0]]
FEWEST_MESSAGES = 50
VALUE = "\0"  # what stands for a value that is put in
FEWEST_WORDS = 3  # of the longest fixed part of a message: with fewer it would be found anywhere

_values = re.compile(r"%[\d.,]*[a-z]|{[^{}]*}")


@cache
def texts() -> tuple[str, ...]:
    """Every text of the package, with one blank between words."""
    found: set[str] = set()
    for source in (ROOT / "scrapy_ubi").rglob("*.py"):
        tree = parsed(source.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                found.add("".join(str(p.value) if isinstance(p, ast.Constant) else VALUE for p in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(_values.sub(VALUE, node.value))
    return tuple({" ".join(text.split()) for text in found})


def fixed_parts(message: str) -> list[str]:
    """The words of a message between its values."""
    return [part.strip() for part in message.split("...") if part.strip()]


def test_the_page_has_the_messages_that_people_meet() -> None:
    assert len(MESSAGES) >= FEWEST_MESSAGES
    assert len(MESSAGES) == len(set(MESSAGES))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_stands_in_the_source(message: str) -> None:
    parts = fixed_parts(message)
    assert max(len(part.split()) for part in parts) >= FEWEST_WORDS, "too few words to be found by"
    in_order = re.compile(".*".join(map(re.escape, parts)))
    assert any(in_order.search(text) for text in texts()), f"the package does not say: {message}"


@pytest.mark.parametrize("invented", ["The moon is in use by another running agent", "No agent ... cheese"])
def test_what_the_package_does_not_say_is_noticed(invented: str) -> None:
    in_order = re.compile(".*".join(map(re.escape, fixed_parts(invented))))
    assert not any(in_order.search(text) for text in texts())
