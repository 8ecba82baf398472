"""10,000 seeds from three writers, while agents join, leave and are killed, and Redis is emptied once.

What is written again after Redis was emptied is fetched once all the same; a second load of a page needs a crash.
"""

from __future__ import annotations

import signal
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.preloaded import Running
from tests.support.project import Project, until_there
from tests.support.server import Server
from tests.support.site import Page, Site

pytestmark = [pytest.mark.processes, pytest.mark.faults]

SPIDER = """
    import scrapy

    class Served(scrapy.Spider):
        name = "served"

        def parse(self, response):
            yield {"url": response.url}
"""
KEYS = RedisKeys("bot:served")
LIST = "served:start_urls"
SEEDS = 10_000
LIMIT = 240.0  # s
PATIENCE = 20.0  # s without an answer, after which a writer writes again
OF_A_CRASH = 1.0  # s; what a killed agent has fetched in them others may not have heard of
HOSTS = [f"h{number}.example" for number in range(60)]


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"{what}: did not come"
        time.sleep(0.05)  # a probe of the condition


def settled(server: Server, names: set[str]) -> str:
    """The view that all of these agents have settled, "" while they differ."""
    with server.client() as client:
        raw = client.hgetall(KEYS.beats)
    beats = {name.decode(): Beat.parse(line.decode()) for name, line in raw.items()}
    views = {beat.settled if (beat := beats.get(name)) is not None else "" for name in names}
    return views.pop() if len(views) == 1 else ""


