"""A Scrapy in which a private name has moved: off, the crawl is a plain one; on, it gives the same items, without what
needs the name, or is refused with a sentence that says which it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import moved_names

ITEMS = '["", "", "a", "b", "c"]'  # of plain Scrapy: a start URL is fetched twice where a page links to it

LEFT_OUT = (
    "scrapy:_apply_settings", "scrapy:_cached_selector", "scrapy:_delay", "scrapy:_parse", "scrapy:_parsers",
    "scrapy:_timeout", "scrapy:apply_uri_params", "scrapy:domains_seen", "scrapy:get_host_regex",
    "scrapy:get_scrapy_root_handler", "scrapy:jitter", "scrapy:lastseen", "scrapy:max_active_size",
    "scrapy:per_slot_settings", "scrapy:total_concurrency", "scrapy:_requests_to_follow", "scrapy:_build_request",
    "scrapy:_rules", "scrapy:_identity_process_request", "scrapy:MetaCopyDetectionMiddleware",
    "twisted.web:_putConnection", "twisted.web:_removeConnection", "twisted.web:_connections", "twisted.web:_timeouts",
    "twisted.web:_clientProtocol",
)  # fmt: skip
REFUSED = (
    "scrapy.core.downloader:Slot", "scrapy:ExecutionEngine", "scrapy:PostProcessingManager", "scrapy:FeedSlot",
    "scrapy:FileException", "scrapy:TunnelError", "scrapy:_get_handler", "scrapy:_get_slot", "scrapy:_get_uri_params",
    "scrapy:_handle_downloader_output", "scrapy:_pool", "scrapy:_slot", "scrapy:_spider_idle",
    "scrapy:_start_new_batch", "scrapy:close_if_idle", "scrapy:download_async", "scrapy:download_request_async",
    "scrapy:enqueue_scrape", "scrapy:itemcount", "scrapy:itemproc", "scrapy:maxdepth", "scrapy:maxlength",
    "scrapy:nextcall", "scrapy:remove_request", "scrapy:scraper", "scrapy:spidermw", "scrapy:start_itemproc_async",
    "scrapy.core.downloader:handlers",
)  # fmt: skip
# Something of Scrapy's own stands in, or nothing that is missed needs them.
NO_LOSS = (
    "scrapy:_apply_settings", "scrapy:_delay", "scrapy:apply_uri_params", "scrapy:jitter",
    "scrapy:MetaCopyDetectionMiddleware",
)  # fmt: skip
QUICK = ("scrapy.core.downloader:Slot", "scrapy:nextcall", "twisted.web:_timeouts")


def marked(names: tuple[str, ...]) -> list[object]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def crawl(directory: Path, switch: str, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", moved_names.__name__, str(directory), switch, *names]
    root = Path(moved_names.__file__).parents[2]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False, cwd=root, env={**os.environ, "TZ": "UTC"}
    )


@pytest.mark.processes
def test_off_a_crawl_is_plain_with_all_names_moved(tmp_path: Path) -> None:
    done = crawl(tmp_path, "off", *LEFT_OUT, *REFUSED)
    assert (done.returncode, done.stdout.strip()) == (0, ITEMS), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("name", marked(LEFT_OUT))
def test_on_what_needs_the_name_is_left_out(tmp_path: Path, name: str) -> None:
    done = crawl(tmp_path, "on", name)
    assert (done.returncode, done.stdout.strip()) == (0, ITEMS), done.stderr
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if "Left out, as Scrapy" in line]
    assert len(said) == (name not in NO_LOSS), done.stderr
    assert not said or f".{name.partition(':')[2]}" in said[0]


@pytest.mark.processes
@pytest.mark.parametrize("name", marked(REFUSED))
def test_on_the_start_is_refused_with_the_name(tmp_path: Path, name: str) -> None:
    done = crawl(tmp_path, "on", name)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and done.stdout == "", done.stderr
    assert last.startswith("scrapy_ubi: Scrapy ") and name.partition(":")[2] in last and "UBI_ENABLED" in last
    assert "Traceback" not in done.stderr
