"""Whole processes: refusals, exit codes, signals, feeds, and Scrapy's other commands.

One of each kind is started as users start it (`fresh=True`), the others with Scrapy imported (support/preloaded.py).
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import LIMIT, Project, on_redis, until_joined
from tests.support.server import Server
from tests.support.site import Held, Page, Site, Visit, links

pytestmark = pytest.mark.processes

HOST = "http://h1.example"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        running.page(f"{HOST}/", links(f"{HOST}/a", f"{HOST}/b"))
        running.page(f"{HOST}/a", "a")
        running.page(f"{HOST}/b", "b")
        yield running


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Project:
    return Project(tmp_path, site.proxy)


def test_a_crawl_ends_by_itself_and_feeds_know_the_agent(project: Project, site: Site) -> None:
    arguments = ("crawl", "walk", "-o", "%(ubi_agent)s.jsonl", "-s", "UBI_AGENT_ID=a1")
    status, output = project.run(*arguments, fresh=True)
    assert status == 0, output
    assert "Closing spider (finished)" in output
    assert sorted(item["url"] for item in project.items("a1.jsonl")) == [f"{HOST}/", f"{HOST}/a", f"{HOST}/b"]
    assert sorted(site.urls().values()) == [1, 1, 1]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["UBI_FOO=1"], "UBI_FOO is not a setting"),
        (["UBI_AGENT_CAPACITY=-1"], "UBI_AGENT_CAPACITY is '-1'"),
        (["UBI_AGENT_CAPACITY=-1", "FORCE_CRAWLER_PROCESS=1"], "UBI_AGENT_CAPACITY is '-1'"),
        (["UBI_LEASE_TIMEOUT=20"], "UBI_FAILURE_TIMEOUT"),
        (["SCHEDULER=scrapy.core.scheduler.Scheduler"], "SCHEDULER is set"),
        (["TWISTED_REACTOR=twisted.internet.epollreactor.EPollReactor"], "TWISTED_REACTOR is set"),
        (["UBI_REDIS_URL=redis://127.0.0.1:1", "UBI_REDIS_WAIT=1"], "UBI_REDIS_URL"),
        (["UBI_DIR=scrapy.cfg"], "set UBI_DIR"),
        (["UBI_FILTERS=depth(3); lenght(5)"], "UBI_FILTERS has 'depth(3); lenght(5)', which names the filter 'lenght'"),
        (["UBI_FILTER_LOG=no/directory"], "UBI_FILTER_LOG is 'no/directory', which cannot be written"),
    ],
)
def test_a_start_is_refused_with_one_sentence_and_exit_status_1(
    project: Project, site: Site, settings: list[str], said: str
) -> None:
    arguments = [argument for setting in settings for argument in ("-s", setting)]
    status, output = project.run("crawl", "walk", "-s", "LOG_LEVEL=WARNING", *arguments)
    assert status == 1, output
    assert output.startswith("scrapy_ubi: ") and output.count("\n") == 1, output
    assert said in output
    assert not site.visits


def test_our_scheduler_without_the_add_on_is_refused(project: Project, site: Site) -> None:
    """It waited for ever: nothing told it what requests come to."""
    settings = ["ADDONS={}", "SCHEDULER=scrapy_ubi.scheduler.UbiScheduler", "LOG_LEVEL=WARNING"]
    arguments = [word for setting in settings for word in ("-s", setting)]
    status, output = project.run("crawl", "walk", *arguments)
    assert status == 1, output
    assert output.startswith("scrapy_ubi: SCHEDULER is set to scrapy_ubi's, but the add-on") and 'ADDONS = {"' in output
    assert output.count("\n") == 1 and not site.visits


@pytest.mark.parametrize("settings", [["UBI_FOO=1"], ["UBI_REDIS_URL=redis://127.0.0.1:1", "UBI_REDIS_WAIT=0"]])
def test_a_refusal_is_in_the_log_file_and_once_on_standard_error(project: Project, settings: list[str]) -> None:
    arguments = [part for setting in (*settings, "LOG_FILE=crawl.log") for part in ("-s", setting)]
    status, output = project.run("crawl", "walk", *arguments)
    assert status == 1 and output.startswith("scrapy_ubi: ") and output.count("\n") == 1, output
    lines = (project.place / "crawl.log").read_text().splitlines()
    sentence = output.removeprefix("scrapy_ubi: ").strip()
    (said,) = [line for line in lines if sentence in line]
    assert "CRITICAL" in said


def test_a_limit_that_the_user_has_set_is_no_error(project: Project, site: Site) -> None:
    status, output = project.run("crawl", "walk", "-s", "UBI_CRAWL_LIMITS=pages=1")
    assert status == 0 and "Closing spider (limit/crawl_pages)" in output, output
    assert "INFO: The agents have loaded 1 pages, and the crawl ends (UBI_CRAWL_LIMITS)" in output
    assert "ERROR" not in output and "log_count/ERROR" not in output


OWN_WORDS = re.compile(r"\[scrapy_ubi[\w.]*\] (?:INFO|WARNING): (.*)")


def test_lines_of_the_log_show_no_addresses_tokens_or_exclamation_marks(
    project: Project, site: Site, one_server: Server
) -> None:
    status, output = project.run("crawl", "walk", *on_redis(one_server.url, "a1"))
    assert status == 0, output
    assert " object at 0x" not in output and "<function" not in output, output
    own = OWN_WORDS.findall(output)
    assert any("a1 has joined crawl bot:walk" in line for line in own), output
    assert not [line for line in own if "!" in line or re.search(r"\b[0-9a-f]{8}\b", line)], own


def test_a_new_group_need_not_wait_where_the_user_says_so(project: Project, site: Site, one_server: Server) -> None:
    """With the default, the first page would be fetched after the failure time-out of a test that hangs."""
    long = ["UBI_START_WAIT=0", f"UBI_LEASE_TIMEOUT={2 * LIMIT}", f"UBI_FAILURE_TIMEOUT={3 * LIMIT}"]
    arguments = [part for setting in long for part in ("-s", setting)]
    agents = ("a1", "a2")
    processes = [project.start("crawl", "walk", *on_redis(one_server.url, agent), *arguments) for agent in agents]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sorted(site.urls().values()) == [1, 1, 1] and max(site.most_at_once.values()) == 1
    assert all("No agent is at work yet" not in output for output in outputs)


def test_feeds_of_a_crawl_without_the_add_on_know_their_names(project: Project, site: Site) -> None:
    """Switched off by a setting, and left out of ADDONS, with the function named in its place."""
    ways = {"off": "UBI_ENABLED=0", "out": "ADDONS={}"}
    for name, way in ways.items():
        feed = f"{name}-%(ubi_crawl)s-%(ubi_agent)s.jsonl"
        arguments = ["-o", feed, "-s", way, "-s", "FEED_URI_PARAMS=scrapy_ubi.feed_params"]
        status, output = project.run("crawl", "plain", *arguments)
        assert status == 0 and "scheduler/enqueued/memory" in output and "'ubi/" not in output, output
        items = project.items(f"{name}-bot:plain-plain.jsonl")
        assert sorted(item["url"] for item in items) == [f"{HOST}/", f"{HOST}/a", f"{HOST}/b"], output
    assert not (project.place / ".ubi").exists()


SCHEDULER_OF_ITS_OWN = """
    class Other:
        def update_settings(self, settings):
            settings.set("SCHEDULER", "scrapy.core.scheduler.Scheduler", "project")
