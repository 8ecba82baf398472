"""A file of scores (`file(...)` of UBI_SCORE): what is read of it, what is left out, and when it is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.scores import LinkBatch, score_table
from scrapy_ubi.urls.scores.score_table import ScoresRead, ScoreTable, read_scores

HOST = "http://h.example"


def read(path: Path, data: bytes) -> tuple[ScoreTable, ScoresRead]:
    path.write_bytes(data)
    return read_scores(path, normal_form)


def ask(table: ScoreTable, *urls: str) -> list[float]:
    return table(LinkBatch(urls, [""] * len(urls), 0, "", 0.0))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_scores_are_those_of_normal_forms(tmp_path: Path, pack: type[bytes]) -> None:
    table, found = read(
        tmp_path / "s", pack(b"http://H.example:80/a\t5\r\nhttp://h.example/b\t-2.6\nhttp://h.example\t1e9")
    )
    assert (len(table), found.lines, found.refused.total()) == (3, 3, 0)
    urls = f"{HOST}/a#x", f"{HOST}/b", f"{HOST}/", f"{HOST}/c", "mailto:a", ""
    assert ask(table, *urls) == [5, -3, 1_000_000, 0, 0, 0]


def test_lines_that_do_not_hold_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_table, "MOST_LINE", 60)
    lines = [
        b"http://h.example/a\t1", b"no tab", b"mailto:a@b\t1", b"http://h.example/b\tnan", b"http://h.example/b\tmany",
        b"http://h.example/\xc3\xa4\t1", b"http://h.example/" + b"x" * 200 + b"\t1", b"http://h.example/a#again\t7",
        b"",
    ]  # fmt: skip
    table, found = read(tmp_path / "s", b"\n".join(lines) + b"\n")
    assert ask(table, f"{HOST}/a", f"{HOST}/b") == [1, 0]
    assert dict(found.refused) == {"line": 3, "url": 1, "number": 2, "long": 1, "double": 1}
    assert found.first == (2, "line") and found.lines == len(lines)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "none of 0 lines"),
        (b"a,b\n", "none of 1 lines holds (line)"),
        (gzip.compress(b"http://h.example/\t1\n" * 1000, mtime=0)[:-9], "cannot be read"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
        (b"http://h.example/\t1\n" * 6, "more than 5 lines"),
    ],
    ids=["empty", "no-score", "cut-gzip", "no-gzip", "too-many"],
)
def test_a_file_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, says: str
) -> None:
    monkeypatch.setattr(score_table, "MOST", 5 if "more" in says else 10_000)
    with pytest.raises(UbiSettingError) as raised:
        read(tmp_path / "s", data)
    assert "UBI_SCORE" in str(raised.value) and says in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_SCORE has.*No such file"):
        read_scores(tmp_path / "none", normal_form)


@given(rows=st.dictionaries(st.integers(0, 10**6), st.integers(-(10**6), 10**6), min_size=1, max_size=50))
def test_every_url_of_the_file_is_found_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, rows: dict[int, int]
) -> None:
    data = "".join(f"{HOST}/{path}\t{score}\n" for path, score in rows.items()).encode()
    table, _ = read(tmp_path_factory.mktemp("scores") / "s", data)
    assert ask(table, *(f"{HOST}/{path}" for path in rows)) == list(rows.values())
    assert ask(table, *(f"{HOST}/other/{path}" for path in rows)) == [0] * len(rows)
