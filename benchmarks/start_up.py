"""How long a crawl takes to begin, and to end: from `scrapy crawl` to the agent's first beat, to its first request, and
from the last page to the end of the process.

    python benchmarks/start_up.py [--rounds 5] [--json FILE]

A crawl of one page of this machine, of a project with no settings of its own: by plain Scrapy, by an agent alone, and
by an agent at a Redis that it need not wait at (UBI_START_WAIT = 0). The ways take turns, each run is a new process in
a new directory, and compiled modules are kept, as for anyone who starts twice. Milliseconds of the clock and of the
processor, the median of all rounds:

* `scrapy`: the interpreter, and what Scrapy imports before it asks the add-on;
* `imports`: the add-on, which is nearly all imports of ours (also what Scrapy would import later, so see `to beat`);
* `set-up`: Scrapy's own, until it opens its scheduler; ours reads settings in it;
* `store`: opening the store of the agent's directory; `connect`: the first answer of Redis;
* `to beat`: from the start of the process until the agent has sent a beat and read those of its group;
* `to request`: until the first request is with the downloader; `end`: from the last response to the end of the process.

The last table says what is ours: `to request` and `end` less those of plain Scrapy in the same round.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rounds import options, save, table

from scrapy_ubi.cli.supervisor.embedded_valkey import EmbeddedValkey, valkey_program

LIMIT = 120  # s that one crawl may take
PROJECT = {
    "scrapy.cfg": "[settings]\ndefault = small.settings\n",
    "small/__init__.py": "",
    "small/settings.py": 'BOT_NAME = "small"\nSPIDER_MODULES = ["small.spiders"]\nROBOTSTXT_OBEY = True\n'
    'LOG_LEVEL = "INFO"\nADDONS = {"scrapy_ubi.Addon": 500}\n',
    "small/spiders/__init__.py": "",
    "small/spiders/one.py": "import scrapy\n\n\nclass One(scrapy.Spider):\n    name = 'one'\n\n"
    "    async def start(self):\n        yield scrapy.Request(self.url)\n\n"
    "    def parse(self, response):\n        yield {'url': response.url}\n",
}

# What is run in place of `scrapy`: it notes when the parts of a start begin and end.
BOOT = """
import json, os, sys, time
born, marks = float(os.environ["START_UP_BORN"]), {}
def note(name, always=False):
    if always or name not in marks:
        marks[name] = (time.monotonic() - born, time.process_time())
def around(owner, name, before, after):
    call = getattr(owner, name)
    own = call.__func__ if isinstance(owner.__dict__[name], classmethod) else call
    async def later(*args, **named):
        note(before)
        try:
            return await own(*args, **named)
        finally:
            note(after)
    setattr(owner, name, classmethod(later) if own is not call else later)
import scrapy_ubi.addon
update = scrapy_ubi.addon.Addon.update_settings
def update_settings(self, settings):
    note("addon")
    update(self, settings)
    note("imported")
    if not scrapy_ubi.addon.is_off(settings):
        from scrapy_ubi.agent.crawl.disk import AgentDisk
        from scrapy_ubi.agent.group.beats import Beats
        around(AgentDisk, "open", "store", "stored")
        around(Beats, "wait", "beating", "beat")
        if settings.get("UBI_REDIS_URL"):
            from scrapy_ubi.transport.redis import RedisTransport
            around(RedisTransport, "open", "connect", "connected")
scrapy_ubi.addon.Addon.update_settings = update_settings
from scrapy import signals
from scrapy.crawler import Crawler
made = Crawler.__init__
def of_crawler(self, *args, **named):
    made(self, *args, **named)
    def request(*_, **__):
        note("request")
    def last(*_, **__):
        note("last", True)
    self.kept = request, last
    self.signals.connect(request, signals.request_reached_downloader)
    self.signals.connect(last, signals.response_received)
Crawler.__init__ = of_crawler
from scrapy.cmdline import execute
try:
    execute(["scrapy", *sys.argv[1:]])
finally:
    with open(os.environ["START_UP_MARKS"], "w") as file:
        json.dump(marks, file)
