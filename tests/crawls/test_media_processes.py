"""Projects with a files pipeline as users run them: plain Scrapy, and one, two and three agents with a Redis."""

from __future__ import annotations

import json
import signal
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, read_until
from tests.support.server import Server
from tests.support.site import HANG_UP, Page, Site

pytestmark = pytest.mark.processes

PAGES = 12
NAMES = [f"i{number}.example" for number in range(4)]  # hosts of files; `dead.example` is another
A_PAGE = 7  # files of a page
# The one file of its host: of several that wait for one robots.txt, plain Scrapy 2.19 tells the rules to some only.
FORBIDDEN = "http://no.example/x"
DEAD = "http://dead.example/x"

SPIDER = """
    import asyncio
    import scrapy

    class Album(scrapy.Spider):
        name = "album"
        agents = 0

        async def start(self):
            while int(self.agents) and self.alive() < int(self.agents):
                await asyncio.sleep(0.05)
            self.logger.info("All are there")
            for number in range(%(pages)d):
                yield scrapy.Request(f"http://h{number}.example/{number}")

        def alive(self):
            # Of a view that all have seen: who is still alone in its own would fetch what the others tell it.
            complete = self.crawler.engine.scheduler.node.agent.view_history.complete
            return len(complete.members) if complete is not None else 0

        def parse(self, response):
            page = response.url.rpartition("/")[2]
            urls = [f"http://i{n %% %(hosts)d}.example/{page}/{n}" for n in range(%(files)d)]
            urls += {"3": ["%(forbidden)s"], "5": ["%(dead)s"], "6": ["%(dead)s?2"]}.get(page, [])
            yield {"page": page, "file_urls": urls}
"""

OPTIONS = {
    "ITEM_PIPELINES": json.dumps({"scrapy.pipelines.files.FilesPipeline": 1}),
    "ROBOTSTXT_OBEY": 1,
    "RETRY_TIMES": 0,
    "CONCURRENT_REQUESTS": 32,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        for number in range(PAGES):
            running.page(f"http://h{number}.example/{number}", "a page")
        for name in NAMES:
            running.host(name, lambda visit: Page(visit.url))
            running.page(f"http://{name}/robots.txt", Page("", 404))
        running.page(FORBIDDEN, "not for robots")
        running.page("http://no.example/robots.txt", "User-agent: *\nDisallow: /x\n")
        running.host("dead.example", lambda visit: Page("", HANG_UP))
        running.page("http://dead.example/robots.txt", Page("", 404))
        yield running


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    project = Project(tmp_path, site.proxy)
    values = {"pages": PAGES, "hosts": len(NAMES), "files": A_PAGE, "forbidden": FORBIDDEN, "dead": DEAD}
    (tmp_path / "project" / "spiders" / "album.py").write_text(textwrap.dedent(SPIDER) % values)
    return project


def options(**settings: Any) -> list[str]:
    return [part for name, value in {**OPTIONS, **settings}.items() for part in ("-s", f"{name}={value}")]


def start(project: Project, server: Server, number: int, agents: int, **settings: Any) -> Running:
    """One agent of so many, whose requests name it."""
    own = {"UBI_AGENT_ID": f"a{number}", "USER_AGENT": f"a{number}", "UBI_DIR": f"{agents}.{number}"}
    own |= {"UBI_REDIS_URL": server.url, "FILES_STORE": f"store{agents}", **settings}
    feed = ("-O", f"{agents}.{number}.jsonl")
    return project.start("crawl", "album", *feed, "-a", f"agents={agents}", *options(**own))


def items(project: Project, *feeds: str) -> dict[str, list[tuple[str, str, str]]]:
    """Page -> its files; each page has one item."""
    found = [item for feed in feeds for item in project.items(feed)]
    by_page = {item["page"]: [(f["url"], f["path"], f["checksum"]) for f in item["files"]] for item in found}
    assert len(by_page) == len(found)
    return by_page


def ended(processes: list[Running]) -> list[str]:
    """What they said; all have ended well."""
    with ExitStack() as stack:
        for process in processes:
            stack.callback(process.kill)
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return outputs


def test_items_have_the_files_of_plain_scrapy_and_no_agent_asks_a_host_for_two_at_a_time(
    project: Project, site: Site, one_server: Server
) -> None:
    plain = {"ADDONS": "{}", "FILES_STORE": "store", "USER_AGENT": "plain"}
    status, output = project.run("crawl", "album", "-O", "plain.jsonl", *options(**plain))
    assert status == 0, output
    wanted = items(project, "plain.jsonl")
    assert {len(files) for files in wanted.values()} == {A_PAGE} and len(wanted) == PAGES

    for agents in (1, 2, 3):
        site.visits.clear()
        site.most_of_agent.clear()
        pause = {"UBI_HOST_FAILURES": 1, "UBI_HOST_TRIES": 0}
        said = ended([start(project, one_server, n, agents, UBI_CRAWL=f"c{agents}", **pause) for n in range(agents)])
        feeds = [f"{agents}.{number}.jsonl" for number in range(agents)]
        assert items(project, *feeds) == wanted, "\n".join(said)
        asked = site.urls()
        assert FORBIDDEN not in asked and max(asked[f"http://{name}/robots.txt"] for name in NAMES) <= agents
        assert {name: most for name, most in site.most_of_agent.items() if most > 1} == {}
        of_files = {(visit.host, visit.headers["user-agent"]) for visit in site.visits if visit.host in NAMES}
        assert (len(of_files) > len(NAMES)) is (agents > 1), "each agent loads the files of its pages"
        assert sum("downloads beside the queue" in one for one in said) >= 1

    _, report = project.run("ubi", "report", "--crawl", "c3", "-s", f"UBI_REDIS_URL={one_server.url}")
    table = report.partition("failed downloads by reason")[2].splitlines()
    rows = [line.split() for line in table[1:] if line]
    assert rows[0][-1] == "dead.example" and ["robots", "1", "no.example"] in rows, report


def test_an_agent_that_is_told_to_end_loads_the_files_of_its_pages_from_hosts_of_others(
    project: Project, site: Site, one_server: Server
) -> None:
    first = "http://i1.example/4/1"
    with site.hold(first) as held:
        both = [start(project, one_server, number, 2) for number in range(2)]
        assert held.arrived.wait(LIMIT)
        for process in both:  # who has not seen the other waits for it in start(), also when that one has left
            read_until(process, "All are there")
        name = next(visit.headers["user-agent"] for visit in site.visits if visit.url == first)
        told = both[int(name[1])]
        told.send_signal(signal.SIGTERM)
        read_until(told, "No new request is sent")
        held.release()
        ended(both)
    found = items(project, "2.0.jsonl", "2.1.jsonl")
    assert {len(files) for files in found.values()} == {A_PAGE} and len(found) == PAGES
    assert "4" in items(project, f"2.{name[1]}.jsonl")
