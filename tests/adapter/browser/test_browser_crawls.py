"""Crawls with UBI_BROWSER and a real browser: of a site whose pages scripts make, and of one whose pages come whole."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.project import LIMIT, Project, on_redis
from tests.support.server import Server
from tests.support.site import Page, Site

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LACKING = [
    name for name, there in (("scrapy-playwright", find_spec("scrapy_playwright")), ("chromium", CHROMIUM)) if not there
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.skipif(bool(LACKING), reason=f"{' and '.join(LACKING)} not installed"),
]

SPA, OLD = "http://spa.example", "http://old.example"
WORDS = " ".join(f"word{number}" for number in range(60))
APP = """
    fetch("/api" + location.pathname).then(answer => answer.json()).then(page => {
        document.getElementById("app").innerHTML = `<h1>${page.title}</h1><p>${page.text}</p>`
            + page.links.map(link => `<a href="${link}">${link}</a>`).join(" ");
    });
"""
SETTINGS = f"""
UBI_BROWSER = "auto"
ROBOTSTXT_OBEY = True
USER_AGENT = "walker/1.0"
PLAYWRIGHT_LAUNCH_OPTIONS = {{
    "executable_path": {CHROMIUM!r}, "args": ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
}}
"""
SPIDER = """
import scrapy

class Shown(scrapy.Spider):
    name = "shown"

    def __init__(self, seeds):
        self.start_urls = seeds.split(",")

    def parse(self, response):
        title = " ".join(response.css("h1::text").getall())
        yield {"url": response.url, "title": title, "browser": "browser" in response.flags}
        yield from response.follow_all(css="a")
