"""The survey that imbWBI (2017) asks for: quality and time of a crawl against LT and TC; how good its rankers are.

    python benchmarks/survey.py --plots docs/explanation      # three minutes
    python benchmarks/survey.py --quick                        # half a minute

Whole crawls in this process, by one agent, of a web that is made here: `--hosts` hosts with `--pages` pages in all, 12
links each, nearly all inside the host. How often a page is linked to follows a power law (a Zipf draw of exponent 0.8),
and has nothing to do with how far it is from the front of its host, which is the seed. A load takes `--latency`
seconds on average, exponentially distributed, five times that at most.

*quality* is the share of the 100 best pages, by PageRank inside their hosts and by indegree, in the first `--loads`
loads. *area* is the mean, over these loads, of the share of all links that lead to pages fetched until then, beside
that of breadth first. *time* is by the clock, and so depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rounds import save, table
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import HtmlResponse, Response

from scrapy_ubi import UbiSpider

LINKS, OUTSIDE, EXPONENT, BEST = 12, 0.02, 0.8, 100
BLUE, ORANGE = "#1f5fa8", "#c8641e"
TAKES, HOSTS_AT_ONCE = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8)
RANKERS: dict[str, str | None] = {
    "breadth first": None,
    "backlinks": "backlinks",
    "opic": "opic",
    "shortest_path": "shortest_path",
}
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "DOWNLOAD_HANDLERS": {"http": "survey.Web", "https": "survey.Web"},
    "TWISTED_REACTOR_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": False,
    "UBI_HOST_ITERATE": True,
    "UBI_MAX_LOAD_SECONDS": 60,
}


class Found(NamedTuple):
    """What a crawl came to: shares of the best by rank and by links, the area, and seconds by the clock."""

    by_rank: float
    by_links: float
    area: float
    seconds: float


class Drawn:
    """The web: what leads where, and which pages are the best."""

    def __init__(self, pages: int, hosts: int, seed: int) -> None:
        draws, self.hosts = random.Random(seed), hosts
        self.of_host = [list(range(host, pages, hosts)) for host in range(hosts)]
        weights = [[1 / (place + 1) ** EXPONENT for place in range(len(own))] for own in self.of_host]
        for each in weights:
            draws.shuffle(each)
        self.links = [self._drawn(number, weights, draws) for number in range(pages)]
        self.indegree = Counter(to for links in self.links for to in {*links})
        self.rank = self._ranks(pages)
        self.latency = random.Random(seed)

    def _drawn(self, number: int, weights: Sequence[Sequence[float]], draws: random.Random) -> list[int]:
        host = number % self.hosts
        found = draws.choices(self.of_host[host], weights[host], k=LINKS)
        return [draws.choice(draws.choice(self.of_host)) if draws.random() < OUTSIDE else to for to in found]

    def _ranks(self, pages: int) -> Any:
        sources = np.repeat(np.arange(pages), LINKS)
        targets = np.array([to for links in self.links for to in links])
        ranks = np.full(pages, 1 / pages)
        for _ in range(50):
            ranks = 0.15 / pages + 0.85 * np.bincount(targets, ranks[sources] / LINKS, minlength=pages)
        return ranks

    def found(self, taken: Sequence[int], seconds: float) -> Found:
        best_ranked = {int(number) for number in np.argsort(-self.rank)[:BEST]}
        best_linked = {number for number, _ in self.indegree.most_common(BEST)}
        so_far = np.cumsum([self.indegree[number] for number in taken]) / self.indegree.total()
        firsts = {*taken}
        return Found(len(best_ranked & firsts) / BEST, len(best_linked & firsts) / BEST, float(so_far.mean()), seconds)


web: Drawn  # not among the settings, of which Scrapy makes copies
taken: list[int] = []
latency = 0.0


class Web(BaseDownloadHandler):
    """Answers in this process, after a while."""

    async def download_request(self, request: Request) -> Response:
        number = int(request.url.rpartition("/")[2])
        taken.append(number)
        await asyncio.sleep(min(5 * latency, web.latency.expovariate(1 / latency)) if latency else 0)
        body = "".join(f'<p><a href="http://h{to % web.hosts}.example/{to}">x</a>' for to in web.links[number])
        return HtmlResponse(request.url, body=body.encode(), encoding="utf-8", request=request)


class Follow(UbiSpider):
    name = "follow"

    async def start(self) -> Any:
        for number in range(web.hosts):
            yield Request(f"http://h{number}.example/{number}")

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.links(response)


async def crawl(place: Path, loads: int, **settings: Any) -> None:
    runner = AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False})
    own = {**SETTINGS, "UBI_DIR": str(place), "CLOSESPIDER_PAGECOUNT": loads, **settings}
    await runner.crawl(Crawler(Follow, own))


def measured(loads: int, rank: str | None, take: int, at_once: int, load_seconds: float = 0.0) -> Found:
    """One crawl of the web, with LT and TC."""
    global latency
    latency, web.latency = load_seconds, random.Random(take)
    taken.clear()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(
            crawl(Path(place), loads, UBI_RANK=rank, UBI_HOST_LOAD_TAKE=take, CONCURRENT_REQUESTS=take * at_once)
        )
    return web.found(taken[:loads], time.monotonic() - begin)


def survey(args: argparse.Namespace) -> dict[str, Any]:
    """All crawls: rankers on one host; LT on one host; TC on several."""
    global web
    takes, at_once = (TAKES[::2], HOSTS_AT_ONCE[::2]) if args.quick else (TAKES, HOSTS_AT_ONCE)
    web = Drawn(args.pages, 1, args.seed)
    rankers = {name: measured(args.loads, rank, 8, 1) for name, rank in RANKERS.items()}
    base = rankers["breadth first"].area
    rows = {name: [*_cells(found), f"{found.area / base:.2f}"] for name, found in rankers.items()}
    table("one host, LT 8", ["best by rank", "by links", "area", "beside bfs"], rows)
    by_take = {take: measured(args.loads, args.rank, take, 1, args.latency) for take in takes}
    rows = {f"LT {take}": [*_cells(found), f"{found.seconds:.1f}"] for take, found in by_take.items()}
    table(f"one host, {args.rank}", ["best by rank", "by links", "area", "seconds"], rows)
    web = Drawn(args.pages, args.hosts, args.seed)
    by_hosts = {tc: measured(args.loads, args.rank, args.take, tc, args.latency) for tc in at_once}
    rows = {f"TC {tc}": [*_cells(found), f"{found.seconds:.1f}"] for tc, found in by_hosts.items()}
    table(f"{args.hosts} hosts, {args.rank}, LT {args.take}", ["best by rank", "by links", "area", "seconds"], rows)
    return {"rankers": rankers, "load_take": by_take, "hosts_at_once": by_hosts}


def _cells(found: Found) -> list[str]:
    return [f"{found.by_rank:.2f}", f"{found.by_links:.2f}", f"{found.area:.3f}"]


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Two plots: against LT and against TC."""
    for name, label in (("load_take", "LT: requests of an iteration"), ("hosts_at_once", "TC: hosts at once")):
        found = figures[name]
        (folder / f"survey-{name.replace('_', '-')}.svg").write_text(
            plot(
                label,
                [str(x) for x in found],
                [100 * each.by_rank for each in found.values()],
                [each.seconds for each in found.values()],
            )
        )


