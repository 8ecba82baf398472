"""The line of each value of a TOML text: by examples, and by texts that are made with their lines."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.patterns.toml_lines import Path, lines_of

TEXT = """\
# a comment with [brackets] and "quotes
top = 1

[crawl] # the table
start = "http://a.example/#x"  # no comment before this
hosts = [
  "a", # one
  'b,]',

  "c"
]
"quoted key" = '''
allow = "no key"
'''
more.deep = 3
inline = { one = 1, two = [1,
  2] }

[fields."a b"]
text = \"\"\"x
[no.table]
y\\\"\"\"\"\"\"
last = 2026-11-27T10:00:00Z

[[rows]]
a = 1
[[rows]]
a = 2
[rows.in]
b = 1
"""
LINES = {
    ("top",): 2,
    ("crawl",): 4,
    ("crawl", "start"): 5,
    ("crawl", "hosts"): 6,
    ("crawl", "hosts", 0): 7,
    ("crawl", "hosts", 1): 8,
    ("crawl", "hosts", 2): 10,
    ("crawl", "quoted key"): 12,
    ("crawl", "more"): 15,
    ("crawl", "more", "deep"): 15,
    ("crawl", "inline"): 16,
    ("crawl", "inline", "one"): 16,
    ("crawl", "inline", "two"): 16,
    ("crawl", "inline", "two", 0): 16,
    ("crawl", "inline", "two", 1): 17,
    ("fields",): 19,
    ("fields", "a b"): 19,
    ("fields", "a b", "text"): 20,
    ("fields", "a b", "last"): 23,
    ("rows",): 25,
    ("rows", 0): 25,
    ("rows", 0, "a"): 26,
    ("rows", 1): 27,
    ("rows", 1, "a"): 28,
    ("rows", 1, "in"): 29,
    ("rows", 1, "in", "b"): 30,
}


def paths_of(value: Any, path: Path = ()) -> set[Path]:
    """The paths of all values in a document."""
    parts: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {path} if path else set()
    return found.union(*(paths_of(part, (*path, key)) for key, part in parts))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_value_has_the_line_that_it_stands_on(end: str) -> None:
    text = TEXT.replace("\n", end)
    assert paths_of(tomllib.loads(text)) == set(LINES)
    assert lines_of(text) == LINES


def test_an_empty_text_has_no_lines() -> None:
    assert lines_of("") == {} == lines_of(" \n# only this")


keys = st.text("ab.\"' -é#[]=", min_size=1, max_size=4)
leaves = st.one_of(st.integers(), st.booleans(), st.text("ab\"'\\#[]{}=,\n\té", max_size=8), st.floats(allow_nan=False))
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def toml_of(value: Any, multiline: bool) -> str:
    """A value as TOML. `multiline`: arrays with an element a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_of(one, multiline)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        end = "\n" if multiline else ""
        return "[" + end + "".join(f"{toml_of(one, multiline)},{end}" for one in value) + "]"
    if isinstance(value, str) and multiline and "'" not in value and "\\" not in value:
        return f"'''{value}'''"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


@given(st.dictionaries(keys, st.dictionaries(keys, values, max_size=4), max_size=4), st.booleans())
def test_all_values_of_any_text_are_found_where_they_are(document: dict[str, Any], multiline: bool) -> None:
    lines: list[str] = ["# begins here"]
    wanted: dict[Path, int] = {}
    for name, table in document.items():
        lines.append(f"[{json.dumps(name)}] # a table")
        wanted[(name,)] = len(lines)
        for key, value in table.items():
            wanted[(name, key)] = len(lines) + 1
            lines += f"{json.dumps(key)} = {toml_of(value, multiline)} # a value".split("\n")
    text = "\n".join(lines)
    found = lines_of(text)
    assert {path: found[path] for path in wanted} == wanted
    assert set(found) == paths_of(tomllib.loads(text))
    assert all(1 <= line <= len(lines) for line in found.values())
