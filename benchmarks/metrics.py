"""What metrics cost: a scrape of 100 agents, a scrape of one, a page with UBI_METRICS and without.

    python benchmarks/metrics.py [--rounds 5] [--pairs 3] [--pages 2000] [--json FILE]

*scrape*: CPU of the page of 100 agents, from the bytes of their profiles to text; the aim is less than 50 ms. Beside it
the same samples through prometheus-client, which a test compares ours with.

*load*: CPU that the meter around a load adds, the only thing that is done for a page; the aim is at most 0.002 ms.

*crawls*: real crawls of one agent (crawl/, cost.py's web), pairs in an order that changes, asked every 15 seconds with
UBI_METRICS, as Prometheus does. What counts is the median of the differences; on a busy machine it says little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterable
from typing import Any

from crawling import per_page, reach, snapshot, start
from processes import Stage
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from rounds import save, table, take_turns
from systems import AGENT, METHOD, SHORT, System

from scrapy_ubi.agent.metrics.exposition import Exposition
from scrapy_ubi.agent.metrics.meter import Meter
from scrapy_ubi.agent.metrics.profile_samples import GroupFacts, labels_of, put_group, put_profile, put_state
from scrapy_ubi.agent.profile.profile import COUNTERS, Profile, read_profile
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.web.metrics_routes import metrics_text

AGENTS = 100
VIEW = "00c0ffee00c0ffee"
LOADS = 20_000
PORT = 19_410
INTERVAL = 15.0  # s between two scrapes
REASONS = {"http/404": 3, "http/500": 2, "robots": 90, "exception/DownloadTimeoutError": 7, "callback/ValueError": 1}


def profile_text(name: str) -> bytes:
    """A profile as an agent publishes it."""
    counters: dict[str, Any] = dict.fromkeys(COUNTERS, 123456)
    counters |= {"failed": REASONS, "noted": {"truncated": 5, "duplicates/exact": 70}, "seconds": 3600.5}
    counters |= {"responses": {"2xx": 100_000, "3xx": 2000, "4xx": 900, "5xx": 12}, "pages_per_second": 99.5}
    counters |= {"failed_at": {reason: {f"h{n}.example": n for n in range(5)} for reason in REASONS}}
    said = {"agent": name, "incarnation": "0badcafe", "state": "crawling", "started": 1.7e9, "updated": 1.7e9}
    return json.dumps({**said, "version": "0.1.0", "spider": "web", "counters": counters}).encode()


def crawl(profiles: dict[str, bytes]) -> CrawlStatus:
    """The status of such a crawl, with every profile read anew."""
    agents = []
    for name, raw in profiles.items():
        profile = read_profile(name, raw)
        assert isinstance(profile, Profile), profile
        agents.append(AgentStatus(name, "crawling", profile, Beat("0badcafe", 0, 200, VIEW, VIEW), 3, 0, 1.0))
    return CrawlStatus("bench", tuple(agents), {}, time.time())


class Recorded:
    """Samples that are there, as prometheus-client collects them."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))

    def collect(self) -> Iterable[Metric]:
        return self.families


def scrapes(rounds: int) -> tuple[dict[str, float], int]:
    """CPU seconds a scrape, and how many samples the large one has."""
    profiles = {f"agent-{number}": profile_text(f"agent-{number}") for number in range(AGENTS)}
    text = metrics_text(crawl(profiles))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Recorded(text))  # type: ignore[arg-type]
    one, meter = crawl({"a": profile_text("a")}).agents[0].profile, Meter()
    assert one is not None

    def of_one(turn: int) -> None:
        page, own = Exposition(), labels_of("bench", "a")
        put_profile(page, own, one)
        put_state(page, own, "crawling")
        put_group(page, own, GroupFacts(True, True, 0))
        meter.put(page, own)
        page.text()

    ways = {
        f"{AGENTS} agents": lambda turn: metrics_text(crawl(profiles)),
        "the same, text alone, by prometheus-client": lambda turn: generate_latest(registry),
        "one agent": of_one,
    }
    return take_turns(ways, 1, rounds), sum(1 for line in text.splitlines() if not line.startswith("#"))


def loads(rounds: int) -> float:
    """CPU seconds that the meter adds to a load."""

    async def carry(request: object, download: object) -> object:
        return download

    async def make(one: Any) -> None:
        for _ in range(LOADS):
            await one(None, None)

    metered = Meter().load(carry)
    ways = {"bare": lambda turn: asyncio.run(make(carry)), "metered": lambda turn: asyncio.run(make(metered))}
    found = take_turns(ways, LOADS, rounds)
    return found["metered"] - found["bare"]


def asked(stop: threading.Event) -> None:
    """Ask the agent until it is to stop."""
    while True:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30).read()
        if stop.wait(INTERVAL):
            return


def one(args: argparse.Namespace, metrics: bool) -> dict[str, float]:
    """What a page has cost in one crawl."""
    more = {"UBI_METRICS": f"127.0.0.1:{PORT}"} if metrics else {}
    system, stop = System(1, {**METHOD, **AGENT, **SHORT, **more}, "UBI_REDIS_URL", "short"), threading.Event()
    with Stage(300, 100_000, 0.0, None) as stage:
        start(stage, system)
        reach(stage, args.warm)
        asks = threading.Thread(target=asked, args=[stop])
        if metrics:
            asks.start()
        before = snapshot(stage)
        reach(stage, before["served"]["pages"] + args.pages)
        found = per_page(before, snapshot(stage))
        stop.set()
    return found


def crawls(args: argparse.Namespace) -> list[float]:
    """Milliseconds of CPU a page that UBI_METRICS adds, of each pair."""
    added = []
    for turn in range(args.pairs):
        pair = {metrics: one(args, metrics) for metrics in ((False, True), (True, False))[turn % 2]}
        added.append(pair[True]["cpu_ms"] - pair[False]["cpu_ms"])
        bare, rate = pair[False]["cpu_ms"], pair[False]["pages_per_second"]
        print(f"pair {turn + 1}: {bare:.3f} ms a page at {rate:.0f}/s, {added[-1]:+.4f} ms with metrics", flush=True)
    return added


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds, of which the median counts (%(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of crawls (%(default)s)")
    parser.add_argument("--pages", type=int, default=2000, help="pages of a crawl that count (%(default)s)")
    parser.add_argument("--warm", type=int, default=300, help="pages before them (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    found, samples = scrapes(args.rounds)
    rows = {name: [f"{value * 1e3:.2f}"] for name, value in found.items()}
    table(f"a scrape ({samples} samples of {AGENTS} agents)", ["ms CPU"], rows)
    load = loads(args.rounds)
    table("the meter around a load", ["ms CPU"], {"added": [f"{load * 1e3:.5f}"]})
    added = crawls(args) if args.pairs else []
    if added:
        table("a page of a crawl", ["ms CPU"], {"added by UBI_METRICS": [f"{statistics.median(added):+.4f}"]})
    save(args.json, {"scrape_seconds": found, "load_seconds": load, "crawl_ms_added": added})


if __name__ == "__main__":
    main()
