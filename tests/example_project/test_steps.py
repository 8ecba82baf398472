"""The example projects grow in steps: what they have in common must stay in common."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.support.crawls import crawl, items_of
from tests.support.site import Site, links

EXAMPLES = Path(__file__).resolve().parents[2] / "example_project"
LINES = ['ADDONS = {"scrapy_ubi.Addon": 500}', 'UBI_REDIS_URL = "redis://127.0.0.1:6390/0"']


def test_distributed_step_has_the_spider_of_the_step_before() -> None:
    spider = Path("atlas/spiders/pages.py")
    assert (EXAMPLES / "02_distributed" / spider).read_text() == (EXAMPLES / "01_before" / spider).read_text()


def test_distributed_step_has_two_more_lines_of_settings_and_one_for_the_demo() -> None:
    before = (EXAMPLES / "01_before/atlas/settings.py").read_text()
    after = (EXAMPLES / "02_distributed/atlas/settings.py").read_text()
    assert after.startswith(before)
    more = [line for line in after.removeprefix(before).split("\n") if not line.startswith("#")]
    assert more == ["", *LINES, "", "UBI_START_WAIT = 0", ""]


def test_broad_step_uses_the_same_two_lines() -> None:
    text = (EXAMPLES / "03_broad/broad/settings.py").read_text()
    assert all(f"\n{line}\n" in text for line in LINES)


def test_runner_judges_by_the_seeds_of_the_broad_spider() -> None:
    code = "from broad.spiders.hosts import HostsSpider; print(*HostsSpider.start_urls)"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=EXAMPLES / "03_broad", capture_output=True, text=True, check=True, timeout=60
    )
    from demo.run import MIN_HOSTS, SEEDS

    assert tuple(said.stdout.split()) == SEEDS
    from demo.graph import Graph

    assert all(Graph(1, MIN_HOSTS, MIN_HOSTS).reachable([seed]) for seed in SEEDS)


def test_both_spiders_of_the_broad_step_crawl_the_same() -> None:
    with mock.patch.object(sys, "path", [str(EXAMPLES / "03_broad"), *sys.path]), Site() as site:
        from broad.spiders.hosts import HostsSpider
        from broad.spiders.wide import WideSpider

        seeds = [url.rstrip("/") for url in HostsSpider.start_urls]
        for seed, following in zip(seeds, [*seeds[1:], seeds[0]], strict=True):
            for page in ("/", "/a", "/b"):
                site.page(f"{seed}{page}", links("/", "/a", f"{following}/b", "/image.png"), content_type="text/html")
        items = [items_of(crawl(spider, site.proxy)) for spider in (HostsSpider, WideSpider)]
    assert items[0] == items[1] and len(items[0]) == 3 * len(seeds)


def test_readme_of_each_step_names_commands_that_exist() -> None:
    for step in ("01_before", "02_distributed", "03_broad"):
        text = (EXAMPLES / step / "README.md").read_text()
        assert "python ../demo/servers.py" in text and "scrapy crawl " in text
        assert (EXAMPLES / step / "scrapy.cfg").is_file()


@pytest.mark.parametrize("step", ["01_before", "02_distributed", "03_broad"])
def test_scrapy_finds_the_spider_of_each_step(step: str) -> None:
    environment = os.environ | {"PYTHONPATH": ""}
    said = subprocess.run(
        [sys.executable, "-m", "scrapy", "list"],
        cwd=EXAMPLES / step,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.split() == (["hosts", "wide"] if step == "03_broad" else ["pages"])
