"""Files and awaited downloads on hosts of every fault: the items of plain Scrapy, and no page waits for such a host.

Real processes and sockets. Each way of a load beside the scheduler, times each fault: one crawl of live hosts, each
page of which wants something of one faulty host. Plain Scrapy is the referee for the items. One cell of each kind is
among the ordinary tests, all others are for `make faults`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.settings import UbiSettings
from tests.support.server import Server as RedisServer

pytestmark = pytest.mark.processes

LIMIT = 240  # s for a crawl, far more than it takes
HOSTS, PAGES = 6, 4
# A page that waited for a rest of its faulty host would wait for that long; the crawl must be over before.
PAUSE = 10 * LIMIT

SPIDER = """
import scrapy
from scrapy.utils.defer import maybe_deferred_to_future


async def said(spider, url):
    try:
        response = await spider.crawler.engine.download_async(scrapy.Request(url))
    except Exception as error:
        name = type(error).__name__  # a name server may answer late, or not at all
        return "no such name" if ".invalid" in url else name
    return response.status


class Awaits:
    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_item(self, item):
        if "page" in item:
            item["said"] = await said(self, item["file"])
        return item


class Asks(Awaits):
    async def process_request(self, request):
        if request.url.startswith(self.crawler.spider.bad):
            return
        number = request.url.rpartition("/")[2]
        request.meta["said"] = await said(self, f"{self.crawler.spider.bad}/asked-{number}")


class Faulty(scrapy.Spider):
    name = "faulty"

    async def start(self):
        if self.way == "start":
            yield {"start": await said(self, f"{self.bad}/login")}
        for url in self.faulty_pages.split():
            yield scrapy.Request(url, priority=1)
        for host in self.hosts.split():
            yield scrapy.Request(f"http://{host}/0")

    async def parse(self, response):
        name = response.url[7:].replace("/", "-").replace(":", "-")
        number = int(response.url.rpartition("/")[2])
        item = {"page": response.url, "file": f"{self.bad}/{name}"}
        if self.way == "files":
            item["file_urls"] = [item["file"]]
        elif self.way == "images":
            item["image_urls"] = [item["file"]]
        elif self.way == "callback":
            item["said"] = await said(self, item["file"])
        elif self.way == "middleware":
            item["said"] = response.meta["said"]
        yield item
        if number + 1 < int(self.pages):
            yield response.follow(f"/{number + 1}")
