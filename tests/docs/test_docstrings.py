"""Docstrings say what a function is by their first word, as docs/contributing.md has it.

Rules of this module: what can be seen in the source is tested, and that is the word for a question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "scrapy_ubi"
BOOLS = ("bool", "TypeGuard", "TypeIs")  # also within another type: Awaitable[bool], bool | None


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.relative_to(PACKAGE.parent)}:{node.lineno} {node.name}", node


def begins(text: str, word: str) -> bool:
    return text.partition(" ")[0] == word


def test_whether_is_the_word_of_what_returns_a_bool() -> None:
    found, hidden = [], []
    for place, node in functions():
        text, returns = ast.get_docstring(node) or "", ast.unparse(node.returns) if node.returns else ""
        if begins(text, "Whether") and not any(word in returns for word in BOOLS):
            found.append(place)
        if returns == "bool" and "; whether " in text.partition(".")[0]:
            hidden.append(place)
    assert not found, f"these return no bool: {found}"
    assert not hidden, f"the bool stands behind a semicolon, in place of a sentence (Return whether): {hidden}"
