"""Markdown in pieces: bounded, complete, each with the headings above it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.outputs.markdown.chunks import LEAST, TextChunk, chunks, plain_heading

PAGE = """\
Before all.

# Wheels

Round.

## [Front](http://a.example/f) `left`

A.

```python
# no heading

x = 1
```

# Axles

Long.
"""


def test_pieces_have_the_headings_above_them() -> None:
    assert list(chunks(PAGE, 1000)) == [
        TextChunk((), "Before all."),
        TextChunk(("Wheels",), "Round."),
        TextChunk(("Wheels", "Front left"), "A.\n\n```python\n# no heading\n\nx = 1\n```"),
        TextChunk(("Axles",), "Long."),
    ]


def test_the_title_stands_for_a_first_heading_that_is_not_there() -> None:
    assert [chunk.path for chunk in chunks("## B\n\ntext\n", 1000, "Title")] == [("Title", "B")]
    assert [chunk.path for chunk in chunks("## Title\n\ntext\n", 1000, "Title")] == [("Title",)]


def test_code_and_tables_that_are_cut_stay_code_and_tables() -> None:
    code = "```python\n" + "\n".join(f"line {n}" for n in range(60)) + "\n```"
    pieces = [chunk.text for chunk in chunks(code, 120)]
    assert len(pieces) > 3 and all(text.startswith("```python\n") and text.endswith("\n```") for text in pieces)
    table = "| a | b |\n| --- | --- |\n" + "\n".join(f"| {n} | x |" for n in range(60))
    pieces = [chunk.text for chunk in chunks(table, 120)]
    assert len(pieces) > 3 and all(text.startswith("| a | b |\n| --- | --- |\n| ") for text in pieces)


def test_marks_of_markdown_are_no_part_of_a_heading() -> None:
    assert plain_heading("**The** [x](<http://a>) `code` \\# 1") == "The x code # 1"


LINES = st.sampled_from(
    ["# one", "### two three", "word", "many words in a line " * 9, "x" * 300, "", "", "```", "```py", "| a | b |",
     "| --- | --- |", "- item"]
)  # fmt: skip


@example(["many words in a line " * 9], 188)  # what is behind the cut is a space
@given(st.lists(LINES, max_size=40), st.integers(LEAST, 500))
def test_pieces_are_bounded_and_nothing_is_lost(lines: list[str], most: int) -> None:
    markdown = "\n".join(lines)
    found = list(chunks(markdown, most))
    assert all(0 < len(chunk.text) <= most for chunk in found)
    kept = "".join(chunk.text for chunk in found)
    for letter in "wxi":
        plain = "".join(line for line in lines if not re.match("#+ ", line))
        assert kept.count(letter) >= plain.count(letter)