"""


def test_a_scheduler_that_another_add_on_sets_is_refused(project: Project, site: Site) -> None:
    (project.place / "project" / "other.py").write_text(textwrap.dedent(SCHEDULER_OF_ITS_OWN))
    add_ons = '{"scrapy_ubi.Addon": 500, "project.other.Other": 600}'
    status, output = project.run("crawl", "walk", "-s", "LOG_LEVEL=WARNING", "-s", f"ADDONS={add_ons}")
    assert status == 1, output
    assert output.startswith("scrapy_ubi: SCHEDULER was set to ") and output.count("\n") == 1, output
    assert not site.visits


ONE_AFTER_ANOTHER = """
    from scrapy.crawler import Crawler, CrawlerRunner
    from scrapy.utils.project import get_project_settings
    from scrapy.utils.reactor import install_reactor
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor
    from project.spiders.walk import Walk

    class Refused(Walk):
        custom_settings = {"UBI_HOST_DELAY": -1}

    runner = CrawlerRunner(get_project_settings())
    crawl = runner.crawl(Walk)
    crawl.addCallback(lambda _: runner.crawl(Refused))
    reactor.run()
"""


def test_a_crawl_that_is_refused_after_another_one_ends_the_process_too(project: Project, site: Site) -> None:
    """The first one has left threads of Twisted's, which nobody stops when the reactor is left by SystemExit."""
    with project.start_script(ONE_AFTER_ANOTHER, fresh=True) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert process.returncode == 1, output
    assert output.startswith("scrapy_ubi: UBI_HOST_DELAY is -1") and output.count("\n") == 1, output
    assert len(site.visits) == 3


