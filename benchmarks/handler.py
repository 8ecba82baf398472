"""What fetching a page costs: scrapy_ubi's download handler (UBI_FAST) beside Scrapy's own.

    python benchmarks/handler.py [--pages 2000] [--rounds 7] [--json FILE]

Both fetch the same page of 14 kB from a server in another process, 32 at once, in turns within one process, directly
and by an HTTP proxy. A figure is processor time (user and system) a page of the process that fetches, with the requests
made before; trust the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Coroutine
from typing import Any

from rounds import save
from scrapy import Request
from scrapy.utils.reactor import install_reactor

Costs = dict[str, dict[str, list[float]]]  # by way and handler: a figure a round

AT_ONCE = 32
HANDLERS = {
    "scrapy": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler",
    "ubi": "scrapy_ubi.fast.http.handler.UbiDownloadHandler",
}
HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en",
    "User-Agent": "scrapy-ubi benchmark",
    "Accept-Encoding": "gzip, deflate",
}
BODY = b"<!DOCTYPE html><html><body>" + b"<p>words and words and words</p>\n" * 430 + b"</body></html>"
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Sat, 21 Nov 2026 20:00:00 GMT\r\nVary: Accept-Encoding\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(BODY)
) + BODY


class Server(asyncio.Protocol):
    """Answers whatever is asked, as a host and as a proxy."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            self.buffer = self.buffer[end + 4 :]
            self.transport.write(ANSWER)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def requests(port: int, pages: int, by_proxy: bool) -> list[Request]:
    meta = {"download_timeout": 180.0}
    if by_proxy:
        proxy = {**meta, "proxy": f"http://127.0.0.1:{port}"}
        urls = [f"http://h{number % 300:03}.example/p{number}.html" for number in range(pages)]
        return [Request(url, headers=HEADERS, meta=dict(proxy)) for url in urls]
    urls = [f"http://127.0.0.1:{port}/p{number}.html" for number in range(pages)]
    return [Request(url, headers=HEADERS, meta=dict(meta)) for url in urls]


async def fetch(handler: Any, todo: list[Request]) -> float:
    """Milliseconds of processor time a page."""
    pages = len(todo)

    async def work() -> None:
        while todo:
            response = await handler.download_request(todo.pop())
            assert len(response.body) == len(BODY)

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (time.process_time() - began) * 1000 / pages


async def measure(port: int, pages: int, rounds: int, names: dict[str, str]) -> Costs:
    from scrapy.utils.misc import build_from_crawler, load_object
    from scrapy.utils.test import get_crawler

    crawler = get_crawler(settings_dict={"CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE, "CONCURRENT_REQUESTS": AT_ONCE})
    crawler.spider = crawler._create_spider("bench")
    handlers = {name: build_from_crawler(load_object(path), crawler) for name, path in names.items()}
    costs: Costs = {}
    for way in ("direct", "proxy"):
        costs[way] = {name: [] for name in handlers}
        for turn in range(rounds + 1):  # the first warms up
            for name, handler in list(handlers.items())[:: 1 if turn % 2 else -1]:
                cost = await fetch(handler, requests(port, pages if turn else 200, way == "proxy"))
                if turn:
                    costs[way][name].append(cost)
    for handler in handlers.values():
        await handler.close()
    return costs


def run(work: Coroutine[Any, Any, Costs]) -> Costs:
    """Run a coroutine in the reactor's loop."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    tasks: list[asyncio.Task[Costs]] = []

    def begin() -> None:
        tasks.append(asyncio.ensure_future(work))
        tasks[0].add_done_callback(lambda task: reactor.stop())

    reactor.callWhenRunning(begin)
    reactor.run()
    return tasks[0].result()


def show(costs: Costs) -> None:
    print(f"{'way':8} {'handler':8} {'ms a page':>10} {'range':>15} {'ratio':>6}")
    for way, of_way in costs.items():
        for name, values in of_way.items():
            pairs = [ours / theirs for ours, theirs in zip(values, of_way["scrapy"], strict=True)]
            middle, least, most = statistics.median(values), min(values), max(values)
            span = f"{least:.3f}-{most:.3f}"
            print(f"{way:8} {name:8} {middle:10.3f} {span:>15} {statistics.median(pairs):6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--handler", action="append", default=[], metavar="NAME=PATH", help="one more to compare")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve())
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        names = HANDLERS | dict(pair.split("=", 1) for pair in args.handler)
        costs = run(measure(int(server.stdout.readline()), args.pages, args.rounds, names))
    finally:
        server.terminate()
        server.wait()
    show(costs)
    save(args.json, {"milliseconds_a_page": costs})


if __name__ == "__main__":
    main()
