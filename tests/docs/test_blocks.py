"""The Python of the pages does what they say: settings can be read, spiders crawl, filters refuse."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scrapy.http import HtmlResponse
from scrapy.settings import Settings, default_settings
from scrapy.spiders import CrawlSpider, Spider

from scrapy_ubi.settings import SETTINGS, UbiSettings
from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.filters import FilterChain, Link
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, links

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "example_project").rglob("*.md")), ROOT / "README.md"]
HOME = "http://example.com"
# What the reader is to have: files beside settings.py, and what the environment says.
FILES = {
    "domains.txt": "a.example\n",
    "hosts.properties": "startsWith(www.) =\n",
}


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def names_of(source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(source, found)  # noqa: S102 - our own pages
    return found


def names_in(page: str, holds: str) -> dict[str, Any]:
    """What the block of that page defines that holds this text."""
    (source,) = (source for source in blocks(ROOT / page) if holds in source)
    return names_of(source)


def is_settings(source: str) -> bool:
    """Whether this is part of a settings.py: names in capitals are set, and nothing else is done."""
    body = [node for node in ast.parse(source).body if not isinstance(node, ast.Import)]
    return all(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
        for node in body
    )


def settings_blocks() -> Iterator[Any]:
    for page in PAGES:
        for number, source in enumerate(blocks(page)):
            if is_settings(source):
                yield pytest.param(source, id=f"{page.relative_to(ROOT)}-{number}")


@pytest.fixture(autouse=True)
def in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAWL_REDIS_URL", "rediss://redis.example:6379/0")
    monkeypatch.setenv("CRAWL_SECRET", "a secret of some length")
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_python(page: Path) -> None:
    for source in blocks(page):
        ast.parse(source, page.name)


@pytest.mark.parametrize("source", list(settings_blocks()))
def test_settings_are_there_and_can_be_read(source: str) -> None:
    values = {name: value for name, value in names_of(source).items() if name.isupper()}
    known = {row.setting for row in SETTINGS} | vars(default_settings).keys()
    assert values.keys() <= known
    FilterChain.read(UbiSettings.from_scrapy(Settings(values), "walk").filters)


@pytest.mark.parametrize(
    ("block", "taken", "refused"),
    [
        (
            "-shop.example.com",
            ["http://example.com/", "http://a.b.example.org/x"],
            ["http://shop.example.com/", "http://a.shop.example.com/", "http://other.example/"],
        ),
        ("file=domains.txt", ["http://www.a.example/"], ["http://b.example/"]),
        (
            "hosts=docs.example.com",
            ["https://docs.example.com/en/x", "http://docs.example.com:81/de/?a.php=b"],
            ["http://docs.example.com/fr/x", "http://docs.example.com/en/x.php?a", "http://www.example.com/en/x"],
        ),
        (
            "-pdf",
            ["http://a.example/", "http://a.example/x.html"],
            ["http://a.example/x.PDF?a", "http://a.example/x.zip"],
        ),
        (
            '"traps"',
            ["http://a.example/x/x"],
            ["http://a.example/x/x/x", "http://a.example/?C=N;O=D", "http://a.example/" + "x" * 1024],
        ),
    ],
)
def test_filters_take_and_refuse_as_is_said_of_them(block: str, taken: list[str], refused: list[str]) -> None:
    sources = [source for source in blocks(ROOT / "docs/how-to/filter-urls.md") if block in source]
    assert sources
    for source in sources:
        chain = FilterChain.read(names_of(source)["UBI_FILTERS"])

        def passes(url: str, chain: FilterChain = chain) -> bool:
            return chain.refusal(Link(url, normal_form(url) or "", 1, "http://a.example/")) is None

        assert [url for url in taken + refused if passes(url)] == taken


def test_a_filter_of_ones_own() -> None:
    made = names_in("docs/reference/filters.md", "NoPrint")["NoPrint"]("print", "pdf")
    assert made.refuses(Link("http://a.example/?pdf=1", "http://a.example/?pdf=1", 0, "")) == "pdf"
    assert made.refuses(Link("http://a.example/", "http://a.example/", 0, "")) == ""
    assert made.arguments() == {"": ("print", "pdf")}


def test_an_observer_of_ones_own(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    observers = ModuleType("observers_of_the_page")
    observers.Languages = names_in("docs/how-to/observe-pages.md", "class Languages")["Languages"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, observers.__name__, observers)
    for path, language in (("/", "en-GB"), ("/1", "de"), ("/2", "")):
        site.page(
            f"{HOME}{path}",
            Page(
                links("/1", "/2", "/3"),
                headers={"Content-Type": "text/html"} | ({"Content-Language": language} if language else {}),
            ),
        )
    settings = {"UBI_OBSERVERS": ["observers_of_the_page.Languages"]}

    class Wide(spider_of("docs/how-to/plain-links.md", "Wide")):  # type: ignore[misc]
        def parse(self, response: HtmlResponse) -> Iterator[Any]:
            yield {"url": response.url}
            yield self.links(response)

    (outcome,) = crawl(Wide, site.proxy, settings=settings)
    assert outcome.reason == "finished" and "log_count/ERROR" not in outcome.stats
    assert sorted(item["url"] for item in outcome.items) == [f"{HOME}/", f"{HOME}/2"]
    counted = {name: value for name, value in outcome.stats.items() if name.startswith("languages/")}
    assert counted == {"languages/en-GB": 1, "languages/de": 1, "languages/unknown": 2, "languages/failed": 1}


def spider_of(page: str, name: str) -> type[Spider]:
    """The class of that name, which begins at our page."""
    made: type[Spider] = names_in(page, f"class {name}")[name]
    return type(name, (made,), {"start_urls": [f"{HOME}/"]})


def html(text: str = "") -> Page:
    return Page(text, headers={"Content-Type": "text/html"})


@pytest.mark.parametrize("page", ["docs/how-to/plain-links.md"])
def test_a_spider_that_hands_over_its_links(site: Site, page: str) -> None:
    site.page(f"{HOME}/", html(links("/1", "/2")))
    site.page(f"{HOME}/1", html(links("/", "/2", "/3")))
    site.page(f"{HOME}/2", Page("no HTML", headers={"Content-Type": "text/plain"}))
    site.page(f"{HOME}/3", html())
    (outcome,) = crawl(spider_of(page, "Wide"), site.proxy)
    assert outcome.reason == "finished" and "log_count/ERROR" not in outcome.stats
    assert dict(site.urls()) == {f"{HOME}{path}": 1 for path in ("/", "/1", "/2", "/3")}


def test_a_spider_that_hands_over_urls_it_found_otherwise(site: Site) -> None:
    class Lists(spider_of("docs/how-to/plain-links.md", "Lists")):  # type: ignore[misc]
        def parse_list(self, response: HtmlResponse) -> Iterator[Any]:
            yield {"url": response.url}

    site.page(f"{HOME}/", html('<a class=next href="/2">2</a><a href="/3">3</a>'))
    site.page(f"{HOME}/2", html(links("/4")))
    outcomes = crawl(Lists, site.proxy)
    assert [item["url"] for item in items_of(outcomes)] == [f"{HOME}/2"]
    assert "log_count/ERROR" not in outcomes[0].stats


def test_a_pipeline_that_writes_a_file_for_each_agent(site: Site) -> None:
    class Some(Spider):
        name = "some"
        start_urls = tuple(f"http://h{number}.example/" for number in range(12))

        def parse(self, response: HtmlResponse) -> Iterator[Any]:
            yield {"url": response.url}

    for url in Some.start_urls:
        site.page(url, html())
    pipeline = names_in("docs/how-to/add-to-a-project.md", "class LinesPipeline")["LinesPipeline"]
    outcomes = crawl(Some, site.proxy, agents=2, settings={"ITEM_PIPELINES": {pipeline: 300}})
    assert len(items_of(outcomes)) == 12
    written = {file.name: file.read_text().split() for file in Path.cwd().glob("lines-*.txt")}
    assert len(written) == 2, "a file for each agent"
    assert sorted(url for lines in written.values() for url in lines) == sorted(Some.start_urls)


@pytest.mark.parametrize(
    ("page", "name"), [("docs/how-to/plain-links.md", "Articles"), ("docs/reference/link-extractor.md", "")]
)
def test_rules(site: Site, page: str, name: str) -> None:
    made = spider_of(page, name) if name else CrawlSpider
    rules = made.rules if name else names_in(page, "rules = ")["rules"]

    class Articles(made):  # type: ignore[misc, valid-type]
        name = "articles"
        start_urls = (f"{HOME}/",)

        def parse_article(self, response: HtmlResponse) -> Iterator[Any]:
            yield {"url": response.url}

    Articles.rules = rules
    site.page(f"{HOME}/", html('<main><a href="/article/1">1</a><a href="/other">2</a></main>'))
    site.page(f"{HOME}/article/1", html())
    outcomes = crawl(Articles, site.proxy)
    assert [item["url"] for item in items_of(outcomes)] == [f"{HOME}/article/1"]
    assert f"{HOME}/other" not in site.urls()