"""


def links_of(number: int, pages: int) -> list[str]:
    return [f"/p{next_}" for next_ in range(number + 1, min(pages, number + 3))]


def told(number: int, pages: int) -> Page:
    """What the script of a page is told to show."""
    said = {"title": f"Page {number} é", "text": WORDS, "links": links_of(number, pages)}
    return Page(json.dumps(said, ensure_ascii=False), headers={"Content-Type": "application/json"})


def web(site: Site, pages: int = 6) -> None:
    """A site whose pages are made by scripts, and one whose pages have a script that makes nothing."""
    site.page(f"{SPA}/robots.txt", "User-agent: *\nDisallow: /api/secret\n")
    script = {"Content-Type": "text/javascript"}
    site.page(f"{SPA}/app.js", Page(APP, headers=script))
    site.page(f"{OLD}/deco.js", Page("document.title = 'x';", headers=script))
    html = {"Content-Type": "text/html; charset=iso-8859-1"}
    for number in range(pages):
        links = links_of(number, pages)
        shell = "<html><body><div id='app'></div><script src='/app.js'></script><img src='/i.png'>"
        site.page(f"{SPA}/p{number}", Page(shell.encode("latin-1"), headers=html))
        site.page(f"{SPA}/api/p{number}", told(number, pages))
        text = f"<h1>Old {number}</h1><p>{WORDS}</p>" + "".join(f"<a href='{link}'>next</a>" for link in links)
        site.page(f"{OLD}/p{number}", f"<html><body>{text}<script src='/deco.js'></script></body></html>")


def made(place: Path, site: Site, settings: str = "") -> Project:
    """A project whose pages a browser may show."""
    project = Project(place, site.proxy)
    with (place / "project" / "settings.py").open("a") as file:
        file.write(SETTINGS + settings)
    (place / "project" / "spiders" / "shown.py").write_text(SPIDER)
    return project


def walk(place: Path, site: Site, *seeds: str, settings: str = "") -> tuple[list[Any], str]:
    """Crawl from these seeds: the items, and the log."""
    project = made(place, site, settings)
    status, output = project.run("crawl", "shown", "-a", f"seeds={','.join(seeds)}", "-o", "items.jsonl")
    assert status == 0, output
    return project.items(), output


def stat(output: str, name: str) -> int:
    """The value of a stat that the log shows; 0 for none."""
    found = re.search(rf"'{re.escape(name)}': (\d+)", output)
    return int(found[1]) if found else 0


def titles(items: list[Any], host: str) -> dict[str, str]:
    """The title of each page of a host, by path."""
    return {urlsplit(item["url"]).path: item["title"] for item in items if item["url"].startswith(host)}


@pytest.mark.parametrize("settings", ["", "UBI_FAST = True\n", "UBI_LEAN = False\n"], ids=["lean", "fast", "scrapys"])
def test_pages_that_scripts_make_are_given_as_the_browser_shows_them(site: Site, tmp_path: Path, settings: str) -> None:
    web(site)
    items, output = walk(tmp_path, site, f"{SPA}/p0", f"{OLD}/p0", settings=settings)
    assert titles(items, SPA) == {f"/p{number}": f"Page {number} é" for number in range(6)}, output
    assert titles(items, OLD) == {f"/p{number}": f"Old {number}" for number in range(6)}
    assert {item["url"] for item in items if item["browser"]} == {f"{SPA}/p{number}" for number in range(6)}
    # The browser asks no server for a page: each is fetched once, as any other. So are scripts, for all pages.
    urls = site.urls()
    assert all(urls[f"{host}/p{number}"] == 1 for number in range(6) for host in (SPA, OLD))
    assert urls[f"{SPA}/app.js"] == urls[f"{OLD}/deco.js"] == 1
    assert f"{SPA}/i.png" not in urls
    assert stat(output, "ubi/browser/hosts/browser") == stat(output, "ubi/browser/hosts/plain") == 1
    assert stat(output, "ubi/browser/judged/made") == stat(output, "ubi/browser/judged/whole") == 2
    assert stat(output, "ubi/browser/shown") == 6 + 2
    assert not [visit for visit in site.visits if visit.headers["user-agent"] != "walker/1.0"]


def test_what_a_page_loads_keeps_robots_txt_and_the_delay_of_its_host(site: Site, tmp_path: Path) -> None:
    web(site, pages=2)
    site.page(f"{SPA}/robots.txt", "User-agent: *\nDisallow: /api/p1\n")
    items, output = walk(tmp_path, site, f"{SPA}/p0", settings="UBI_HOST_DELAY = 0.3\n")
    assert titles(items, SPA) == {"/p0": "Page 0 é", "/p1": ""}, "what robots.txt forbids is not there"
    assert site.urls().total() == 5, "robots.txt, two pages, a script, and what it asks for once"
    assert stat(output, "ubi/browser/loads/refused") == 1
    assert min(site.gaps("spa.example")) >= 0.3


def test_a_page_whose_content_could_not_be_loaded_has_failed(site: Site, tmp_path: Path) -> None:
    web(site, pages=3)
    site.page(f"{SPA}/api/p0", lambda visit: Page("busy", 503) if visit.number == 1 else told(0, 3))
    site.page(f"{SPA}/api/p1", Page("broken", 500))
    items, output = walk(tmp_path, site, f"{SPA}/p0", settings="RETRY_TIMES = 1\n")
    assert titles(items, SPA) == {"/p0": "Page 0 é", "/p2": "Page 2 é"}, output
    assert stat(output, "ubi/failed/exception/BrowserFailed") == 1
    assert stat(output, "ubi/browser/failed/load") >= 2


def test_always_and_a_hand_decide_without_a_look(site: Site, tmp_path: Path) -> None:
    web(site, pages=2)
    items, output = walk(tmp_path, site, f"{SPA}/p0", f"{OLD}/p0", settings="UBI_BROWSER = 'always'\n")
    assert [item["browser"] for item in items] == [True] * 4, output
    assert titles(items, SPA) == {"/p0": "Page 0 é", "/p1": "Page 1 é"}
    assert "ubi/browser/judged" not in output


def test_without_the_browser_itself_pages_with_scripts_fail_and_the_log_says_why(site: Site, tmp_path: Path) -> None:
    web(site, pages=2)
    site.page(f"{OLD}/p1", "<html><h1>Plain</h1></html>")
    none = "PLAYWRIGHT_LAUNCH_OPTIONS = {'executable_path': '/nowhere/chromium'}\nRETRY_TIMES = 0\n"
    items, output = walk(tmp_path, site, f"{SPA}/p0", f"{OLD}/p1", settings=none)
    assert titles(items, OLD) == {"/p1": "Plain"} and not titles(items, SPA)
    assert stat(output, "ubi/failed/exception/BrowserFailed") == 1
    assert "The browser could not show a page: http://spa.example/p0" in output


def test_a_decision_is_shown_and_changed_while_the_crawl_runs(site: Site, tmp_path: Path, one_server: Server) -> None:
    web(site)
    project = made(tmp_path, site)
    options = on_redis(one_server.url, "a1")
    with site.hold(f"{SPA}/p3") as held, project.start("crawl", "shown", "-a", f"seeds={SPA}/p0", *options) as process:
        assert held.arrived.wait(LIMIT)
        asked = ["--redis-url", one_server.url]
        status, hosts = project.run("ubi", "hosts", *asked)
        assert status == 0 and re.search(r"spa\.example .*\bbrowser\b", hosts), hosts
        status, host = project.run("ubi", "host", "spa.example", *asked)
        assert status == 0 and "browser" in host, host
        status, said = project.run("ubi", "set", "UBI_BROWSER=off", "--host", "spa.example", *asked)
        assert status == 0, said
        held.release()
        output, _ = process.communicate(timeout=LIMIT)
    shown = {item["url"][-3:]: item["browser"] for item in project.items("a1.jsonl")}
    assert shown["/p0"] and not shown["/p3"] and not shown["/p4"], output
