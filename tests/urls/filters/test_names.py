"""Sets of names, and files of them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.filters.names import NameSet, host_name, read_names

LABEL = st.sampled_from(["a", "b", "co", "uk", "www", "x-y"])
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)


@given(st.sets(HOST, max_size=8), HOST)
def test_a_name_stands_for_the_hosts_below_it(names: set[str], host: str) -> None:
    assert (host in NameSet(names)) == any(host == name or host.endswith(f".{name}") for name in names)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A.Example", "a.example"),
        ("a.example.", "a.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[0::1]", "[::1]"),
        ("localhost", "localhost"),
        ("a.example:80", None),
        ("a.example:8080", None),
        ("u@a.example", None),
        ("http://a.example", None),
        ("a.example/x", None),
        ("a b", None),
        ("", None),
    ],
)
def test_host_names(text: str, name: str | None) -> None:
    assert host_name(text) == name


@given(st.text())
def test_any_text_is_a_host_name_or_none(text: str) -> None:
    name = host_name(text)
    assert name is None or host_name(name) == name


def test_a_file_of_names(tmp_path: Path) -> None:
    path = tmp_path / "domains.txt"
    path.write_text("# best\n\na.example\n1,B.example\n2\tc.example\n*.d.example # why\n.e.example\nbücher.example\n")
    names = read_names(path)
    assert len(names) == 6
    for host in ("a.example", "www.b.example", "c.example", "x.d.example", "e.example", "xn--bcher-kva.example"):
        assert host in names
    assert "example" not in names and "xa.example" not in names


def test_a_line_of_a_ranked_list_can_be_commented_out(tmp_path: Path) -> None:
    path = tmp_path / "domains.txt"
    path.write_text("#rank,domain\n1,a.example\n#2,b.example\n3,c.example#4,d.example\n")
    names = read_names(path)
    assert [host in names for host in ("a.example", "b.example", "c.example", "d.example", "domain")] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_a_line_that_is_no_name_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "domains.txt"
    path.write_text("a.example\nhttp://b.example/\n")
    with pytest.raises(FilterError, match=r"'http://b\.example/' in line 2"):
        read_names(path)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FilterError, match="No such file"):
        read_names(tmp_path / "nothing")
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(FilterError, match="no name"):
        read_names(tmp_path / "empty")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FilterError, match="UTF-8"):
        read_names(tmp_path / "bytes")


def test_names_are_kept_in_eight_bytes_each(tmp_path: Path) -> None:
    path, count = tmp_path / "domains.txt", 20_000
    path.write_text("".join(f"{number},site{number}.example\n" for number in range(count)))
    tracemalloc.start()
    names = read_names(path)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(names) == count
    assert size < count * 8 * 1.5
    assert all(f"www.site{number}.example" in names for number in range(0, count, 997))
    assert not any(f"other{number}.example" in names for number in range(0, count, 997))
