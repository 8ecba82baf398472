"""Spiders with arguments, as users start them: each set of arguments is a crawl, and gets the items of plain Scrapy."""

from __future__ import annotations

import itertools
import json
import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, read_until, until_joined
from tests.support.server import Server
from tests.support.site import Site, links

pytestmark = pytest.mark.processes

SPIDER = """
    import scrapy
    from scrapy.linkextractors import LinkExtractor

    class Site(scrapy.Spider):
        name = "site"

        def __init__(self, site, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.allowed_domains = [f"{site}.example"]
            self.start_urls = [f"http://{site}.example/"]

        def parse(self, response):
            yield {"url": response.url}
            yield from response.follow_all(LinkExtractor().extract_links(response))
"""
PAGES = 8


def pages(site: str) -> list[str]:
    """All pages of a site, which plain Scrapy finds."""
    return [f"http://{site}.example/{number or ''}" for number in range(PAGES)]


@pytest.fixture
def site() -> Iterator[Site]:
    """Two sites that link to each other."""
    with Site() as running:
        for name, other in (("a", "b"), ("b", "a")):
            for page in pages(name):
                running.page(page, links(*pages(name)[1:], f"http://{other}.example/{PAGES - 1}"))
        yield running


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "site.py").write_text(textwrap.dedent(SPIDER))
    return project


_numbers = itertools.count()


def start(project: Project, site: str, *options: str) -> tuple[Running, str]:
    """An agent, and the name of its feed."""
    feed = f"{next(_numbers)}.jsonl"
    return project.start("crawl", "site", "-a", f"site={site}", "-o", feed, *options), feed


def end(process: Running) -> str:
    """Its output, once it has ended well."""
    try:
        output, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    assert process.returncode == 0 and "Traceback" not in output, output
    return output


def urls(project: Project, *feeds: str) -> list[str]:
    return sorted(item["url"] for feed in feeds for item in project.items(feed))


def shown(project: Project, *arguments: str) -> Any:
    status, output = project.run("ubi", *arguments, "--json")
    assert status == 0, output
    return json.loads(output[output.index("{") :])


def redis(server: Server) -> tuple[str, ...]:
    """Settings for a crawl by this Redis."""
    return ("-s", f"UBI_REDIS_URL={server.url}")


def test_two_sets_at_the_same_time_are_two_crawls(project: Project, site: Site, one_server: Server) -> None:
    plain = {name: start(project, name, "-s", "ADDONS={}") for name in ("a", "b")}
    for process, _ in plain.values():
        end(process)
    expected = {name: urls(project, feed) for name, (_, feed) in plain.items()}
    assert expected == {name: pages(name) for name in ("a", "b")}
    with until_joined(site, pages("a")[3], one_server, 4), until_joined(site, pages("b")[3], one_server, 4):
        agents = [(name, *start(project, name, *redis(one_server))) for name in ("a", "b", "a", "b")]
    for _, process, _ in agents:
        assert "Closing spider (finished)" in end(process)
    for name in ("a", "b"):
        assert urls(project, *(feed for of, _, feed in agents if of == name)) == expected[name]
    found = shown(project, "crawls", "--redis-url", one_server.url)["crawls"]
    assert sorted(json.dumps(one["arguments"]) for one in found) == ['[{"site": "a"}]', '[{"site": "b"}]']
    assert all(one["crawl"].startswith("bot:site:") and one["agents"] == 2 for one in found)


@pytest.mark.parametrize("with_redis", [True, False])
def test_one_set_after_the_other_both_stopped_and_gone_on_with(
    project: Project, site: Site, one_server: Server, with_redis: bool
) -> None:
    """The second went on with what the first had waiting, and dropped it as off-site."""
    options = redis(one_server) if with_redis else ()
    feeds: dict[str, list[str]] = {"a": [], "b": []}
    for name in ("a", "b"):
        with site.hold(f"http://{name}.example/3") as held:
            process, feed = start(project, name, *options)
            assert held.arrived.wait(LIMIT)
            process.send_signal(signal.SIGINT)
            read_until(process, "No new request is sent")  # the page under way ends, after it has heard of the signal
            held.release()
            end(process)
        feeds[name].append(feed)
    again = {name: start(project, name, *options) for name in ("a", "b")}
    for name, (process, feed) in again.items():
        assert "Going on with the crawl" in end(process)
        feeds[name].append(feed)
        assert urls(project, *feeds[name]) == pages(name)