def test_a_cancelled_transfer_is_repeated_and_nobody_is_told(project: Project, site: Site) -> None:
    second = Held()

    def cancelled_at_first(visit: Visit) -> Page:
        if visit.number > 1:
            second.release()
            return Page("there")
        process.send_signal(signal.SIGUSR1)
        second.wait()
        return Page("too late")

    site.page(f"{HOST}/", cancelled_at_first)
    process = project.start("crawl", "walk", "-o", "items.jsonl")
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    assert project.items() == [{"url": f"{HOST}/", "body": 5}], output
    assert "'ubi/guard/cancelled': 1" in output and "'ubi/scheduler/put_back': 1" in output
    assert "ERROR" not in output and "Traceback" not in output and "retry/count" not in output


def test_sigterm_lets_the_page_under_way_end_and_leaves(project: Project, site: Site) -> None:
    with site.hold(f"{HOST}/a") as held:
        process = project.start("crawl", "walk", "-o", "items.jsonl", fresh=True)
        assert held.arrived.wait(LIMIT)
        process.send_signal(signal.SIGTERM)
        threading.Timer(0.5, held.release).start()  # let the signal arrive; the outcome is the same if it is later
        output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    assert "Closing spider (shutdown)" in output
    assert [item["url"] for item in project.items()][:2] == [f"{HOST}/", f"{HOST}/a"]
    assert "Traceback" not in output


def test_two_processes_on_one_machine_are_two_agents(project: Project, site: Site) -> None:
    with site.hold(f"{HOST}/") as held:
        first = project.start("crawl", "walk", "-o", "one.jsonl")
        assert held.arrived.wait(LIMIT)
        second = ("-a", "start_urls=", "-s", "UBI_CRAWL=bot:walk")
        status, output = project.run("crawl", "walk", *second, "-o", "one.jsonl")
        assert status == 0 and "'one.jsonl' is also written by another process" in output, output
        held.release()
        output, _ = first.communicate(timeout=LIMIT)
    assert first.returncode == 0 and "another process" not in output, output
    directory = project.place / ".ubi" / "bot:walk"
    agents = [json.loads((place / "agent.json").read_text())["agent"] for place in (directory, directory / "1")]
    assert len(set(agents)) == 2


def test_two_agents_on_one_feed_are_refused_whatever_directories_are_set(
    project: Project, site: Site, one_server: Server
) -> None:
    redis = ["-s", f"UBI_REDIS_URL={one_server.url}"]
    feed = ["-o", "one.jsonl"]
    with site.hold(f"{HOST}/") as held:
        first = project.start("crawl", "walk", *redis, *feed, "-s", "UBI_DIR=a", "-s", "UBI_AGENT_ID=a")
        assert held.arrived.wait(LIMIT)
        second = ["crawl", "walk", *redis, "-s", "UBI_DIR=b", "-s", "UBI_AGENT_ID=b"]
        status, output = project.run(*second, *feed)
        assert status == 1 and output.splitlines()[-1].startswith("scrapy_ubi: The feed 'one.jsonl' is written"), output
        assert f"(process {first.pid})" in output and "%(ubi_agent)s" in output, output
        status, output = project.run(*second, "-o", "ftp://me:secret@127.0.0.1:1/%(name)s.jsonl")
        assert status == 1 and "scrapy_ubi: The feed 'ftp://127.0.0.1:1/%(name)s.jsonl' has one name" in output, output
        shared = [*second, *feed, "-s", "UBI_SHARED_FEEDS=1", "-s", "CLOSESPIDER_TIMEOUT_NO_ITEM=1"]
        status, output = project.run(*shared)
        assert status == 0 and "is written by" not in output, output
        held.release()
        output, _ = first.communicate(timeout=LIMIT)
    assert first.returncode == 0, output


