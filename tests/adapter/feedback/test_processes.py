"""Hosts that are given up, as users see them: with the reactor's download handler, a Redis, and commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.server import Server
from tests.support.site import HANG_UP, Page, Site, links

pytestmark = pytest.mark.processes

HOME = "http://h1.example/"
PAGES = 4  # of each host
OPTIONS = (
    "ROBOTSTXT_OBEY=False",
    "RETRY_TIMES=0",
    "UBI_HOST_FAILURES=2",
    "UBI_HOST_PAUSE=0.2",
    "UBI_HOST_TRIES=1",
    "UBI_HOST_TRIES=1",
)


def pages(host: str) -> list[str]:
    return [f"http://{host}.example/{number}" for number in range(PAGES)]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        running.page(HOME, links(*pages("good"), *pages("dead"), *pages("busy"), *pages("failing")))
        for url in pages("good"):
            running.page(url, "good")
        for url in pages("dead"):
            running.page(url, Page(status=HANG_UP))
        for url in pages("busy"):
            running.page(url, Page("later", 503, {"Retry-After": "0"}))
        for url in pages("failing"):
            running.page(url, Page("failing", 500))
        yield running


def crawl(project: Project, server: Server) -> str:
    """Crawl to the end; what the agent said."""
    options = [part for option in (*OPTIONS, f"UBI_REDIS_URL={server.url}") for part in ("-s", option)]
    status, output = project.run("crawl", "walk", *options)
    assert status == 0, output
    assert "Closing spider (finished)" in output
    return output


def test_they_are_named_in_the_report_and_come_back_when_they_are_requeued(
    tmp_path: Path, site: Site, one_server: Server
) -> None:
    project = Project(tmp_path, site.proxy)
    said = crawl(project, one_server)
    assert "dead.example has not answered 3 times in a row: it is given up" in said
    assert "busy.example has asked 2 times in a row to come back later: it is given up" in said
    assert "failing.example answers with errors (500), after 7 rests as well: it is given up" in said
    visits = site.urls()
    assert all(visits[url] == 1 for url in pages("good"))
    assert sum(visits[url] for url in pages("busy")) == 2

    on_redis = ("-s", f"UBI_REDIS_URL={one_server.url}")
    report = json.loads(project.run("ubi", "report", "--json", *on_redis)[1])
    assert report["measures"]["failed"]["host/busy"] == PAGES
    assert report["measures"]["failed"]["host/failing"] == PAGES - 1, "the first error of a streak counts"
    assert report["measures"]["failed"]["host/dead"] == PAGES - 1, "what excludes or ends a host fails no page"
    assert report["measures"]["noted"].items() >= {
        ("ended/host/dead", 1),
        ("ended/host/busy", 1),
        ("ended/host/failing", 1),
        ("host/failing", 7),
        ("host/excluded", 1),
    }
    assert (
        report["measures"]["failed_at"].items()
        >= {"host/dead": ["dead.example"], "host/busy": ["busy.example"]}.items()
    )
    status, output = project.run("ubi", "hosts", *on_redis)
    assert status == 0
    assert {line.split()[0]: line.split()[2] for line in output.splitlines() if ".example" in line} == {
        "h1.example": "idle",
        "good.example": "idle",
        "dead.example": "ended",
        "busy.example": "ended",
        "failing.example": "ended",
    }

    for url in (*pages("dead"), *pages("busy"), *pages("failing")):
        site.page(url, "back again")
    assert project.run("ubi", "requeue", "--reason", "host", *on_redis)[0] == 0
    crawl(project, one_server)
    again = site.urls()
    assert all(again[url] > visits[url] for url in pages("busy"))
    assert sum(again[url] > visits[url] for url in pages("failing")) == PAGES - 1
    assert sum(again[url] > visits[url] for url in pages("dead")) == PAGES - 1
