"""Real processes of a crawl that does not wait for URLs, and URLs that are thrown at it until it is over."""

from __future__ import annotations

import random
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.seed_scripts import APPEND
from tests.support.preloaded import Running
from tests.support.project import LIMIT, Project, until_there
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.processes

SPIDER = """
    import scrapy

    class Small(scrapy.Spider):
        name = "small"
        start_urls = ["http://h0.example/start", "http://h1.example/start"]

        def parse(self, response):
            yield {"url": response.url}
"""
KEYS = RedisKeys("bot:small")
WRITERS, URLS = 3, 200
CALM = 4.0  # s that a crawl with nothing to do takes to its end, about


class Writers:
    """Several at once, each at moments of its own. `accepted`, `refused`: URLs."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server, self._seed = server, seed
        self.accepted: list[str] = []
        self.refused: list[str] = []
        self.urls = [f"http://h{number % 7}.example/seed/{number}" for number in range(URLS)]
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def _write(self, number: int) -> None:
        moments = random.Random(f"{self._seed} {number}")
        with self._server.client() as client:
            for url in self.urls[number::WRITERS]:
                # Bursts, and pauses in which the crawl comes near to its end, or to it.
                time.sleep(moments.choice((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, moments.uniform(0, CALM))))
                written = client.eval(APPEND, 2, KEYS.seeds, KEYS.control, "2", "url", url)
                (self.accepted if written else self.refused).append(url)
                if not written:
                    break

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize(("agents", "killed"), [(1, False), (2, False), (4, False), (3, True)])
def test_what_is_accepted_is_fetched_once_and_what_is_refused_is_not(
    tmp_path: Path, site: Site, one_server: Server, agents: int, killed: bool
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    project = Project(tmp_path, site.proxy)
    (tmp_path / "project" / "spiders" / "small.py").write_text(textwrap.dedent(SPIDER))
    writers = Writers(one_server, seed)
    starts = [f"http://h{number}.example/start" for number in range(2)]
    for url in (*writers.urls, *starts):
        site.page(url)

    def start(agent: str) -> Running:
        settings = {
            "UBI_REDIS_URL": one_server.url, "UBI_AGENT_ID": agent, "UBI_START_WAIT": 3, "UBI_HEARTBEAT_INTERVAL": 0.3,
            "UBI_LEASE_TIMEOUT": 1.5, "UBI_FAILURE_TIMEOUT": 3.0,
        }  # fmt: skip
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return project.start("crawl", "small", *given)

    running = [start(f"a{number}") for number in range(agents)]
    until_there(one_server, agents)
    writers.start()
    if killed:
        end = time.monotonic() + LIMIT
        while len(site.urls()) < 12 and running[0].poll() is None:
            assert time.monotonic() < end, "what the test waits for did not come"
            time.sleep(0.02)  # a probe of the condition
        running[0].kill()
    outputs = [agent.communicate(timeout=LIMIT)[0] for agent in running]
    writers.join()
    living = running[1:] if killed else running
    assert [agent.returncode for agent in living] == [0] * len(living), outputs
    fetched = Counter(site.urls())
    assert set(writers.accepted) <= fetched.keys(), (seed, set(writers.accepted) - fetched.keys())
    assert not set(writers.refused) & fetched.keys()
    assert set(starts) <= fetched.keys()
    if not killed:
        assert max(fetched.values()) == 1, (seed, fetched.most_common(3))
    with one_server.client() as client:
        assert client.xlen(KEYS.seeds) == 0
        answers = {answer[b"seed"]: answer[b"said"] for _, answer in client.xrange(KEYS.seeded)}
    assert len(answers) == len(writers.accepted)
    assert killed or set(answers.values()) <= {b"OK"}
