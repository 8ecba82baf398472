"""The files of a tree: whatever a URL has in it, a name of its own below the tree that usual file systems take."""

from __future__ import annotations

import ntpath
import re
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.outputs.markdown.file_names import MOST_PART, MOST_PATH, FileNames, file_name

ROOT = "http://a.example"


def is_reserved(name: str) -> bool:
    """Whether Windows has another meaning for a name. Python 3.13 has a new name for that, and 3.15 has it alone."""
    known = getattr(ntpath, "isreserved", None)
    return bool(known(name) if known is not None else PureWindowsPath(name).is_reserved())


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"{ROOT}/", "a.example/index.md"),
        (ROOT, "a.example/index.md"),
        (f"{ROOT}/guide/intro.html", "a.example/guide/intro.md"),
        (f"{ROOT}/guide/intro/", "a.example/guide/intro/index.md"),
        (f"{ROOT}/guide/intro", "a.example/guide/intro.md"),
        (f"{ROOT}/paper.pdf", "a.example/paper.pdf.md"),
        (f"{ROOT}/a.md/b", "a.example/a.md_/b.md"),
        (f"{ROOT}/p?id=1&q=a/b", "a.example/p_id=1&q=a_b.md"),
        ("http://a.example:8080/x", "a.example_8080/x.md"),
        (f"{ROOT}/caf%C3%A9", "a.example/café.md"),
        (f"{ROOT}/../../etc/passwd", "a.example/_/_/etc/passwd.md"),
        (f"{ROOT}/%2e%2e/%2E%2E%2Fetc", "a.example/_/__etc.md"),
        (f"{ROOT}/nul", "a.example/_nul.md"),
        (f"{ROOT}/con.txt/aux.html", "a.example/_con.txt/_aux.md"),
        (f"{ROOT}/.git/config", "a.example/_git/config.md"),
        (f"{ROOT}/a%00b%0A%3A%3C", "a.example/a_b_.md"),
        (f"{ROOT}/x.", "a.example/x.md"),
    ],
)
def test_names(url: str, name: str) -> None:
    assert file_name(url) == name


URLS = st.builds(
    lambda host, parts, query: f"http://{host}/{'/'.join(parts)}{query}",
    st.sampled_from(["a.example", "A.example", "[::1]", "..", "con", "xn--bcher-kva.example", "a.example:80"]),
    st.lists(
        st.text(max_size=120) | st.sampled_from(["..", ".", "%2e%2e", "CON", "x.md", " ", "a" * 300]), max_size=20
    ),
    st.sampled_from(["", "?q", "?" + "%ff" * 90, "?a=../../x"]),
)


@given(URLS)
def test_any_url_has_a_name_below_the_tree(url: str) -> None:
    name = file_name(url)
    assert name == file_name(url) and name.endswith(".md") and len(name.encode()) <= MOST_PATH
    path = PurePosixPath(name)
    assert not path.is_absolute() and not PureWindowsPath(name).drive and not is_reserved(name)
    for part in name.split("/"):
        assert part not in ("", ".", "..") and len(part.encode()) <= MOST_PART + 4
        assert not re.search(r'[<>:"\\|?*\x00-\x1f\x7f]', part) and part == part.rstrip(". ") and part[0] not in ". "
    assert not any(part.lower().endswith(".md") for part in path.parts[:-1])


@given(st.lists(URLS, max_size=20))
def test_each_page_has_a_file_of_its_own_also_where_case_says_nothing(urls: list[str]) -> None:
    names = FileNames()
    given_ = [names.give(url, f"page{number}").casefold() for number, url in enumerate(urls)]
    assert len(set(given_)) == len(given_)


def test_urls_that_meet_are_told_apart() -> None:
    names = FileNames()
    first, second, third = (names.give(f"{ROOT}/{path}", path) for path in ("A.html", "a.html", "a"))
    assert first == "a.example/A.md"
    assert re.fullmatch(r"a\.example/a~[0-9a-f]{10}\.md", second) and re.fullmatch(
        r"a\.example/a~[0-9a-f]{10}\.md", third
    )
    assert second != third
