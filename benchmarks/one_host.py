"""A page of one host on loopback: what it costs us, plain Scrapy, and the crawlers of other languages that are here.

    python benchmarks/one_host.py [--rounds 5] [--systems scrapy,walk,...] [--tree NAME=DIRECTORY]     # five minutes

The web is one host with a port: `--pages` pages of 14 kB with 40 links, answered at once. Every crawler follows all
links, 32 requests at once, and does nothing else; it has one core, the web the other. In a round every system has one
turn, in an order that rotates, so a slow spell of the machine hits all of them; what counts are the ratios of one
round, and their median. CPU is that of all threads of the crawler between two numbers of pages served, neither its
start nor its end. The systems:

    scrapy     plain Scrapy, LinkExtractor, a request for each link
    walk       the same spider with the add-on
    short0     plain links (`yield self.links(response)`), UBI_FAST off
    short      plain links
    fast       plain links, UBI_FAST = True: also what changes the process
    redis      scrapy-redis, where it is installed
    wget2      where it is installed (Debian)
    spider     @spider-rs/spider-rs, where `--node DIRECTORY` has it (npm install @spider-rs/spider-rs crawlee)
    crawlee    the same

Agents are alone, their frontier on disk, without Redis. `--tree before=../other` adds the agents with the package of
another checkout, to compare two versions on a machine that is busy: `before:short`. What is committed comes from

    python benchmarks/one_host.py --node DIRECTORY --json benchmarks/results/one_host.json
    python benchmarks/one_host.py --draw benchmarks/results/one_host.json   # the page, and its picture
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pages import into_document
from processes import free_port, redis_command
from rounds import save, table

HERE = Path(__file__).resolve().parent
BEGIN = "<!-- table of one_host.py -->"
DOCS = HERE.parent / "docs" / "explanation"
PICTURE = "speed-one-host.svg"
LINKS = 40
WORDS = "lorem ipsum dolor sit amet consectetur elit".split()
LIMIT = 300.0  # s without an end

SPIDERS = """
import scrapy
from scrapy.linkextractors import LinkExtractor


class Walk(scrapy.Spider):
    name = "walk"
    extractor = LinkExtractor()

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)
"""
SHORT = """
import scrapy
from scrapy_ubi import UbiSpider


class Short(UbiSpider):
    name = "short"

    async def start(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        yield self.links(response)
"""
SPIDER_RS = """
const {Website} = require("@spider-rs/spider-rs")
const site = new Website(process.argv[2]).withDelay(0)
site.build().crawl()
"""
CRAWLEE = """
const {CheerioCrawler, Configuration} = require("crawlee")
const configuration = new Configuration({persistStorage: false, availableMemoryRatio: 1})
const crawler = new CheerioCrawler({
  minConcurrency: 32, maxConcurrency: 32, useSessionPool: false,
  requestHandler: async ({enqueueLinks}) => { await enqueueLinks() },
}, configuration)
crawler.run([process.argv[2]])
"""
METHOD = ["CONCURRENT_REQUESTS=32", "CONCURRENT_REQUESTS_PER_DOMAIN=32", "TELNETCONSOLE_ENABLED=0", "ROBOTSTXT_OBEY=0"]
OURS = [
    'ADDONS={"scrapy_ubi.Addon": 500}',
    "UBI_HOST_DELAY=0",
    "UBI_HOST_CONCURRENCY=32",
    "UBI_PRIVATE_HOSTS=allow",
    "UBI_DIR=agent",
]
REDIS = ["SCHEDULER=scrapy_redis.scheduler.Scheduler", "DUPEFILTER_CLASS=scrapy_redis.dupefilter.RFPDupeFilter"]
LABELS = {
    "scrapy": "plain Scrapy",
    "walk": "unmodified spider",
    "short0": "plain links, UBI_FAST off",
    "short": "plain links",
    "fast": "plain links, UBI_FAST = True",
    "redis": "scrapy-redis",
    "wget2": "wget2 (C)",
    "spider": "spider (Rust, from Node)",
    "crawlee": "Crawlee (Node)",
}
AGENTS = {"walk": [], "short0": ["UBI_FAST=0"], "short": [], "fast": ["UBI_FAST=1"]}


def page(number: int, pages: int) -> bytes:
    """An answer with a page, always the same one."""
    draw = random.Random(number)
    links = [(number + 1) % pages, *(draw.randrange(pages) for _ in range(LINKS - 1))]
    text = (
        f'<p>{" ".join(draw.choice(WORDS) for _ in range(48))} <a class="x" href="/p/{other}.html">page {other}</a></p>'
        for other in links
    )
    body = f"<!doctype html><html><head><title>{number}</title></head><body>{''.join(text)}</body></html>".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children, to the nanosecond."""
    spent = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, IndexError):
            spent += int((task / "schedstat").read_text().split()[0])
            for child in (task / "children").read_text().split():
                spent += int(cpu_seconds(int(child)) * 1e9)
    return spent / 1e9


