#!/usr/bin/env python3
"""`make demo`: agents as real `scrapy crawl` processes of 03_broad crawl the demo web, live, and are judged by it.

    python example_project/demo/run.py --agents 3 --hosts 60 --pages 1500 --seed 1 --latency 20

Starts an embedded Valkey and the demo web, then the agents, each with a directory and a log of its own; shows a table
while they work; kills one of them on the way, and starts another (faults.py; not with --no-faults); ends by itself with
the crawl's report and the web's verdict. Exit status: 0 when every check of the verdict holds, 1 when not, 130 after
Ctrl-C. Whatever happens, no process is left running.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis

from demo import verdict
from demo.faults import Faults
from demo.graph import Graph
from demo.servers import Servers, let_signals_interrupt
from demo.web import add_graph_options, ask
from scrapy_ubi.cli.monitor import render_status
from scrapy_ubi.cli.monitor.screen import Screen
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status

PROJECT = Path(__file__).resolve().parents[1] / "03_broad"
SPIDER = "hosts"
SEEDS = tuple(
    f"http://{name}.example/" for name in ("alder", "birch", "cedar", "dune", "elm", "fjord")
)  # its start_urls
MIN_HOSTS = 7  # the web that has all seeds
CRAWL = "demo"
LOOK_EVERY = 0.5  # seconds between two pictures
STEP = 0.1  # seconds between two looks at how far the crawl is
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEAVE_WITHIN = 8.0  # seconds the agents get after Ctrl-C or the limit
# An agent that was killed is missed after the failure time-out: a demo need not wait as long as by default. Nor need
# the first agents wait before they fetch: the Valkey was just started for them, so no other agent can be at work.
HASTE = {
    "UBI_HEARTBEAT_INTERVAL": "0.5",
    "UBI_LEASE_TIMEOUT": "3",
    "UBI_FAILURE_TIMEOUT": "5",
    "UBI_START_WAIT": "0",
}
TAIL = 15  # lines shown of the log of an agent that failed


class Agents:
    """The crawl's processes. Each is a session of its own, so that Ctrl-C reaches the runner alone."""

    def __init__(self, names: list[str], directory: Path) -> None:
        self.names = names
        self.killed: set[str] = set()
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ended_by_us: set[str] = set()

    def log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def directories(self) -> list[Path]:
        """Of all agents that have run, those killed as well."""
        return [path for name in self.names if (path := self._directory / name).exists()]

    def start(self, name: str, servers: Servers) -> None:
        """An ordinary `scrapy crawl` whose UBI_* settings say where and who it is."""
        if name not in self.names:
            self.names.append(name)
        settings = {
            "UBI_REDIS_URL": servers.redis_url,
            "UBI_CRAWL": CRAWL,
            "UBI_AGENT_ID": name,
            "UBI_DIR": str(self._directory / name),
            "UBI_STORES": "items",
            "USER_AGENT": name,  # the web's log tells the agents apart by it
            **HASTE,
        }
        command = [sys.executable, "-m", "scrapy", "crawl", SPIDER]
        for key, value in settings.items():
            command += ["-s", f"{key}={value}"]
        environment = os.environ | {"http_proxy": servers.proxy, "no_proxy": "", "NO_PROXY": ""}
        with self.log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, cwd=PROJECT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """SIGKILL, as by a power cut."""
        self._processes[name].kill()
        self._processes[name].wait()
        self.killed.add(name)

    def working(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.poll() is None]

    def wait(self, seconds: float) -> None:
        """Up to so many seconds, less when all have ended."""
        limit = time.monotonic() + seconds
        while self.working() and time.monotonic() < limit:
            time.sleep(min(0.1, seconds))

    def exits(self) -> dict[str, int | None]:
        """Exit statuses of all that were not killed; None for one that was ended from here, or never started."""
        found = {name: process.poll() for name, process in self._processes.items()}
        names = [name for name in self.names if name not in self.killed]
        return {name: None if name in self._ended_by_us else found.get(name) for name in names}

    def end(self) -> None:
        """Ask all that still work to leave, wait a little, kill the rest."""
        self._ended_by_us.update(self.working())
        for name in self.working():
            self._processes[name].terminate()
        self.wait(LEAVE_WITHIN)
        for name in self.working():
            self._processes[name].kill()
        for process in self._processes.values():
            process.wait()


