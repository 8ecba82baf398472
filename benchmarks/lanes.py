"""What a page costs by how its links are written: a port, an address, a user, letters beyond ASCII, and so on.

    python benchmarks/lanes.py [--pages 300] [--rounds 3] [--only port,address]     # two minutes

One agent, its frontier on disk, the short path, pages of 14 kB with 40 links that are made in the process (as for
`guard.py`, which counts calls of each shape). All pages of a crawl write their whole links in one shape, and their
relative ones where the shape is one of paths. Shapes take turns, and each is compared with the usual one: CPU seconds
of the process from the first page that counts to the last, without what it takes to make pages. No shape may cost more
than 1.5 times the usual one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rounds import save, table

HERE = Path(__file__).resolve().parent
MOST = 1.5  # times the usual shape
WARM, PAGES = 100, 300

USUAL = "usual"

Write = Callable[[str, str], str]  # host, page -> the link; host "": a relative one


def in_path(folder: str) -> Write:
    """Links with one more folder in their paths."""
    return lambda host, page: f"http://{host}/{folder}/{page}" if host else f"{folder}/{page}"


def with_query(query: str) -> Write:
    """Links with a query, relative ones as well."""
    return lambda host, page: f"http://{host}/{page}{query}" if host else f"{page}{query}"


def of_host(change: Callable[[str], str], scheme: str = "http") -> Write:
    """Whole links with another way to write the host; relative ones are as they are."""
    return lambda host, page: f"{scheme}://{change(host)}/{page}" if host else page


def address(host: str) -> str:
    """The host's address, in 10.0.0.0/8."""
    number = int(host[1:5])
    return f"10.7.{number // 100}.{number % 100}"


MANY = "&".join(f"name{number * 7 % 20}=value%20{number}" for number in range(20))
SHAPES: dict[str, Write] = {
    USUAL: of_host(str),
    "port": of_host(lambda host: f"{host}:22840"),
    "default port": of_host(lambda host: f"{host}:80"),
    "address": of_host(address),
    "address and port": of_host(lambda host: f"{address(host)}:8000"),
    "IPv6": of_host(lambda host: f"[fd00::{int(host[1:5]):x}]"),
    "user": of_host(lambda host: f"me:pass@{host}"),
    "capitals": of_host(lambda host: host.upper(), "HTTP"),
    "IDN": of_host(lambda host: host.replace(".", ".bücher.")),
    "punycode": of_host(lambda host: host.replace(".", ".xn--bcher-kva.")),
    "final dot": of_host(lambda host: f"{host}."),
    "one name": of_host(lambda host: host[:5]),
    "blank in path": in_path("a b"),
    "letters in path": in_path("bücher und größe"),
    "CJK in path": in_path("日本語/文書"),
    "escapes": in_path("b%C3%BCcher"),
    "small escapes": in_path("b%c3%bccher"),
    "needless escapes": in_path("%62ooks"),
    "brackets": in_path("a[1]|b"),
    "parameters": in_path("a;v=1"),
    "..": in_path("a/../b"),
    "empty part": in_path("a//b"),
    "query": with_query("?a=1"),
    "two arguments": with_query("?b=2&a=1"),
    "long query": with_query(f"?{MANY}"),
    "letters in query": with_query("?q=größe"),
    "query without value": with_query("?a&b"),
    "fragment": with_query("#top"),
    "odd fragment": with_query("#a b"),
}

_link = re.compile(r'href="([^"]*)"')
_whole = re.compile(r"http://(h\d{4}\.example)/(.*)")
_host = re.compile(r"(?i)\bh(\d{4})(?![0-9])|10\.7\.(\d+)\.(\d+)|\[fd00::([0-9a-f]+)\]")
_page = re.compile(r"/(p\d+\.html)?(?:[?#]|\Z)")


