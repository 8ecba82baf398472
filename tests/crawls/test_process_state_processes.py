"""What is the process's stays as with plain Scrapy, and what a project leaves to the garbage collector comes back."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

LIMIT = 120  # s for a crawl

STATE = """
import asyncio
import decimal
import faulthandler
import gc
import json
import locale
import logging
import os
import resource
import scrapy
import signal
import socket
import sys
import tracemalloc
import threading
import warnings
from scrapy.downloadermiddlewares import httpproxy


def name(what):
    return getattr(what, "__qualname__", None) or type(what).__qualname__


def state():
    loop = asyncio.get_running_loop()
    return {
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), len(gc.callbacks), gc.get_debug()],
        "signals": {str(number): name(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
        "timers": [signal.getitimer(timer) for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF)],
        "limits": [resource.getrlimit(getattr(resource, one)) for one in dir(resource) if one.startswith("RLIMIT")],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "switch interval": sys.getswitchinterval(),
        "recursion": sys.getrecursionlimit(),
        "hooks": [name(getattr(sys, one)) for one in ("excepthook", "unraisablehook", "displayhook", "breakpointhook")],
        "thread hook": name(threading.excepthook),
        "tracing": [sys.gettrace(), sys.getprofile(), tracemalloc.is_tracing()],
        "warnings": sorted(
            [repr(part) for part in each] for each in warnings.filters if "numpy" not in str(each)
        ),
        "decimal": repr(decimal.getcontext()),
        "locale": locale.setlocale(locale.LC_ALL),
        "socket": socket.getdefaulttimeout(),
        "faulthandler": faulthandler.is_enabled(),
        "directory": os.getcwd() == sys.path[0] or os.path.basename(os.getcwd()),
        "environment": sorted(os.environ.items()),
        "policy": name(asyncio.get_event_loop_policy()),
        "loop": [name(loop), loop.get_debug(), loop.get_task_factory() and name(loop.get_task_factory())],
        "loggers": {one: logging.getLogger(one).level for one in ("", "scrapy", "scrapy.core.engine",
            "scrapy.core.scraper", "twisted", "asyncio", "py.warnings", "redis")},
        "disabled": logging.root.manager.disable,
        "record": name(logging.getLogRecordFactory()),
        "proxies": name(httpproxy.proxy_bypass),
    }


class State(scrapy.Spider):
    name = "state"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO"}

    async def start(self):
        yield scrapy.Request(f"http://127.0.0.1:{self.port}/")

    def parse(self, response):
        yield state()
"""

POOL = '''
import scrapy
import weakref


class Connection:
    """In a cycle with itself, as a session with its identity map."""


class Pool:
    """So many connections, as that of a database: who wants one more gets an error."""

    def __init__(self):
        self.left = 40  # plain Scrapy 2.19 has up to 17 out with one item a page, up to 40 with thirty

    def connect(self):
        if not self.left:
            raise RuntimeError("no connection is left")
        self.left -= 1
        made = Connection()
        made.me = made
        weakref.finalize(made, self.back)
        return made

    def back(self):
        self.left += 1


class Stores:
    def __init__(self):
        self.pool = Pool()

    def process_item(self, item):
        self.pool.connect()
        return item


class Sessions(scrapy.Spider):
    name = "sessions"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "ITEM_PIPELINES": {Stores: 1}}

    async def start(self):
        for number in range(200):
            yield scrapy.Request(f"http://127.0.0.{number % 8 + 2}:{self.port}/{number}")

    def parse(self, response):
        yield {"page": response.url}
'''


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"<h1>")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def crawled(place: Path, code: str, port: int, *settings: str) -> list[Any]:
    """The items of a crawl."""
    (place / "spider.py").write_text(code)
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-O", "items.jsonl", "-a", f"port={port}"]
    for setting in settings:
        command += ["-s", setting]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (place / "items.jsonl").read_text().splitlines()]


ADDON = 'ADDONS={"scrapy_ubi.Addon": 500}'


def test_a_crawl_with_the_add_on_leaves_the_process_as_plain_scrapy_does(tmp_path: Path, port: int) -> None:
    [plain], [ubi] = (crawled(tmp_path, STATE, port, *settings) for settings in ((), (ADDON,)))
    assert {name: (value, ubi[name]) for name, value in plain.items() if value != ubi[name]} == {}


@pytest.mark.parametrize("more", [(), ("UBI_FAST=True",), ("UBI_LEAN=False",)], ids=["lean", "fast", "neither"])
def test_what_items_leave_to_the_garbage_collector_comes_back_as_with_plain_scrapy(
    tmp_path: Path, port: int, more: tuple[str, ...]
) -> None:
    assert len(crawled(tmp_path, POOL, port, ADDON, *more)) == 200
