"""What a Redis Cluster costs a crawl, beside a single server.

    python benchmarks/clustered.py [--rounds 3] [--pages 2000] [--together SECONDS] [--json FILE]

Two agents crawl a web of 200 hosts by way of a single Valkey, and of a cluster of three masters with a replica each, in
turn. A figure is of the pages after the first 300, of the middle round: pages a second, and milliseconds of the agents'
processors a page. The servers of the cluster share the machine with the agents: trust the ratio of the second.

With --together both crawls run at the same time, for so long, and the ratio of a round is that of the middle one. What
else the machine does falls on both alike: on a busy machine ratios in turn were from 0.87 to 1.27, so 0.99 to 1.05.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "example_project"))

from crawling import reach
from processes import Stage, cpu_seconds
from rounds import save, table
from systems import AGENT, METHOD, SEEDS

from tests.support.redis_groups import Cluster

HOSTS, FIRST, LATENCY = 200, 300, 5.0
AGENTS = 2
MANY = 50_000  # pages, more than any of two crawls comes to in the time given


def begin(stage: Stage, url: str, name: str) -> None:
    """Start the agents."""
    for number in range(AGENTS):
        own = {"UBI_AGENT_ID": f"agent{number}", "UBI_DIR": str(stage.directory / f"agent{number}")}
        given = {"BENCH_SEEDS": SEEDS, **METHOD, **AGENT, **own, "UBI_REDIS_URL": url, "UBI_CRAWL": name}
        stage.crawl(f"crawl{number}", given)


def crawl(url: str, name: str, pages: int) -> tuple[float, float]:
    """Pages a second, and ms of processor time a page, of a crawl of that name. `url`: "" for the stage's server."""
    with Stage(HOSTS, pages + 500, LATENCY, None) as stage:
        begin(stage, url or f"redis://127.0.0.1:{stage.redis_port}/0", name)
        reach(stage, FIRST)
        begun, spent, served = time.monotonic(), _spent(stage), stage.served()["pages"]
        reach(stage, pages)
        done = stage.served()["pages"] - served
        return done / (time.monotonic() - begun), 1000 * (_spent(stage) - spent) / done


def together(url: str, name: str, seconds: float) -> list[tuple[float, float]]:
    """The same of two crawls that run at once: by way of a server of its own, and of this cluster."""
    with Stage(HOSTS, MANY, LATENCY, None) as one, Stage(HOSTS, MANY, LATENCY, None) as other:
        stages = (one, other)
        for stage, address in zip(stages, (f"redis://127.0.0.1:{one.redis_port}/0", url), strict=True):
            begin(stage, address, name)
        for stage in stages:
            reach(stage, FIRST)
        before = [(stage.served()["pages"], _spent(stage)) for stage in stages]
        time.sleep(seconds)
        after = [(stage.served()["pages"], _spent(stage)) for stage in stages]
    pairs = zip(before, after, strict=True)
    return [((now - then) / seconds, 1000 * (end - start) / (now - then)) for (then, start), (now, end) in pairs]


def _spent(stage: Stage) -> float:
    return sum(cpu_seconds(agent.pid) for agent in stage.agents)


def main() -> None:
    rounds, pages, seconds, file = arguments()
    cluster = Cluster("valkey", masters=3, replicas=1)
    found: dict[str, list[tuple[float, float]]] = {"single": [], "cluster": []}
    try:
        urls = {"single": "", "cluster": cluster.start().url}
        for turn in range(rounds):
            if seconds:
                for way, figures in zip(urls, together(urls["cluster"], f"bench{turn}", seconds), strict=True):
                    found[way].append(figures)
                continue
            for way in sorted(urls, reverse=bool(turn % 2)):
                found[way].append(crawl(urls[way], f"bench{turn}", pages))
    finally:
        cluster.stop()
    middle = {way: [statistics.median(figures) for figures in zip(*rows, strict=True)] for way, rows in found.items()}
    rows = {way: [f"{speed:8.1f}", f"{cost:10.3f}"] for way, (speed, cost) in middle.items()}
    speed, cost = (middle["cluster"][at] / middle["single"][at] for at in range(2))
    if seconds:
        pairs = [*zip(found["cluster"], found["single"], strict=True)]
        speed, cost = (statistics.median(one[at] / other[at] for one, other in pairs) for at in range(2))
    rows["ratio"] = [f"{speed:8.2f}", f"{cost:10.2f}"]
    table("two agents", ["pages/s ", "ms CPU a page"], rows)
    save(file, {"rounds": found, "median": middle, "ratio": {"pages_per_second": speed, "cpu": cost}})


def arguments() -> tuple[int, int, float, str | None]:
    """Rounds, pages, seconds of both at once, and where the figures go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--together", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    return given.rounds, given.pages, given.together, given.json


if __name__ == "__main__":
    main()