def test_a_directory_in_use_is_refused(project: Project, site: Site) -> None:
    with site.hold(f"{HOST}/") as held:
        first = project.start("crawl", "walk", "-s", "UBI_DIR=mine")
        assert held.arrived.wait(LIMIT)
        status, output = project.run("crawl", "walk", "-s", "UBI_DIR=mine", "-s", "LOG_LEVEL=WARNING")
        assert status == 1 and "in use by another running agent" in output, output
        held.release()
        first.communicate(timeout=LIMIT)


def test_scrapys_other_commands_join_no_crawl(project: Project, site: Site) -> None:
    nowhere = ["-s", "UBI_REDIS_URL=redis://127.0.0.1:1", "-s", "LOG_LEVEL=WARNING"]
    code = f"[fetch('{HOST}/a'), fetch('{HOST}/a'), fetch('{HOST}/b')] and response.text"
    assert project.run("shell", *nowhere, "-c", code, f"{HOST}/") == (0, "b\n")
    code = f"[fetch(scrapy.Request('{HOST}/a')), fetch('{HOST}/b', redirect=False)] and response.text"
    assert project.run("shell", *nowhere, "--no-redirect", "-c", code, f"{HOST}/") == (0, "b\n")
    status, output = project.run("fetch", *nowhere, f"{HOST}/a", fresh=True)
    assert (status, output) == (0, "a\n")
    status, output = project.run("parse", *nowhere, "--spider", "walk", "--noitems", f"{HOST}/")
    assert status == 0 and f"<GET {HOST}/a>" in output
    assert not (project.place / ".ubi").exists()


def test_a_shell_joins_no_crawl_whatever_the_projects_settings_are(project: Project, site: Site) -> None:
    own = ("DUPEFILTER_CLASS=scrapy.dupefilters.RFPDupeFilter", "LOGSTATS_INTERVAL=60", "LOG_LEVEL=ERROR")
    settings = [part for setting in ("UBI_REDIS_URL=redis://127.0.0.1:1", *own) for part in ("-s", setting)]
    assert project.run("shell", *settings, "-c", "response.text", f"{HOST}/a") == (0, "a\n")
    assert not (project.place / ".ubi").exists()


def test_contracts_of_one_url_are_all_checked(project: Project, site: Site) -> None:
    contracts = """
        import scrapy

        class Checked(scrapy.Spider):
            name = "checked"

            def parse(self, response):
                \"\"\"
                @url http://h1.example/
                @returns items 1
                \"\"\"
                yield {"url": response.url}

            def parse_other(self, response):
                \"\"\"
                @url http://h1.example/
                @returns items 2
                \"\"\"
                yield {"url": response.url}
    """
    (project.place / "project" / "spiders" / "checked.py").write_text(textwrap.dedent(contracts))
    status, output = project.run("check", "checked")
    assert status == 1 and "Returned 1 items, expected 2" in output and "Ran 2 contracts" in output, output


def test_two_agents_share_a_crawl_by_redis(project: Project, site: Site, one_server: Server) -> None:
    hosts = [f"http://h{number}.example/" for number in range(1, 9)]
    for host in hosts:
        site.page(host, links(*hosts, f"{host}deep"))
        site.page(f"{host}deep", "the end")
    agents = ("a1", "a2")
    with until_joined(site, f"{HOST}/", one_server, 2):
        processes = [project.start("crawl", "walk", *on_redis(one_server.url, agent)) for agent in agents]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all("Closing spider (finished)" in output and "Traceback" not in output for output in outputs)
    urls = sorted(item["url"] for agent in agents for item in project.items(f"{agent}.jsonl"))
    assert urls == sorted([*hosts, *(f"{host}deep" for host in hosts)])
    assert set(site.urls().values()) == {1}
    assert max(site.most_at_once.values()) == 1


