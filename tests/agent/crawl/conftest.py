"""Disks of agents, each in a directory of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.agent.crawl.keeper import filled
from tests.agent.office import run


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("disk")
    run(lambda: filled(place / "whole", place / "killed"))
    return place / "killed"


@pytest.fixture
def disk(sample: Path, tmp_path: Path) -> Path:
    """A directory of its own that holds what `filled` writes."""
    return Path(shutil.copytree(sample, tmp_path / "agent"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "agent"
