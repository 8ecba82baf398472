"""Crawls of sites that say what their pages may be used for (`UBI_USAGE`)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site

HOST, FREE = "http://h.example", "http://free.example"


class Noted(Spider):
    """Yields what is noted of each page, and why a page failed."""

    name = "noted"
    start_urls = (*(f"{HOST}/{path}" for path in ("a", "ok/b", "signed", "moved")), f"{FREE}/a")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "usage": response.meta.get("ubi_usage")}


def web(site: Site) -> None:
    robots = "User-agent: *\nContent-Usage: /ok/ train-ai=y\nContent-Usage: /a train-ai=n, search=y\n"
    site.page(f"{HOST}/robots.txt", robots)
    for path in ("a", "ok/b"):
        site.page(f"{HOST}/{path}", "page")
    site.page(f"{HOST}/signed", Page("page", headers={"Content-Usage": "ai-use=n", "Content-Signal": "ai-train=no"}))
    site.redirect(f"{HOST}/moved", f"{HOST}/ok/c")
    site.page(f"{HOST}/ok/c", Page("page", headers={"Content-Usage": "train-ai=n"}))
    site.page(f"{FREE}/a", "page")


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "scrapys"])
def test_what_sites_say_is_noted(site: Site, tmp_path: Path, fast: bool) -> None:
    web(site)
    settings = {
        "UBI_USAGE": "note", "ROBOTSTXT_OBEY": True, "UBI_FAST": fast, "UBI_STORES": ["warc"],
        "UBI_DIR": str(tmp_path / "agent"),
    }  # fmt: skip
    outcomes = crawl(Noted, site.proxy, settings=settings)
    assert {item["url"]: item["usage"] for item in items_of(outcomes)} == {
        f"{HOST}/a": {"train-ai": "n", "search": "y"},
        f"{HOST}/ok/b": {"train-ai": "y"},
        f"{HOST}/signed": {"train-ai": "n", "ai-use": "n"},
        f"{HOST}/ok/c": {"train-ai": "n"},
        f"{FREE}/a": None,
    }
    assert total(outcomes, "ubi/usage/robots") == 3 and total(outcomes, "ubi/usage/headers") == 2
    archive = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.rglob("*.warc.gz"))
    assert archive.count(b"ubi-usage: train-ai=n, search=y\r\n") == 1 and archive.count(b"ubi-usage: ") == 4


def test_pages_that_are_not_to_be_used_so_are_left_out(site: Site) -> None:
    web(site)
    outcomes = crawl(Noted, site.proxy, settings={"UBI_USAGE": ["train-ai"], "ROBOTSTXT_OBEY": True})
    assert [item["url"] for item in items_of(outcomes)] == [f"{FREE}/a", f"{HOST}/ok/b"]
    assert f"{HOST}/a" not in site.urls(), "its robots.txt says so before"
    assert total(outcomes, "ubi/usage/refused/train-ai") == 3
    assert total(outcomes, "ubi/failed/usage/train-ai") == 3


def test_without_the_setting_nothing_is_noted(site: Site) -> None:
    web(site)
    outcomes = crawl(Noted, site.proxy, settings={"ROBOTSTXT_OBEY": True})
    assert len(items_of(outcomes)) == 5 and not any(item["usage"] for item in items_of(outcomes))


@pytest.mark.parametrize("value", ["training", ["train-ai", "all"], 5])
def test_a_purpose_has_to_be_one(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_USAGE"):
        UbiSettings.from_scrapy({"UBI_USAGE": value})
    assert UbiSettings.from_scrapy({"UBI_USAGE": "train-ai, search"}).usage == ("train-ai", "search")
