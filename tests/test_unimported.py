"""What is off costs nothing: which of our modules, and of the libraries behind them, a command of Scrapy's imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import scrapy_ubi

ROOT = str(Path(scrapy_ubi.__file__).parents[1])
# Without tldextract, which is Scrapy's as well.
HEAVY = {"rocksdict", "numpy", "redis", "selectolax", "mmh3", "can_ada", "hiredis", "httptools"}
PATHS = {f"scrapy_ubi.{path}" for path in scrapy_ubi.MOVED}  # documented paths of before: empty modules
DOOR = {"scrapy_ubi", "scrapy_ubi.addon", "scrapy_ubi.cli", "scrapy_ubi.cli.commands", "scrapy_ubi.cli.commands.ubi"}
OFF = DOOR | {
    f"scrapy_ubi.{path}"
    for path in (
        "errors", "ground", "ground.untrusted", "ground.untrusted.checks", "ground.crawl_names", "adapter",
        "adapter.components", "adapter.components.place_component", "adapter.components.expand_middleware",
        "adapter.extraction", "adapter.extraction.plainlinks", "adapter.feeds", "adapter.feeds.feed_params",
        "adapter.process", "adapter.process.arguments", "adapter.scrapy_private", "adapter.scrapy_private.engines",
        "adapter.scrapy_private.scraper", "adapter.scrapy_private.runs",
    )
}  # fmt: skip

SPIDER = """
import scrapy
from scrapy_ubi import PlainLinks

class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["data:text/html,first"]

    def parse(self, response):
        yield {"text": response.text}
        if response.text == "first":
            yield PlainLinks(["data:text/html,second"])
"""
PLAIN = SPIDER.replace("from scrapy_ubi import PlainLinks", "").partition("        if ")[0]
# What `scrapy` runs, and then says what was imported.
RUN = """
import json, sys
from scrapy.cmdline import execute
try:
    execute(["scrapy", *sys.argv[1:]])
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = project.settings\n")
    (tmp_path / "project" / "spiders").mkdir(parents=True)
    for name in ("project/__init__.py", "project/spiders/__init__.py"):
        (tmp_path / name).touch()
    (tmp_path / "project" / "settings.py").write_text(
        'SPIDER_MODULES = ["project.spiders"]\nNEWSPIDER_MODULE = "project.spiders"\n'
        'ADDONS = {"scrapy_ubi.Addon": 500}\nTELNETCONSOLE_ENABLED = False\n'
    )
    (tmp_path / "project" / "spiders" / "walk.py").write_text(PLAIN)
    return tmp_path


def imported(project: Path, *command: str) -> tuple[int, set[str], str]:
    """The exit status of a command, what it has imported, and its output."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command], capture_output=True, text=True, cwd=project, timeout=180, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{project}"},
    )  # fmt: skip
    status, modules = json.loads(done.stderr.strip().splitlines()[-1])
    return status or 0, set(modules), done.stdout + done.stderr


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "scrapy_ubi"} - PATHS


@pytest.mark.processes
@pytest.mark.parametrize("command", [("list",), ("settings", "--get", "BOT_NAME"), ("genspider", "other", "a.example")])
def test_a_command_that_does_not_crawl_imports_the_door_only(project: Path, command: tuple[str, ...]) -> None:
    status, modules, output = imported(project, *command)
    assert status == 0, output
    assert ours(modules) <= DOOR
    assert not modules & HEAVY


@pytest.mark.processes
def test_off_a_crawl_imports_what_a_project_uses_of_ours(project: Path) -> None:
    (project / "project" / "spiders" / "walk.py").write_text(SPIDER)
    feed = "items-%(ubi_agent)s-%(ubi_crawl)s.jsonl"
    status, modules, output = imported(project, "crawl", "walk", "-s", "UBI_ENABLED=False", "-o", feed)
    assert status == 0, output
    assert ours(modules) <= OFF
    assert not modules & HEAVY
    items = [json.loads(line)["text"] for line in (project / "items-plain-scrapybot:walk.jsonl").open()]
    assert items == ["first", "second"]
