"""One ordinary project, run by plain Scrapy and by agents, as its user would: real processes, and what they left.

Rules of this module:

* A project is a folder of `projects/`: a spider, and the settings, items and other modules it needs. None of them knows
  of the add-on. It is copied into the skeleton that `scrapy startproject` makes, once for each run. Modules that
  several projects share stand beside their folders.
* A run of agents differs from the plain one by lines at the end of settings.py only: ADDONS and UBI_*.
* What is compared are the items in all feeds that the processes left, of those killed as well, as canonical JSON. A
  line that a killed process did not finish is none.
"""

from __future__ import annotations

import configparser
import csv
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from scrapy_ubi.outputs.collector import Collector, find_outputs
from tests.support import preloaded
from tests.support.preloaded import Running
from tests.support.site import Site, Visit

PROJECTS = Path(__file__).with_name("projects")
LIMIT = 150.0  # s for one run
LOOK = 0.05  # s between two looks
TAIL = 3000  # characters of a log that a failure shows

Arguments = Mapping[str, str]

USUAL = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ROBOTSTXT_OBEY = True
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "INFO"
"""

AGENTS = """
ADDONS = {**globals().get("ADDONS", {}), "scrapy_ubi.Addon": 500}
UBI_HEARTBEAT_INTERVAL = 0.5
UBI_LEASE_TIMEOUT = 3.0
UBI_FAILURE_TIMEOUT = 5.0
UBI_START_WAIT = 1  # time for the others to join; this Redis forgets nothing
"""


@dataclass
class Outcome:
    """What a run came to: its items as canonical JSON, the output of each process, the exit status of those that were
    not killed."""

    items: Counter[str]
    logs: list[str]
    exits: list[int]
    visits: int = field(default=0)
    lines: Counter[str] = field(default_factory=Counter)  # of the JSON feeds alone
    collected: Counter[str] = field(default_factory=Counter)  # by `scrapy ubi collect items`

    def said(self, sentence: str) -> bool:
        """Whether any process said it (a regular expression)."""
        return any(re.search(sentence, log) for log in self.logs)

    def differs_from(self, plain: Outcome, doubles: bool) -> str:
        """Which items are missing and which are too many; empty when there are none. `doubles`: an item may come more
        often than plain Scrapy gives it, as pages of a process that was killed are fetched again."""
        missing, more = plain.items - self.items, self.items - plain.items
        if doubles:
            more = Counter({item: n for item, n in more.items() if item not in plain.items})
        if not missing and not more:
            return ""
        shown = {"missing": missing.total(), "more": more.total(), "of": plain.items.total()}
        return f"{shown}: {[*missing][:3]}, {[*more][:3]}"


@dataclass(frozen=True)
class Kill:
    """SIGKILL for the agent that made the last of so many requests, of this host, if one is named."""

    after: int
    host: str = ""


class Trial:
    """One project in a place of its own. `more` are lines for settings.py that only agents get, `always` those for all;
    `project` is its folder, where that is none of the matrix; one with a scrapy.cfg is a whole project, and copied as
    it is. `limit`: s for one run."""

    def __init__(
        self, name: str, place: Path, site: Site, redis_url: str, more: str = "", *,
        always: str = "", project: Path | None = None, limit: float = LIMIT, spider: str = "walk",
    ) -> None:  # fmt: skip
        self._name, self._place, self._site, self._redis_url, self._more = name, place, site, redis_url, more
        self._always, self._parts, self._limit = always, project or PROJECTS / name, limit
        self._spider = spider
        self._processes: list[Running] = []

    def plain(self, arguments: Sequence[Arguments] = ({},)) -> Outcome:
        """By plain Scrapy: one process for each set of spider arguments."""
        place = self.place("plain", "")
        starts = [self._start(place, f"p{n}", f"items-p{n}.jsonl", one) for n, one in enumerate(arguments)]
        return self._end(place, starts)

    def agents(self, number: int, arguments: Sequence[Arguments] = ({},), kill: Kill | None = None) -> Outcome:
        """By so many agents for each set of arguments; one of them is killed in the middle, if that is wanted."""
        name = f"agents-{number}" if kill is None else f"agents-{number}-killed"
        lines = f'{AGENTS}UBI_REDIS_URL = "{self._redis_url}"\nBOT_NAME = "{name}"\n{self._more}\n'
        place = self.place(name, lines)
        before = len(self._site.visits)
        starts = [
            self._start(place, f"a{n}-{k}", "items-%(ubi_agent)s.jsonl", one)
            for n, one in enumerate(arguments)
            for k in range(number)
        ]
        killed = [] if kill is None else [self._kill(starts, kill, before)]
        outcome = self._end(place, starts, killed)
        outcome.visits = len(self._site.visits) - before
        return outcome

    def _kill(self, starts: Sequence[_Start], kill: Kill, before: int) -> _Start:
        def visits() -> list[Visit]:
            return [visit for visit in self._site.visits[before:] if kill.host in (visit.host, "")]

        self._until(lambda: len(visits()) >= kill.after or _over(starts))
        fetcher = visits()[-1].headers.get("user-agent", "")
        victim = next((one for one in starts if one.log.stem == fetcher), starts[-1])  # some plug-ins have their own
        victim.popen.kill()
        return victim

    def close(self) -> None:
        """End what is left, by force."""
        for process in self._processes:
            process.kill()
            process.wait()

    def place(self, run: str, lines: str) -> Path:
        """A fresh copy of the project, in the skeleton of `startproject`, with the modules beside it that it lacks."""
        place, parts = self._place / run, self._parts
        if (parts / "scrapy.cfg").exists():
            return self._whole(place, lines)
        package = place / "shop"
        spiders = package / "spiders"
        spiders.mkdir(parents=True)
        (place / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
        for folder in (package, spiders):
            (folder / "__init__.py").touch()
        for part in (*parts.parent.glob("*.py"), *parts.glob("*.py")):
            shutil.copy(part, spiders if part.name == "spider.py" else package)
        own = (parts / "settings.py").read_text() if (parts / "settings.py").exists() else ""
        text = f"{USUAL}{own}{self._always}{lines}"
        (package / "settings.py").write_text(text if lines else text.replace("%(ubi_agent)s", "p"))
        return place

    def _whole(self, place: Path, lines: str) -> Path:
        """A fresh copy of somebody's project."""
        shutil.copytree(self._parts, place, ignore=shutil.ignore_patterns(".git"))
        config = configparser.ConfigParser()
        config.read(place / "scrapy.cfg")
        settings = place.joinpath(*config["settings"]["default"].split(".")).with_suffix(".py")
        with settings.open("a") as file:
            file.write(f'\nTELNETCONSOLE_ENABLED = False\nLOG_LEVEL = "INFO"\n{self._always}{lines}')
        return place

    def _start(self, place: Path, name: str, feed: str, arguments: Arguments) -> _Start:
        log = place / f"{name}.log"
        command = ["crawl", self._spider, "-o", feed]
        command += ["-s", f"USER_AGENT={name}"]  # tells who fetched what
        command += [part for key, value in arguments.items() for part in ("-a", f"{key}={value}")]
        with log.open("ab") as out:
            environment = os.environ | {"http_proxy": self._site.proxy, "no_proxy": "127.0.0.1"}
            popen = preloaded.start(command, cwd=place, env=environment, stdout=out)
        self._processes.append(popen)
        return _Start(popen, log)

    def _end(self, place: Path, starts: Sequence[_Start], killed: Collection[_Start] = ()) -> Outcome:
        self._until(lambda: _over(starts))
        for one in starts:
            one.popen.wait()
        exits = [one.popen.returncode for one in starts if one not in killed]
        logs = [one.log.read_text(errors="replace") for one in starts]
        found = Outcome(Counter(_items(place)), logs, exits)
        found.lines, found.collected = Counter(_lines(place)), Counter(_collected(place))
        return found

    def _until(self, condition: Any) -> None:
        limit = time.monotonic() + self._limit
        while not condition():
            if time.monotonic() > limit:
                tails = [f"== {log}\n{log.read_text()[-TAIL:]}" for log in self._place.glob("*/*.log")]
                raise AssertionError("\n".join([f"{self._name}: not over after {self._limit:g} s", *tails]))
            time.sleep(LOOK)


