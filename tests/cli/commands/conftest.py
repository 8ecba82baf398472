"""What the tests of the commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands.test_ubi import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return Shell(capsys, {})
