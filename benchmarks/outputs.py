"""What stores cost: CPU of a page and of an item, in the loop and in the writer's thread, and the memory of an agent.

    python benchmarks/outputs.py                  # a minute
    python benchmarks/outputs.py --memory         # real crawls with all stores and with none as well: some minutes more

Every way takes the same pages (10 kB of HTML with 40 links, one in ten of them new) through what follows an agent's
pages (`PageOutputs`) and its writer, until all is given to the system. Ways take turns, and of each is shown what it
takes beyond the way without outputs: *chain* has a store that keeps nothing, others have one store each, and are shown
without the chain. CPU is that of all threads; *in the loop* is the part of the reactor's thread.

Shown are the least and the median of the rounds. Other processes on the machine only ever add to what is measured, so
the least is what the code takes: of each 20 pages, after which the loop waits for the writer, the least of all rounds.
The median is of whole rounds, and says how loaded the machine was.

`larm` is measured on pages of which the spider has read the text; on those which it has made a tree of
(`response.css`); and on those whose links it has read by UbiLinkExtractor, beside the chain on such pages.

With isal, where it is installed, and with zlib.

--memory: one agent crawls 3,000 pages with all stores, and with none; shown are the peaks of its resident memory.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import sys
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

from scrapy_ubi.adapter.extraction.linkextractor import UbiLinkExtractor
from scrapy_ubi.adapter.requests.inflight import Flight, Flights
from scrapy_ubi.adapter.requests.observers import Observers
from scrapy_ubi.outputs.graph.graph_store import GraphStore
from scrapy_ubi.outputs.items import ItemsStore
from scrapy_ubi.outputs.larm import LarmStore
from scrapy_ubi.outputs.page_outputs import PageOutputs
from scrapy_ubi.outputs.stores import Page, Store
from scrapy_ubi.outputs.warc.warc_store import WarcStore
from scrapy_ubi.outputs.writer import Writer
from scrapy_ubi.urls.normaliser import Normaliser

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.memory_store import MemoryStore

PAGES, LINKS, ITEMS, HOSTS = 300, 40, 5, 10
AT_ONCE = 20  # pages, after which the loop waits for the writer
# What is measured, the way without it, what to divide by, the aim in ms.
MEASURES = {
    "chain, a page": ("chain", "none", 1, 0.02),
    "items, an item": ("items", "no items", ITEMS, 0.03),
    "graph, a page": ("graph", "chain", 1, 0.02),
    "larm, a page": ("larm", "chain", 1, 0.06),
    "larm, a page with a tree": ("tree", "chain", 1, 0.06),
    "larm, a page read by UbiLinkExtractor": ("read", "chain, read", 1, 0.06),
    "warc, a page": ("warc", "chain", 1, 0.08),
    "warc, a page, zlib": ("warc zlib", "chain", 1, 0.08),
}
HEADERS = {
    "Content-Type": "text/html; charset=utf-8", "Server": "nginx", "Date": "Thu, 26 Nov 2026 22:38:06 GMT",
    "Last-Modified": "Thu, 26 Nov 2026 20:00:00 GMT", "ETag": '"5f3e-1"', "Cache-Control": "max-age=600",
}  # fmt: skip
ASKED = {"User-Agent": "mybot (+http://example.com)", "Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, br"}
EVERYTHING = {"UBI_STORES": "items,larm,warc,graph"}


Spent = list[tuple[float, float]]


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
            url = f"http://h{number % HOSTS}.example/d{number % 7}/{turn}-{number}.html"
            own = body.replace(b'href="/d3/', b'href="/d3-%d-%d/' % (turn, number))
            came = HtmlResponse(url, body=own, headers=HEADERS, protocol="HTTP/1.1")
            request = Request(url, headers=ASKED)
            came.request = request
            get_base_url(came)  # as whatever follows a link does
            if parsed:
                came.css("title")
            links = [f"http://h{number % HOSTS}.example/d{link % 7}/p{link if link % 10 else f'{link}-{number}'}.html"
                     for link in range(LINKS)]  # fmt: skip
            items = [{"url": url, "title": f"item {item}", "price": item * 1.5, "words": ["a", "b"]}
                     for item in range(ITEMS)]  # fmt: skip
            self.pages.append((request, came, links, items))


class Turn:
    """One way: `stores` are made anew for each round. `parsed`: a tree was made of the pages before; `read`: their
    links are read, in what is measured. Returns CPU seconds of the process and of the loop's thread, for each stretch
    of pages, and for what is written at the end."""

    def __init__(
        self,
        place: Path,
        stores: Callable[[], list[Store]],
        items: bool = False,
        parsed: bool = False,
        read: bool = False,
    ):
        self.place, self.stores, self.items, self.parsed = place, stores, items, parsed
        self.extractor = UbiLinkExtractor() if read else None

    def __call__(self, turn: int) -> Spent:
        made, stores = Made(turn, self.parsed), self.stores()
        flights = Flights()
        agent = tempfile.mkdtemp(dir=self.place)
        writer = Writer(Path(agent), "bench", "a", 1 << 30)
        writer.recover(MemoryStore())
        crawler: Any = SimpleNamespace(request_fingerprinter=None)
        outputs = PageOutputs(crawler, stores, writer, flights, made.normal, _named, _count) if stores else None
        observers = Observers(flights)
        if outputs is not None:
            observers.add(outputs)
        gc.collect()
        spent = []
        for first in range(0, PAGES, AT_ONCE):
            began, in_loop = time.process_time(), time.thread_time()
            for number, page in enumerate(made.pages[first : first + AT_ONCE], first):
                self._follow(outputs, observers, flights, number, *page)
            in_loop = time.thread_time() - in_loop
            if outputs is not None:
                writer._call(_nothing)  # a loop that has pages to wait for gives the writer its time
            spent.append((time.process_time() - began, in_loop))
        began = time.process_time()
        if outputs is not None:
            writer.mark("run").ready.wait()
        spent.append((time.process_time() - began, 0.0))
        writer.finish(MemoryStore())
        shutil.rmtree(agent)
        return spent

    def _follow(
        self, outputs: PageOutputs | None, observers: Observers, flights: Flights, number: int, request: Request,
        came: HtmlResponse,
        links: list[str], items: list[dict[str, Any]],
    ) -> None:  # fmt: skip
        """What happens to a page, as far as outputs are concerned."""
        entry = SimpleNamespace(key=number, depth=1, request="{}")
        visit: Any = SimpleNamespace(entry=entry, again=None, closed=False)
        flight = flights.add(Flight(request, "h.example", visit, began=1.0))
        if outputs is not None:
            for begun in observers.begun:
                begun(flight)
            outputs.received(flight, came)
            outputs.answered(flight, came)
        if self.extractor is not None:
            self.extractor.extract_urls(came)
        if outputs is not None:
            if flight.links is not None:
                note = flight.links.forms.append
                for link in links:  # as they are taken one by one
                    note(link)
            for item in items if self.items else ():
                outputs.yielded(flight, came, item)
                outputs._scraped(item, came)
            outputs.ended(flight)
        flights.remove(request)


def _named(visit: Any, request: Request) -> str:
    return f"{visit.entry.key:016x}"


def _count(name: str) -> None:
    return None


def _nothing() -> None:
    return None


def ways(place: Path) -> dict[str, Turn]:
    settings = Settings()

    def of(kind: type[Store], **arguments: str) -> Callable[[], list[Store]]:
        return lambda: [kind({name: (value,) for name, value in arguments.items()}, settings)]

    return {
        "none": Turn(place, list),
        "chain": Turn(place, of(Nothing)),
        "chain, read": Turn(place, of(Nothing), read=True),
        "items": Turn(place, of(ItemsStore), items=True),
        "no items": Turn(place, of(ItemsStore)),
        "graph": Turn(place, of(GraphStore)),
        "larm": Turn(place, of(LarmStore)),
        "tree": Turn(place, of(LarmStore), parsed=True),
        "read": Turn(place, of(LarmStore), read=True),
        "warc": Turn(place, of(WarcStore)),
        "warc zlib": Turn(place, of(WarcStore, gzip="zlib")),
    }


def measure(rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Milliseconds, by what `MEASURES` names."""
    wanted = {name: each for name, each in MEASURES.items() if only in name}
    needed = {way for each in wanted.values() for way in each[:2]}
    spent: dict[str, list[Spent]] = {}
    with tempfile.TemporaryDirectory() as place:
        each = {name: way for name, way in ways(Path(place)).items() if name in needed}
        for turn in range(rounds + 1):
            for name, way in each.items():
                found = way(turn)
                if turn:
                    spent.setdefault(name, []).append(found)
    return {name: _beyond(spent[one], spent[other], by) for name, (one, other, by, _) in wanted.items()}


