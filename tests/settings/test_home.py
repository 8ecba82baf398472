"""Where directories of agents lie that were not given one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.settings.home import HOME, directory, home, homes, is_former, keep_out_of_git, remark


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scrapy.cfg").touch()
    (tmp_path / "project" / "spiders").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_the_projects_root_wherever_in_it_one_is(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert directory("c") == HOME / "c"
    monkeypatch.chdir(project / "project" / "spiders")
    assert directory("c") == project / ".ubi" / "c"
    assert homes() == [project / ".ubi", HOME]


def test_without_a_project_it_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (home(), homes(), directory("c")) == (HOME, [HOME], HOME / "c")


def test_what_an_older_version_has_put_elsewhere_is_gone_on_with(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "project")
    former = project / "project" / ".ubi" / "c"
    former.mkdir(parents=True)
    assert directory("c") == HOME / "c" and is_former(directory("c"))
    assert str(former) in remark(directory("c")) and str(project / ".ubi") in remark(directory("c"))
    assert directory("d") == project / ".ubi" / "d" and not is_former(directory("d"))
    (project / ".ubi" / "c").mkdir(parents=True)
    assert directory("c") == project / ".ubi" / "c"


def test_git_ignores_it_and_a_file_that_is_there_stays(project: Path) -> None:
    (HOME / "c").mkdir(parents=True)
    keep_out_of_git(HOME / "c")
    assert (HOME / ".gitignore").read_text() == "*\n"
    (HOME / ".gitignore").write_text("# mine\n")
    keep_out_of_git(HOME / "c")
    assert (HOME / ".gitignore").read_text() == "# mine\n"


def test_other_directories_are_let_alone(project: Path) -> None:
    (project / "jobs" / "c").mkdir(parents=True)
    keep_out_of_git(project / "jobs" / "c")
    assert not (project / "jobs" / ".gitignore").exists()


def test_that_it_cannot_be_written_is_no_error(project: Path) -> None:
    keep_out_of_git(HOME / "c")  # there is no such directory