FED = """
    import scrapy
    from scrapy import signals

    class Fed(scrapy.Spider):
        name = "fed"
        start_urls = ["http://h1.example/"]
        food = [f"http://h{number}.example/" for number in range(2, 9)]
        reads = 0  # of all beats while nothing else is left to do: more than the end of a crawl takes

        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            self = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(self.idle, signals.spider_idle)
            return self

        def idle(self):
            agent = self.crawler.engine._slot.scheduler.node.agent
            if agent.me == "a1" and self.food:
                if not self.reads:
                    self.reads, self.read, agent.read = 1, agent.read, self.count
                raise scrapy.exceptions.DontCloseSpider

        def count(self, sent, received, *arguments):
            self.read(sent, received, *arguments)
            self.reads += self.crawler.engine._slot.scheduler.node.agent.self_status.passive(received, True)
            if self.reads > 20 and self.food:
                self.crawler.engine.crawl(scrapy.Request(self.food.pop()))

        def parse(self, response):
            yield {"url": response.url}
"""


def test_agents_wait_for_one_that_is_fed_from_outside(project: Project, site: Site, one_server: Server) -> None:
    hosts = [f"http://h{number}.example/" for number in range(1, 9)]
    for host in hosts:
        site.page(host, "here")
    (project.place / "project" / "spiders" / "fed.py").write_text(textwrap.dedent(FED))
    agents = ("a1", "a2")
    with until_joined(site, f"{HOST}/", one_server, 2):
        processes = [project.start("crawl", "fed", *on_redis(one_server.url, agent)) for agent in agents]
    outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert all("Closing spider (finished)" in output and "ERROR" not in output for output in outputs), outputs
    urls = sorted(item["url"] for agent in agents for item in project.items(f"{agent}.jsonl"))
    assert urls == sorted(hosts)


GATE = """
    import os, sys, time

    if "UBI_AGENT_ID=late" in sys.argv:
        open("waits", "w").close()
        end = time.monotonic() + 90
        while not os.path.exists("open") and time.monotonic() < end:
            time.sleep(0.02)
"""


def test_who_was_still_starting_when_the_crawl_ended_fetches_nothing(
    project: Project, site: Site, one_server: Server
) -> None:
    with (project.place / "project" / "settings.py").open("a") as settings:
        settings.write(textwrap.dedent(GATE))
    with project.start("crawl", "walk", *on_redis(one_server.url, "late"), fresh=True) as late:
        end = time.monotonic() + LIMIT
        while not (project.place / "waits").exists():
            assert time.monotonic() < end, "it never came to its settings"
            time.sleep(0.02)
        assert project.run("crawl", "walk", *on_redis(one_server.url, "soon"))[0] == 0
        (project.place / "open").touch()
        output, _ = late.communicate(timeout=LIMIT)
    assert late.returncode == 0
    assert "while this process was starting: there is nothing left to fetch" in output
    assert "Closing spider (finished)" in output and "Traceback" not in output
    assert not project.items("late.jsonl")
    assert sorted(site.urls().values()) == [1, 1, 1]
    assert project.run("crawl", "walk", *on_redis(one_server.url, "soon"))[0] == 0
    assert sorted(site.urls().values()) == [2, 2, 2], "whoever starts after the end begins a new crawl"


def test_a_redis_that_is_not_there_yet_is_waited_for(project: Project, site: Site, one_server: Server) -> None:
    one_server.kill()
    arguments = ("-s", f"UBI_REDIS_URL={one_server.url}", "-s", f"UBI_REDIS_WAIT={LIMIT}")
    said = ""
    with project.start("crawl", "walk", *arguments) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if "Trying again for up to" in line:
                one_server.start()
    assert process.returncode == 0, said
    assert f"nothing listens at {one_server.url} " in said
    assert "Redis is there now." in said
    assert sorted(site.urls().values()) == [1, 1, 1]


