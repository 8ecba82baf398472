"""The words of the docs: the glossary, and idioms that a newcomer stumbles over.

Rules of this module:

* The glossary is in order, has few words that are ours alone, and names classes that exist.
* Idioms are banned in every page but the decisions, and in the docstrings, comments and texts of every room.
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
MOST_OWN_WORDS = 8

# What a newcomer whose first language is not English has to look up, and the plain words for it.
IDIOMS = {
    r"nobody": "no agent, no other process; or turn the sentence round",
    r"whoever": "the agent that, the user who",
    r"in vain": "without effect",
    r"befalls?|befell|befallen": "happens to, happened to",
    r"with less ado": "for less processor time, in fewer calls",
    r"by and by": "slowly, a part at a time",
    r"no more(?! than)": "no longer, nothing else",
    r"for good": "permanently, after all retries",
    r"no matter": "whatever the ..., also if",
    r"as ever": "as before, as usual",
    r"for ever": "permanently, without end",
    r"all the same": "still, nevertheless, even so",
    r"come of it|come of that": "result",
    r"anew": "again, from the beginning",
    r"now and then": "at times, every N seconds",
    r"thanks to": "because of",
    r"hither|thither|whence|thereof|hence": "from here, because of it",
    r"lest": "so that ... not",
    r"for want of|for lack of": "without, because there is no",
    r"at a stroke|in one go": "at once, together",
}
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "decisions"),
    *sorted((ROOT / "example_project").rglob("*.md")),
]
ROOMS = sorted(part.stem for part in PACKAGE.iterdir() if part.suffix == ".py" or (part / "__init__.py").exists())


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


def plain_text(page: Path) -> str:
    """A page without its blocks of code and the names that it quotes."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def texts(source: Path) -> Iterator[tuple[int, str]]:
    """The comments and constant texts of a module, docstrings among them, with their lines."""
    code = source.read_text()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def idioms(text: str) -> Iterator[str]:
    joined = re.sub(r"\s+", " ", text)
    for idiom, instead in IDIOMS.items():
        for match in re.finditer(rf"\b(?:{idiom})\b", joined, re.IGNORECASE):
            around = joined[max(0, match.start() - 40) : match.end() + 40]
            yield f"'{match[0]}' in '...{around}...': say {instead}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_idioms(page: Path) -> None:
    found = [*idioms(plain_text(page))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_uses_idioms(room: str) -> None:
    found = [
        f"{source.name}:{line}: {each}"
        for source in sources(room)
        for line, text in texts(source)
        for each in idioms(text)
    ]
    assert not found, "\n".join(found)
