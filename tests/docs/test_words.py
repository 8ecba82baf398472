"""The glossary of the docs: in order, with few words that are ours alone, and classes that exist.

Rules of this module: how a page is worded is not tested.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_house import defined, quoted, rows

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_ubi"
GLOSSARY = (DOCS / "reference" / "glossary.md").read_text()
MOST_OWN_WORDS = 8


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


@pytest.mark.parametrize("title", ["Words of this project", "Terms of the field", "Classes and what they are"])
def test_the_glossary_is_in_order_and_says_something_of_each(title: str) -> None:
    table = rows(section(GLOSSARY, title))
    words = [row[0].strip("`").lower() for row in table]
    assert words == sorted(words)
    assert len(words) == len(set(words))
    assert all(all(row) for row in table)


def test_few_words_are_ours_alone() -> None:
    assert len(rows(section(GLOSSARY, "Words of this project"))) <= MOST_OWN_WORDS


def test_the_classes_of_the_glossary_exist() -> None:
    for name, module, _ in rows(section(GLOSSARY, "Classes and what they are")):
        assert quoted(name)[0] in defined(PACKAGE / quoted(module)[0]), name
