"""One run on the testbed: its servers, a Redis, one crawler; started, measured, ended. Linux only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import namespace
import redis
from net_systems import System
from population import ZONE
from processes import cpu_seconds, free_port, memory_mb, redis_command, wait_for_redis

HERE = Path(__file__).resolve().parent
LIMIT = 300.0  # s without the pages wanted: something is wrong
STARTS_WITHIN = 120.0


class Stage:
    """The servers and one crawler, as a context manager; all of it is gone afterwards."""

    def __init__(self, args: Namespace, system: System, healthy: bool) -> None:
        self._args, self._system, self._healthy = args, system, healthy
        self._processes: list[subprocess.Popen[Any]] = []

    def __enter__(self) -> Stage:
        self.directory = Path(tempfile.mkdtemp(prefix="ubi-net-"))
        try:
            self._start_servers()
            self._start_redis()
            self.crawler = self._start_crawler()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate() if process is self._processes[0] else process.kill()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._args.keep_logs:
            shutil.copytree(self.directory, self._args.keep_logs / self.directory.name, ignore=_not_logs)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self, command: list[str], core: int, **more: Any) -> subprocess.Popen[Any]:
        pin = ["taskset", "-c", str(core)] if self._args.pin else []
        process = subprocess.Popen([*pin, *command], **more)
        self._processes.append(process)
        return process

    def _start_servers(self) -> None:
        args, inside = self._args, namespace.is_inside()
        usual = 80 if args.plain else 443
        self._port = usual if inside else free_port()
        self.dns = f"{namespace.DNS}:53" if inside else f"127.0.0.1:{free_port()}"
        given = ["--hosts", "--pages", "--seed", "--scale"]
        options = [text for name in given for text in (name, str(getattr(args, name[2:])))]
        options += ["--plain"] * args.plain + ["--healthy"] * self._healthy
        self.servers = self._start(
            [
                sys.executable, str(HERE / "serve.py"), str(self.directory), "--port", str(self._port),
                "--dns", self.dns, "--processes", str(args.web_processes), *options,
            ],
            1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.servers.stdout is not None
        if not (line := self.servers.stdout.readline()):
            raise RuntimeError("the servers of the testbed did not start")
        self._server_pids = json.loads(line)["ready"]

    def _start_redis(self) -> None:
        if not self._system.redis:
            return
        self._redis_port = free_port()
        self._start(redis_command(self._redis_port, self.directory), 1, stdout=subprocess.DEVNULL)
        wait_for_redis(redis.Redis(port=self._redis_port))

    @property
    def url(self) -> str:
        """The home page of a host, with %05d for its number."""
        scheme, usual = ("http", 80) if self._args.plain else ("https", 443)
        after = "" if self._port == usual else f":{self._port}"
        return f"{scheme}://h%05d.{ZONE.decode()}{after}/"

    def _start_crawler(self) -> subprocess.Popen[Any]:
        system, args = self._system, self._args
        if system.crawlee:
            walk = [str(HERE / "crawlee_walk.py"), self.url, str(args.seeds), str(system.concurrency)]
            command = [args.peers_python, *walk]
        else:
            # An exe of its own for peers: what they need may be installed elsewhere.
            python = sys.executable if system.is_ours or system.redis == "" else args.peers_python
            output = str(self.directory / "items.jsonl")
            command = [python, "-m", "scrapy", "crawl", system.spider, "-o", output]
            for name, value in self.settings().items():
                command += ["-s", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        with (self.directory / "crawl.log").open("wb") as log:
            return self._start(
                command, 0, cwd=HERE / "project", env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip

    def settings(self) -> Mapping[str, Any]:
        """Those of a crawl by Scrapy."""
        system, args = self._system, self._args
        found: dict[str, Any] = {
            **system.settings, "NET_SEEDS": args.seeds, "NET_URL": self.url,
            "NET_STATE": str(self.directory / "state.jsonl"),
        }  # fmt: skip
        if system.concurrency:
            found["CONCURRENT_REQUESTS"] = system.concurrency
        if system.redis:
            found[system.redis] = f"redis://127.0.0.1:{self._redis_port}/0"
        if system.is_ours:
            found |= {"UBI_AGENT_ID": "agent0", "UBI_DIR": str(self.directory / "agent0")}
            if args.dns_servers:
                found["UBI_DNS_SERVERS"] = self.dns
        if not namespace.is_inside() and not (system.is_ours and args.dns_servers):
            found |= {"DNS_RESOLVER": "netcrawl.names.Names", "NET_DNS": self.dns}
        return found | dict(args.set)

    # ------------------------------------------------------------------ what is measured

    def counts(self) -> dict[str, int]:
        """What the servers have counted so far."""
        self.check()
        assert self.servers.stdin is not None and self.servers.stdout is not None
        self.servers.stdin.write("\n")
        self.servers.stdin.flush()
        found: dict[str, int] = json.loads(self.servers.stdout.readline())
        return found

    def snapshot(self) -> dict[str, Any]:
        """Counts and processor times of this moment."""
        return {
            "counts": self.counts(),
            "cpu": cpu_seconds(self.crawler.pid),
            "web": sum(map(cpu_seconds, self._server_pids)),
            "at": time.monotonic(),
        }

    def reach(self, pages: int, until: float = float("inf")) -> None:
        """Wait until so many pages were served, or until that time."""
        limit = time.monotonic() + LIMIT
        while self.counts()["pages"] < pages and time.monotonic() < until:
            if time.monotonic() > limit:
                raise RuntimeError(f"only {self.counts()} within {LIMIT:.0f} s:\n{self.log()[-2000:]}")
            time.sleep(0.1)

    def check(self) -> None:
        """Raise RuntimeError with the end of its log when the crawl has ended."""
        if self.crawler.poll() is not None:
            raise RuntimeError(f"the crawl ended with {self.crawler.returncode}:\n{self.log()[-4000:]}")

    def log(self) -> str:
        return (self.directory / "crawl.log").read_text(errors="replace")

    def states(self, since: float, until: float) -> list[dict[str, Any]]:
        """What the crawler has noted of itself between two moments."""
        file = self.directory / "state.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        found = []
        for line in lines:
            try:
                state = json.loads(line)
            except ValueError:  # being written
                continue
            if since <= state["at"] <= until:
                found.append(state)
        return found

    def peak_mb(self) -> float:
        """The most resident memory of the crawler so far."""
        return memory_mb(self.crawler.pid)[1]


def _not_logs(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith((".log", "state.jsonl"))]