def test_figures_of_a_crawl_that_was_stopped_stay(project: Project, site: Site, one_server: Server) -> None:
    with site.hold("http://a.example/3") as held:
        processes = [start(project, "a", *redis(one_server), "-s", f"UBI_AGENT_ID=a{n}")[0] for n in (1, 2)]
        for process in processes:
            read_until(process, "has joined crawl")
        assert held.arrived.wait(LIMIT)
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            read_until(process, "No new request is sent")
        held.release()
        for process in processes:
            end(process)
    done = len(site.visits)
    at = ("--redis-url", one_server.url)
    for where in (at, ()):  # without Redis, the directories of its agents tell
        wanted = ("status", *where, "--json"), ("report", *where, "--json"), ("status", *where)
        state, report, text = (end(project.start("ubi", *words)) for words in wanted)
        data = json.loads(state[state.index("{") :])
        assert (data["state"], data["arguments"]) == ("stopped", [{"site": "a"}])
        totals = json.loads(report[report.index("{") :])["measures"]["totals"]
        if where:  # by Redis, two that leave together may each count the host as its own: only what is done is sure
            assert totals["done"] == done
            continue
        assert (totals["done"], totals["unique"], totals["queued"], totals["hosts"]) == (done, done, PAGES - done, 1)
        assert "arguments: site=a" in text, text


def test_other_arguments_under_one_name_are_refused_or_let_in(project: Project, site: Site, one_server: Server) -> None:
    named = (*redis(one_server), "-s", "UBI_CRAWL=c", "-s", "LOG_LEVEL=WARNING")
    with site.hold("http://a.example/3") as held:
        first, feed = start(project, "a", *named, "-s", "UBI_AGENT_ID=a1")
        assert held.arrived.wait(LIMIT)
        status, output = project.run("crawl", "site", "-a", "site=b", *named)
        assert status == 1 and output.count("\n") == 1, output
        for word in ("Agent a1 of crawl c", "site=a", "site=b", "UBI_CRAWL", "UBI_MIXED_AGENTS = True"):
            assert word in output
        second, other = start(project, "a", *named, "-s", "UBI_AGENT_ID=a2", "-a", "more=1", "-s", "UBI_MIXED_AGENTS=1")
        held.release()
        end(first)
        end(second)
    assert urls(project, feed, other) == pages("a")


def test_two_projects_of_one_name_are_refused(project: Project, site: Site, one_server: Server, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other", site.proxy)
    (tmp_path / "other" / "project" / "spiders" / "mine.py").write_text(textwrap.dedent(SPIDER))
    with site.hold("http://a.example/3") as held:
        first, _ = start(project, "a", *redis(one_server))
        assert held.arrived.wait(LIMIT)
        arguments = ("crawl", "site", "-a", "site=a", *redis(one_server), "-s", "LOG_LEVEL=WARNING")
        status, output = other.run(*arguments)
        assert status == 1 and output.count("\n") == 1, output
        assert "class project.spiders.site.Site, this one of class project.spiders.mine.Site" in output
        assert "a UBI_CRAWL of its own" in output
        assert other.run(*arguments, "-s", "UBI_CRAWL=mine", "-a", "site=b")[0] == 0
        held.release()
        end(first)


SCRIPT = """
    import sys
    from scrapy.crawler import CrawlerProcess
    from scrapy.utils.project import get_project_settings
    from project.spiders.site import Site

    process = CrawlerProcess(get_project_settings())
    process.crawl(Site, site="a", tags=["x", "y"], **({"session": object()} if "object" in sys.argv else {}))
    process.start()
"""


def test_arguments_of_a_script_count_and_an_object_among_them_wants_a_name(project: Project, site: Site) -> None:
    for name in ("a1", "a2"):
        with (project.place / "project" / "settings.py").open("a") as settings:
            settings.write(f"UBI_AGENT_ID = {name!r}\n")
        process = project.start_script(SCRIPT)
        end(process)
    (crawl,) = (path.name for path in (project.place / ".ubi").iterdir() if path.is_dir())
    assert crawl.startswith("bot:site:") and len(crawl) == len("bot:site:") + 8
    assert {path.name for path in (project.place / ".ubi" / crawl).iterdir()} == {"a1", "a2"}
    process = project.start_script(SCRIPT, "object")
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 1, output
    assert "scrapy_ubi: The crawl cannot be named by the spider's arguments" in output
    assert "session (builtins.object)" in output and "set UBI_CRAWL" in output


def test_the_directory_is_the_projects_wherever_in_it_one_starts(project: Project, site: Site) -> None:
    place, project.place = project.place, project.place / "project" / "spiders"
    status, output = project.run("crawl", "site", "-a", "site=a")
    assert status == 0, output
    assert not (project.place / ".ubi").exists() and (place / ".ubi" / ".gitignore").read_text() == "*\n"
    assert len([path for path in (place / ".ubi").iterdir() if path.is_dir()]) == 1
    former = project.place / ".ubi" / "c"
    former.mkdir(parents=True)
    status, output = project.run("crawl", "site", "-a", "site=a", "-s", "UBI_CRAWL=c")
    assert status == 0 and "where an older version has put it" in output, output
    assert (former / "agent.json").is_file() and not (place / ".ubi" / "c").exists()
    assert project.run("ubi", "hosts", "--crawl", "c")[0] == 0
