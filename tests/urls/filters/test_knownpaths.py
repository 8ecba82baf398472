"""Known paths: what each pattern's examples promise, and the data file itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.urls.filters import FilterError, parse
from scrapy_ubi.urls.filters.base import target_of
from scrapy_ubi.urls.filters.knownpaths import DATA, Pattern, read_patterns
from tests.urls.filters.links import link, why

PATTERNS = read_patterns(DATA)
REFUSED = [(pattern.name, url) for pattern in PATTERNS for url in pattern.refused]
PASSED = [url for pattern in PATTERNS for url in pattern.passed]


@pytest.mark.parametrize(("name", "url"), REFUSED)
def test_what_is_known_is_refused(name: str, url: str) -> None:
    assert why("known_paths", url) == name


@pytest.mark.parametrize("url", PASSED)
def test_what_looks_like_it_passes(url: str) -> None:
    assert why("known_paths", url) == ""


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_pattern_has_a_source_and_examples(pattern: Pattern) -> None:
    assert pattern.source and pattern.refused and pattern.passed
    assert pattern.kind in ("sort", "session", "calendar")
    assert all(pattern.needs in target_of(link(url).normal).lower() for url in pattern.refused)


def test_names_are_different() -> None:
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)


# Some beginnings and repetitions that expressions which go back and forth would need ages for.
HARD = [
    "?c=",
    "?C=N;F=",
    "calendar",
    "calendar?",
    "&month=",
    "year=1&",
    "/events/",
    "(A(",
    "&cftoken",
    "/?",
    "s=0",
    "mini=",
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_no_url_takes_long(pattern: Pattern) -> None:
    for hard in HARD:  # not measured: a search of more than linear time would not come back
        pattern.search("/" + hard * (65_536 // len(hard)))


def test_kinds_are_chosen() -> None:
    assert why("known_paths(sort)", "http://a.example/?C=N;O=D") == "index_sort"
    assert why("known_paths(calendar, session)", "http://a.example/?C=N;O=D") == ""


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[[pattern]]\nname='old'\nkind='mine'\nneeds='/OLD/'\nregex='/old/'\nsource='I know'\n")
    judge = parse(f"known_paths(mine, file={path})")
    assert judge.refuses(link("http://a.example/old/x")) == "old"
    assert judge.refuses(link("http://a.example/?C=N;O=D")) == ""
    assert parse(str(judge)) == judge


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[other]",
        "pattern=3",
        "pattern=[3]",
        "[[pattern]]\nname='a'",
        "[[pattern]]\nname='a'\nkind='b'\nneeds='c'\nregex='('\nsource='d'",
        "[[pattern]]\nname='a'\nkind='b'\nneeds='c'\nregex='d'\nsource='e'\nmore='f'",
        "[[pattern]]\nname='a'\nkind='b'\nneeds='c'\nregex='d'\nsource='e'\npassed='f'",
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(FilterError, match=r"mine\.toml"):
        parse(f"known_paths(file={path})")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FilterError, match="No such file"):
        parse(f"known_paths(file={tmp_path / 'none'})")
