"""The descriptions of sub-commands, in lines that fit the terminal.

They are written as paragraphs and, indented by two, lists of a name and what it means; further lines of a meaning stand
below its beginning.
"""

from __future__ import annotations

import re
import textwrap

from scrapy_ubi.cli.monitor.text_table import room

_NAMED = re.compile(r"(  \S(?:\S| (?! ))*  +)\S")  # the beginning of a row of a list, up to the meaning


def filled(text: str) -> str:
    """The text with new line breaks."""
    return "\n".join(line for part in _parts(text) for line in _broken(part))


def _parts(text: str) -> list[list[str]]:
    """Lines that belong together: those of a paragraph, those of a row of a list, or an empty one."""
    parts: list[list[str]] = []
    for line in text.splitlines():
        if parts and _goes_on(parts[-1][0], line):
            parts[-1].append(line)
        else:
            parts.append([line])
    return parts


def _goes_on(first: str, line: str) -> bool:
    """Whether a line belongs to the part that begins with `first`."""
    if not line.strip() or not first.strip() or _NAMED.match(line):
        return False
    return line.startswith(" ") or not first.startswith(" ")


def _broken(part: list[str]) -> list[str]:
    named = _NAMED.match(part[0])
    first = named[1] if named else ""
    words = " ".join([part[0][len(first) :].strip(), *map(str.strip, part[1:])])
    filled = textwrap.wrap(words, room() - 2, initial_indent=first, subsequent_indent=" " * len(first))
    return filled or [""]