def test_a_second_agent_of_one_name_is_refused(project: Project, site: Site, one_server: Server) -> None:
    with site.hold(f"{HOST}/") as held:
        first = project.start("crawl", "walk", *on_redis(one_server.url, "a1"), "-s", "UBI_DIR=first")
        assert held.arrived.wait(LIMIT)
        other = ("UBI_DIR=second", "LOG_LEVEL=WARNING", "UBI_SHARED_FEEDS=1")  # else it is refused for its feed
        arguments = [part for setting in other for part in ("-s", setting)]
        status, output = project.run("crawl", "walk", *on_redis(one_server.url, "a1"), *arguments)
        assert status == 1 and output.startswith("scrapy_ubi: ") and "UBI_AGENT_ID" in output, output
        held.release()
        output, _ = first.communicate(timeout=LIMIT)
    assert first.returncode == 0, output
    assert len(project.items("a1.jsonl")) == 3


def test_pages_that_are_too_large_or_too_slow(project: Project, site: Site) -> None:
    """Both download handlers ask the receivers of signals before they look at DOWNLOAD_MAXSIZE."""
    sent, stopped = 0, threading.Event()

    def drip(visit: Visit) -> Page:
        return Page("<html>", chunks=iter(lambda: b" " if not stopped.wait(0.02) else b"", b""))

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(40_000):
            sent += 50_000
            yield b"x" * 50_000

    head = "<html>" + links(f"{HOST}/slow")
    site.page(f"{HOST}/", lambda visit: Page(head, headers={"Content-Length": "2000000000"}, chunks=chunks()))
    site.page(f"{HOST}/slow", drip)
    try:
        limits = ("-s", "UBI_MAX_LOAD_SECONDS=3", "-s", "UBI_MAX_BODY=200000")
        status, output = project.run("crawl", "walk", "-o", "items.jsonl", *limits)
    finally:
        stopped.set()
    assert status == 0, output
    assert project.items() == [{"url": f"{HOST}/", "body": 200_000}]
    assert "UBI_MAX_BODY = 0 keeps pages whole" in output
    assert "'ubi/failed/load/too_long': 1" in output
    assert site.urls()[f"{HOST}/slow"] == 1
    assert sent < 50_000_000


def test_a_limit_of_the_crawl_ends_all_agents(project: Project, site: Site, one_server: Server) -> None:
    """By what each reads of the other in Redis."""
    pages = [f"http://h{number % 40}.example/{number}" for number in range(2000)]
    for number, page in enumerate(pages):
        site.page(page, links(*pages[10 * number + 1 : 10 * number + 11]))
    site.page(f"{HOST}/", links(*pages[:20]))
    options = ["-s", f"UBI_REDIS_URL={one_server.url}", "-s", "UBI_CRAWL_LIMITS=pages=100", "-s", "UBI_HOST_DELAY=0.3"]
    with until_joined(site, f"{HOST}/", one_server, 2):
        running = [project.start("crawl", "walk", *options, "-s", f"UBI_AGENT_ID=a{number}") for number in range(2)]
    for process in running:
        output, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, output
        assert "Closing spider (limit/crawl_pages)" in output, output
    assert 100 <= len(site.visits) < 2000


def test_too_little_address_space_is_named_and_what_is_named_is_enough(project: Project, site: Site) -> None:
    def run(kilobytes: int) -> tuple[int, str]:
        command = f'ulimit -v {kilobytes}; exec "{sys.executable}" -m scrapy crawl walk -o items.jsonl'
        done = subprocess.run(
            ["sh", "-c", command], cwd=project.place, env=project.environment, capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    status, output = run(500_000)
    assert status == 1, output
    wanted = re.search(r"scrapy_ubi: .*488 MB of address space.*'ulimit -v (\d+)'.*UBI_MEMORY_MB", output)
    assert wanted is not None, output
    assert "Traceback" not in output
    assert not site.visits
    status, output = run(int(wanted[1]) + 20_000)  # not every process begins at the same size
    assert status == 0, output
    assert len(project.items()) == 3
