"""`python -m scrapy ...` in a process that has its imports already: a fork of one that waits for orders.

An agent takes about a second of processor time to come to its own settings, nearly all of it for the import of Scrapy
and Twisted; the suite starts hundreds. `start` gives a process of its own with its own directory, environment, output,
session and exit status, which ends as any Python process does; only its imports were made before it was born.

Rules of this module:

* What is imported beforehand is what every `scrapy crawl` of an agent imports anyway, and never a reactor: which one
  is installed, and when, is for the process to say. No thread is started and no file is opened before the fork.
* A test of how processes start (what is imported when, memory, the first line of output) starts them with
  `subprocess` (`fresh=True` where helpers take it). With FRESH_PROCESSES=1 in the environment all tests do.
* The waiting process ends with the test session, at the end of its socket.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
MOST = 200_000  # bytes of an order: arguments and environment
FRESH = "FRESH_PROCESSES"

# What an agent's process imports until its spider is open, found by sys.modules of one.
MODULES = (
    *(f"scrapy.commands.{name}" for name in ("bench", "check", "crawl", "edit", "fetch", "genspider", "list", "parse")),
    *(f"scrapy.commands.{name}" for name in ("runspider", "settings", "shell", "startproject", "version", "view")),
    *(f"scrapy.extensions.{name}" for name in ("feedexport", "logstats", "memdebug", "memusage", "telnet", "throttle")),
    "aiohttp.web",
    "cProfile",
    "scrapy.cmdline",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.core.engine",
    "scrapy.downloadermiddlewares.httpproxy",
    "scrapy.exporters",
    "scrapy.extensions.remote_control",
    "scrapy.linkextractors",
    "scrapy_ubi.addon.turn_on",
    "scrapy_ubi.cli.commands.ubi",
    "scrapy_ubi.adapter.components.scheduler",
    "scrapy_ubi.fast.one_task",
    "scrapy_ubi.adapter.process.process_start",
)


class Running(Protocol):
    """A process that a test has started: what tests use of `subprocess.Popen[str]`."""

    pid: int
    returncode: int | None
    stdout: IO[str] | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def communicate(self, timeout: float | None = None) -> tuple[str, str]: ...

    def __enter__(self) -> Running: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Forked:
    """A process that was forked for us. Its exit status comes by `status`, from the process that waits for it."""

    def __init__(self, args: Sequence[str], status: socket.socket, stdout: IO[str] | None) -> None:
        self.args = args
        self.stdout = stdout
        self.returncode: int | None = None
        self._status = status
        self.pid = int(self._said(None))

    def _said(self, timeout: float | None) -> bytes:
        """The next word; b"" when none has come in that time (s; None: however long it takes)."""
        if not select.select([self._status], [], [], timeout)[0]:
            return b""
        if not (said := self._status.recv(32)):
            raise RuntimeError(f"the process that forks for the tests has gone: {self.args}")
        return said

    def poll(self) -> int | None:
        """The exit status, as `subprocess` has it; None while it runs."""
        if self.returncode is None and (said := self._said(0)):
            self._end(said)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, when it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not (said := self._said(timeout)):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            self._end(said)
        assert self.returncode is not None
        return self.returncode

    def _end(self, said: bytes) -> None:
        self.returncode = int(said)
        self._status.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:  # it has just ended
                pass

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it still says, and "", when it has ended. Raises subprocess.TimeoutExpired."""
        said = [""]
        if self.stdout is not None and not self.stdout.closed:
            stream = self.stdout
            reader = threading.Thread(target=lambda: said.append(stream.read()), name="reader", daemon=True)
            reader.start()
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            stream.close()
        self.wait(timeout)
        return said[-1], ""

    def __enter__(self) -> Forked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stdout is not None:
            self.stdout.close()
        self.wait()


