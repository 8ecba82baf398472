"""`scrapy ubi compare SPIDER`: does this project give the same items by agents as by plain Scrapy?

Rules of this module:

* Three crawls are run, one after the other, as processes: plain Scrapy (which asks the site, and is recorded), plain
  Scrapy again, and agents (both of the recording). Where the first was cut off, by `--pages` or by the project, plain
  Scrapy runs once more in its place: what was under way at its end is in the recording, and not among its items.
* The project's settings are used but for those of `APART`, where crawls would write over each other's outputs or wait
  for a site that is not asked.
* However it ends, no process is left, and no file but those of `--keep`; where something differs all is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import inside_project

from scrapy_ubi.adapter.process.start_remarks import spider_remarks
from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.adapter.requests.untravelled import HARMLESS
from scrapy_ubi.addon.turn_on import refusal
from scrapy_ubi.cli.commands.compare_addon import GROUP, MODE, PLACE, RECORD, REPEAT, REQUESTS, RESULT, addons_with
from scrapy_ubi.cli.commands.compare_items import Item, ItemComparison, Pair, compare_items
from scrapy_ubi.cli.commands.compare_recording import FAILED, FEWER, NONE
from scrapy_ubi.cli.commands.project import addon_remark, unknown_spider, with_spider
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound
from scrapy_ubi.cli.commands.run_plan import command_line_settings
from scrapy_ubi.cli.monitor.screen import Screen
from scrapy_ubi.cli.monitor.text_table import Column, count, room, table
from scrapy_ubi.cli.supervisor.agents import TAIL, error_in
from scrapy_ubi.cli.supervisor.embedded_valkey import valkey_program
from scrapy_ubi.errors import UbiDirectoryError, UbiRefused, UbiUnavailable
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain
from scrapy_ubi.protocol.ring import Ring, RingCollision
from scrapy_ubi.settings import UbiSettings

STEP = 0.05  # s between two looks at a crawl
LINE_EVERY = 10.0  # s between two lines where there is no terminal
LEAVES_WITHIN = 30.0  # s that a crawl has to end after Ctrl-C
LONGEST = 600  # characters shown of what an agent has said
ADDON = "scrapy_ubi.Addon"
UNTRAVELLED = "untravelled/"  # in the names of stats, before the kind

# Outputs and doors of the project that several crawls would share.
APART = {"FEEDS": "{}", "JOBDIR": "", "LOG_FILE": "", "HTTPCACHE_ENABLED": "False", "TELNETCONSOLE_ENABLED": "False"}
# No site is asked when answers are repeated, so there is no delay to keep.
REPEATED = {"DOWNLOAD_DELAY": "0", "DOWNLOAD_SLOTS": "{}", "AUTOTHROTTLE_ENABLED": "False"}
AGENTS = {
    "UBI_ENABLED": "True",
    "UBI_REDIS_URL": "",
    "UBI_STORES": "",
    "UBI_SERVE": "False",
    "UBI_SEED_LIST": "",
    "UBI_WEB": "",
    "UBI_METRICS": "",
    "UBI_HOST_DELAY": "0",
    "UBI_DELAY_FACTOR": "0",
    "UBI_HOST_PAUSE": "0",
    "UBI_MAX_RETRY_AFTER": "0",
    "UBI_MAX_DELAY": "0",
    "UBI_ROBOTS_GIVE_UP": "0",
}


@dataclass(slots=True)
class ComparedCrawl:
    """One of the crawls: what it has done. `cpu` in s, of all its processes; `requests`: how each was answered."""

    name: str
    place: Path
    seconds: float = 0.0
    cpu: float = 0.0
    items: list[Item] = field(default_factory=list)
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, URL, how it was answered
    fetchers: int = 0  # processes that asked for more than a robots.txt
    results: list[Mapping[str, Any]] = field(default_factory=list)  # of each process that has come to its end

    @property
    def urls(self) -> set[tuple[str, str]]:
        """What was asked for, but for robots.txt, of which each process has its own."""
        return {(method, url) for method, url, _ in self.requests if not _is_robots(url)}

    @property
    def needed(self) -> list[Item]:
        """The items without those of start pages that plain Scrapy has fetched twice, as agents need not. (The lines of
        the feed are in the order of items.)"""
        again = self._again
        return [item for number, item in enumerate(self.items) if number not in again]

    @property
    def again(self) -> int:
        """How many items are of start pages that a link led to once more."""
        return len(self._again)

    @property
    def _again(self) -> frozenset[int]:
        alone = self.results[0] if len(self.results) == 1 else None
        return frozenset(alone["again"]) if alone is not None and alone["items"] == len(self.items) else frozenset()

    @property
    def is_finished(self) -> bool:
        """Whether the crawl has come to its end by itself."""
        return all(one["reason"] == "finished" for one in self.results)

    @property
    def unanswered(self) -> set[tuple[str, str]]:
        """What was asked for and never answered, as the host is dead, or resets connections."""
        return {(method, url) for method, url, how in self.requests if how == FAILED}

    def answered(self, how: str) -> int:
        """How many requests were answered in this way."""
        return sum(one == how for _, _, one in self.requests)

    def stat(self, name: str) -> int:
        """A stat of all processes together."""
        return sum(int(one["stats"].get(name, 0)) for one in self.results)

    def warnings(self) -> dict[str, int]:
        """What the agents have said, and how often."""
        found: dict[str, int] = {}
        for one in self.results:
            for text, number in one["warnings"].items():
                found[text] = found.get(text, 0) + number
        return found

    def untravelled(self) -> dict[str, int]:
        """What of requests could not travel, by kind."""
        names = sorted({name for one in self.results for name in one["stats"] if UNTRAVELLED in name})
        return {name.partition(UNTRAVELLED)[2]: self.stat(name) for name in names}


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Run the three crawls, and compare. Raises UbiError, UsageError before anything is started."""
    own = _check(settings, opts)
    with _directory(opts.keep) as place:
        comparison = Comparison(settings, opts, own, place)
        try:
            first, second, agents = comparison.crawl()
        except BaseException:
            comparison.end()
            raise
        report = _Report(opts, first, second, agents)
        if not report.same:
            _keep(place)
        return QueryReport(report.lines(place), report.document(), report.complaint(place))


