"""A crawl with the store `index`, in this process: what is found, and what is left out and counted."""

from __future__ import annotations

from pathlib import Path

from tests.outputs.index.test_search import command
from tests.support.crawls import Walk, crawl
from tests.support.site import Page, Site, links

HOME = "http://a.example/"


def test_a_crawl_is_searched(site: Site, tmp_path: Path) -> None:
    site.page(HOME, "<title>Home</title>" + links("http://b.example/one", "http://b.example/bytes"))
    site.page("http://b.example/one", "<p>a word that is rare</p>" + links(HOME))
    site.page("http://b.example/bytes", Page(bytes(range(256)), headers={"Content-Type": "image/png"}))

    (outcome,) = crawl(Walk, site.proxy, settings={"UBI_STORES": "index"}, place=tmp_path)
    stats = outcome.crawler.stats
    assert stats is not None
    assert stats.get_value("ubi/store/index/pages") == 2 and stats.get_value("ubi/store/index/left_out") == 1
    (found,) = command("search", "rare", "--dir", str(tmp_path / "a0")).document["results"]
    assert (found["url"], found["status"], len(found["digest"])) == ("http://b.example/one", 200, 40)
    (home,) = command("search", "home", "--dir", str(tmp_path / "a0")).document["results"]
    assert home["title"] == "Home"