def start(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    start_new_session: bool = False,
    fresh: bool = False,
    script: str = "",
) -> Running:
    """`python -m scrapy` with these arguments, or `python -c` with this `script` and them. Its output goes to the file
    `stdout`, or, where there is none, is read from the process, as text; errors go to the file `stderr`, or to where
    the output goes.
    """
    if fresh or os.environ.get(FRESH) == "1" or _pythons(env) != _pythons(os.environ):
        return subprocess.Popen(
            [sys.executable, *(("-c", script) if script else ("-m", "scrapy")), *arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout or subprocess.PIPE,
            stderr=stderr or subprocess.STDOUT,
            start_new_session=start_new_session,
            text=True,
        )
    read, write = (None, os.dup(stdout.fileno())) if stdout is not None else os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = {"arguments": [*arguments], "cwd": str(cwd), "env": dict(env)}
    order |= {"session": start_new_session, "script": script}
    with theirs:
        errors = write if stderr is None else stderr.fileno()
        socket.send_fds(_forker(), [json.dumps(order).encode()], [theirs.fileno(), write, errors])
    os.close(write)
    return Forked(["scrapy", *arguments], ours, None if read is None else open(read))


def _pythons(env: Mapping[str, str]) -> dict[str, str]:
    """What Python reads of an environment when it starts: who wants something else is not forked."""
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


def run(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float, script: str = ""
) -> subprocess.CompletedProcess[str]:
    """What `start` starts, to its end. Raises subprocess.TimeoutExpired."""
    with (
        tempfile.TemporaryFile() as errors,
        start(arguments, cwd=cwd, env=env, stderr=errors, script=script) as process,
    ):
        try:
            output, _ = process.communicate(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        errors.seek(0)
        return subprocess.CompletedProcess([*arguments], process.wait(), output, errors.read().decode())


@cache
def _forker() -> socket.socket:
    """Where orders go to. The process that takes them is started when it is first asked for."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.preloaded", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# -- the process that waits for orders ---------------------------------------------------------------------------------


def _serve(orders: socket.socket) -> None:
    """Fork for each order until there are no more. Returns in the process that was asked for, too."""
    for name in MODULES:
        with contextlib.suppress(ImportError):  # an older Scrapy has not all of them
            __import__(name)
    assert "twisted.internet.reactor" not in sys.modules and threading.active_count() == 1
    gc.collect()
    gc.freeze()  # else a process looks through all of it, and so copies it, when it ends: most of its time
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing is kept of keepers that have ended
    while True:
        order, fds, _, _ = socket.recv_fds(orders, MOST, 3)
        if not order:
            return
        if os.fork() == 0:
            orders.close()
            _keep(socket.socket(fileno=fds[0]), fds[1:], **json.loads(order))
            return
        for fd in fds:
            os.close(fd)


def _keep(status: socket.socket, outputs: list[int], session: bool, cwd: str, env: dict[str, str], **what: Any) -> None:
    """Fork once more: one is the process that was asked for, and returns when it has done its work; the other tells
    its number and its exit status, and does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if (pid := os.fork()) != 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for that process
        for fd in outputs:
            os.close(fd)
        status.send(str(pid).encode())
        status.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    status.close()
    if session:
        os.setsid()
    for number, fd in enumerate(outputs, 1):
        os.dup2(fd, number)
        os.close(fd)
    # The objects of this process were made for the null device.
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115 - for as long as it lives
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = cwd
    _run(**what)


def _run(arguments: list[str], script: str) -> None:
    """What `python -c` with that script does, or `python -m scrapy`."""
    from scrapy_ubi.adapter.process import process_start
    from scrapy_ubi.ground import clock

    process_start.IMPORTED = clock.now()  # the process is as young as it would be
    sys.argv = ["-c" if script else "scrapy", *arguments]
    if script:
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(script, "<string>", "exec"), vars(main))  # noqa: S102 - the test's own
    else:
        runpy.run_module("scrapy", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    try:
        _serve(socket.socket(fileno=int(sys.argv[1])))
    except KeyboardInterrupt:  # of a process that was forked as well, which has said what it had to
        sys.exit(130)