"""


@contextmanager
def site(directory: Path) -> Iterator[str]:
    """A site of one page on this machine."""
    (directory / "index.html").write_text("<html><title>one</title><p>A page.</html>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def crawl(project: Path, url: str, settings: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Run one crawl; its marks, seconds of the clock and of the processor, with `end`."""
    for left in (".ubi", ".scrapy"):
        shutil.rmtree(project / left, ignore_errors=True)
    marks = project / "marks.json"
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    born = time.monotonic()
    environment |= {"START_UP_BORN": repr(born), "START_UP_MARKS": str(marks)}
    command = [sys.executable, "-c", BOOT, "crawl", "one", "-a", f"url={url}", "-s", f"LOG_FILE={project / 'log'}"]
    for name, text in settings.items():
        command += ["-s", f"{name}={text}"]
    with subprocess.Popen(command, cwd=project, env=environment) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.monotonic() - born
    if process.returncode:
        raise SystemExit(f"the crawl has failed: {(project / 'log').read_text()[-2000:]}")
    found: dict[str, tuple[float, float]] = json.loads(marks.read_text())
    return {**found, "end": (ended, used.ru_utime + used.ru_stime)}


def spans(marks: dict[str, tuple[float, float]], which: int) -> dict[str, float]:
    """The parts of one start in ms; `which`: 0 by the clock, 1 by the processor."""

    def between(first: str, second: str) -> float:
        if first not in marks or second not in marks:
            return 0.0
        return (marks[second][which] - marks[first][which]) * 1000

    addon = marks["addon"][which] * 1000
    first = "store" if "store" in marks else "request"
    return {
        "scrapy": addon,
        "imports": between("addon", "imported"),
        "set-up": between("imported", first),
        "store": between("store", "stored"),
        "connect": between("connect", "connected"),
        "to beat": marks["beat"][which] * 1000 if "beat" in marks else 0.0,
        "to request": marks["request"][which] * 1000,
        "end": between("last", "end"),
    }


def main() -> None:
    given = options(__doc__, 5)
    program = valkey_program() or shutil.which("redis-server")
    runs: dict[str, list[dict[str, tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as place, site(Path(place)) as url:
        project = Path(place) / "project"
        for name, text in PROJECT.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        ways: dict[str, dict[str, str]] = {"plain": {"UBI_ENABLED": "False"}, "alone": {}}
        valkey = EmbeddedValkey(program) if program is not None else None
        if valkey is not None:
            valkey.start()
            ways["redis"] = {"UBI_REDIS_URL": valkey.url, "UBI_START_WAIT": "0", "UBI_DIR": str(project / ".ubi")}
        try:
            for turn in range(given.rounds + 1):
                for way, settings in ways.items():
                    named = {"UBI_CRAWL": f"crawl-{turn}"} if way != "plain" else {}
                    marks = crawl(project, url, settings | named)
                    if turn:  # the first has compiled the modules
                        runs.setdefault(way, []).append(marks)
        finally:
            if valkey is not None:
                valkey.close()
    figures: dict[str, Any] = {}
    for which, title in ((0, "ms by the clock"), (1, "ms of the processor")):
        rows = {way: [spans(marks, which) for marks in each] for way, each in runs.items()}
        columns = list(rows["plain"][0])
        medians = {way: {c: statistics.median(one[c] for one in each) for c in columns} for way, each in rows.items()}
        table(title, columns, {way: [f"{medians[way][c]:.0f}" for c in columns] for way in rows})
        ours = {
            way: {
                part: statistics.median(one[part] - plain[part] for one, plain in zip(each, rows["plain"], strict=True))
                for part in ("to request", "end")
            }
            for way, each in rows.items()
            if way != "plain"
        }
        table(
            f"ours, {title}",
            ["to request", "end"],
            {way: [f"{parts[part]:.0f}" for part in ("to request", "end")] for way, parts in ours.items()},
        )
        figures[title] = {"median": medians, "ours": ours}
    save(given.json, figures)


if __name__ == "__main__":
    main()