class Shape:
    """The guard's web with its links in a shape."""

    def __init__(self, name: str) -> None:
        self._write = SHAPES[name]

    def answer(self, graph: Any, url: str) -> tuple[object, bytes]:
        """The page at a URL, however it is written: its place in the web, None where there is none, and its body."""
        page = _page.search(url, 8)
        place = graph.page(_name(url), b"/" + ((page[1] if page else None) or "").encode())
        return place, _link.sub(self._shaped, graph.html(*place).decode()).encode() if place else b""

    def _shaped(self, match: re.Match[str]) -> str:
        whole = _whole.fullmatch(match[1])
        if whole is not None:
            link = self._write(whole[1], whole[2])
        else:
            page = match[1].lstrip("/")
            link = match[1][: -len(page)] + self._write("", page)
        return f'href="{link.replace("&", "&amp;")}"'


def _name(url: str) -> bytes:
    match = _host.search(url)
    assert match is not None, url
    name, high, low, last = match.groups()
    return b"h%04d.example" % (int(name) if name else int(high) * 100 + int(low) if high else int(last, 16))


def crawl(shape: str, pages: int) -> float:
    """CPU milliseconds a page, in this process."""
    sys.path[:0] = [str(HERE / "crawl"), str(HERE.parent)]
    os.environ["SCRAPY_SETTINGS_MODULE"] = "bench.settings"
    import guard_web
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.utils.project import get_project_settings
    from systems import AGENT, METHOD, SHORT

    clock = guard_web.calls = Clock()
    guard_web.shape = Shape(shape)
    with tempfile.TemporaryDirectory(prefix="ubi-lanes-") as directory:
        settings = get_project_settings()
        settings.setdict({**METHOD, **AGENT, **SHORT})
        settings.setdict(
            {
                "DOWNLOAD_HANDLERS": {"http": "guard_web.Pages"},
                "GUARD": (WARM, pages),
                "CONCURRENT_REQUESTS": 4,
                "CLOSESPIDER_PAGECOUNT": WARM + pages,
                "LOG_LEVEL": "ERROR",
                "LOGSTATS_INTERVAL": 0,
                "UBI_DIR": str(Path(directory) / "agent"),
                "UBI_PRIVATE_HOSTS": "allow",
            }
        )
        process = AsyncCrawlerProcess(settings)
        process.crawl("short")
        process.start()
    assert clock.stretches >= pages - 1, f"{shape}: {clock.stretches} pages of {pages}"
    return clock.seconds * 1000 / pages


class Clock:
    """CPU seconds of this process between `start` and `stop`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stretches = 0
        self._since: float | None = None

    def start(self) -> None:
        self._since = time.process_time()

    def stop(self) -> None:
        if self._since is not None:
            self.seconds += time.process_time() - self._since
            self.stretches += 1
            self._since = None


def child(shape: str, pages: int) -> float:
    """A crawl in a process of its own."""
    command = [sys.executable, __file__, "--child", shape, "--pages", str(pages)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False
    )
    if done.returncode:
        sys.exit(f"lanes.py: the shape {shape} failed:\n{done.stderr[-3000:]}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=PAGES, help="pages that count (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--only", default=",".join(SHAPES), metavar="SHAPES", help="shapes beside the usual one")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--child", metavar="SHAPE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(crawl(args.child, args.pages)))
        return
    shapes = list(dict.fromkeys([USUAL, *filter(None, args.only.split(","))]))
    if unknown := set(shapes) - set(SHAPES):
        parser.error(f"no shape {', '.join(sorted(unknown))}: there are {', '.join(SHAPES)}")
    costs: dict[str, list[float]] = {shape: [] for shape in shapes}
    for turn in range(args.rounds):
        for shape in shapes:
            print(f"round {turn + 1} of {args.rounds}: {shape}", file=sys.stderr, flush=True)
            costs[shape].append(child(shape, args.pages))
    medians = {shape: statistics.median(each) for shape, each in costs.items()}
    table(
        "links as written",
        ["ms a page", ": usual"],
        {shape: [f"{cost:.2f}", f"{cost / medians[USUAL]:.2f}"] for shape, cost in medians.items()},
    )
    save(args.json, {"ms": medians})
    slow = [shape for shape, cost in medians.items() if cost > MOST * medians[USUAL]]
    if slow:
        sys.exit(f"more than {MOST} times the usual shape: {', '.join(slow)}")


if __name__ == "__main__":
    main()
