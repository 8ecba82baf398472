"""What spiders use has types: a user's file passes `mypy --strict`, and its mistakes are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USER = """
from collections.abc import Iterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi import Addon, PageObserver, PlainLinks, UbiSpider

ADDONS = {Addon: 500}


class Walk(UbiSpider):
    name = "walk"

    def parse(self, response: Response, **_: Any) -> Iterator[Request | PlainLinks | dict[str, Any]]:
        yield {"url": response.url}
        yield response.follow("/next")
        yield self.links(response, callback=self.parse)


class Observer(PageObserver):
    pass
"""
WRONG = USER + "\n\nnumber: int = Walk().links(Response('http://a.example/'))\n"


@pytest.mark.slow
def test_the_names_that_spiders_use_have_types(tmp_path: Path) -> None:
    for name, text in (("user.py", USER), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, "user.py", "wrong.py"], capture_output=True, text=True, cwd=tmp_path, timeout=500, check=False
    )
    (mistake,) = done.stdout.strip().splitlines()
    assert mistake.startswith("wrong.py:") and 'has type "PlainLinks"' in mistake, done.stdout + done.stderr
