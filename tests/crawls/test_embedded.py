"""In a program that embeds a crawl beside a plain one of Scrapy, the process stays as it is, meanwhile and later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = '''
import asyncio, gc, logging, os, resource, signal, socket, sys, threading, types, urllib.request, warnings

from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet import reactor

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner


def handler(number, frame):
    raise KeyboardInterrupt


signal.signal(signal.SIGTERM, handler)
gc.set_threshold(701, 11, 9)


class Walk(scrapy.Spider):
    name = "walk"
    seen = None

    async def start(self):
        for number in range(5):
            yield scrapy.Request(f"{self.at}/{number}")

    def parse(self, response):
        if self.seen is not None:
            self.seen.append((response.url, state()))
        yield from (response.follow(link) for link in response.css("a::attr(href)").getall())


def state():
    """What a program may have chosen for its process."""
    root = logging.getLogger()
    return {
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.callbacks[:]),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if "RLIMIT_" in name},
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.breakpointhook, sys.displayhook),
        "numbers": (sys.getrecursionlimit(), sys.getswitchinterval(), threading.stack_size()),
        "sockets": socket.getdefaulttimeout(),
        "warnings": list(warnings.filters),
        "log": (root.level, logging.root.manager.disable, logging.getLogRecordFactory(), logging.getLoggerClass()),
        "levels": {
            name: one.level
            for name, one in logging.root.manager.loggerDict.items()
            if isinstance(one, logging.Logger) and one.level and not name.startswith("scrapy_ubi")
        },
        "reactor": {name: value for name, value in vars(reactor).items() if name in ("seconds", "nameResolver")},
        "opener": urllib.request._opener,
        "policy": type(asyncio.get_event_loop_policy()),
        "loop": (type(asyncio.get_running_loop()), asyncio.get_running_loop().get_exception_handler()),
    }


OURS = ("scrapy", "twisted", "asyncio", "urllib", "ssl", "socket", "logging", "lxml", "parsel", "w3lib", "json", "gc")


def code():
    """Functions and classes of all modules that are not ours, and what the classes have."""
    found = {}
    for module in [one for name, one in sys.modules.items() if name.partition(".")[0] in OURS]:
        for name, value in list(vars(module).items()):
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
                found[module.__name__, name] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                for inner, attribute in list(vars(value).items()):
                    if isinstance(attribute, (types.FunctionType, classmethod, staticmethod, property)):
                        found[module.__name__, name, inner] = attribute
    return found


def differences(before, after):
    pairs = {name: (value, after.get(name)) for name, value in before.items()}
    return {name: (old, new) for name, (old, new) in pairs.items() if old is not new and old != new}


async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    body = b"<a href=/6>6</a><a href=/7>7</a>"
    head = ["HTTP/1.1 200 OK", "Content-Type: text/html", "Connection: close", f"Content-Length: {len(body)}", "", ""]
    writer.write("\\r\\n".join(head).encode() + body)
    await writer.drain()
    writer.close()


async def main(directory, more):
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    at = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    plain = {"TELNETCONSOLE_ENABLED": False}
    agent = plain | {
        "ADDONS": {"scrapy_ubi.Addon": 500}, "UBI_DIR": directory, "UBI_PRIVATE_HOSTS": "allow", "UBI_HOST_DELAY": 0.05,
        **more,
    }
    import scrapy_ubi.addon.turn_on
    await AsyncCrawlerRunner(plain).crawl(type("Plain", (Walk,), {}), at=at)  # Scrapy's own doing is no matter of ours
    before, unchanged, threads = state(), code(), threading.active_count()
    listeners = len(logging.getLogger().handlers)

    class Looking(Walk):
        seen = []

    await asyncio.gather(
        AsyncCrawlerRunner(agent).crawl(Looking, at=at),
        AsyncCrawlerRunner(plain).crawl(type("Beside", (Walk,), {}), at=at),
    )
    assert len(Looking.seen) == 7, Looking.seen
    for url, meanwhile in Looking.seen:
        assert not differences(before, meanwhile), (url, differences(before, meanwhile))
    assert not differences(before, state()), differences(before, state())
    changed = differences(unchanged, code())
    assert not changed, changed
    assert len(logging.getLogger().handlers) == listeners
    left = [one.name for one in threading.enumerate() if "ubi" in one.name.lower()]
    assert not left, left
    server.close()
    print("as before")


async def guarded():
    try:
        await main(sys.argv[1], dict(part.split("=", 1) for part in sys.argv[2:]))
    finally:
        reactor.callLater(0, reactor.stop)


def begin():
    Deferred.fromFuture(asyncio.ensure_future(guarded())).addErrback(lambda failure: failure.printTraceback())


from twisted.internet.defer import Deferred
reactor.callWhenRunning(begin)
reactor.run(installSignalHandlers=False)
'''


@pytest.mark.processes
@pytest.mark.parametrize("more", [(), ("UBI_FAST=1",)])
def test_the_process_stays_as_its_program_has_it(more: tuple[str, ...], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "agent"), *more],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout == "as before\n", done.stdout + done.stderr
