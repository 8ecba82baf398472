"""Hosts that harm a crawler, met by two agents: good hosts are fetched as ever, the crawl ends, the report says what
happened where.

The verdict is the web's own log, in which order counts and not time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile import (
    ALL_BUSY,
    BOMB,
    BUSY,
    CALENDAR,
    DRIPS,
    GOOD,
    HUGE,
    LARGE,
    LOOP,
    SILENT,
    Hostile,
    good_pages,
)
from tests.support.preloaded import Running
from tests.support.project import Project
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.processes

AGENTS = ("a0", "a1")
MOST_PAGES = 40  # of UBI_HOST_LIMITS: a calendar ends by nothing else
MOST_REDIRECTS = 20  # REDIRECT_MAX_TIMES, Scrapy's default
TAKEN = 20_000_000  # bytes of a gigabyte that may be on their way, in all buffers, until the transfer is stopped

# What takes minutes by default takes seconds.
SHORT = {
    "UBI_MAX_LOAD_SECONDS": 12,
    "UBI_ROBOTS_TIMEOUT": 2,
    "UBI_ROBOTS_GIVE_UP": 4,
    "UBI_MAX_RETRY_AFTER": 1,
}
LIMIT = 150.0  # s; many times what it takes on a quiet machine
LONG = 1800.0


class Crawl:
    """Two agents of a user's project at that web, to their end."""

    def __init__(self, place: Path, web: Hostile, server: Server, limit: float, **settings: object) -> None:
        self.place, self.project = place, Project(place, web.site.proxy)
        broad = {"UBI_HOST_LIMITS": f"pages={MOST_PAGES}", "UBI_MAX_BODY": 200_000}
        wanted = {"UBI_REDIS_URL": server.url, "ROBOTSTXT_OBEY": 1, **broad, **settings}
        self._options = [part for name, value in wanted.items() for part in ("-s", f"{name}={value}")]
        agents = {name: self._start(name) for name in AGENTS}
        try:
            self.exits = {name: agent.wait(limit) for name, agent in agents.items()}
        finally:
            for agent in agents.values():
                agent.kill()
                agent.communicate()

    def _start(self, name: str) -> Running:
        own = {"UBI_AGENT_ID": name, "UBI_DIR": self.place / name, "LOG_FILE": self.place / f"{name}.log"}
        options = [part for setting, value in own.items() for part in ("-s", f"{setting}={value}")]
        return self.project.start("crawl", "walk", *options, *self._options)

    def logs(self) -> str:
        return "\n".join((self.place / f"{name}.log").read_text() for name in AGENTS)

    def report(self) -> str:
        status, text = self.project.run("ubi", "report", *self._options)
        assert status == 0, text
        return text


@pytest.fixture
def web() -> Iterator[Hostile]:
    with Site() as site, Hostile(site) as web:
        yield web


def test_the_others_are_not_slowed_the_crawl_ends_and_the_report_names_them(
    web: Hostile, tmp_path: Path, one_server: Server
) -> None:
    crawl = Crawl(tmp_path, web, one_server, LIMIT, **SHORT)
    report = judge(crawl, web)
    errors = re.findall(r" ERROR: .*|Traceback.*", crawl.logs())
    # As plain Scrapy says it of what cannot be reached: that it is given up, and why, once.
    assert len(errors) <= 3 and all(f"//{SILENT}/" in line or line.startswith("Traceback") for line in errors), errors
    (drip,) = web.drips
    last = max(number for number, visit in enumerate(web.site.visits) if visit.url in good_pages())
    assert last < drip[1], "the good hosts waited for one that drips"
    named(report, DRIPS, "load/too_long")


@pytest.mark.faults
def test_all_of_it_ends_when_nothing_is_set_but_limits_of_pages(tmp_path: Path, one_server: Server) -> None:
    """About ten minutes: three time-outs of Scrapy's. A host that asks for longer than seconds takes half an hour."""
    with Site() as site, Hostile(site, asked=5) as web:
        crawl = Crawl(tmp_path, web, one_server, LONG)
        report = judge(crawl, web)
        # Once more where its host was handed over meanwhile: the new owner counts its own tries.
        assert 3 <= len(web.drips) <= 4
        named(report, DRIPS, "exception/DownloadTimeoutError")


def judge(crawl: Crawl, web: Hostile) -> str:
    """What must hold however long anything may take; the report."""
    assert crawl.exits == dict.fromkeys(AGENTS, 0), crawl.logs()
    assert crawl.logs().count("Closing spider (finished)") == len(AGENTS), crawl.logs()
    assert not re.search("ubi/errors| CRITICAL: ", crawl.logs()), crawl.logs()

    asked = Counter(url for host in GOOD for url in web.asked(host))
    assert asked == Counter(good_pages()), "each good page once, and nothing that is forbidden"
    assert max(web.site.most_at_once.values()) == 1, web.site.most_at_once

    assert len(web.asked(CALENDAR)) == len(set(web.asked(CALENDAR))) == MOST_PAGES
    assert sum(len(web.asked(host)) for host in LOOP) == MOST_REDIRECTS + 1
    assert web.asked(HUGE) == [f"http://{HUGE}/"] and web.sent[HUGE] < TAKEN
    assert web.asked(BOMB) == [f"http://{BOMB}/"]
    assert web.asked(LARGE) == [f"http://{LARGE}/", f"http://{LARGE}/yes"]
    assert web.asked(SILENT) == web.asked(ALL_BUSY) == []
    assert 4 <= len(web.asked(BUSY)) <= 8  # of UBI_HOST_TRIES + 1 different pages, some of them twice

    report = crawl.report()
    named(report, CALENDAR, "limit/host_pages", "ended/limit/host_pages")
    named(report, LOOP[MOST_REDIRECTS % len(LOOP)], "redirects")
    named(report, HUGE, "truncated")
    named(report, BOMB, "truncated")
    named(report, SILENT, "robots/unreachable")
    named(report, ALL_BUSY, "robots/unreachable")
    named(report, LARGE, "robots/truncated")
    named(report, BUSY, "host/busy", "ended/host/busy")
    return report


def named(report: str, host: str, *reasons: str) -> None:
    """Each of these reasons has a line that names the host."""
    for reason in reasons:
        lines = [
            line for line in report.splitlines() if line.startswith(f"{reason} ") and host in line.split("  ", 1)[1]
        ]
        assert lines, f"{reason} of {host} in\n{report}"