def _check(settings: BaseSettings, opts: argparse.Namespace) -> str | None:
    """The add-on of the agents, where the project does not name it. Raises UbiError, UsageError."""
    if opts.redis_url or opts.crawl:
        raise UsageError("scrapy ubi compare starts a Valkey and a crawl of its own", print_help=False)
    if not inside_project():
        raise UbiNotFound("There is no Scrapy project here: change into one, `scrapy ubi compare` runs its spiders.")
    try:
        arglist_to_dict(opts.spargs)
    except ValueError:
        raise UsageError("Invalid -a value, use -a NAME=VALUE", print_help=False) from None
    names = _spiders(settings)
    if opts.spider not in names:
        raise unknown_spider(opts.spider, names)
    _refuse_what_agents_refuse(settings)
    if valkey_program() is None:
        raise UbiUnavailable("The agents need a Valkey, and none is installed: pip install 'scrapy-ubi[embedded]'.")
    return ADDON if addon_remark(settings) else None


def _refuse_what_agents_refuse(settings: BaseSettings) -> None:
    """Raises UbiRefused where the agents would not start, so that the site is not asked in vain."""
    if why := refusal(_with_ours(settings)):
        raise UbiRefused(why)


def _with_ours(settings: BaseSettings) -> BaseSettings:
    """A copy of the settings with what the agents of a comparison have besides."""
    theirs = settings.copy()
    for name, value in {**APART, **AGENTS}.items():
        theirs.set(name, value, "cmdline")
    return theirs


