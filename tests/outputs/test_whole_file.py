"""A file that is whole under its name, or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.outputs.whole_file import whole_file


def test_it_has_its_name_when_all_is_written(tmp_path: Path) -> None:
    output = tmp_path / "a.txt"
    output.write_text("before")
    with whole_file(output) as beside:
        beside.write_text("after")
        assert output.read_text() == "before"
    assert output.read_text() == "after"
    assert [*tmp_path.iterdir()] == [output]


def test_after_an_error_nothing_is_left_of_it(tmp_path: Path) -> None:
    output = tmp_path / "a.txt"
    output.write_text("before")
    with pytest.raises(OSError, match="full"), whole_file(str(output)) as beside:
        beside.write_text("half")
        raise OSError("full")
    assert output.read_text() == "before"
    assert [*tmp_path.iterdir()] == [output]
