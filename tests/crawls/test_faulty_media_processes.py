"""Files and awaited downloads on hosts of every fault: the items of plain Scrapy, and no page waits for such a host.

Real processes and sockets. Each way of a load beside the scheduler, times each fault: one crawl of live hosts, each
page of which wants something of one faulty host. Plain Scrapy is the referee for the items.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

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
        return type(error).__name__
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
        if request.url.startswith("http://127.0.0.1:"):
            return
        number = request.url.rpartition("/")[2]
        request.meta["said"] = await said(self, f"{self.crawler.spider.bad}/asked-{number}")


class Faulty(scrapy.Spider):
    name = "faulty"

    async def start(self):
        if self.way == "start":
            yield {"start": await said(self, f"{self.bad}/login")}
        for host in range(int(self.hosts)):
            yield scrapy.Request(f"http://127.0.0.{host + 2}:{self.port}/0")

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
        line, host = self.rfile.readline(), b""
        while header := self.rfile.readline().strip():
            if header.lower().startswith(b"host:"):
                host = header
        Live.asked.add((host.decode(), line.split()[1].decode()))
        body = b"<title>page</title>"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)


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
    """The URL of a host with this fault."""
    if fault == "dead name":
        yield "http://no-such-name.invalid"
    elif fault == "refuse":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and nobody listens
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    else:
        Bad.fault, Bad.over = fault, threading.Event()
        with serving(Bad, "127.0.0.1") as port:
            yield f"http://127.0.0.1:{port}"


def crawled(place: Path, way: str, bad: str, agents: int, *, plain: bool = False, **more: Any) -> list[Any]:
    """The items of a crawl, of one process for each agent."""
    place.mkdir()
    (place / "faulty.py").write_text(SPIDER)
    settings: dict[str, Any] = {
        "RETRY_TIMES": 2, "DOWNLOAD_TIMEOUT": 2, "CONCURRENT_REQUESTS": 4, "TELNETCONSOLE_ENABLED": False,
        "UBI_HOST_PAUSE": PAUSE, "UBI_MAX_RETRY_AFTER": PAUSE, "UBI_HOST_DELAY": 0,
        "ADDONS": {} if plain else {"scrapy_ubi.Addon": 500}, **COMPONENTS[way], **more,
    }  # fmt: skip
    Live.asked = set()
    with serving(Live, "0.0.0.0") as port:
        command = [sys.executable, "-m", "scrapy", "runspider", "faulty.py", "-L", "INFO"]
        for name, value in {"port": port, "bad": bad, "way": way, "hosts": HOSTS, "pages": PAGES}.items():
            command += ["-a", f"{name}={value}"]
        for name, value in settings.items():
            command += ["-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        running = [
            subprocess.Popen(
                [*command, "-o", f"{agent}.jsonl", "-s", f"UBI_DIR=agent{agent}", "-s", f"UBI_AGENT_ID=a{agent}"],
                cwd=place, env={**os.environ, "PYTHONPATH": str(place)},
                stdout=subprocess.DEVNULL,
            )
            for agent in range(agents)
        ]  # fmt: skip
        try:
            for process in running:
                process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            log = "".join((place / f"{agent}.log").read_text()[-3000:] for agent in range(agents))
            pytest.fail(f"{len(Live.asked)} of {HOSTS * PAGES} pages came, and the crawl stands still: {log}")
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                    process.wait()
    assert len(Live.asked) == HOSTS * PAGES
    items = [
        json.loads(line) for agent in range(agents) for line in (place / f"{agent}.jsonl").read_text().splitlines()
    ]
    for item in items:
        item.pop("file", None)
        if "page" in item:
            item["page"] = item["page"].replace(f":{port}/", "/")
        for name in ("file_urls", "image_urls"):
            item.pop(name, None)
    return sorted(items, key=json.dumps)


def same(place: Path, way: str, fault: str, agents: int, **more: Any) -> None:
    """The items are those of plain Scrapy."""
    if way == "images":
        pytest.importorskip("PIL")
    with faulty(fault) as bad:
        plain = crawled(place / "plain", way, bad, 1, plain=True)
        assert len(plain) == HOSTS * PAGES + (way == "start")
        assert crawled(place / "ubi", way, bad, agents, **more) == plain


FAULTS = ("refuse", "reset", "hang", "503", "503+3600", "503+1", "429+3600", "dead name")


@pytest.mark.parametrize("way", ["files", "callback"])
@pytest.mark.parametrize("fault", FAULTS)
def test_items_are_those_of_plain_scrapy_and_no_page_waits(tmp_path: Path, way: str, fault: str) -> None:
    same(tmp_path, way, fault, 1)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"UBI_FAST": True}, {"UBI_LEAN": False}], ids=["lean", "fast", "neither"])
@pytest.mark.parametrize("way", COMPONENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_so_it_is_for_every_way_and_setting(tmp_path: Path, way: str, fault: str, more: dict[str, Any]) -> None:
    same(tmp_path, way, fault, 1, **more)


@pytest.mark.slow
@pytest.mark.parametrize("agents", [2, 4])
@pytest.mark.parametrize("way", ["files", "callback", "pipeline"])
@pytest.mark.parametrize("fault", FAULTS)
def test_so_it_is_with_several_agents(
    tmp_path: Path, way: str, fault: str, agents: int, one_server: RedisServer
) -> None:
    same(tmp_path, way, fault, agents, UBI_REDIS_URL=one_server.url)
