"""An archive of an agent that was killed while it loaded what a page needs: it has all of it, once (P9)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_ubi.outputs.collector import find_outputs
from scrapy_ubi.outputs.warc.warc_collector import WarcCollector
from tests.adapter.scheduling.test_page_requisites import CSS, HOST, archived, build, missing
from tests.support.site import Page, Site

LIMIT = 120.0  # seconds
SCRIPT = """
import sys
from scrapy.crawler import CrawlerProcess
from tests.adapter.scheduling.test_page_requisites import Walk

process = CrawlerProcess({
    "ADDONS": {"scrapy_ubi.Addon": 500}, "UBI_DIR": sys.argv[1], "UBI_CRAWL": "killed", "ROBOTSTXT_OBEY": True,
    "UBI_STORES": "warc(requisites=yes)", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False,
})
process.crawl(Walk)
process.start()
"""


def start(site: Site, directory: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "http_proxy": site.proxy, "no_proxy": ""}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(directory)], env=environment, stderr=subprocess.DEVNULL)


@pytest.mark.processes
def test_an_agent_that_is_killed_while_it_loads_a_style_sheet(site: Site, tmp_path: Path) -> None:
    build(site)
    site.page(f"{HOST}/b.css", Page("@font-face {src: url(http://h1.example/f.woff2)}", headers=CSS))
    directory = tmp_path / "a0"
    with site.hold(f"{HOST}/b.css") as held:
        killed = start(site, directory)
        assert held.arrived.wait(LIMIT), "the style sheet was never asked for"
        killed.send_signal(signal.SIGKILL)
        killed.wait(LIMIT)
    again = start(site, directory)
    assert again.wait(LIMIT) == 0
    output = tmp_path / "collected/all/out/warc/all.warc.gz"
    output.parent.mkdir(parents=True)
    collector = WarcCollector(find_outputs([directory]), output)
    with output.open("wb") as file:
        collector.collect(file)
    collector.place_beside()
    archive = archived(tmp_path / "collected")
    assert f"{HOST}/b.css" in archive and not {url for url in missing(archive) if url.startswith(HOST)}
    counts = {url: len(answers) for url, answers in archive.items() if not url.endswith("/robots.txt")}
    assert counts.pop(f"{HOST}/pic.png") == 2  # as a page, and as what pages need
    assert set(counts.values()) == {1}
