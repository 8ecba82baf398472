"""Whole projects of other people give plain Scrapy's items: by one agent, by two, by two of which one is killed.

They are not kept here: `make compatibility` clones them; PROJECTS=DIRECTORY names a directory that has them. The sites
that they crawl are doubles of our own, on loopback. What is appended to their settings.py is what the docs ask for:
the add-on, and without scrapy-redis' scheduler; and no delay.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.compatibility.test_plugins import LIMIT, SETTINGS, differences, importable
from tests.matrix.trial import Kill, Trial
from tests.support.server import Server
from tests.support.site import Page, Site, Visit

pytestmark = pytest.mark.compatibility

PAGES = 12
CHANGES = ("crawled",)  # fields that say when an item was made
NO_DELAY = "\nDOWNLOAD_DELAY = 0\n"
WITHOUT_SCHEDULER = "\ndel SCHEDULER, DUPEFILTER_CLASS, SCHEDULER_PERSIST\n"


@dataclass(frozen=True)
class Project:
    """`folder`: in the directory of projects. `lines`: for its settings.py."""

    folder: str
    spider: str
    lines: str
    needs: tuple[str, ...] = ()


PROJECTS = (
    Project("quotesbot", "toscrape-css", NO_DELAY),
    Project("quotesbot", "toscrape-xpath", NO_DELAY),
    Project("scrapy-redis/example-project", "dmoz", NO_DELAY + WITHOUT_SCHEDULER, ("scrapy_redis",)),
)


def _quotes(visit: Visit) -> Page:
    """As quotes.toscrape.com: ten quotes a page, and the next page."""
    path = urlsplit(visit.url).path.strip("/")
    if path == "robots.txt":
        return Page("", 404)
    number = int(path.rpartition("/")[2] or 1)
    quotes = [
        f'<div class="quote"><span class="text">Quote {number}-{k}</span><span>by <small class="author">A{k}</small>'
        f'</span><div class="tags"><a class="tag" href="/tag/t{k}/">t{k}</a> <a class="tag" href="/">x</a></div></div>'
        for k in range(10)
    ]
    following = f'<li class="next"><a href="/page/{number + 1}/">Next</a></li>' if number < PAGES else ""
    return Page(f"<html><body>{''.join(quotes)}<ul>{following}</ul></body></html>")


def _directory(visit: Visit) -> Page:
    """As dmoz-odp.org: categories, their sub-categories, sites in each."""
    path = urlsplit(visit.url).path.strip("/")
    if path == "robots.txt":
        return Page("", 404)
    depth = path.count("/") + 1 if path else 0
    kind = ("top-cat", "sub-cat", "cat-item")[min(depth, 2)]
    below = [f"/{path}/{n}".replace("//", "/") for n in range(4)] if depth < 3 else []
    links = "".join(f'<div class="{kind}"><a href="{url}">{url}</a></div>' for url in below)
    site = f'<a href="http://{path}.example"><span class="site-title">T {path}</span></a><p class="site-descr"> D </p>'
    sites = f'<div class="title-and-desc">{site}</div>' if path else ""
    return Page(f"<html><body>{links}{sites}</body></html>")


def _without_times(items: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for item, number in items.items():
        kept = {key: value for key, value in json.loads(item).items() if key not in CHANGES}
        found[json.dumps(kept, sort_keys=True)] += number
    return found


@pytest.fixture(params=PROJECTS, ids=[f"{one.folder}-{one.spider}".replace("/", "-") for one in PROJECTS])
def project(request: pytest.FixtureRequest) -> tuple[Project, Path]:
    project: Project = request.param
    importable(project.folder, project.needs)
    place = Path(os.environ.get("COMPATIBILITY_PROJECTS", "no-such-directory")).absolute() / project.folder
    if not (place / "scrapy.cfg").exists():
        pytest.skip(f"NOT TRIED: {project.folder} is not in COMPATIBILITY_PROJECTS")
    return project, place


def test_the_items_are_those_of_plain_scrapy(
    project: tuple[Project, Path], site: Site, one_server: Server, tmp_path: Path
) -> None:
    asked, place = project
    site.host("quotes.toscrape.com", _quotes)
    site.host("www.dmoz-odp.org", _directory)
    always = f'{asked.lines}\nREDIS_URL = "{one_server.url}"\n'
    trial = Trial(
        asked.folder, tmp_path, site, one_server.url, SETTINGS,
        always=always, project=place, limit=LIMIT, spider=asked.spider,
    )  # fmt: skip
    try:
        plain = trial.plain()
        wanted = _without_times(plain.lines)
        assert wanted and not any(plain.exits), plain.logs[0][-3000:]
        for number, kill in ((1, None), (2, None), (2, Kill(5))):
            ours = trial.agents(number, kill=kill)
            tails = "\n".join(log[-3000:] for log in ours.logs)
            assert not any(ours.exits), tails
            assert not differences(wanted, _without_times(ours.collected), False), tails
            assert kill or not differences(wanted, _without_times(ours.lines), False), tails
    finally:
        trial.close()
