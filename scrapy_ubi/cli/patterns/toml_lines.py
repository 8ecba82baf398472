"""Where in a TOML text each value stands: `tomllib` gives values without their lines.

Rules of this module:

* The text is one that `tomllib` has read: what does not hold there never comes here. So a value is only passed over, by
  its quotes and brackets, and no value is made of it.
* A path is the keys from the top of the document to a value, and the numbers of elements of arrays.
* The line of a table is that of its header, or of the first key that makes it.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRINGS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r'"""(?:[^\\]|\\.)*?"{3,5}',
        r"'''.*?'{3,5}",
        r'"(?:[^"\\]|\\.)*"',
        r"'[^']*'",
    )
)


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1 on, of each value in this text."""
    return _Reader(text.replace("\r\n", "\n")).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._line, self._counted = 1, 0  # the line of a place, so that each line end is counted once
        self._tables: dict[Path, int] = {}  # arrays of tables, and how many they have so far

    def read(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip(_SPACE):
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Pass over what matches. Return whether there is more."""
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._at < len(self._text)

    def _note(self, path: Path) -> None:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], self._line)

    def _header(self) -> Path:
        """`[a.b]` or `[[a.b]]`: the table that follows."""
        several = self._text.startswith("[[", self._at)
        self._at += 2 if several else 1
        path = self._resolved(self._keys(), several)
        self._note(path)
        self._skip(_BLANK)
        self._at += 2 if several else 1
        return path

    def _resolved(self, keys: Path, several: bool) -> Path:
        """The path of a header's keys: a key of an array of tables means its last one."""
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path += (key,)
            if number == len(keys) and several:
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path += (self._tables[path] - 1,)
        return path

    def _keys(self) -> Path:
        """A key with its dots."""
        found: list[str] = []
        while True:
            self._skip(_BLANK)
            match = _KEY.match(self._text, self._at)
            assert match is not None, self._text[self._at : self._at + 40]
            self._at = match.end()
            found.append(_read_key(match[0]))
            self._skip(_BLANK)
            if not self._text.startswith(".", self._at):
                return tuple(found)
            self._at += 1

    def _pair(self, table: Path) -> None:
        path = table + self._keys()
        self._note(path)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        start = self._text[self._at : self._at + 1]
        if start == "[":
            self._at += 1
            number = 0
            while self._next_of("]"):
                self._note((*path, number))
                self._value((*path, number))
                number += 1
        elif start == "{":
            self._at += 1
            while self._next_of("}"):
                self._pair(path)
        elif start in "\"'":
            self._at = next(match.end() for each in _STRINGS if (match := each.match(self._text, self._at)))
        else:
            self._skip(_SCALAR)

    def _next_of(self, end: str) -> bool:
        """Whether another part of an array or an inline table comes before its end."""
        self._skip(_SPACE)
        if self._text.startswith(",", self._at):
            self._at += 1
            self._skip(_SPACE)
        if self._text.startswith(end, self._at):
            self._at += 1
            return False
        return True


def _read_key(text: str) -> str:
    if text[0] not in "\"'":
        return text
    value = tomllib.loads(f"key = {text}")["key"]
    assert isinstance(value, str)
    return value
