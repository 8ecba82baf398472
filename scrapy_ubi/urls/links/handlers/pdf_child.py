"""The parent's end of the child that reads PDF: what the loop awaits (`PdfQueue`), and what starts the child, asks it,
kills it (`PdfChild`).

Rules of this module:

* Nothing waits in the loop's thread: a thread of its own talks with the child. Thread and child begin with the first
  PDF.
* PDFs are read in their order. Beyond `MOST_WAITING` of them the next one is refused, so that what waits is bounded;
  Scrapy takes no further responses long before.
* `PdfChild.read` blocks: it is called in that thread, one call at a time; `close` may be called by any.
* What the child says is data of the web. A frame that is too long, late or malformed costs the child, and this PDF
  only: the next one has another child.
* The child is spawned, not forked: it shares no memory, lock or file with the crawl but two pipes. It ends when they
  are closed, so also when this process is killed; and the signals of the terminal do not reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import Malformed, is_text, json_object
from scrapy_ubi.urls.links.handlers.bounds import MOST_URL

MOST_BYTES = 32_000_000  # of a PDF
SECONDS = 2.9  # for a PDF, by the clock: then the child is killed. It ends itself after 2
START_SECONDS = 30.0  # for a child to be ready, which imports pypdf: a busy machine takes a second
MOST_ANSWER = 5_000_000  # bytes: a million characters of links, and what is around them
WORKER = Path(__file__).with_name("pdf_worker.py")
COMMAND = (sys.executable, "-P", str(WORKER))

_LENGTH = struct.Struct(">I")
_REASONS = ("time", "memory", "malformed", "encrypted", "links", "pages", "annotations")


class PdfAnswer(NamedTuple):
    """The links of a PDF; `cut`: why there may be more; `refused`: why there are none. Reasons are one word."""

    links: Sequence[str] = ()
    cut: str | None = None
    refused: str | None = None


class ChildGone(Exception):
    """The child is of no further use: `args[0]` is the reason."""


class DocumentChild:
    """One child at a time that reads documents, started when it is needed. `command`: what is run; `seconds`: for each
    document."""

    def __init__(self, command: Sequence[str], seconds: float = SECONDS) -> None:
        self._command = command
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False  # whether the child has said so, and has been given no PDF since
        self._closed = False
        self._lock = threading.Lock()  # of the two above
        self.started = 0

    @property
    def pid(self) -> int | None:
        """That of the child, None where there is none."""
        return self._process.pid if self._process is not None else None

    def ask(self, body: bytes) -> bytes:
        """What the child answers. Raises ChildGone, after which the next question has another child. Takes as long as
        the child may, and the time to start one."""
        try:
            process = self._running()
            self._ready = False
            end = time.monotonic() + self._seconds
            self._write(process, _LENGTH.pack(len(body)), end)
            self._write(process, body, end)
            return self._frame(process, end)
        except ChildGone:
            self.end()
            raise

    def close(self) -> None:
        """End the child, and start no other one. A `read` under way comes back at once."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def prepare(self) -> None:
        """Wait for a child that is ready, so that the next PDF need not; in the thread of `read`."""
        try:
            self._running()
        except ChildGone:
            self.end()

    def end(self) -> None:
        """Kill the child, and take it from the table of processes; in the thread of `read`."""
        with self._lock:
            process = self._process
            self._process = None
        self._ready = False
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            try:
                return self._prepared(self._process)
            except ChildGone:  # it held too much memory, and has ended
                self.end()
        with self._lock:
            if self._closed:
                raise ChildGone("closed")
            try:
                self._process = process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError:
                raise ChildGone("unstarted") from None
        self.started += 1
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdin.fileno(), False)
        os.set_blocking(process.stdout.fileno(), False)
        try:
            return self._prepared(process)
        except ChildGone:
            raise ChildGone("closed" if self._closed else "unstarted") from None

    def _prepared(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """A child that is ready. Raises ChildGone."""
        if not self._ready:
            self._frame(process, time.monotonic() + START_SECONDS)
            self._ready = True
        return process

    def _write(self, process: subprocess.Popen[bytes], data: bytes, end: float) -> None:
        assert process.stdin is not None
        rest = memoryview(data)
        while rest:
            _wait(process.stdin.fileno(), select.POLLOUT, end)
            try:
                rest = rest[os.write(process.stdin.fileno(), rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise ChildGone("died") from None

    def _frame(self, process: subprocess.Popen[bytes], end: float) -> bytes:
        length = int(_LENGTH.unpack(self._exactly(process, _LENGTH.size, end))[0])
        if length > MOST_ANSWER:
            raise ChildGone("died")
        return self._exactly(process, length, end)

    def _exactly(self, process: subprocess.Popen[bytes], count: int, end: float) -> bytes:
        assert process.stdout is not None
        data = bytearray()
        while len(data) < count:
            _wait(process.stdout.fileno(), select.POLLIN, end)
            try:
                part = os.read(process.stdout.fileno(), count - len(data))
            except BlockingIOError:
                continue
            if not part:
                raise ChildGone("closed" if self._closed else "died")
            data += part
        return bytes(data)


class PdfChild(DocumentChild):
    """The child that reads links of PDF."""

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> None:
        super().__init__(command, seconds)

    def read(self, body: bytes) -> PdfAnswer:
        """The links of a PDF. Nothing is raised; takes as long as the child may, and the time to start one."""
        if len(body) > MOST_BYTES:
            return PdfAnswer(refused="bytes")
        try:
            return PdfAnswer(**_checked(self.ask(body)))
        except ChildGone as gone:
            self.end()
            return PdfAnswer(refused=str(gone.args[0]))


def _wait(file: int, what: int, end: float) -> None:
    """Wait until a pipe can be read or written. Raises ChildGone when the time is over."""
    poll = select.poll()
    poll.register(file, what)
    while not poll.poll(max(0.0, end - time.monotonic()) * 1000):
        if time.monotonic() >= end:
            raise ChildGone("time")


def _checked(frame: bytes) -> dict[str, Any]:
    """The answer of a child, as it should be. Raises ChildGone."""
    try:
        said = json_object(frame)
    except Malformed:
        raise ChildGone("died") from None
    links = said.get("links")
    reasons = {name: said.get(name) for name in ("cut", "refused")}
    if not isinstance(links, list) or not all(is_text(link, MOST_URL) for link in links):
        raise ChildGone("died")
    if any(reason is not None and reason not in _REASONS for reason in reasons.values()):
        raise ChildGone("died")
    return {"links": links, **reasons}


MOST_WAITING = 1_000


class PdfQueue:
    """The PDFs of one crawl."""

    def __init__(self, child: PdfChild | None = None) -> None:
        self.child = child or PdfChild()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ubi-pdf")
        self._waiting = 0
        self._closed = False

    async def read(self, body: bytes) -> PdfAnswer:
        """The links of a PDF, when its turn has come. Raises nothing of its own."""
        if self._closed:
            return PdfAnswer(refused="closed")
        if self._waiting >= MOST_WAITING:
            return PdfAnswer(refused="queue")
        self._waiting += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._thread, self.child.read, body)
        finally:
            self._waiting -= 1
        if not self._closed:
            self._thread.submit(self.child.prepare)
        return answer

    def close(self) -> None:
        """The crawl has ended: end the child. Returns at once; what still waits is refused."""
        if not self._closed:
            self._closed = True
            self.child.close()
            self._thread.submit(self.child.end)
            self._thread.shutdown(wait=False)