@dataclass(frozen=True)
class _Start:
    popen: Running
    log: Path


def _over(starts: Iterable[_Start]) -> bool:
    return all(one.popen.poll() is not None for one in starts)


def _lines(place: Path) -> Iterable[str]:
    for feed in place.glob("items-*.jsonl"):
        for line in feed.read_text().splitlines():
            try:
                yield json.dumps(_comparable(json.loads(line)), sort_keys=True)
            except ValueError:  # a line that a killed process did not finish
                continue


def _collected(place: Path) -> Iterable[str]:
    """What all agents of each crawl have kept."""
    outs = find_outputs([record.parent for record in place.glob(".ubi/**/agent.json")])
    for crawl in {out.crawl for out in outs}:
        file = BytesIO()
        Collector([out for out in outs if out.crawl == crawl], "items", "jsonl").collect(file)
        for line in file.getvalue().decode().splitlines():
            yield json.dumps(_comparable(json.loads(line)), sort_keys=True)


def _items(place: Path) -> Iterable[str]:
    yield from _lines(place)
    for feed in place.glob("rows-*.csv"):
        with feed.open(newline="") as rows:
            yield from (json.dumps(row, sort_keys=True) for row in csv.DictReader(rows) if None not in row.values())


def _comparable(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what depends on the order of the crawl: whether a file was there already."""
    found = dict(item)
    for name in found.keys() & {"files", "images"}:
        found[name] = [{key: value for key, value in one.items() if key != "status"} for one in found[name]]
    return found
