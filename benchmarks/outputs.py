"""What stores cost: CPU of a page and of an item, in the loop and in the writer's thread, and the memory of an agent.

    python benchmarks/outputs.py                  # a minute
    python benchmarks/outputs.py --memory         # real crawls with all stores and with none as well: some minutes more

Every way takes the same pages (10 kB of HTML with 40 links, one in ten of them new) through what follows an agent's
pages (`PageOutputs`) and its writer, until all is given to the system. Ways take turns, and of each is shown what it
takes beyond the way without outputs: *chain* has a store that keeps nothing, others have one store each, and are shown
without the chain. CPU is that of all threads.

`larm` is measured on pages of which the spider has read the text, and on those which it has made a tree of
(`response.css`). With isal, where it is installed.

--memory: one agent crawls 3,000 pages with all stores, and with none; shown are the peaks of its resident memory.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from crawling import memory, reach, start
from links import made_page
from processes import Stage
from rounds import save, table
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from scrapy.utils.response import get_base_url
from systems import AGENT, METHOD, System

from scrapy_ubi.frontier.memory_store import MemoryStore
from scrapy_ubi.outputs.graph.graph_store import GraphStore
from scrapy_ubi.outputs.items import ItemsStore
from scrapy_ubi.outputs.larm import LarmStore
from scrapy_ubi.outputs.page_outputs import PageOutputs
from scrapy_ubi.outputs.stores import Page, Store
from scrapy_ubi.outputs.warc.warc_store import WarcStore
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.requests.inflight import Flight, Flights, FoundLinks
from scrapy_ubi.urls.normaliser import Normaliser

PAGES, LINKS, ITEMS = 300, 40, 5
AIMS = {
    "chain, a page": 0.02, "items, an item": 0.03, "graph, a page": 0.02, "larm, a page": 0.06,
    "larm, a page with a tree": 0.06, "warc, a page": 0.08,
}  # fmt: skip
HEADERS = {
    "Content-Type": "text/html; charset=utf-8", "Server": "nginx", "Date": "Thu, 26 Nov 2026 22:38:06 GMT",
    "Last-Modified": "Thu, 26 Nov 2026 20:00:00 GMT", "ETag": '"5f3e-1"', "Cache-Control": "max-age=600",
}  # fmt: skip
ASKED = {"User-Agent": "mybot (+http://example.com)", "Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, br"}
EVERYTHING = '["items", "larm", "warc", "graph"]'


class Nothing(Store):
    """What the chain itself costs: it looks at pages, and keeps none."""

    name: ClassVar[str] = "nothing"
    wants_pages: ClassVar[bool] = True

    def page(self, page: Page) -> None:
        return None


class Made:
    """The pages of one round, made before it is measured."""

    def __init__(self, turn: int, parsed: bool) -> None:
        body, normal = made_page(10_000, LINKS), Normaliser()
        self.normal, self.pages = normal, []
        for number in range(PAGES):
            url = f"http://h{number % 97}.example/d{number % 7}/{turn}-{number}.html"
            own = body.replace(b'href="/d3/', b'href="/d3-%d-%d/' % (turn, number))
            came = HtmlResponse(url, body=own, headers=HEADERS, protocol="HTTP/1.1")
            request = Request(url, headers=ASKED)
            came.request = request
            get_base_url(came)  # as whatever follows a link does
            if parsed:
                came.css("title")
            links = [f"http://h{number % 97}.example/d{link % 7}/p{link if link % 10 else number}.html"
                     for link in range(LINKS)]  # fmt: skip
            items = [{"url": url, "title": f"item {item}", "price": item * 1.5, "words": ["a", "b"]}
                     for item in range(ITEMS)]  # fmt: skip
            self.pages.append((request, came, links, items))


class Turn:
    """One way: `stores` are made anew for each round. Returns CPU seconds."""

    def __init__(self, place: Path, stores: Callable[[], list[Store]], items: bool = False, parsed: bool = False):
        self.place, self.stores, self.items, self.parsed = place, stores, items, parsed

    def __call__(self, turn: int) -> float:
        made, stores = Made(turn, self.parsed), self.stores()
        flights = Flights()
        agent = tempfile.mkdtemp(dir=self.place)
        writer = Writer(Path(agent), "bench", "a", 1 << 30)
        writer.recover(MemoryStore())
        crawler: Any = SimpleNamespace(request_fingerprinter=None)
        outputs = PageOutputs(crawler, stores, writer, flights, made.normal, lambda name: None) if stores else None
        began = time.process_time()
        for number, (request, came, links, items) in enumerate(made.pages):
            entry = SimpleNamespace(key=number, depth=1, request="{}")
            visit: Any = SimpleNamespace(entry=entry, again=None, closed=False)
            flight = flights.add(Flight(request, "h.example", visit, began=1.0))
            if outputs is None:
                flights.remove(request)
                continue
            outputs.begin(flight)
            outputs.received(request, came)
            outputs.answered(flight, came)
            if flight.links is not None:
                self._note(flight.links, links)
            for item in items if self.items else ():
                outputs.yielded(came, item)
                outputs._scraped(item, came)
            outputs.ended(flight)
            flights.remove(request)
        if outputs is not None:
            mark = writer.mark("run")
            mark.ready.wait()
        spent = time.process_time() - began
        writer.finish(MemoryStore())
        return spent

    @staticmethod
    def _note(found: FoundLinks, links: list[str]) -> None:
        for link in links:
            found.forms.append(link[:9] + link[9:])  # as the loop has made them just now


def ways(place: Path) -> dict[str, Turn]:
    settings = Settings()

    def of(kind: type[Store]) -> Callable[[], list[Store]]:
        return lambda: [kind({}, settings)]

    return {
        "none": Turn(place, list),
        "chain": Turn(place, lambda: [Nothing({}, settings)]),
        "items": Turn(place, of(ItemsStore), items=True),
        "no items": Turn(place, of(ItemsStore)),
        "graph": Turn(place, of(GraphStore)),
        "larm": Turn(place, of(LarmStore)),
        "tree": Turn(place, of(LarmStore), parsed=True),
        "warc": Turn(place, of(WarcStore)),
    }


def measure(rounds: int) -> dict[str, float]:
    """Milliseconds, by what `AIMS` names."""
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(rounds + 1):
            for name, way in ways(Path(place)).items():
                found = way(turn)
                if turn:
                    spent.setdefault(name, []).append(found / PAGES * 1e3)

    def beyond(name: str, other: str) -> float:
        return statistics.median(one - less for one, less in zip(spent[name], spent[other], strict=True))

    return {
        "chain, a page": beyond("chain", "none"),
        "items, an item": beyond("items", "no items") / ITEMS,
        "graph, a page": beyond("graph", "chain"),
        "larm, a page": beyond("larm", "chain"),
        "larm, a page with a tree": beyond("tree", "chain"),
        "warc, a page": beyond("warc", "chain"),
    }


def crawled(stores: str, pages: int) -> float:
    """The peak of an agent's memory, in MB."""
    system = System(1, {**METHOD, **AGENT, "UBI_STORES": stores}, "UBI_REDIS_URL")
    with Stage(500, 100, 5, None) as stage:
        start(stage, system)
        reach(stage, pages)
        return memory(stage)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--memory", action="store_true", help="crawl, too, and measure the memory of an agent")
    parser.add_argument("--pages", type=int, default=3000, help="pages of these crawls (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    found = measure(args.rounds)
    rows = {name: [f"{value:.4f}", f"{AIMS[name]:.2f}"] for name, value in found.items()}
    table("with isal" if find_spec("isal") else "without isal", ["ms CPU", "aim"], rows)
    figures: dict[str, Any] = {"ms": found}
    if args.memory:
        peaks = {name: crawled(stores, args.pages) for name, stores in (("none", "[]"), ("all", EVERYTHING))}
        more = peaks["all"] - peaks["none"]
        table("memory", ["MB"], {name: [f"{value:.0f}"] for name, value in {**peaks, "more": more}.items()})
        figures["memory_mb"] = peaks
    save(args.json, figures)


if __name__ == "__main__":
    main()