"""
COMPONENTS: dict[str, dict[str, Any]] = {
    "files": {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"},
    "images": {"ITEM_PIPELINES": {"scrapy.pipelines.images.ImagesPipeline": 1}, "IMAGES_STORE": "images"},
    "callback": {},
    "start": {},
    "pipeline": {"ITEM_PIPELINES": {"faulty.Awaits": 1}},
    "middleware": {"DOWNLOADER_MIDDLEWARES": {"faulty.Asks": 50}},
}


class Live(socketserver.StreamRequestHandler):
    """A page of any live host, counted."""

    asked: ClassVar[set[tuple[str, str]]] = set()

    def handle(self) -> None:
        path, host = self.rfile.readline().split()[1].decode(), ""
        while header := self.rfile.readline().strip():
            if header.lower().startswith(b"host:"):
                host = header.decode()
        is_page = path != "/robots.txt"
        if is_page:
            Live.asked.add((host, path))
        body = b"<title>page</title>"
        status = "200 OK" if is_page else "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        self.wfile.write(f"{head}\r\n".encode() + body)


class Bad(socketserver.StreamRequestHandler):
    """A host with one fault."""

    fault: ClassVar[str] = ""
    over: ClassVar[threading.Event] = threading.Event()

    def handle(self) -> None:
        self.rfile.readline()
        if self.fault == "hang":
            Bad.over.wait(LIMIT)
        elif self.fault == "reset":
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()
        else:
            status, _, seconds = self.fault.partition("+")
            more = f"Retry-After: {seconds}\r\n" if seconds else ""
            self.wfile.write(f"HTTP/1.1 {status} No\r\n{more}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 100


@contextmanager
def serving(handler: type[socketserver.BaseRequestHandler], host: str) -> Iterator[int]:
    with Server((host, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            if handler is Bad:
                Bad.over.set()
            server.shutdown()


@contextmanager
def faulty(fault: str) -> Iterator[str]:
    """The URL of a host with this fault; with any number in place of `{}` that of another host."""
    if fault == "dead name":
        yield "http://no-such-name-{}.invalid"
    elif fault == "refuse":
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))  # and nobody listens
            yield f"http://127.0.1.{{}}:{taken.getsockname()[1]}"
    else:
        Bad.fault, Bad.over = fault, threading.Event()
        with serving(Bad, "0.0.0.0") as port:
            yield f"http://127.0.1.{{}}:{port}"


class Crawl(NamedTuple):
    """What is crawled: the live hosts, the URL of the host of files, and pages of faulty hosts. `ends`: the crawl ends
    by itself; else its agents are told to stop when each live page was asked for."""

    way: str
    hosts: list[str]
    bad: str
    pages: Sequence[str] = ()
    ends: bool = True

    def run(self, place: Path, agents: int, *, plain: bool = False, **more: Any) -> list[Any]:
        """The items of a crawl, of one process for each agent."""
        place.mkdir()
        (place / "faulty.py").write_text(SPIDER)
        settings: dict[str, Any] = {
            "RETRY_TIMES": 2, "DOWNLOAD_TIMEOUT": 2, "CONCURRENT_REQUESTS": 4, "TELNETCONSOLE_ENABLED": False,
            "UBI_HOST_PAUSE": PAUSE, "UBI_MAX_RETRY_AFTER": PAUSE, "UBI_HOST_DELAY": 0,
            "ADDONS": {} if plain else {"scrapy_ubi.Addon": 500}, **COMPONENTS[self.way], **more,
        }  # fmt: skip
        words = {"way": self.way, "hosts": " ".join(self.hosts), "bad": self.bad, "pages": PAGES}
        words["faulty_pages"] = " ".join(self.pages)
        command = [sys.executable, "-m", "scrapy", "runspider", "faulty.py", "-L", "INFO"]
        for name, word in words.items():
            command += ["-a", f"{name}={word}"]
        for name, value in settings.items():
            command += ["-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        Live.asked = set()
        running = []
        try:
            for agent in range(agents):
                own = ["-o", f"{agent}.jsonl", "-s", f"UBI_DIR=agent{agent}", "-s", f"UBI_AGENT_ID=a{agent}"]
                with (place / f"{agent}.log").open("w") as log:
                    paths = filter(None, (str(place), os.environ.get("PYTHONPATH")))
                    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
                    running.append(subprocess.Popen([*command, *own], cwd=place, env=environment, stderr=log))
            self._wait_for(running)
        except TimeoutError:
            log = "".join((place / f"{agent}.log").read_text()[-3000:] for agent in range(agents))
            pytest.fail(f"{len(Live.asked)} of {self.live} pages came, and the crawl stands still: {log}")
        finally:
            for process in running:
                process.kill()
                process.wait()
        assert len(Live.asked) == self.live
        lines = "".join((place / f"{agent}.jsonl").read_text() for agent in range(agents)).splitlines()
        return sorted(map(json.loads, lines), key=json.dumps)

    @property
    def live(self) -> int:
        """How many pages there are at the live hosts."""
        return len(self.hosts) * PAGES

    def _wait_for(self, running: list[subprocess.Popen[bytes]]) -> None:
        """Wait until these have ended. Raises TimeoutError after `LIMIT`."""
        before = time.monotonic() + LIMIT
        told = self.ends
        while any(process.poll() is None for process in running):
            if time.monotonic() > before:
                raise TimeoutError
            if not told and len(Live.asked) == self.live:
                told = True
                for process in running:
                    process.send_signal(signal.SIGTERM)
            time.sleep(0.05)


def same(place: Path, crawl: Crawl, agents: int, **more: Any) -> None:
    """The items are those of plain Scrapy."""
    if crawl.way == "images":
        pytest.importorskip("PIL")
    obeys = {"ROBOTSTXT_OBEY": more.get("ROBOTSTXT_OBEY", False)}
    plain = crawl._replace(ends=True).run(place / "plain", 1, plain=True, **obeys)
    assert len(plain) == crawl.live + (crawl.way == "start")
    assert crawl.run(place / "ubi", agents, **more) == plain


def live(port: int) -> list[str]:
    """The live hosts."""
    return [f"127.0.0.{number + 2}:{port}" for number in range(HOSTS)]


def owned(agent: str, pattern: str) -> Iterator[str]:
    """Hosts that this one of two agents owns, the other one keeps a copy."""
    ring = Ring.of(dict.fromkeys(("a0", "a1"), UbiSettings().ring_replicas))
    hosts = (pattern.format(number) for number in range(2, 250))
    return (host for host in hosts if ring.owner(host.removeprefix("http://")) == agent)


def is_shown(way: str, fault: str) -> bool:
    """Whether this cell is quick enough, and tells enough, to be among the quick tests."""
    return (way, fault) in {("files", "refuse"), ("callback", "503+3600")}


def cells(ways: Iterable[str], faults: Iterable[str]) -> list[Any]:
    """Ways times faults, as parameters; all but those shown are for `make faults`."""
    both = [(way, fault) for way in ways for fault in faults]
    return [pytest.param(*each, marks=[] if is_shown(*each) else pytest.mark.faults) for each in both]


FAULTS = ("refuse", "reset", "hang", "503", "503+3600", "503+1", "429+3600", "dead name")


@pytest.mark.parametrize(("way", "fault"), cells(COMPONENTS, FAULTS))
def test_items_are_those_of_plain_scrapy_and_no_page_waits(tmp_path: Path, way: str, fault: str) -> None:
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        same(tmp_path, Crawl(way, live(port), bad.format(1)), 1)


@pytest.mark.faults
@pytest.mark.parametrize("more", [{"UBI_FAST": True}, {"UBI_LEAN": False}], ids=["fast", "neither"])
@pytest.mark.parametrize("way", COMPONENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_so_it_is_for_every_way_and_setting(tmp_path: Path, way: str, fault: str, more: dict[str, Any]) -> None:
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        same(tmp_path, Crawl(way, live(port), bad.format(1)), 1, **more)


@pytest.mark.faults
@pytest.mark.parametrize("agents", [2, 4])
@pytest.mark.parametrize("way", ["files", "callback", "pipeline"])
@pytest.mark.parametrize("fault", FAULTS)
def test_so_it_is_with_several_agents(
    tmp_path: Path, way: str, fault: str, agents: int, one_server: RedisServer
) -> None:
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        same(tmp_path, Crawl(way, live(port), bad.format(1)), agents, UBI_REDIS_URL=one_server.url)


@pytest.mark.faults
@pytest.mark.parametrize("owner", ["a0", "a1"])
@pytest.mark.parametrize("way", ["files", "callback"])
@pytest.mark.parametrize("fault", ["refuse", "hang", "503"])
def test_an_agent_with_a_copy_of_the_host_does_not_wait_for_its_owners_rest(
    tmp_path: Path, way: str, fault: str, owner: str, one_server: RedisServer
) -> None:
    """All pages are those of a0. The faulty host is its own, or it keeps a copy of what a1 knows of it; there are pages
    of that host as well, which rest for longer than the crawl lasts."""
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        host = next(owned(owner, bad))
        hosts = list(islice(owned("a0", f"127.0.0.{{}}:{port}"), HOSTS))
        pages = [f"{host}/page{number}" for number in range(10)]
        crawl = Crawl(way, hosts, host, pages, ends=False)
        same(tmp_path, crawl, 2, UBI_REDIS_URL=one_server.url)


ROBOTS = ("refuse", "reset", "hang", "503", "503+3600", "dead name")


@pytest.mark.parametrize("more", [{}, {"UBI_FAST": True}], ids=["lean", "fast"])
@pytest.mark.parametrize(("way", "fault"), cells(["files", "images"], ROBOTS))
def test_a_robots_txt_that_cannot_be_read_holds_up_files_only(
    tmp_path: Path, way: str, fault: str, more: dict[str, Any]
) -> None:
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        same(tmp_path, Crawl(way, live(port), bad.format(1)), 1, ROBOTSTXT_OBEY=True, **more)


@pytest.mark.faults
@pytest.mark.parametrize("agents", [1, 2])
@pytest.mark.parametrize("fault", ROBOTS)
def test_a_robots_txt_that_cannot_be_read_holds_up_pages_of_its_host_only(
    tmp_path: Path, fault: str, agents: int, one_server: RedisServer
) -> None:
    """More such hosts than requests at once, each asked before any other; files are wanted of one of them."""
    with faulty(fault) as bad, serving(Live, "0.0.0.0") as port:
        pages = [f"{bad.format(2 + host)}/page{number}" for number in range(2) for host in range(8)]
        crawl = Crawl("files", live(port), bad.format(2), pages, ends=False)
        same(tmp_path, crawl, agents, ROBOTSTXT_OBEY=True, UBI_REDIS_URL=one_server.url)
