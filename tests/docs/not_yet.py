"""Sentences of the docs that say what there is not: `python -m tests.docs.not_yet` writes those that stand there now.

Such a sentence is true when it is written and becomes false without anybody touching its page. So each is on a list,
`not_yet.txt`, and a new one fails the test until somebody has read it: is it true, and will it be found when it is no
longer? Read the list before a release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("not_yet.txt")
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"),
]

_says_so = re.compile(r"\byet\b|not possible|impossible|not supported|no longer possible", re.IGNORECASE).search
_blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ends = re.compile(r"(?<=[.:;?!])\s+|\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.)\s)")


def sentences(page: Path) -> Iterator[str]:
    """Yield the sentences of a page that say what there is not, each on one line."""
    for sentence in _ends.split(_blocks.sub("", page.read_text())):
        if _says_so(sentence):
            yield " ".join(sentence.split()).strip("-*| ")


def found() -> list[str]:
    """Return all of them, as lines of the list."""
    return [f"{page.relative_to(ROOT)}: {sentence}" for page in PAGES for sentence in sentences(page)]


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in found()))