def plot(label: str, names: Sequence[str], quality: Sequence[float], seconds: Sequence[float]) -> str:
    """A picture, as text: quality by the axis on the left, seconds by that on the right."""
    left, right, top, floor, font = 60, 580, 40, 280, "font-family='sans-serif' font-size='12'"
    step, most = (right - left) / len(names), 10 * (1 + int(max(seconds) / 10))
    xs = [left + step * (place + 0.5) for place in range(len(names))]

    def text(x: float, y: float, what: str, colour: str = "#333333", anchor: str = "middle") -> str:
        return f"<text x='{x:.0f}' y='{y:.0f}' {font} fill='{colour}' text-anchor='{anchor}'>{escape(what)}</text>"

    def line(values: Sequence[float], of: float, colour: str, dashes: str) -> str:
        points = " ".join(f"{x:.0f},{floor - (floor - top) * v / of:.1f}" for x, v in zip(xs, values, strict=True))
        return (
            f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2' stroke-dasharray='{dashes}'/>"
        )

    parts = [
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 330' width='640' height='330'>",
        f"<title>{escape(label)}</title><rect width='640' height='330' fill='#ffffff'/>",
        text(left, 22, f"of the {BEST} best pages, %", BLUE, "start"),
        text(right, 22, "seconds (dashed)", ORANGE, "end"),
        text((left + right) / 2, 318, label),
        *[text(x, floor + 18, name) for x, name in zip(xs, names, strict=True)],
    ]
    for part in range(5):
        y = floor - (floor - top) * part / 4
        parts.append(f"<line x1='{left}' x2='{right}' y1='{y:.0f}' y2='{y:.0f}' stroke='#dddddd'/>")
        parts.append(text(left - 8, y + 4, f"{25 * part}", BLUE, "end"))
        parts.append(text(right + 8, y + 4, f"{most * part / 4:g}", ORANGE, "start"))
    parts += [line(quality, 100, BLUE, "none"), line(seconds, most, ORANGE, "6 4")]
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every second LT and TC, fewer loads")
    parser.add_argument("--pages", type=int, default=8_000, help="pages of the web (%(default)s)")
    parser.add_argument("--hosts", type=int, default=8, help="hosts, where there are several (%(default)s)")
    parser.add_argument("--loads", type=int, default=500, help="pages that are fetched (%(default)s)")
    parser.add_argument("--rank", default="backlinks", help="UBI_RANK against LT and TC (%(default)s)")
    parser.add_argument("--take", type=int, default=4, help="LT against TC (%(default)s)")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds of a load (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the web (%(default)s)")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write two SVGs there")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    if args.quick:
        args.loads = min(args.loads, 200)
    sys.modules.setdefault("survey", sys.modules[__name__])  # by this name Scrapy finds the handler
    figures = survey(args)
    if args.plots is not None:
        draw(figures, args.plots)
    arguments = {name: str(value) for name, value in vars(args).items()}
    save(args.json, {"arguments": arguments, **figures})


if __name__ == "__main__":
    main()
