"""The names in the docs: the glossary, and the old and new names of modules. How a page is worded is not tested.

Rules of this module:

* The glossary is in order, has few words that are ours alone, and names classes that exist.
* Decisions are not edited, so they are not judged: a page tells the new names of the modules that they name.
* Docstrings, comments and texts of every room name modules by their new names.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_house import defined, quoted, rows

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_ubi"
GLOSSARY = (DOCS / "reference" / "glossary.md").read_text()
NAMES = (DOCS / "decisions" / "old-and-new-names.md").read_text()
MOST_OWN_WORDS = 15

ROOMS = sorted(part.stem for part in PACKAGE.iterdir() if part.suffix == ".py" or (part / "__init__.py").exists())
WORDS = {
    "link",
    "stopped",
    "body",
    "finish",
    "leaving",
    "garbage",
    "asking",
}  # old names of modules that are values as well


def sources(room: str) -> list[Path]:
    """The modules of a room: a package, or a module beside them."""
    place = PACKAGE / room
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


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


def test_every_new_name_exists_and_no_old_one_does() -> None:
    table = [row for title in re.findall(r"^## (.+)$", NAMES, re.MULTILINE) for row in rows(section(NAMES, title))]
    assert len(table) > 100
    new_names = {quoted(row[1])[0] for row in table if quoted(row[1])}
    for old, new in ((quoted(row[0])[0], quoted(row[1])) for row in table):
        assert not new or (PACKAGE / new[0]).exists(), f"{old} is not {new}"
        kept = old in new_names or old in ("scheduler.py", "outcome.py") or (PACKAGE / old).is_dir()
        assert kept or not (PACKAGE / old).exists(), f"{old} is still there"


def stems() -> dict[str, str]:
    """Old names of modules that are no module's name any longer -> the new file."""
    now = {part.stem for part in PACKAGE.rglob("*") if part.suffix == ".py" or part.is_dir()}
    table = [row for title in re.findall(r"^## (.+)$", NAMES, re.MULTILINE) for row in rows(section(NAMES, title))]
    named = [(quoted(row[0])[0], row[1]) for row in table]
    return {Path(old).stem: new for old, new in named if Path(old).stem not in now}


def identifiers(source: Path) -> set[str]:
    """Every name that the code of a module uses."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_name_modules_by_their_new_names(room: str) -> None:
    old = stems()
    for source in sources(room):
        used = identifiers(source)
        for line, text in texts(source):
            for quote in quoted(text):
                stale = {part for part in quote.split(".") if part in old and part not in used | WORDS}
                assert not stale, f"{source}:{line}: `{quote}`: " + ", ".join(old[part] for part in stale)


def texts(source: Path) -> Iterator[tuple[int, str]]:
    """The comments and constant texts of a module, docstrings among them, with their lines."""
    code = source.read_text()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
