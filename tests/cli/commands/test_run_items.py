"""Whether items can be written where `-o` says: known before a crawl."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_ubi.cli.commands import run_items
from scrapy_ubi.cli.commands.run_items import UbiUnusableOutput, check_place
from scrapy_ubi.errors import UbiDirectoryError

needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "place", ["items.jsonl", "new/and/deep/items.csv", "%(time)s/items.csv", "items-%(ubi_agent)s.csv", "ftp://a/x.csv"]
)
def test_a_file_that_is_not_there_and_directories_that_can_be_made_are_fine(place: str) -> None:
    check_place(place, Settings())
    assert not any(Path.cwd().iterdir()), "nothing is written"


@pytest.mark.parametrize("place", ["here", "here/", "file://{cwd}/here"])
def test_a_directory_is_refused(place: str) -> None:
    Path("here").mkdir()
    with pytest.raises(UbiDirectoryError, match="is a directory"):
        check_place(place.format(cwd=Path.cwd()), Settings())


@pytest.mark.parametrize("place", ["file/items.csv", "file/deep/items.csv", "file/%(time)s.csv"])
def test_what_leads_through_a_file_is_refused(place: str) -> None:
    Path("file").write_text("")
    with pytest.raises(UbiDirectoryError, match="is no directory"):
        check_place(place, Settings())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a file system in which no file can be made")
@pytest.mark.parametrize("place", ["/proc/items.jsonl", "/proc/%(time)s.jsonl"])
def test_where_no_file_can_be_made_whatever_the_rights_say_is_refused(place: str) -> None:
    with pytest.raises(UbiDirectoryError, match="nothing can be written in"):
        check_place(place, Settings())


@pytest.mark.parametrize("place", [f"{'x' * 251}.csv", f"new/{'ü' * 126}/items.csv"])
def test_a_name_that_is_too_long_is_refused(place: str) -> None:
    with pytest.raises(UbiDirectoryError, match="too long"):
        check_place(place, Settings())


@needs_rights
def test_what_may_not_be_written_is_refused() -> None:
    Path("shut").mkdir(mode=0o500)
    Path("read").write_text("")
    Path("read").chmod(0o400)
    for place in ("shut/items.csv", "shut/deep/items.csv", "read"):
        with pytest.raises(UbiDirectoryError, match="Permission denied"):
            check_place(place, Settings())


def test_a_right_that_lacks_is_seen_by_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UbiDirectoryError, match="nothing can be written in"):
        check_place("items.csv", Settings())


def test_a_scheme_that_scrapy_does_not_know_is_refused_and_one_of_the_project_is_not() -> None:
    with pytest.raises(UbiUnusableOutput, match="scheme azure://"):
        check_place("azure://box/items.csv", Settings())
    check_place("azure://box/items.csv", Settings({"FEED_STORAGES": {"azure": "project.Azure"}}))


@pytest.mark.parametrize(("scheme", "named"), [("s3", "boto3"), ("gs", "google")])
def test_a_plug_in_that_is_not_installed_is_named(scheme: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_items, "find_spec", lambda module: None)
    with pytest.raises(UbiUnusableOutput, match=f"needs {named}.*, which is not installed: pip install"):
        check_place(f"{scheme}://bucket/items.csv", Settings())


def test_a_name_that_would_hurt_a_terminal_is_shown_plainly() -> None:
    Path("a\x1b[2J").mkdir()
    with pytest.raises(UbiDirectoryError) as raised:
        check_place("a\x1b[2J", Settings())
    assert str(raised.value).isprintable()