class Writers:
    """Three at once, each in its way, until each of its URLs has its answer or was taken: into the stream, by the
    command, into scrapy-redis's list. `answered`: ids of the stream writer's answers so far."""

    def __init__(self, project: Project, server: Server, urls: list[str]) -> None:
        self._project, self._server = project, server
        self._parts = [urls[way::3] for way in range(3)]
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._stream, self._command, self._list)]
        self.failed: list[str] = []
        self.list_is_taken = threading.Event()
        self.go_on = threading.Event()  # the second half is written after it
        for thread in self._threads:
            thread.start()

    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def _halves(self, way: int) -> Iterator[list[str]]:
        part = self._parts[way]
        yield part[: len(part) // 2]
        assert self.go_on.wait(LIMIT)
        yield part[len(part) // 2 :]

    def _stream(self) -> None:
        with self._server.client() as client:
            for half in self._halves(0):
                waiting, end = set(half), time.monotonic() + LIMIT
                while waiting and time.monotonic() < end:
                    waiting -= self._answered(client, {client.xadd(KEYS.seeds, {"url": url}): url for url in waiting})
                if waiting:
                    self.failed.append(f"{len(waiting)} seeds of the stream have no answer")

    @staticmethod
    def _answered(client, written: dict[bytes, str]) -> set[str]:  # type: ignore[no-untyped-def]
        """Those of the written seeds that were answered, until all are or nothing has come for `PATIENCE`."""
        found: set[str] = set()
        at, last = min(written), time.monotonic()
        while len(found) < len(written) and time.monotonic() - last < PATIENCE:
            for _, entries in client.xread({KEYS.seeded: at}, 1000, 200):
                for number, answer in entries:
                    at = number
                    if answer[b"seed"] in written:
                        assert answer[b"said"] in (b"OK", b"KNOWN"), answer
                        found.add(written[answer[b"seed"]])
                        last = time.monotonic()
        return found

    def _command(self) -> None:
        for number, half in enumerate(self._halves(1)):
            (self._project.place / f"urls{number}.txt").write_text("\n".join(half))
            options = ("--wait", "--timeout", str(PATIENCE), "--crawl", KEYS.crawl, "--redis-url", self._server.url)
            status, output = 1, ""
            end = time.monotonic() + LIMIT
            while status and time.monotonic() < end:  # unanswered: written again, all of them
                status, output = self._project.run("ubi", "seed", "-f", f"urls{number}.txt", *options)
            if status:
                self.failed.append(output[-1000:])

    def _list(self) -> None:
        """A list has no answers: what is in it when Redis is emptied is lost, so it is taken before."""
        with self._server.client() as client:
            for half in self._halves(2):
                urls = iter(half)
                while piece := list(islice(urls, 500)):
                    client.lpush(LIST, *piece)
                until(lambda: not client.exists(LIST), "an empty list")
                if not self.go_on.is_set():
                    self.list_is_taken.set()


class Served:
    """The agents, and their web."""

    def __init__(self, project: Project, site: Site, server: Server) -> None:
        self.project, self.site, self.server = project, site, server
        self.agents: dict[str, Running] = {}

    def start(self, *names: str) -> None:
        settings = {
            "UBI_REDIS_URL": self.server.url, "UBI_SERVE": 1, "UBI_SEED_LIST": LIST, "LOG_LEVEL": "WARNING",
            "UBI_LEASE_TIMEOUT": 3.0, "UBI_FAILURE_TIMEOUT": 5.0,
        }  # fmt: skip
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        for name in names:
            self.agents[name] = self.project.start("crawl", "served", "-s", f"UBI_AGENT_ID={name}", *given)

    def close(self) -> None:
        """End what is left, by force."""
        for name in list(self.agents):
            self.kill(name)

    def until_settled(self, before: str = "") -> str:
        """Until these agents are the group in the view of each, another one than `before`, and everything is handed
        over. The view."""
        until(lambda: settled(self.server, set(self.agents)) not in ("", before), f"a group of {set(self.agents)}")
        return settled(self.server, set(self.agents))

    def fetched(self) -> int:
        return len(self.site.visits)

    def kill(self, name: str) -> None:
        with self.agents.pop(name) as agent:
            agent.kill()

    def kill_at_work(self, name: str) -> float:
        """Kill one while all of the group fetch; how many pages may be fetched again for it."""
        begun, before = time.monotonic(), self.fetched()
        until(lambda: self.fetched() >= before + 100, "pages")
        rate = (self.fetched() - before) / (time.monotonic() - begun)
        allowed = rate / len(self.agents) * OF_A_CRASH
        self.kill(name)
        return allowed

    def leave(self, name: str) -> None:
        agent = self.agents.pop(name)
        agent.send_signal(signal.SIGTERM)
        output, _ = agent.communicate(timeout=LIMIT)
        assert agent.returncode == 0 and "Traceback" not in output, output[-3000:]


@pytest.fixture
def served(tmp_path: Path, site: Site, one_server: Server) -> Iterator[Served]:
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "served.py").write_text(textwrap.dedent(SPIDER))
    for host in HOSTS:
        site.host(host, lambda visit: Page("a page"))
    served = Served(project, site, one_server)
    yield served
    served.close()


def test_10000_seeds_are_fetched_once_each(served: Served) -> None:
    site, server = served.site, served.server
    urls = [f"http://{HOSTS[number % 60]}/{number}" for number in range(SEEDS)]
    served.start("a1", "a2", "a3")
    until_there(server, 3)
    writers = Writers(served.project, server, urls)

    until(lambda: served.fetched() > SEEDS / 10, "a tenth fetched")
    served.start("a4")
    served.leave("a1")
    assert writers.list_is_taken.wait(LIMIT)
    with server.client() as client:
        until(lambda: set(urls[2 : SEEDS // 2 : 3]) <= site.urls().keys(), "the list's first half fetched")
        client.flushall()
    writers.go_on.set()
    until(lambda: served.fetched() > SEEDS * 0.7, "70 % fetched")
    again = {url: times for url, times in site.urls().items() if times > 1}
    assert not again, f"fetched again without a crash: {again}"

    view = served.until_settled()
    allowed = served.kill_at_work("a2")
    until(lambda: served.fetched() > SEEDS * 0.75, "75 % fetched")
    served.start("a2")
    served.until_settled(view)  # there is one copy of each host: an agent more before it is made again is one too many
    allowed += served.kill_at_work("a3")
    until(lambda: site.urls().keys() >= set(urls), "all fetched")
    until(writers.is_done, "the writers' end")
    assert not writers.failed
    with server.client() as client:
        until(lambda: not client.xlen(KEYS.seeds), "all answered")
    for name in list(served.agents):
        served.leave(name)
    assert site.urls().keys() == set(urls) and max(site.most_at_once.values()) == 1
    again_by_kills = site.urls().total() - SEEDS
    print(f"fetched again: {again_by_kills} of {allowed:.0f} allowed")
    assert again_by_kills <= allowed
