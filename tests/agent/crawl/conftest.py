"""Disks of agents, each in a directory of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from scrapy_ubi.frontier.engines import Engine
from tests.agent.crawl.keeper import SETTINGS, filled
from tests.agent.office import run
from tests.support.store_engines import ENGINES


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Engine], Path]:
    @cache
    def made(engine: Engine) -> Path:
        place = tmp_path_factory.mktemp("disk")
        run(lambda: filled(place / "whole", place / "killed", replace(SETTINGS, store_engine=engine)))
        return place / "killed"

    return made


@pytest.fixture
def disk(samples: Callable[[Engine], Path], request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory of its own that holds what `filled` writes, by the engine that is asked for (`on_both`)."""
    return Path(shutil.copytree(samples(getattr(request, "param", ENGINES[0])), tmp_path / "agent"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "agent"