def _beyond(ones: list[Spent], others: list[Spent], by: int) -> dict[str, float]:
    """What a way takes more than another one, in ms."""
    scale = 1e3 / PAGES / by
    differences = [_total(one) - _total(other) for one, other in zip(ones, others, strict=True)]
    least, in_loop = (_least(ones, at) - _least(others, at) for at in (0, 1))
    return {"least": least * scale, "median": statistics.median(differences) * scale, "in_loop": in_loop * scale}


def _total(spent: Spent) -> float:
    return sum(stretch for stretch, _ in spent)


def _least(rounds: list[Spent], at: int) -> float:
    """Of each stretch the least of all rounds, together."""
    return sum(min(stretch[at] for stretch in stretches) for stretches in zip(*rounds, strict=True))


def crawled(stores: dict[str, str], pages: int) -> float:
    """The peak of an agent's memory, in MB."""
    system = System(1, {**METHOD, **AGENT, **stores}, "UBI_REDIS_URL")
    with Stage(300, 100_000, 0.0, None) as stage:
        start(stage, system)
        reach(stage, pages)
        peak = memory(stage)[1]
    print(f"{stores or 'no stores'}: {peak:.0f} MB after {pages} pages", flush=True)
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds (%(default)s)")
    parser.add_argument("--memory", action="store_true", help="crawl, too, and measure the memory of an agent")
    parser.add_argument("--pages", type=int, default=3000, help="pages of these crawls (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--only", default="", help="measures with this in their name")
    args = parser.parse_args()
    found = measure(args.rounds, args.only)
    rows = {
        name: [*(f"{value:.4f}" for value in each.values()), f"{MEASURES[name][3]:.2f}"] for name, each in found.items()
    }
    table("with isal" if find_spec("isal") else "without isal", ["ms, least", "median", "in the loop", "aim"], rows)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    figures: dict[str, Any] = {"ms": found}
    if args.memory:
        peaks = {name: crawled(stores, args.pages) for name, stores in (("none", {}), ("all", EVERYTHING))}
        more = peaks["all"] - peaks["none"]
        table("memory", ["MB"], {name: [f"{value:.0f}"] for name, value in {**peaks, "more": more}.items()})
        figures["memory_mb"] = peaks
    save(args.json, figures)


if __name__ == "__main__":
    main()