class Web:
    """Serves the pages, and looks at the clock of a process at two of them."""

    def __init__(self, pages: int) -> None:
        self._pages = [page(number, pages) for number in range(pages)]
        self._marks = (pages // 6, pages * 5 // 6)  # the last pages of a web come one by one
        self.turn: Turn | None = None

    def answer(self, path: bytes) -> bytes:
        if path != b"/" and not path.startswith(b"/p/"):
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        if self.turn is not None:
            self.turn.served(self._marks)
        return self._pages[0 if path == b"/" else int(path[3:].partition(b".")[0])]


class Turn:
    """One crawl: how many pages it had, and its clock at two of them."""

    def __init__(self, pid: int) -> None:
        self._pid, self._pages, self._clock = pid, 0, 0.0
        self.cost: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def served(self, marks: tuple[int, int]) -> None:
        self._pages += 1
        if self._pages == marks[0]:
            self._clock = cpu_seconds(self._pid)
        elif self._pages == marks[1]:
            self.cost.set_result((cpu_seconds(self._pid) - self._clock) * 1000 / (marks[1] - marks[0]))


class Connection(asyncio.Protocol):
    def __init__(self, web: Web) -> None:
        self._web, self._buffer = web, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            path = self._buffer.split(b" ", 2)[1]
            self._buffer = self._buffer[end + 4 :]
            self._transport.write(self._web.answer(path))


# ---------------------------------------------------------------------- systems


def command(name: str, url: str, place: Path, redis: int) -> list[str]:
    """How a system is started in `place`, where its files are written."""
    system = name.rpartition(":")[2]
    if system == "wget2":
        return ["wget2", "-q", "-r", "-l", "inf", "--max-threads=32", "--delete-after", "--no-robots", url]
    if system in ("spider", "crawlee"):
        (place / "crawl.js").write_text(SPIDER_RS if system == "spider" else CRAWLEE)
        return ["node", "crawl.js", url]
    (place / "spiders.py").write_text(SPIDERS if system in ("scrapy", "walk", "redis") else SHORT)
    settings = [*METHOD]
    if system in AGENTS:
        settings += [*OURS, *AGENTS[system]]
    if system == "redis":
        settings += [*REDIS, f"REDIS_URL=redis://127.0.0.1:{redis}/0"]
    named = [part for setting in settings for part in ("-s", setting)]
    return [sys.executable, "-m", "scrapy", "runspider", "spiders.py", "-a", f"url={url}", "-L", "INFO", *named]


def environment_of(name: str, args: argparse.Namespace) -> dict[str, str]:
    """What a system's process finds in its environment: the package of its checkout, the modules of Node."""
    tree = name.partition(":")[0] if ":" in name else ""
    package = Path(args.tree[tree]) if tree else HERE.parent
    found = {**os.environ, "PYTHONPATH": str(package.absolute()), "PYTHONHASHSEED": "0"}
    if args.node:
        found["NODE_PATH"] = str(Path(args.node).absolute() / "node_modules")
    return found


async def cost(name: str, web: Web, url: str, args: argparse.Namespace) -> float:
    """CPU milliseconds a page of one crawl."""
    place = Path(tempfile.mkdtemp(prefix="ubi-one-host-"))
    crawl = server = None
    environment = environment_of(name, args)
    quiet: dict[str, Any] = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.DEVNULL, "cwd": place}
    with (place / "log").open("wb") as log:
        try:
            port = free_port()
            if name == "redis":
                server = await asyncio.create_subprocess_exec(*redis_command(port, place), **quiet)
            started = ["taskset", "-c", "0", *command(name, url, place, port)]
            crawl = await asyncio.create_subprocess_exec(*started, env=environment, stderr=log, **quiet)
            web.turn = Turn(crawl.pid)
            ended = asyncio.ensure_future(crawl.wait())
            await asyncio.wait([web.turn.cost, ended], timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
            if not web.turn.cost.done():
                sys.exit(f"{name} has not crawled the web:\n{last_words(place)}")
            return web.turn.cost.result()
        finally:
            web.turn = None
            for process in (crawl, server):
                if process is not None and process.returncode is None:
                    process.kill()
                    await process.wait()
            shutil.rmtree(place, ignore_errors=True)


def last_words(place: Path) -> str:
    return (place / "log").read_text(errors="replace")[-3000:]


def installed(name: str, args: argparse.Namespace) -> bool:
    """Whether a system is here."""
    if name == "wget2":
        return shutil.which("wget2") is not None
    if name == "redis":
        return find_spec("scrapy_redis") is not None
    if name in ("spider", "crawlee"):
        package = "@spider-rs/spider-rs" if name == "spider" else "crawlee"
        return bool(args.node) and (Path(args.node) / "node_modules" / package).exists()
    return True


async def measure(args: argparse.Namespace) -> list[dict[str, float]]:
    web = Web(args.pages)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(web), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    rounds = []
    for turn in range(args.rounds):
        shift, row = turn % len(args.systems), {}
        for name in (*args.systems[shift:], *args.systems[:shift]):
            begun = time.monotonic()
            row[name] = await cost(name, web, url, args)
            took = time.monotonic() - begun
            print(f"[{took:.0f} s] round {turn + 1}, {name}: {row[name]:.3f} ms a page", file=sys.stderr, flush=True)
        rounds.append(row)
    return rounds


# ---------------------------------------------------------------------- the page


def medians(rounds: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """Of each system ms a page, and the ratio to plain Scrapy, the cheapest first."""
    found = {}
    for name in rounds[0]:
        ratio = statistics.median(row[name] / row["scrapy"] for row in rounds)
        found[name] = statistics.median(row[name] for row in rounds), ratio
    return dict(sorted(found.items(), key=lambda item: item[1][1]))


def page_table(figures: dict[str, Any]) -> str:
    lines = ["| | ms CPU a page | : plain Scrapy |", "|---|--:|--:|"]
    for name, (cost_ms, ratio) in medians(figures["rounds"]).items():
        lines.append(f"| {LABELS[name]} | {cost_ms:.2f} | {ratio:.3f} |")
    return "\n".join(lines)


def picture(figures: dict[str, Any]) -> str:
    """Bars of the ratios, by their logarithms, as SVG."""
    rows = medians(figures["rounds"])
    height = 26 * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="640" height="{height}" fill="#ffffff"/>',
        '<text x="8" y="18">Processor time of a page of 14 kB with 40 links, plain Scrapy = 1 (logarithmic)</text>',
    ]
    for number, (name, (_, ratio)) in enumerate(rows.items()):
        y = 30 + 26 * number
        width = 340 * max(0.01, math.log(ratio / 0.005) / math.log(2 / 0.005))
        color = "#2f8f5b" if name in AGENTS else "#9aa5b1"
        parts.append(f'<text x="190" y="{y + 15}" text-anchor="end">{LABELS[name]}</text>')
        parts.append(f'<rect x="200" y="{y}" width="{width:.0f}" height="20" fill="{color}"/>')
        parts.append(f'<text x="{206 + width:.0f}" y="{y + 15}">{ratio:.3f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw(path: str) -> None:
    figures = json.loads(Path(path).read_text(encoding="utf-8"))
    into_document(str(DOCS / "speed.md"), BEGIN, page_table(figures))
    (DOCS / PICTURE).write_text(picture(figures), encoding="utf-8")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3000, help="of the web (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--systems", help="systems to run; all that are installed")
    parser.add_argument("--node", metavar="DIRECTORY", help="where node_modules is")
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=DIRECTORY", help="another checkout")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--draw", metavar="FILE", help="only write the page and the picture of these figures")
    args = parser.parse_args()
    args.tree = dict(pair.split("=", 1) for pair in args.tree)
    args.systems = [name for name in args.systems.split(",") if name] if args.systems else [*LABELS]
    args.systems = [name for name in args.systems if installed(name, args)]
    args.systems += [f"{tree}:{name}" for tree in args.tree for name in AGENTS if name in args.systems]
    return args


def main() -> None:
    args = options()
    if args.draw:
        draw(args.draw)
        return
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rounds = asyncio.run(measure(args))
    first = args.systems[0]
    rows = {}
    for name in args.systems:
        of, values = name.rpartition(":")[2], [row[name] for row in rounds]
        ratio = statistics.median(row[name] / row[first] for row in rounds)
        other = f"{statistics.median(row[of] / row[name] for row in rounds):.3f}" if of != name else ""
        label = f"{name.partition(':')[0]}: {LABELS[of]}" if of != name else LABELS[of]
        rows[label] = [
            f"{statistics.median(values):.2f}",
            f"{min(values):.2f}-{max(values):.2f}",
            f"{ratio:.3f}",
            other,
        ]
    table("one host", ["ms a page", "     range", f": {first}", "here : there"], rows)
    save(args.json, {"load": os.getloadavg()[1], "pages": args.pages, "rounds": rounds})


if __name__ == "__main__":
    main()
