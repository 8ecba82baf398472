"""Where the page is not wanted, nothing of it is imported, and without aiohttp a crawl runs without it."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from scrapy.settings import Settings

from scrapy_ubi import addon
from scrapy_ubi.addon import turn_on

LOOK = """
import sys
from scrapy.settings import Settings
from scrapy_ubi import Addon
import scrapy_ubi.cli.commands.ubi
settings = Settings()
Addon().update_settings(settings)
assert not [name for name in sys.modules if name.startswith("scrapy_ubi.web")], sorted(sys.modules)
settings = Settings({"UBI_WEB": "127.0.0.1:0"})
Addon().update_settings(settings)
assert "scrapy_ubi.web.agent_server" in sys.modules
assert [one for one in settings["EXTENSIONS"] if str(one).endswith("AgentServer")]
"""


@pytest.mark.processes
def test_it_is_imported_where_it_is_wanted_only() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_aiohttp_one_line_of_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn_on, "find_spec", lambda name: None)
    settings = Settings({"UBI_WEB": "127.0.0.1:0"})
    with caplog.at_level(logging.WARNING):
        addon.Addon().update_settings(settings)
    assert [record.getMessage() for record in caplog.records if "UBI_WEB" in record.getMessage()] == [
        "UBI_WEB shows nothing: aiohttp is not installed (pip install 'scrapy-ubi[web]')."
    ]
