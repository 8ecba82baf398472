"""What dead hosts cost a crawl behind a proxy: half of all hosts dead, beside the same crawl without them.

    python benchmarks/dead_hosts.py [--hosts 100] [--pages 30] [--delay 0.3] [--rounds 3] [--robots] [--json FILE]

The web is a proxy on loopback: it answers for `hosts` hosts, and with 502 for as many that are dead. Each page of a
host links to the next ones, and to a page of a dead host, so that each of those has ten URLs. A figure is the wall time
of a whole crawl by one agent, in a process of its own, from its start to its end; trust the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from typing import Any, ClassVar

from rounds import save

URLS = 10  # of each dead host
WAYS = {"alive": 0, "half dead": 1}


class Proxy(asyncio.Protocol):
    """The web: what `answer` makes of a URL."""

    hosts = pages = dead = 0
    counts: ClassVar[dict[str, int]] = {"ok": 0, "dead": 0}

    def connection_made(self, transport: Any) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            url, self.buffer = self.buffer.split(b" ", 2)[1].decode(), self.buffer[end + 4 :]
            self.transport.write(self.answer(url))

    def answer(self, url: str) -> bytes:
        kind, host, page = re.fullmatch(r"http://(h|dead)(\d+)\.example/(.*)", url).groups()  # type: ignore[union-attr]
        if kind == "dead":
            self.counts["dead"] += 1
            return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
        if page == "robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        self.counts["ok"] += 1
        urls = [f"/{number}" for number in (2 * int(page) + 1, 2 * int(page) + 2) if number < self.pages]
        if self.dead and int(page) < URLS:
            urls.append(f"http://dead{(int(host) + int(page)) % self.hosts}.example/{page}")
        body = "".join(f'<a href="{url}">.</a>' for url in urls).encode() + b"<p>words</p>" * 500
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def crawl(place: str, proxy: str, hosts: int, delay: float, robots: bool) -> None:
    """Crawl to the end, in this process; prints figures as JSON."""
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    os.environ["http_proxy"] = proxy

    class Walk(Spider):
        name = "walk"

        async def start(self) -> Any:
            for host in range(hosts):
                yield Request(f"http://h{host}.example/0")

        def parse(self, response: Any) -> Any:
            for url in re.findall(r'href="([^"]*)"', response.text):
                yield response.follow(url)

    settings = {
        "ADDONS": {"scrapy_ubi.Addon": 500}, "UBI_DIR": place, "UBI_HOST_DELAY": delay, "ROBOTSTXT_OBEY": robots,
        "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "CONCURRENT_REQUESTS": 64,
    }  # fmt: skip
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Walk)
    process.crawl(crawler)
    process.start()
    stats: Any = crawler.stats.get_stats()
    wanted = ("elapsed_time_seconds", "response_received_count", "ubi/failed/host/dead", "retry/count")
    print(json.dumps({name: stats.get(name, 0) for name in wanted}))


def serve(hosts: int, pages: int, dead: int) -> tuple[str, threading.Thread]:
    """Start the web in a thread; its address."""
    Proxy.hosts, Proxy.pages, Proxy.dead = hosts, pages, dead
    ready, port = threading.Event(), []

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Proxy, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await server.serve_forever()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    ready.wait()
    return f"http://127.0.0.1:{port[0]}", thread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--robots", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--crawl", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        crawl(*options.crawl, options.hosts, options.delay, options.robots)
        return
    proxy, _ = serve(options.hosts, options.pages, 0)
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(options.rounds):
        for way, Proxy.dead in WAYS.items():
            before = dict(Proxy.counts)
            with tempfile.TemporaryDirectory() as place:
                command = [sys.executable, __file__, *sys.argv[1:], "--crawl", place, proxy]
                said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            times[way].append(said["elapsed_time_seconds"])
            rows[way] = {**said, **{f"loads {kind}": Proxy.counts[kind] - before[kind] for kind in before}}
            print(way, json.dumps(rows[way]))
    middle = {way: statistics.median(times[way]) for way in WAYS}
    print(f"wall time: {middle}, ratio {middle['half dead'] / middle['alive']:.2f}")
    if options.json:
        save(options.json, {"times": times, "rows": rows})


if __name__ == "__main__":
    main()
