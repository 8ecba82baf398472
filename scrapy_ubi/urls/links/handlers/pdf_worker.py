"""The child that reads PDF: links of annotations, and URLs in the text of the first pages.

    python -P pdf_worker.py

It is run by path, and imports the standard library and pypdf only. Rules of this module:

* Frames: four bytes of length, the most significant first, and that many bytes. It says `{}` when it is ready; then it
  takes a PDF and answers in JSON, `{"links": [...], "cut": reason or null, "refused": reason or null}`; then it cleans
  up, and is ready again. When its standard input ends it ends, as its parent has.
* A PDF is hostile. Time ends the reading by a timer (`SECONDS`), memory by RLIMIT_AS, a loop in C by RLIMIT_CPU; the
  parent kills what does not answer. What was found before counts.
* Where much memory is still held after a PDF, this process ends, and the parent starts another one.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import re
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import urljoin

SECONDS = 2.0  # for a PDF
CPU_SECONDS = 4  # for a PDF, when the timer has had no effect; the kernel counts whole seconds
MEMORY = 600_000_000  # bytes of address space
HELD = 150_000_000  # resident bytes between two PDFs with which this process is ended; some 35 MB are usual
MOST_LINKS = 10_000
MOST_URL = 8_192
MOST_OUT = 1_000_000  # characters of all links together
MOST_PAGES = 5_000
MOST_ANNOTATIONS = 50_000
TEXT_PAGES = 20  # whose text is looked at

_urls = re.compile(r"https?://[^\s<>\"'()\[\]{}\\^`|\x00-\x1f\x7f]{1,8000}")
_LENGTH = struct.Struct(">I")


class Late(BaseException):
    """The time is over. No Exception: pypdf catches those of many kinds, and goes on."""


class Full(Exception):
    """A bound is met: `args[0]` is its name."""


class PdfUrls:
    """The links of one PDF, as far as it was read."""

    def __init__(self) -> None:
        self.links: dict[str, None] = {}
        self._size = 0

    def add(self, url: object) -> None:
        """Take a link, unless it is too long. Raises Full."""
        if isinstance(url, bytes):
            url = url.decode("utf-8", "replace")
        if not isinstance(url, str) or not 0 < len(url) <= MOST_URL or url in self.links:
            return
        if len(self.links) >= MOST_LINKS or self._size + len(url) > MOST_OUT:
            raise Full("links")
        self._size += len(url)
        self.links[str(url)] = None


def read(data: bytes, seconds: float = SECONDS) -> dict[str, Any]:
    """The answer for one PDF. Whatever its bytes, nothing is raised; needs the main thread."""
    found = PdfUrls()
    answer: dict[str, Any] = {"cut": None, "refused": None}
    try:
        with timer(seconds):
            cut = gather(data, found)
        answer["cut"] = cut
    except Full as full:
        answer["cut"] = full.args[0]
    except Late:
        answer.update(_ended("time", found))
    except MemoryError:
        answer.update(_ended("memory", found))
    except Exception as error:  # noqa: BLE001 - of pypdf, about bytes of the web
        encrypted = type(error).__name__ in ("FileNotDecryptedError", "WrongPasswordError", "DependencyError")
        answer.update(_ended("encrypted" if encrypted else "malformed", found))
    answer["links"] = list(found.links)
    return answer


def _ended(reason: str, found: PdfUrls) -> dict[str, str]:
    """What found something was cut, what found nothing was refused."""
    return {"cut" if found.links else "refused": reason}


@contextlib.contextmanager
def timer(seconds: float) -> Iterator[None]:
    """Raise Late when the time is over, again and again, as something may have caught it."""
    running = True

    def late(*_: object) -> None:
        if running:
            raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
    try:
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def gather(data: bytes, found: PdfUrls) -> str | None:
    """Annotations of all pages first: they are exact, and cheap. Returns the bound that was met, if one was."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted:
        reader.decrypt("")
    base = _base(reader)
    pages = reader.pages
    left = MOST_ANNOTATIONS
    for number, page in enumerate(pages):
        if number >= MOST_PAGES:
            return "pages"
        for uri in _uris(page):
            found.add(_absolute(uri, base))
            left -= 1
            if left <= 0:
                return "annotations"
    for page in pages[:TEXT_PAGES]:
        for url in _urls_in(page):
            found.add(url)
    return None


def _absolute(uri: str, base: str) -> str:
    """An address as it is meant: people write `www.example.com`, and documents may have a base."""
    if uri[:4].lower() == "www.":
        return f"http://{uri}"
    try:
        return urljoin(base, uri) if base else uri
    except ValueError:
        return uri


def _base(reader: Any) -> str:
    """What relative links of the document are joined to, where it says that."""
    try:
        said = reader.root_object["/URI"]["/Base"]
        return str(said) if len(said) <= 1000 else ""
    except Exception:  # noqa: BLE001 - it mostly is not there; of hostile ones, anything
        return ""


def _uris(page: Any) -> Iterator[str]:
    """The addresses that the annotations of a page lead to. An annotation that is broken is left out."""
    try:
        annotations = page["/Annots"].get_object() if "/Annots" in page else []
        count = len(annotations)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - as in `read`; the other pages may hold
        return
    for number in range(count):
        try:
            action = annotations[number].get_object()["/A"].get_object()
            uri = action["/URI"].get_object()
            if isinstance(uri, bytes):
                uri = uri.decode("utf-8", "replace")
            uri = str(uri).strip()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - as above
            continue
        yield uri


def _urls_in(page: Any) -> Iterator[str]:
    """The URLs in the text of a page, without the marks that end a sentence."""
    try:
        text = page.extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as above
        return
    for url in _urls.findall(text):
        yield url.rstrip(".,;:!?*")


def _frame(file: int) -> bytes | None:
    """The next frame; None where the input ends."""
    head = _exactly(file, _LENGTH.size)
    return _exactly(file, _LENGTH.unpack(head)[0]) if head is not None else None


def _exactly(file: int, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        part = os.read(file, min(count - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


def _say(file: int, answer: dict[str, Any]) -> None:
    data = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    data = _LENGTH.pack(len(data)) + data
    while data:
        data = data[os.write(file, data) :]


def _resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _limit_cpu() -> None:
    """Let this process have so many seconds more than it has had."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS)


def _limit(what: int, most: int) -> None:
    """Set a limit, but none above that of this process."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def serve(read: Callable[[bytes], dict[str, Any]], memory: int = MEMORY) -> None:
    """Answer until the input ends, what `read` makes of each frame. What it imports is to be loaded before."""
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    logging.disable(logging.CRITICAL)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    while _resident() < HELD:
        _say(out, {})
        data = _frame(0)
        if data is None:
            return
        _limit_cpu()
        answer = read(data)
        del data
        _say(out, answer)
        gc.collect()  # a document is full of circles


def main() -> None:
    """Answer until the input ends."""
    import pypdf  # noqa: F401 - before the limit: what it loads is not what a PDF asks for

    serve(read)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
