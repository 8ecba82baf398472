"""Markdown cut into pieces of a bounded size, each with the headings that it stands under: for those who embed text.

Rules of this module:

* A piece ends at each heading. What stands between two headings is cut between blocks (paragraphs, lists, tables,
  code), then between lines, then between words, and only then within a word.
* Within code a `#` is no heading. Code that is cut is opened and closed again in each piece; heads of tables
  stand in each.
* Nothing is lost: each word of the Markdown that is no heading is in a piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

LEAST = 100  # characters of a piece, the least that may be asked for
_heading = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
_fence = re.compile(r" {0,3}(`{3,}|~{3,})(.*)\Z")
_rule = re.compile(r"\|(?: ?:?-+:? ?\|)+\Z")
_linked = re.compile(r"!?\[([^\]\[]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")
_signs = re.compile(r"[*_`~]+|\\(?=[^\w\s])")


class TextChunk(NamedTuple):
    """`path`: the headings from the first level on, without marks; `text`: Markdown."""

    path: tuple[str, ...]
    text: str


def chunks(markdown: str, most: int, title: str = "") -> Iterator[TextChunk]:
    """The pieces of a page, of at most `most` characters each (at least `LEAST`). `title`: the first heading where the
    page has none of the first level."""
    most = max(most, LEAST)
    for path, blocks in _sections(markdown):
        if title and not (path and (path[0][0] == 1 or path[0][1] == title)):
            path = ((0, title), *path)
        names = tuple(name for _, name in path)
        waits: list[str] = []
        size = 0
        for block in blocks:
            if waits and size + 2 + len(block) > most:
                yield TextChunk(names, "\n\n".join(waits))
                waits, size = [], 0
            if len(block) > most:
                for piece in _cut(block, most):
                    yield TextChunk(names, piece)
                continue
            size += len(block) + (2 if waits else 0)
            waits.append(block)
        if waits:
            yield TextChunk(names, "\n\n".join(waits))


def plain_heading(text: str) -> str:
    """A heading without the marks of Markdown."""
    return " ".join(_signs.sub("", _linked.sub(r"\1", text)).split())


def _sections(markdown: str) -> Iterator[tuple[tuple[tuple[int, str], ...], list[str]]]:
    """The headings above, with their levels, and the blocks under them."""
    path: tuple[tuple[int, str], ...] = ()
    blocks: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        if fence:
            lines.append(line)
            closing = _fence.match(line)
            if closing and closing[1].startswith(fence) and not closing[2].strip():
                fence = ""
            continue
        if opening := _fence.match(line):
            fence = opening[1]
            lines.append(line)
            continue
        heading = _heading.match(line) if line.startswith("#") else None
        if heading is None and line.strip():
            lines.append(line)
            continue
        if lines:
            blocks.append("\n".join(lines))
            lines = []
        if heading is not None:
            if blocks:
                yield path, blocks
                blocks = []
            level = len(heading[1])
            above = tuple(one for one in path if one[0] < level)
            name = plain_heading(heading[2])
            path = (*above, (level, name)) if name else above
    if lines:
        blocks.append("\n".join(lines))
    if blocks:
        yield path, blocks


def _cut(block: str, most: int) -> Iterator[str]:
    """A block that is too long, in pieces."""
    lines = block.split("\n")
    head: list[str] = []
    tail: list[str] = []
    if opening := _fence.match(lines[0]):
        closed = len(lines) > 1 and lines[-1].strip() == opening[1]
        head, tail = [lines[0]], [opening[1]]
        lines = lines[1:-1] if closed else lines[1:]
    elif len(lines) > 2 and lines[0].startswith("|") and _rule.match(lines[1]):
        head, lines = lines[:2], lines[2:]
    around = sum(len(line) + 1 for line in (*head, *tail))
    if around > most // 2:  # a head that leaves no room
        lines, head, tail, around = [*head, *lines, *tail], [], [], 0
    room = most - around
    waits: list[str] = []
    size = 0
    for line in chain.from_iterable(_parts(whole, room) for whole in lines):
        if waits and size + 1 + len(line) > room:
            yield "\n".join([*head, *waits, *tail])
            waits, size = [], 0
        size += len(line) + (1 if waits else 0)
        waits.append(line)
    if waits:
        yield "\n".join([*head, *waits, *tail])


def _parts(line: str, most: int) -> Iterator[str]:
    """A line in parts, cut between words where there are any."""
    while len(line) > most:
        at = line.rfind(" ", 1, most + 1)
        at = at if at > 0 else most
        yield line[:at]
        line = line[at:].lstrip(" ") if line[at : at + 1] == " " else line[at:]
        if not line:  # nothing but spaces came behind
            return
    yield line
