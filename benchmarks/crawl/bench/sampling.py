"""An extension that says where this process's CPU time goes: samples of the main thread, the clocks of all others.

`-s EXTENSIONS={"bench.sampling.Sampling": 0} -s BENCH_SAMPLING="FILE warm pages"` counts from the page after `warm` to
the one after `pages` more, then writes FILE and does nothing more.

A timer of CPU time (SIGPROF) interrupts the main thread every millisecond or as often as the kernel looks, which may be
every four. What that thread has spent since, by its own clock, is booked on the frame that runs: so a long
call into C counts in full, though Python hears of the signal only afterwards, and what other threads spent does not
count. The time of garbage collections is told apart. Nothing is traced: a function's cost is what it is without us.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

INTERVAL = 0.001  # s of CPU time
LOOK = 0.05  # s between two looks at how many pages there are
DEEPEST = 200  # frames of a stack that are kept
TICKS = os.sysconf("SC_CLK_TCK")

Stack = tuple[CodeType, ...]


class Sampling:
    """Samples between two numbers of pages."""

    def __init__(self, crawler: Crawler, out: Path, warm: int, pages: int) -> None:
        self._crawler, self._out, self._warm, self._pages = crawler, out, warm, pages
        self._stacks: defaultdict[Stack, float] = defaultdict(float)
        # CPU seconds in collections: when the present one began, those since the last sample, those before it.
        self._collecting = self._collected = self._booked = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Sampling:
        out, warm, pages = crawler.settings["BENCH_SAMPLING"].rsplit(" ", 2)
        self = cls(crawler, Path(out), int(warm), int(pages))
        crawler.signals.connect(self._opened, signals.spider_opened)
        return self

    def _count(self) -> int:
        assert self._crawler.stats is not None
        return int(self._crawler.stats.get_value("response_received_count", 0))

    def _opened(self) -> None:
        from twisted.internet import reactor

        self._later: Any = reactor.callLater  # type: ignore[attr-defined]
        self._look()

    def _look(self) -> None:
        if self._count() < self._warm:
            self._later(LOOK, self._look)
        else:
            self._begin()

    def _begin(self) -> None:
        gc.callbacks.append(self._on_collection)
        self._first_page = self._count()
        self._clocks = thread_clocks()
        self._process = time.process_time()
        self._began = time.monotonic()
        self._last = self._start = time.thread_time()
        signal.signal(signal.SIGPROF, self._sample)
        signal.siginterrupt(signal.SIGPROF, False)  # a system call goes on afterwards
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        self._later(LOOK, self._look_for_the_end)

    def _look_for_the_end(self) -> None:
        if self._count() < self._first_page + self._pages:
            self._later(LOOK, self._look_for_the_end)
        else:
            self._end()

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is COLLECTION:
            return  # it came in a collection, and that is being booked: what is left belongs to the next sample
        now = time.thread_time()
        stack = []
        while frame is not None and len(stack) < DEEPEST:
            stack.append(frame.f_code)
            frame = frame.f_back
        self._stacks[tuple(stack)] += now - self._last - self._collected
        self._booked += self._collected
        self._collected = 0.0
        self._last = now

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting

    def _end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        main = time.thread_time() - self._start
        whole = time.process_time() - self._process
        gc.callbacks.remove(self._on_collection)
        before, names = self._clocks, thread_names()
        clocks: defaultdict[str, float] = defaultdict(float)
        for ident, seconds in thread_clocks().items():
            if ident != threading.get_native_id():
                clocks[names.get(ident) or f"{comm(ident)} (not Python's)"] += seconds - before.get(ident, 0.0)
        figures = {
            "pages": self._count() - self._first_page,
            "seconds": time.monotonic() - self._began,
            "process": whole,
            "main": main,
            "collections": self._booked + self._collected,
            "threads": clocks,
            "stacks": [[weight, [place(code) for code in stack]] for stack, weight in self._stacks.items()],
        }
        part = self._out.with_suffix(".part")
        part.write_text(json.dumps(figures), encoding="utf-8")
        part.rename(self._out)


COLLECTION = Sampling._on_collection.__code__


def place(code: CodeType) -> str:
    """file:function, the file from the package on."""
    return f"{code.co_filename}:{code.co_qualname}"


def thread_names() -> dict[int, str]:
    return {thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id is not None}


def comm(ident: int) -> str:
    try:
        return Path(f"/proc/self/task/{ident}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "ended"


def thread_clocks() -> dict[int, float]:
    """CPU seconds of every thread of this process, whoever started it, in steps of the kernel's clock (10 ms)."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            fields = (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # the thread has ended
            continue
        found[int(task.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    return found