class Demo:
    """One run: the servers, the agents, and what is shown of them."""

    def __init__(self, options: argparse.Namespace, directory: Path, screen: Screen) -> None:
        self.options = options
        self.screen = screen
        self.graph = Graph(options.seed, options.hosts, options.pages)
        self.truth = self.graph.reachable(SEEDS)
        self._items = directory / "items.jsonl"
        self.servers = Servers(options, log=directory / "web.log")
        names = [f"a{i + 1}" for i in range(options.agents)]
        self.agents = Agents(names, directory)
        self.faults: Faults | None = None
        self._status: CrawlStatus | None = None
        self._begun = 0.0
        if options.faults and options.agents > 1:
            newcomer = f"a{options.agents + 1}"
            self.faults = Faults(self, len(self.truth), names[1], newcomer, HASTE["UBI_FAILURE_TIMEOUT"])

    def run(self) -> bool:
        """Whether the verdict holds."""
        o = self.options
        self.screen.say(
            f"{o.agents} agents crawl {len(self.truth):,} pages (redirects and dead links counted) of {o.hosts} hosts",
            f"on this machine. Each answer takes about {o.latency:g} ms.",
            *([self.faults.announce()] if self.faults is not None else []),
            "",
        )
        with self.servers:
            try:
                for name in self.agents.names:
                    self.agents.start(name, self.servers)
                self._begun = time.monotonic()
                in_time = self._watch()
            finally:
                with _unhurried():
                    self.agents.end()
            if not in_time:
                self.screen.say(f"The limit of {o.limit:g} seconds has passed: the agents were told to leave.")
            self._explain_failures()
            self._report()
            return self._verdict()

    def _watch(self) -> bool:
        """Show the crawl until every agent has ended; False when the limit has passed before."""
        pictured = 0.0
        with redis.Redis(port=self.servers.redis_port) as client:
            while self.agents.working():
                now = time.monotonic()
                if now - self._begun > self.options.limit:
                    return False
                if now - pictured >= LOOK_EVERY:
                    pictured = now
                    self._picture(client, now)
                elif self.faults is not None and self._status is not None:
                    if self.faults.waiting:
                        self._look(client)
                    self.faults.act(ask(self.servers.web_port, "fetched"), self._status, now)
                self.agents.wait(STEP)
            self._picture(client, time.monotonic(), last=True)
        return True

    def _look(self, client: redis.Redis) -> str:
        """Read the crawl's state; what is wrong when that cannot be."""
        try:
            self._status = read_status(client, CRAWL)
        except redis.RedisError as error:
            return f"Valkey does not answer: {error}"
        if self.faults is not None:
            self.faults.follow(self._status, time.monotonic())
        return ""

    def _picture(self, client: redis.Redis, now: float, last: bool = False) -> None:
        trouble = self._look(client)
        if trouble or self._status is None:
            lines = [trouble]
        else:
            lines = render_status.live(self._status) if self._status.exists else ["The agents start."]
        fetched = ask(self.servers.web_port, "fetched")
        progress = f"{now - self._begun:4.0f} s   {fetched:,} of {len(self.truth):,} pages"
        self.screen.show([*lines, "", progress], now, last)

    # What the faults need (faults.Stage)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self.agents.kill(name)

    def start(self, name: str) -> None:
        """One agent more."""
        self.agents.start(name, self.servers)

    def log(self) -> list[dict[str, Any]]:
        """The web's."""
        found: list[dict[str, Any]] = ask(self.servers.web_port, "log")
        return found

    def tell(self, line: str) -> None:
        """A line that stays on the screen, with the time."""
        self.screen.tell(f"{time.monotonic() - self._begun:4.0f} s   {line}")

    def _explain_failures(self) -> None:
        for name, status in self.agents.exits().items():
            if status:
                text = self.agents.log(name).read_text(errors="replace").splitlines()[-TAIL:]
                self.screen.say("", f"{name} ended with exit status {status}; its log ends:", *text)

    def _report(self) -> None:
        """What `scrapy ubi report` says, as a user would ask for it."""
        command = ["scrapy", "ubi", "report", "--crawl", CRAWL, "--redis-url", self.servers.redis_url]
        self.screen.say(f"$ {' '.join(command)}")
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
        )
        self.screen.say((done.stdout + done.stderr).rstrip(), "")
        for name in sorted(self.agents.killed):
            self.screen.say(f"What {name} did after its last figures, before the kill, is missing above.", "")

    def _collect(self) -> Counter[str]:
        """The items of all agents, as a user would ask for them: how many there are of each URL."""
        self.screen.say("$ scrapy ubi collect items -o items.jsonl")
        dirs = [part for path in self.agents.directories() for part in ("--dir", str(path))]
        command = [sys.executable, "-m", "scrapy", "ubi", "collect", "items", "-o", str(self._items), *dirs]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
        self.screen.say((done.stdout + done.stderr).replace(str(self._items), "items.jsonl").rstrip(), "")
        if done.returncode:
            return Counter()
        return Counter(json.loads(line)["url"] for line in self._items.read_text().splitlines())

    def _verdict(self) -> bool:
        items = self._collect()
        stats, visits = ask(self.servers.web_port, "stats"), ask(self.servers.web_port, "visits")
        kill = None
        if self.faults is not None and self.faults.killed_at is not None:
            kill = verdict.Kill(self.faults.victim, self.faults.killed_at)
        log = self.log()
        checks = verdict.judge(self.truth, visits, stats, self.agents.exits(), log, kill)
        checks.insert(-1, verdict.of_items(log, items))
        notes = dict.fromkeys(self.agents.killed, " (killed)")
        if self.faults is not None and self.faults.started_at is not None:
            notes[self.faults.newcomer] = " (came later)"
        shares = ", ".join(f"{name} {pages:,}{notes.get(name, '')}" for name, pages in stats["agents"].items())
        by = f"        fetched by {shares or 'no agent'}"
        self.screen.say("What the web itself saw:", *verdict.lines(checks), by)
        return all(check.holds for check in checks)