def _spiders(settings: BaseSettings) -> list[str]:
    """The names of the project's spiders. Raises UbiRefused where one of its modules cannot be imported."""
    try:
        return sorted(get_spider_loader(settings).list())
    except Exception as error:  # noqa: BLE001 - the project's own modules raise whatever they do
        said = plain(f"{type(error).__name__}: {error}", 300)
        raise UbiRefused(f"The project's spiders cannot be loaded ({said}): `scrapy list` shows where.") from None


@contextmanager
def _directory(keep: str | None) -> Iterator[Path]:
    """A new directory; it is removed at the end where it was not asked for, and `_keep` was not called."""
    if keep is not None:
        path = Path(keep).absolute()
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise UbiDirectoryError(
                f"{path} cannot be made ({error.strerror or error}): --keep names a new one."
            ) from None
        yield path
        return
    path = Path(tempfile.mkdtemp(prefix="ubi-compare-"))
    try:
        yield path
    finally:
        if not (path / _KEPT).exists():
            shutil.rmtree(path, ignore_errors=True)


_KEPT = ".kept"


def _keep(place: Path) -> None:
    (place / _KEPT).touch()


class Comparison:
    """The three crawls of a comparison, one after the other."""

    def __init__(self, settings: BaseSettings, opts: argparse.Namespace, own: str | None, place: Path) -> None:
        self._settings = settings
        self._opts = opts
        self._own = own
        self._place = place
        self._screen = Screen(sys.stderr)
        self._process: subprocess.Popen[bytes] | None = None

    def crawl(self) -> tuple[ComparedCrawl, ComparedCrawl, ComparedCrawl]:
        """Run them. Raises UbiRefused where one fails."""
        first = self._plain("plain Scrapy", "plain", RECORD)
        if not first.requests:
            name = self._opts.spider
            why = "".join(f" {remark}" for remark in spider_remarks(get_spider_loader(self._settings).load(name)))
            raise UbiRefused(f"Plain Scrapy has asked for nothing with '{plain(name, 64)}': nothing to compare.{why}")
        if not first.is_finished:  # what came last was recorded, and not all of it was looked at
            first = self._plain("plain Scrapy", "whole", REPEAT)
        second = self._plain("plain Scrapy, again", "again", REPEAT)
        if all(how == FAILED for _, _, how in second.requests):
            _keep(self._place)
            raise UbiRefused(
                f"The site has answered none of plain Scrapy's {count(len(first.requests))} requests: nothing to "
                f"compare. {shlex.quote(str(first.place / 'log.txt'))} says why."
            )
        number = self._opts.agents
        agents = self._agents("1 agent" if number == 1 else f"{number} agents", second)
        return first, second, agents

    def end(self) -> None:
        """End what runs: first as Ctrl-C does, then at once."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(LEAVES_WITHIN)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _plain(self, name: str, place: str, mode: str) -> ComparedCrawl:
        settings = {"ADDONS": json.dumps(addons_with(self._settings, None)), **APART}
        if self._own is None:
            settings["UBI_ENABLED"] = "False"
        if mode == REPEAT:
            settings |= REPEATED
        elif self._opts.pages:
            own = self._settings.getint("CLOSESPIDER_PAGECOUNT")
            settings["CLOSESPIDER_PAGECOUNT"] = str(min(self._opts.pages, own or self._opts.pages))
        crawl = ComparedCrawl(name, self._place / place)
        items = crawl.place / "items.jsonl"
        command = ["-m", "scrapy", "crawl", self._opts.spider, *self._given(settings), "-O", f"{items}:jsonlines"]
        self._run(crawl, command, mode, items)
        return crawl

    def _agents(self, name: str, like: ComparedCrawl) -> ComparedCrawl:
        crawl = ComparedCrawl(name, self._place / "agents")
        settings = {
            "ADDONS": json.dumps(addons_with(self._settings, self._own)),
            **APART,
            **REPEATED,
            **AGENTS,
            "UBI_DIR": str(crawl.place / "ubi"),
        }
        items = crawl.place / "items.jsonl"
        command = [
            "-m",
            "scrapy",
            "ubi",
            "run",
            self._opts.spider,
            "--agents",
            str(self._opts.agents),
            "--names",
            ",".join(self._names(like)),
            "--crawl",
            "compare",
        ]
        command += [*self._given(settings), "-O", str(items)]
        kill = _KillOne(len(like.requests) // 2) if self._opts.kill else None
        self._run(crawl, command, REPEAT, items, self._opts.agents, kill)
        if kill is not None and not kill.done:
            self._screen.say("No agent was killed: the crawl was over before. Compare more pages (--pages).")
        return crawl

    def _names(self, like: ComparedCrawl) -> list[str]:
        """The names of the agents, by which each gets its part of what plain Scrapy has asked for."""
        seen = with_spider(_with_ours(self._settings), self._opts.spider)
        return balanced_names(UbiSettings.from_scrapy(seen), (url for _, url in like.urls), self._opts.agents)

    def _given(self, settings: Mapping[str, str]) -> list[str]:
        """The command line's own arguments and settings, and these, which win."""
        parts = [part for one in self._opts.spargs for part in ("-a", one)]
        given = {**command_line_settings(self._settings), **settings}
        return parts + [part for name, value in given.items() for part in ("-s", f"{name}={value}")]

    def _run(
        self,
        crawl: ComparedCrawl,
        command: list[str],
        mode: str,
        items: Path,
        agents: int = 1,
        at_each: Callable[[Path, int], None] | None = None,
    ) -> None:
        crawl.place.mkdir()
        log = crawl.place / "log.txt"
        self._prepare(crawl)
        counted = _RequestCount(crawl.place)
        before, begun = os.times(), time.monotonic()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                env=os.environ | {PLACE: str(crawl.place), MODE: mode, GROUP: str(agents)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        while self._process.poll() is None:
            made = counted.count()
            self._show(crawl, made, time.monotonic() - begun)
            if at_each is not None:
                at_each(crawl.place, made)
            time.sleep(STEP)
        after = os.times()
        crawl.seconds = time.monotonic() - begun
        crawl.cpu = after.children_user + after.children_system - before.children_user - before.children_system
        _read(crawl, items)
        self._show(crawl, len(crawl.requests), crawl.seconds, last=True)
        if self._process.returncode:
            self._fail(crawl, log)

    def _prepare(self, crawl: ComparedCrawl) -> None:
        """Run what the user wants run before each crawl."""
        command = self._opts.before
        if command is None:
            return
        done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode:
            said = plain((done.stderr or done.stdout).decode("utf-8", "replace").strip(), 300)
            raise UbiRefused(
                f"--before: {plain(command, 200)!r} ended with status {done.returncode} before the crawl of "
                f"{crawl.name}{f' ({said})' if said else ''}."
            )

    def _fail(self, crawl: ComparedCrawl, log: Path) -> None:
        _keep(self._place)
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            said = plain(error_in(file.read().decode("utf-8", "replace")), 600)
        raise UbiRefused(f"The crawl of {crawl.name} has failed ({said}): {log} has its log.")

    def _show(self, crawl: ComparedCrawl, made: int, seconds: float, last: bool = False) -> None:
        line = f"{crawl.name}: {count(made)} requests, {seconds:.0f} s"
        if self._screen.terminal:
            self._screen.show([line], seconds, False)
            if last:
                self._screen.tell(line)
        elif last:
            self._screen.say(line)


class _RequestCount:
    """Counts the requests that the processes of a crawl have written down, reading of each file what is new."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._read: dict[Path, int] = {}  # bytes
        self._lines = 0

    def count(self) -> int:
        """Return how many there are by now."""
        for path in self._place.glob(f"{REQUESTS}-*"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                new = file.read()
            self._read[path] = self._read.get(path, 0) + len(new)
            self._lines += new.count(b"\n")
        return self._lines


class _KillOne:
    """Kills the busiest agent once so many requests were made."""

    def __init__(self, after: int) -> None:
        self._after = after
        self.done = False

    def __call__(self, place: Path, made: int) -> None:
        if self.done or made < self._after:
            return
        busiest = max(place.glob(f"{REQUESTS}-*"), key=lambda path: path.stat().st_size, default=None)
        if busiest is not None:
            self.done = True
            with suppress(ProcessLookupError):
                os.kill(int(busiest.stem.partition("-")[2]), signal.SIGKILL)


def _read(crawl: ComparedCrawl, items: Path) -> None:
    """Take in what the processes of a crawl have left."""
    for path in sorted(crawl.place.glob(f"{REQUESTS}-*")):
        before = len(crawl.requests)
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # a killed process may have written half of it
                method, url, how = json.loads(line)
                crawl.requests.append((method, url, how))
        crawl.fetchers += not all(_is_robots(url) for _, url, _ in crawl.requests[before:])
    for path in sorted(crawl.place.glob(f"{RESULT}-*")):
        crawl.results.append(json.loads(path.read_text(encoding="utf-8")))
    if items.exists():
        crawl.items = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines() if line.strip()]


def _is_robots(url: str) -> bool:
    return url.endswith("/robots.txt")


class _Report:
    """What people and programs are told of it."""

    def __init__(
        self, opts: argparse.Namespace, first: ComparedCrawl, second: ComparedCrawl, agents: ComparedCrawl
    ) -> None:
        self._most = opts.show
        self._agents_wanted: int = opts.agents
        self._keeps = opts.keep is not None
        self._crawls = (first, second, agents)
        self._agents = agents
        self.items: ItemComparison = compare_items(first.items, second.items, agents.items, first.needed, second.needed)
        not_made = (first.urls & second.urls) - agents.urls
        self._not_made = sorted(not_made - second.unanswered)
        self._never_answered = sorted(not_made & second.unanswered)
        self._made_too = sorted(agents.urls - first.urls - second.urls)
        # Where the order of pages decides which cookies there are, plain Scrapy's own second crawl has some, too.
        self._without_cookies = agents.answered(FEWER) if agents.answered(FEWER) > 2 * second.answered(FEWER) else 0
        # Requests that fail at any other agent, and after a restart.
        stuck = self._agents.untravelled().items()
        self._bound = sum(number for kind, number in stuck if kind.partition("/")[0] not in HARMLESS)
        self._errors = max(0, _errors(agents) - max(_errors(first), _errors(second)))

    @property
    def proves(self) -> bool:
        """Whether most of what there is to compare is in both crawls of plain Scrapy, so that agents can be judged."""
        return self.items.unsteady <= self.items.equal

    @property
    def differs(self) -> bool:
        """Whether agents have done something else than plain Scrapy."""
        return not (self.items.same and self._requests_are_the_same) or self._without_cookies > 0

    @property
    def same(self) -> bool:
        """Whether agents have done what plain Scrapy does, and would again whichever of them has a host."""
        return self.proves and not self.differs and not self._bound

    @property
    def _requests_are_the_same(self) -> bool:
        return not (self._not_made or self._made_too)

    def lines(self, place: Path) -> list[str]:
        """For people."""
        lines = [*self._table(), ""]
        lines += self._items()
        lines += self._some("Requests that the agents did not make", [f"{m} {u}" for m, u in self._not_made])
        lines += self._some(
            "Requests that the agents did not make, of hosts that never answered",
            [f"{m} {u}" for m, u in self._never_answered],
        )
        lines += self._some("Requests that only the agents made", [f"{m} {u}" for m, u in self._made_too])
        if self._without_cookies:
            lines += _wrapped(
                f"{count(self._without_cookies)} requests of the agents had fewer cookies than those of plain Scrapy."
            )
        travelled = [f"{kind}: {count(number)}" for kind, number in self._agents.untravelled().items()]
        lines += self._some("What of requests could not travel to another agent", travelled)
        if self.proves and not self.items.same and self._requests_are_the_same:
            lines += _wrapped(
                "The requests are the same, so it is what the project makes of the pages: by what a process remembers "
                "(a counter, a set in a pipeline), by the time, or by the order of pages. Each agent is a process."
            )
        if 0 < self._agents.fetchers < self._agents_wanted:
            lines += _wrapped(
                f"{count(self._agents.fetchers)} of {count(self._agents_wanted)} agents made all the requests, as a "
                "host has one agent: what differs between agents cannot show here."
            )
        said = self._agents.warnings()
        if said:
            lines.append(f"What the agents have said ({count(len(said))}):")
            shown = [text.replace(f"{place}/", "DIR/") for text in [*said][: self._most]]
            lines += [line for text in shown for line in _wrapped(plain(cut(text, LONGEST)), "  ")]
            if any("DIR/" in text for text in shown):
                lines.append(f"  DIR: {self._where(place)}")
        return lines

    def _where(self, place: Path) -> str:
        """Where the files of a comparison are, if they are kept."""
        return "was removed; --keep DIR keeps it" if self.same and not self._keeps else shlex.quote(str(place))

    def complaint(self, place: Path) -> str:
        """What is wrong, in a sentence; '' where it is the same."""
        if self.same:
            return ""
        kept = f"Recording, items and logs are in {shlex.quote(str(place))}."
        if self.proves and self.differs:
            return f"Not the same as plain Scrapy. {kept}"
        if self.proves:
            return (
                f"The same this time, but parts of requests cannot travel ({count(self._bound)}, above): these pages "
                f"are lost when another agent has their host. {kept}"
            )
        return (
            f"Nothing is proved: {count(self.items.unsteady)} items of plain Scrapy are in one of its two crawls only. "
            "Where the project remembers what it has seen, in a database or a file, let it forget: --before COMMAND "
            f"runs before each crawl. {kept}"
        )

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "same": self.same,
            "proves": self.proves,
            "crawls": [
                {
                    "name": crawl.name,
                    "items": len(crawl.items),
                    "items_of_start_pages_again": crawl.again,
                    "requests": len(crawl.requests),
                    "not_recorded": crawl.answered(NONE),
                    "errors": _errors(crawl),
                    "seconds": round(crawl.seconds, 2),
                    "cpu_seconds": round(crawl.cpu, 2),
                }
                for crawl in self._crawls
            ],
            "items": {
                "equal": self.items.equal,
                "missing": list(self.items.missing),
                "too_many": list(self.items.too_many),
                "differing": [
                    {"plain": pair.plain, "agents": pair.agents, "fields": list(pair.fields)}
                    for pair in self.items.differing
                ],
                "fields_left_out": list(self.items.varying),
                "fields_counted": list(self.items.counted),
                "unsteady": self.items.unsteady,
            },
            "requests": {
                "not_made": [list(one) for one in self._not_made],
                "never_answered": [list(one) for one in self._never_answered],
                "made_too": [list(one) for one in self._made_too],
                "with_fewer_cookies": self._without_cookies,
            },
            "untravelled": self._agents.untravelled(),
            "warnings": self._agents.warnings(),
        }

    def _table(self) -> list[str]:
        columns = [Column(""), *(Column(crawl.name, figures=True) for crawl in self._crawls)]
        rows = [
            ("items", [len(crawl.items) for crawl in self._crawls]),
            ("  of start pages again", [crawl.again for crawl in self._crawls]),
            ("requests", [len(crawl.requests) for crawl in self._crawls]),
            ("  beyond the recording", [crawl.answered(NONE) for crawl in self._crawls]),
            ("errors in the log", [_errors(crawl) for crawl in self._crawls]),
        ]
        always = ("items", "requests")
        shown = [(name, *map(count, figures)) for name, figures in rows if name in always or any(figures)]
        shown.append(("seconds", *(f"{crawl.seconds:.1f}" for crawl in self._crawls)))
        shown.append(("CPU seconds", *(f"{crawl.cpu:.1f}" for crawl in self._crawls)))
        return table(columns, shown)

    def _items(self) -> list[str]:
        items = self.items
        lines = _wrapped(
            f"Items: {count(items.equal)} equal, {count(len(items.missing))} missing, "
            f"{count(len(items.too_many))} too many, {count(len(items.differing))} that differ."
        )
        if items.varying:
            lines += _wrapped(
                f"Left out, as they differ between two crawls of plain Scrapy: {', '.join(items.varying)}."
            )
        if items.counted:
            lines += _wrapped(
                f"Of these, {', '.join(items.counted)} had the same values in both, each once, and with agents others: "
                "each process counts for itself."
            )
        if not any(crawl.items for crawl in self._crawls):
            lines.append("There are no items in any of the crawls: only requests were compared.")
        if items.unsteady:
            lines += _wrapped(f"Plain Scrapy has {count(items.unsteady)} items in one of its two crawls only.")
        lines += self._some("Missing", list(map(_json, items.missing)))
        lines += self._some("Too many", list(map(_json, items.too_many)))
        return lines + self._some(
            "Differing (field: plain Scrapy's, the agents')", list(map(_differing, items.differing))
        )

    def _some(self, title: str, all_of_it: list[str]) -> list[str]:
        if not all_of_it:
            return []
        shown = [f"  {cut(plain(one), room() - 2)}" for one in all_of_it[: self._most]]
        rest = len(all_of_it) - len(shown)
        more = [f"  and {count(rest)} more (--show N, --json)"] if rest else []
        return [f"{title} ({count(len(all_of_it))}):", *shown, *more]


def _errors(crawl: ComparedCrawl) -> int:
    return crawl.stat("log_count/ERROR") + crawl.stat("log_count/CRITICAL")


def _differing(pair: Pair) -> str:
    by_field = (f"{name}: {_json(pair.plain.get(name))}, {_json(pair.agents.get(name))}" for name in pair.fields)
    return f"{'; '.join(by_field)}  in {_json(pair.plain)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _wrapped(sentence: str, indent: str = "") -> list[str]:
    return textwrap.wrap(sentence, room(), initial_indent=indent, subsequent_indent=indent)


# -- names of the agents: who owns a host follows from the names alone, and a small site has few hosts. By names that
# just happen one agent may own all of them, and nothing would show of what a second process does to a project.

TRIED = 64  # groups of names
MOST_HOSTS = 500  # the busiest ones are looked at


def balanced_names(settings: UbiSettings, urls: Iterable[str], number: int) -> list[str]:
    """Return names for so many agents: as many as can be have some of these URLs, and the busiest as few as can be."""
    host_of = settings.host_of()
    if settings.named_by:
        names = HostNames(settings)
        hosts = Counter(names.of_request(Request(url)) for url in urls)
    else:
        hosts = Counter(map(host_of, urls))
    hosts.pop(None, None)
    busiest = hosts.most_common(MOST_HOSTS)
    return min((_group(tried, number) for tried in range(TRIED)), key=lambda group: _unfair(settings, group, busiest))


def _group(tried: int, number: int) -> list[str]:
    letters = f"{chr(ord('a') + tried // 8)}{tried % 8}"
    return [f"agent-{letters}-{count}" for count in range(1, number + 1)]


def _unfair(settings: UbiSettings, group: list[str], hosts: list[tuple[str | None, int]]) -> tuple[int, int]:
    """How many of these agents have nothing, and how many of the URLs the busiest one has."""
    try:
        ring = Ring.of(dict.fromkeys(group, settings.ring_replicas))
    except RingCollision:
        return len(group), sum(many for _, many in hosts)
    load: Counter[str] = Counter()
    for host, many in hosts:
        if host is not None:
            load[ring.order(host)[0]] += many
    return len(group) - len(load), max(load.values(), default=0)
