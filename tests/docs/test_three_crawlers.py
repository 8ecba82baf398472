"""The settings of docs/how-to/three-crawlers.md, read out of the page itself: each crawls a little web as it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from tests.support.crawls import Outcome, crawl, items_of, total
from tests.support.site import HANG_UP, Page, Site, links

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "three-crawlers.md"
AGENTS = 3

# Agents of one process need no Redis; and what a user waits for, a test does not.
INSTEAD: dict[str, Any] = {"UBI_REDIS_URL": None, "UBI_HOST_DELAY": 0.05, "UBI_HOST_PAUSE": 0.05}


class Walk(Spider):
    """Follows every link."""

    name = "walk"
    seeds = ""

    async def start(self) -> Any:
        for url in self.seeds.split():
            yield Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "bytes": len(response.body), "flags": response.flags}
        if isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def settings_of(title: str) -> dict[str, Any]:
    """The block of this section, as Scrapy would read it."""
    (block,) = re.findall(r"^```python\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    found = {}
    for line in ast.parse(block).body:
        assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def write_files_of(title: str, place: Path) -> None:
    """The files that the section shows, where an agent would look for them."""
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL):
        (place / name).write_text(text)


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(title: str, site: Site, *seeds: str) -> list[Outcome]:
    """A crawl of three agents with the settings of this section, to its end."""
    settings = settings_of(title)
    assert settings["ADDONS"] == {"scrapy_ubi.Addon": 500} and settings["UBI_REDIS_URL"].startswith("redis://")
    write_files_of(title, Path.cwd())
    outcomes = crawl(Walk, site.proxy, AGENTS, {**settings, **INSTEAD}, seeds=" ".join(seeds))
    assert {outcome.reason for outcome in outcomes} == {"finished"}
    assert set(site.most_at_once.values()) == {1}
    return outcomes


def pages(site: Site) -> list[str]:
    """What was fetched, in order, without robots.txt."""
    return [visit.url for visit in site.visits if not visit.url.endswith("/robots.txt")]


def test_every_line_says_what_it_is_for() -> None:
    for title in ("UbiCrawler", "LARM", "Nielsen"):
        (block,) = re.findall(r"^```python\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
        unsaid = [line for line in block.splitlines() if line.startswith("UBI_") and "  # " not in line]
        assert [line.split()[0] for line in unsaid if "_TYPES" not in line and not line.endswith("[")] == [
            "UBI_REDIS_URL"
        ]


def test_ubicrawler(site: Site) -> None:
    """Hosts that are chains of pages, and a bush at the first: breadth first, to a depth."""
    hosts = [f"http://h{number}.example" for number in range(6)]
    depth = int(settings_of("UbiCrawler")["UBI_HOST_LIMITS"].removeprefix("depth="))
    for host, following in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        site.page(f"{host}/", links(f"{host}/1", f"{following}/", *(f"{host}/leaf/{number}" for number in range(4))))
        for number in range(1, depth + 4):
            site.page(f"{host}/{number}", links(f"{host}/{number + 1}"))
        for number in range(4):
            site.page(f"{host}/leaf/{number}", "")
    outcomes = run("UbiCrawler", site, f"{hosts[0]}/")
    chain = ["/", *(f"/{number}" for number in range(1, depth + 1))]
    assert sorted(pages(site)) == sorted(
        f"{host}{path}" for host in hosts for path in [*chain, *(f"/leaf/{number}" for number in range(4))]
    )
    for host in hosts:
        order = [urlsplit(url).path for url in pages(site) if url.startswith(host)]
        depths = [chain.index(path) if path in chain else 1 for path in order]
        assert depths == sorted(depths), "breadth first"
    assert total(outcomes, "ubi/limits/host_depth") == len(hosts)


def test_larm(site: Site) -> None:
    """Each filter has something to refuse, the normaliser something to join, and one host does not answer."""
    home, new, old, dead = (f"http://{name}.my-university.net" for name in ("home", "new", "old", "dead"))
    refused = [f"{home}/?C=N;O=D", f"{home}/{'long' * 70}", "http://elsewhere.example/", f"{home}/private"]
    bare = "http://my-university.net"
    joined = ["/index.html", "/page", "//home.my-university.net//page#there", f"{old}/p"]
    joined += ["http://www.home.my-university.net/Page", f"{bare}/", "http://www.my-university.net/"]
    site.page(f"{home}/robots.txt", "User-agent: *\nDisallow: /private\n")
    site.page(f"{home}/", links(*refused, "/Page", f"{new}/p", *joined, f"{old}/other"))
    for url in (f"{home}/Page", f"{old}/other", f"{bare}/"):
        site.page(url, "")
    site.page(f"{new}/p", links(*(f"{dead}/{number}" for number in range(6))))
    site.host(urlsplit(dead).netloc, lambda visit: Page(status=HANG_UP))
    site.page(f"{dead}/robots.txt", Page(status=404))
    outcomes = run("LARM", site, f"{home}/")
    answered = [url for url in pages(site) if not url.startswith(dead)]
    assert sorted(answered) == sorted([f"{home}/", f"{home}/Page", f"{new}/p", f"{old}/other", f"{bare}/"])
    for reason in ("length", "known_paths", "scope"):
        assert total(outcomes, f"ubi/filtered/{reason}") == 1
    assert total(outcomes, "ubi/failed/robots") == 1
    assert total(outcomes, "ubi/joined/index") == total(outcomes, "ubi/joined/slashes") == 1
    assert total(outcomes, "ubi/hosts/postponed/health") == 3
    assert total(outcomes, "ubi/failed/host/dead") >= 1


def test_nielsen(site: Site) -> None:
    """Two hosts of one domain are one queue; what is not on the list is not fetched, whatever leads there."""
    first, second, third = "http://a.example.com", "http://b.example.com", "http://www.my-university.net"
    refused = "http://refused.example"
    site.page(f"{first}/", links("/1", f"{second}/", f"{third}/", f"{refused}/", "/away"))
    site.page(f"{second}/", links("/1", "/2", f"{refused}/1"))
    site.page(f"{third}/", links("/large"))
    site.page(f"{third}/large", Page("x" * 1_000_000, headers={"Content-Type": "text/plain"}))
    for url in (f"{first}/1", f"{second}/1", f"{second}/2"):
        site.page(url, "")
    site.redirect(f"{first}/away", f"{refused}/2")
    outcomes = run("Nielsen", site, f"{first}/")
    of_example = [f"{first}/", f"{first}/1", f"{first}/away", f"{second}/", f"{second}/1", f"{second}/2"]
    assert sorted(pages(site)) == sorted([*of_example, f"{third}/", f"{third}/large"])
    sizes = {item["url"]: (item["bytes"], "truncated" in item["flags"]) for item in items_of(outcomes)}
    assert sizes[f"{third}/large"] == (200_000, True)
    began = sorted(begin for host in (first, second) for begin, _ in site.spans[urlsplit(host).netloc])
    assert min(later - earlier for earlier, later in pairwise(began)) >= INSTEAD["UBI_HOST_DELAY"]
    assert all("+https://bot.my-university.net/" in visit.headers["user-agent"] for visit in site.visits)
    assert total(outcomes, "ubi/filtered/scope") == 3
