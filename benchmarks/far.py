"""Agents far from their Redis: pages a second, and how soon an agent fetches that is started again.

    python benchmarks/far.py [--agents 3] [--hosts 60] [--seconds 30] [--links 0:0,20:1,80:1,200:1] [--json FILE]

Agents crawl a web on this machine, whose hosts, not the processors, say how fast. Their Redis is at the other end of a
link (net/long_link.py) with such a round trip (ms) and such a loss (% of packets). `new`: pages a second of the first
twenty seconds, while most of the web is yet to be found; `pages/s`: of the seconds after that. Then an agent is killed
and started again at once, and another one is told to end, and started when it has: seconds from the start of the
process to its first page, and without what starting Python and Scrapy took. `twice`: pages that were fetched twice;
`bytes`: from and to Redis, a page.

Times of starts are those of this machine: compare them with the row without a link.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent), str(HERE / "net")]

import long_link  # noqa: E402
import redis  # noqa: E402
from processes import Stage, free_port, redis_command, wait_for_redis  # noqa: E402
from rounds import save, table  # noqa: E402

PAGES, SEEDS, LATENCY, DELAY = 200_000, 20, 5.0, 1.0
CRAWL = "far"
NEW = 20.0  # s
LIMIT = 180.0  # s in which something has to happen
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_ubi.Addon": 500},
    "UBI_CRAWL": CRAWL,
    "UBI_HOST_DELAY": DELAY,
    "UBI_FAST": True,
    "SPIDER_MODULES": "bench.short",
    "BENCH_SEEDS": SEEDS,
    "CONCURRENT_REQUESTS": 64,
}
OPENED, FIRST = re.compile(r"Spider opened"), re.compile(r"Crawled \(200\)")


class Far:
    """A crawl by way of a Redis at the other end of a link."""

    def __init__(self, stage: Stage, url: str, agents: int) -> None:
        self.stage, self.url = stage, url
        self.started = 0
        for number in range(agents):
            self.start(number)

    def start(self, number: int, **settings: str) -> Path:
        """Start an agent, again perhaps; its log."""
        self.started += 1
        own = {"UBI_AGENT_ID": f"agent{number}", "UBI_DIR": str(self.stage.directory / f"agent{number}")}
        name = f"crawl{self.started:02}"
        self.stage.crawl(name, {**SETTINGS, **own, "UBI_REDIS_URL": self.url, **settings}, spider="short")
        return self.stage.directory / f"{name}.log"

    def pages(self) -> int:
        return self.stage.served()["pages"]

    def twice(self) -> int:
        """Pages that were fetched more than once so far."""
        served = self.stage.served()
        return served["pages"] - served["unique"]

    def until(self, pages: int) -> None:
        end = time.monotonic() + LIMIT
        while self.pages() < pages:
            self.stage.check()
            if time.monotonic() > end:
                raise RuntimeError(f"only {self.pages()} of {pages} pages")
            time.sleep(0.05)

    def rate(self, seconds: float) -> float:
        """Pages a second from now on."""
        begun, before = time.monotonic(), self.pages()
        time.sleep(seconds)
        return (self.pages() - before) / (time.monotonic() - begun)

    def restart(self, number: int, how: signal.Signals) -> tuple[float, float]:
        """End an agent so, and start it again: seconds until its first page, from the start and from the moment at
        which Scrapy was ready."""
        process = self.stage.agents.pop(0)
        process.send_signal(how)
        process.wait(LIMIT)
        begun, log = time.monotonic(), self.start(number, LOG_LEVEL="DEBUG")
        opened = begun
        while not FIRST.search(text := log.read_text(errors="replace")):
            if opened == begun and OPENED.search(text):
                opened = time.monotonic()
            if time.monotonic() - begun > LIMIT:
                raise RuntimeError("an agent that was started again fetches nothing")
            time.sleep(0.1)
        return time.monotonic() - begun, time.monotonic() - opened


def measure(agents: int, hosts: int, seconds: float, link: long_link.LongLink, logs: str | None) -> dict[str, float]:
    """One crawl."""
    with Stage(hosts, PAGES, LATENCY, None, "scattered") as stage:
        port = free_port()
        command = redis_command(port, stage.directory)
        command[command.index("127.0.0.1")] = link.address
        server = subprocess.Popen([*link.inside, *command, "--protected-mode", "no"], stdout=subprocess.DEVNULL)
        try:
            client = redis.Redis(host=link.address, port=port)
            wait_for_redis(client)
            begun = time.monotonic()
            far = Far(stage, f"redis://{link.address}:{port}/0", agents)
            far.until(1)
            found: dict[str, float] = {"first": time.monotonic() - begun}
            found["new"] = far.rate(NEW)
            found["pages"] = far.rate(seconds)
            found["killed"], found["killed, ready"] = far.restart(0, signal.SIGKILL)
            found["twice, killed"] = far.twice()
            time.sleep(10)
            found["stopped"], found["stopped, ready"] = far.restart(1, signal.SIGTERM)
            time.sleep(5)
            found["twice"] = far.twice()
            found["bytes"] = client.info()["total_net_input_bytes"] + client.info()["total_net_output_bytes"]
            found["bytes"] /= far.pages()
            return found
        finally:
            server.kill()
            server.wait()
            if logs is not None:
                where = Path(logs) / f"{1000 * link.seconds:.0f}-{100 * link.loss:g}"
                shutil.rmtree(where, ignore_errors=True)
                where.mkdir(parents=True)
                for log in stage.directory.glob("*.log"):
                    shutil.copy(log, where)


def main() -> None:
    given = arguments()
    if not long_link.is_inside():
        long_link.enter()
        sys.exit("this benchmark needs network namespaces and tun devices (Linux, unshare, ip)")
    found: dict[str, dict[str, float]] = {}
    rows: dict[str, list[str]] = {}
    for one in given.links.split(","):
        milliseconds, loss = map(float, one.split(":"))
        with long_link.LongLink(milliseconds / 1000, loss / 100) as link:
            row = found[one] = measure(given.agents, given.hosts, given.seconds, link, given.logs)
        base = found[next(iter(found))]
        print(json.dumps({one: row}), file=sys.stderr, flush=True)
        rows[f"{milliseconds:g} ms, {loss:g} %"] = [
            f"{row['first']:.1f}",
            f"{row['new']:.0f}",
            f"{row['pages']:.0f}",
            f"{row['pages'] / base['pages']:.2f}",
            f"{row['killed']:.1f} ({row['killed, ready']:.1f})",
            f"{row['stopped']:.1f} ({row['stopped, ready']:.1f})",
            f"{row['twice']:.0f}",
            f"{row['bytes']:.0f}",
        ]
    columns = [
        "first page, s",
        "new, pages/s",
        "pages/s",
        "ratio",
        "after kill -9, s",
        "after SIGTERM, s",
        "twice",
        "bytes",
    ]
    table("round trip, loss", columns, rows)
    save(given.json, {"links": found})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=60, help="each gives a page a second at most (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--links", default="0:0,20:1,80:1,200:1", metavar="MS:%,...")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--logs", metavar="DIR", help="keep the agents' logs there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
