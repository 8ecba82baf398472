"""Focused crawling: how many of the first pages are about a topic, by UBI_SCORE beside breadth first; what it costs.

    python benchmarks/focused.py                 # a minute
    python benchmarks/focused.py --pages 5000 --loads 500 --json focused.json

*harvest*: whole crawls in this process, of a web that is made here: `--hosts` hosts with `--pages` pages in all, one in
ten about the topic. Pages link to pages of their host and of others, 12 each. Pages about the topic link to such ones
four times as often as chance would have it (topical locality: Davison, 2000); of the links to a page about the topic 6
in 10 say so in their text, 3 in 10 in their URL, and of all others 2 in 100 in their text. The *harvest rate*
(Chakrabarti, van den Berg, Dom, 1999) is the share of pages about the topic among the first `--loads`. The seeds are
the fronts of hosts.

*cost*: CPU of scoring a page of 40 links at once, microseconds a link; beside it the normal form and the key of its
URL, which is what a known link costs at least.

*reading*: a file of `file(...)` with `--lines`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rounds import Way, save, table, take_turns
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import HtmlResponse, Response

from scrapy_ubi import UbiSpider
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.scores import LinkBatch, ScoreChain, read_scores

LINKS, TOPICAL, LOCAL = 12, 0.1, 4.0
IN_TEXT, IN_URL, NOISE = 0.6, 0.3, 0.02
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "DOWNLOAD_HANDLERS": {"http": "focused.Web", "https": "focused.Web"},
    "TWISTED_REACTOR_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    "ROBOTSTXT_OBEY": False,
}
WAYS: dict[str, list[str]] = {
    "breadth first": [],
    "keywords, URLs only": ["keywords(topic)"],
    "keywords, with texts": ["keywords(topic)"],
    "keywords with texts, depth(-1)": ["keywords(topic)", "depth(-1)"],
}


class Planted:
    """The web: which pages are about the topic, where they are, and what leads where."""

    def __init__(self, pages: int, hosts: int, seed: int) -> None:
        draws = self._draws = random.Random(seed)
        self.hosts = hosts
        self.about = [draws.random() < TOPICAL and number >= hosts for number in range(pages)]
        self._topic = [number for number, about in enumerate(self.about) if about]
        self._others = [number for number, about in enumerate(self.about) if not about]
        self._word = [about and draws.random() < IN_URL for about in self.about]
        self._links = [self._drawn(about) for about in self.about]

    def _drawn(self, about: bool) -> list[tuple[int, str]]:
        share = TOPICAL * (LOCAL if about else (1 - TOPICAL * LOCAL) / (1 - TOPICAL))
        found = []
        for _ in range(LINKS):
            target = self._draws.choice(self._topic if self._draws.random() < share else self._others)
            says = self._draws.random() < (IN_TEXT if self.about[target] else NOISE)
            found.append((target, "all about the topic" if says else "read on"))
        return found

    def url(self, number: int) -> str:
        return f"http://h{number % self.hosts}.example/{'topic-' if self._word[number] else 'page-'}{number}"

    def html(self, number: int) -> str:
        return "".join(f'<p><a href="{self.url(to)}">{text}</a>' for to, text in self._links[number])


web: Planted  # not among the settings, of which Scrapy makes copies
taken: list[int] = []


class Web(BaseDownloadHandler):
    """Answers at once, in this process."""

    async def download_request(self, request: Request) -> Response:
        number = int(request.url.rpartition("-")[2])
        taken.append(number)
        return HtmlResponse(request.url, body=web.html(number), encoding="utf-8", request=request)


class Follow(UbiSpider):
    name = "follow"
    texts = False

    async def start(self) -> Any:
        for number in range(web.hosts):
            yield Request(web.url(number))

    def parse(self, response: Response) -> Iterator[Any]:
        yield self.links(response, anchors=self.texts)


async def crawl(place: Path, score: list[str], texts: bool, loads: int) -> list[int]:
    """The first pages that are fetched."""
    taken.clear()
    settings = {**SETTINGS, "UBI_DIR": str(place), "UBI_SCORE": score, "CLOSESPIDER_PAGECOUNT": loads}
    runner = AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False})
    await runner.crawl(Crawler(Follow, settings), texts=texts)
    return taken[:loads]


def measure_harvest(pages: int, hosts: int, loads: int, seeds: int) -> dict[str, list[float]]:
    global web
    sys.modules.setdefault("focused", sys.modules[__name__])  # by this name Scrapy finds the handler
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    for seed in range(seeds):
        web = Planted(pages, hosts, seed)
        for name, score in WAYS.items():
            with tempfile.TemporaryDirectory() as place:
                found = asyncio.run(crawl(Path(place), score, "texts" in name, loads))
            rates[name].append(sum(web.about[number] for number in found) / len(found))
    base = sum(rates["breadth first"])
    rows = {name: [*(f"{rate:.3f}" for rate in each), f"{sum(each) / base:.2f}"] for name, each in rates.items()}
    table(f"harvest rate, first {loads:,} of {pages:,}", [*(f"web {n}" for n in range(seeds)), " ratio"], rows)
    return rates


def measure_cost(rounds: int) -> dict[str, float]:
    """Microseconds a link."""
    draws = random.Random(3)
    urls = [
        [f"http://h{n % 9}.example/docs/2026/11/a-page-{draws.random()}.html" for n in range(40)] for _ in range(500)
    ]
    anchors = ["the text of a usual link"] * 40
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "scores"
        file.write_text("".join(f"{url}\t{number}\n" for number, each in enumerate(urls) for url in each))
        known, _ = read_scores(file, normal_form)
    chains = {text: ScoreChain.read([text]).scores for text in (
        "keywords(crawler, scrapy, archive)", "depth(-1)", "path(/docs/=5, */tag/=-5)", "fresh(10)",
    )}  # fmt: skip
    chains["all four"] = ScoreChain.read(list(chains)).scores
    asked: dict[str, Any] = {**chains, "file(...)": known, "beside: normal form and key": _keys}

    def way(score: Any) -> Way:
        def ask(turn: int) -> None:
            for each in urls:
                score(LinkBatch(each, anchors, 3, "http://h.example/", 1.79e9))

        return ask

    found = take_turns({name: way(score) for name, score in asked.items()}, 40 * len(urls), rounds)
    table("scoring 40 links at once", ["us a link"], {name: [f"{value * 1e6:.2f}"] for name, value in found.items()})
    return found


def _keys(links: LinkBatch) -> list[int]:
    return [url_key("GET", normal_form(url) or "") for url in links.urls]


def measure_reading(lines: int) -> dict[str, float]:
    """A file of scores: seconds, and MB that stay."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "scores"
        with file.open("w") as out:
            out.writelines(f"http://www.host{n // 100}.example/section/page{n}.html\t{n % 200}\n" for n in range(lines))
        begin = time.process_time()
        known, _ = read_scores(file, normal_form)
        seconds = time.process_time() - begin
    found = {"lines": len(known), "seconds": seconds, "mb": 12 * len(known) / 1e6}
    table("reading a file of scores", ["   value"], {name: [f"{value:,.1f}"] for name, value in found.items()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("harvest", "cost", "reading"), help="one of the three")
    parser.add_argument("--pages", type=int, default=20_000, help="pages of the web (%(default)s)")
    parser.add_argument("--hosts", type=int, default=4, help="hosts that they are on (%(default)s)")
    parser.add_argument("--loads", type=int, default=1_500, help="pages that are fetched (%(default)s)")
    parser.add_argument("--webs", type=int, default=3, help="webs, each by a seed of its own (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of a file of scores (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    figures: dict[str, Any] = {}
    if args.only in (None, "harvest"):
        figures["harvest"] = measure_harvest(args.pages, args.hosts, args.loads, args.webs)
    if args.only in (None, "cost"):
        figures["seconds_a_link"] = measure_cost(args.rounds)
    if args.only in (None, "reading"):
        figures["reading"] = measure_reading(args.lines)
    save(args.json, {"arguments": vars(args), **figures})


if __name__ == "__main__":
    main()