@contextmanager
def _unhurried() -> Iterator[None]:
    """Ctrl-C once more must not stop the clearing up half way; that takes a few seconds at most."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make demo",
        description="Agents crawl a little web of their own, live, on this machine; one is killed, another joins.",
    )
    parser.add_argument("--agents", type=int, default=3, metavar="N", help="crawl processes (default: 3)")
    parser.add_argument(
        "--no-faults",
        dest="faults",
        action="store_false",
        help="kill no agent on the way, and start none (so it is with one agent)",
    )
    add_graph_options(parser, pages=2400)
    parser.add_argument("--latency", type=float, default=20, metavar="MS", help="of the web, mean (default: 20)")
    parser.add_argument("--limit", type=float, default=300, metavar="S", help="give up after S seconds (default: 300)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep logs, items and agents' directories here")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = _options()
    options = parser.parse_args(arguments)
    if options.agents < 1 or options.hosts < MIN_HOSTS or options.pages < options.hosts:
        parser.error(f"at least 1 agent, {MIN_HOSTS} hosts, and as many pages as hosts")
    directory = options.keep or Path(tempfile.mkdtemp(prefix="ubi-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    let_signals_interrupt()
    screen = Screen(sys.stdout)
    try:
        good = Demo(options, directory.resolve(), screen).run()
    except RuntimeError as error:  # a server did not start; its sentence says why
        screen.say(str(error))
        return 1
    except KeyboardInterrupt:
        screen.say("", "Stopped; nothing is left running.")
        if options.keep is None:
            shutil.rmtree(directory, ignore_errors=True)
        return 130
    if good and options.keep is None:
        shutil.rmtree(directory)
    else:
        screen.say("", f"Logs, items and the agents' directories: {directory}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
