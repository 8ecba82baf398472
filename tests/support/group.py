"""A group of agents to do things to: real `scrapy crawl` processes, and the demo web as the referee of what they did.

    group.start("a0", "a1", "a2", "a3")
    group.until_served(0.3)                 # until the web has answered that part of what can be reached
    group.kill("a1")
    group.end().judge(lost=["a1"])          # until all have ended by themselves; then all that must hold

The agents run the project in tests/faults/project. Nothing here waits for time to pass: every wait is for a condition,
has a limit far above what a busy machine needs, and shows all logs where it fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redis import RedisError

from demo.graph import Graph
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.pulses import Whole
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support import preloaded
from tests.support.preloaded import Running
from tests.support.server import Server
from tests.support.web import DemoWeb

PROJECT = Path(__file__).resolve().parents[1] / "faults" / "project"
CRAWL = "faulty"  # UBI_CRAWL in that project's settings
LIMIT = 150.0  # s for one condition to come true
LOOK = 0.05  # s between two looks at a condition
TAIL = 6000  # characters of a log that a failure shows


@dataclass
class Process:
    """One agent's process; `told` when it was told to end, so that it need not finish the crawl."""

    popen: Running
    log: Path
    directory: Path
    told: bool = False


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
needs_faketime = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed (Debian: faketime)")


class Group:
    """Agents that crawl `web` together by way of `server`. `seeds` are given to all of them, or to the `first` only."""

    def __init__(self, place: Path, web: DemoWeb, server: Server, seeds: str = "all", **settings: object) -> None:
        self.web, self.server = web, server
        self.keys = RedisKeys(CRAWL)
        self.agents: dict[str, Process] = {}
        self.truth = web.graph.reachable([web.graph.home(0)])
        self.place = place
        self._first_only = seeds == "first"
        self.settings = settings

    # -- what is done to agents --------------------------------------------------------------------------------------

    def start(
        self,
        *names: str,
        spider: str = "walk",
        arguments: Mapping[str, str] | None = None,
        feed: str = "",
        clock: str = "",
        **more: object,
    ) -> None:
        """Start these agents; `more` are further settings (None: not given), `arguments` the spider's. One that has
        ended may be started again: it finds its directory and its log. Each start has a feed of its own, unless `feed`
        names one that is appended to. `clock`: by how much theirs is off, as `faketime` has it (`+1h`).
        """
        for name in names:
            seeds = "" if self._first_only and self.agents else ",".join(_seeds(self.web.graph))
            directory = self.place / name
            own = {"UBI_REDIS_URL": self.server.url, "UBI_AGENT_ID": name, "UBI_DIR": directory, "USER_AGENT": name}
            options = _options("-s", {**own, **self.settings, **more})
            options += _options("-a", {"seeds": seeds, **(arguments or {})})
            new = self.place / f"{name}.{len(list(self.place.glob(f'{name}.*.jsonl')))}.jsonl"
            output = ["-o", str(self.place / feed)] if feed else ["-O", str(new)]
            log = self.place / f"{name}.log"
            with log.open("ab") as out:
                off = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": clock, "DONT_FAKE_MONOTONIC": "1"} if clock else {}
                popen = preloaded.start(
                    ["crawl", spider, *output, *options],
                    cwd=PROJECT,
                    env=os.environ | {"http_proxy": self.web.proxy, "no_proxy": ""} | off,
                    stdout=out,
                    fresh=bool(clock),
                )
            self.agents[name] = Process(popen, log, directory)

    def start_together(self, *names: str, **more: object) -> None:
        """Start these agents; the web answers when they are a group, so that each has a part of the crawl."""
        with self.web.held():
            self.start(*names, UBI_ROBOTS_TIMEOUT=LIMIT, **more)
            limit = time.monotonic() + LIMIT
            while not (there := self.settled(*names)) and time.monotonic() < limit:
                time.sleep(LOOK)
        assert there, self._failed(f"never: the group {names}")

    def kill(self, *names: str, wipe: bool = False) -> None:
        """kill -9 at once, as by a power cut; `wipe` takes their directories too."""
        for name in names:
            self.agents[name].popen.kill()
        for name in names:
            agent = self.agents.pop(name)
            agent.popen.wait()
            if wipe:
                shutil.rmtree(agent.directory)

    def stop(self, name: str, by: int = signal.SIGTERM) -> None:
        """SIGTERM, or SIGINT as by one Ctrl-C: a clean leave."""
        self.agents[name].told = True
        self.agents[name].popen.send_signal(by)

    def stop_all(self, by: int = signal.SIGTERM) -> None:
        """All agents are stopped at once; returns when they have ended, without an error."""
        for name in self.agents:
            self.stop(name, by)
        codes = {name: agent.popen.wait(LIMIT) for name, agent in self.agents.items()}
        assert not any(codes.values()), self._failed(f"ended with {codes}")

    def drain(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        """`scrapy ubi drain`, from outside of the project; returns when the command has ended."""
        self.agents[name].told = True
        return self._command("drain", name, *options)

    def report(self) -> tuple[int, str]:
        """`scrapy ubi report`: exit status and output."""
        done = self._command("report")
        return done.returncode, done.stdout + done.stderr

    def requeue(self, *options: str) -> dict[str, Any]:
        """`scrapy ubi requeue`: what it has done."""
        done = self._command("requeue", *options, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def steer(self, *arguments: str) -> dict[str, Any]:
        """`scrapy ubi set`, `pause` and the like: what they have done."""
        done = self._command(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["ubi", *arguments, "--crawl", CRAWL, "--redis-url", self.server.url]
        return preloaded.run(command, cwd=self.place, env=os.environ, timeout=LIMIT)

    def pause(self, name: str) -> None:
        """SIGSTOP."""
        self.agents[name].popen.send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self.agents[name].popen.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End what is left, by force."""
        for agent in self.agents.values():
            agent.popen.kill()
        for agent in self.agents.values():
            agent.popen.wait()

    # -- waiting -----------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Until the condition is true. Fails when the agents end before, one of them fails, or the limit passes."""
        limit = time.monotonic() + LIMIT
        while not condition():
            codes = {name: agent.popen.poll() for name, agent in self.agents.items()}
            assert not any(codes.values()), self._failed(f"ended with {codes} before {what}")
            assert None in codes.values(), self._failed(f"all had ended before {what}")
            assert time.monotonic() < limit, self._failed(f"never: {what}")
            time.sleep(LOOK)

    def until_served(self, share: float) -> None:
        """Until the web has had so many requests, as a share of what can be reached."""
        self.until(lambda: self.web.count() >= share * len(self.truth), f"{share:.0%} served")

    def until_quiet(self, seconds: float) -> None:
        """Until nobody has asked the web for anything for so long."""
        last = [(self.web.count(), time.monotonic())]

        def quiet() -> bool:
            count, now = self.web.count(), time.monotonic()
            if count != last[0][0]:
                last[0] = (count, now)
            return now - last[0][1] > seconds

        self.until(quiet, f"a web left alone for {seconds} s")

    def until_ended(self, name: str) -> None:
        """Until this agent has ended by itself."""
        self.until(lambda: self.agents[name].popen.poll() is not None, f"the end of {name}")

    def until_settled(self, *names: str) -> None:
        """Until these agents are the group, in the view of each, and everything is handed over."""
        self.until(lambda: self.settled(*names), f"the group {names}")

    def until_replaced(self, name: str) -> None:
        """Until others fetch hosts that this agent has been at."""
        been = self.hosts_of(name)
        seen = len(self.web.log())
        self.until(
            lambda: {row["host"] for row in self.web.log()[seen:] if row["agent"] != name} & been,
            f"hosts of {name} fetched by others",
        )

    def end(self) -> Verdict:
        """Until every agent has ended by itself; then what came of it."""
        limit = time.monotonic() + LIMIT
        while any(agent.popen.poll() is None for agent in self.agents.values()) and time.monotonic() < limit:
            time.sleep(LOOK)
        exits = {name: agent.popen.poll() for name, agent in self.agents.items()}
        logs = {name: agent.log.read_text(errors="replace") for name, agent in self.agents.items()}
        told = {name for name, agent in self.agents.items() if agent.told}
        with (self.place / "web.log").open("w") as kept:  # beside the agents' logs, for who looks for the reason
            kept.writelines(f"{json.dumps(row)}\n" for row in self.web.log())
        return Verdict(self.truth, self.web.stats(), self.web.log(), exits, told, logs, self._items())

    # -- looking -----------------------------------------------------------------------------------------------------

    def settled(self, *names: str) -> bool:
        """Whether exactly these agents live, in the view of each, and have settled it."""
        try:
            beats = self.beats()
        except RedisError:
            return False
        present = {name: beat for name, beat in beats.items() if name in names}
        return len(present) == len(names) and len({beat.settled or name for name, beat in present.items()}) == 1

    def beats(self) -> dict[str, Beat]:
        """Everybody's last beat."""
        with self.server.client() as client:
            found = heard(client, self.keys)
        return {name: beat for name, beat in found.items() if beat is not None}

    def profiles(self) -> dict[str, dict[str, Any]]:
        """Agent -> what it last published of itself."""
        with self.server.client() as client:
            raw = client.hgetall(self.keys.agents)
        return {name.decode(): json.loads(text) for name, text in raw.items()}

    def counters(self) -> dict[str, dict[str, Any]]:
        """Agent -> its counters, as it last published them."""
        return {name: profile["counters"] for name, profile in self.profiles().items()}

    def dead_letters(self, name: str) -> list[dict[str, str]]:
        """What this agent has set aside, oldest first."""
        with self.server.client() as client:
            entries = client.xrange(self.keys.dead(name))
        return [{key.decode(): value.decode() for key, value in fields.items()} for _, fields in entries]

    def waiting(self, name: str) -> int:
        """How many letters wait in this agent's inbox."""
        with self.server.client() as client:
            return int(client.xlen(self.keys.inbox(name)))

    def hosts_of(self, name: str) -> set[str]:
        """The hosts this agent has been at."""
        return {row["host"] for row in self.web.log() if row["agent"] == name}

    def said(self, name: str, words: str) -> bool:
        """Whether the agent's log holds these words."""
        return words in self.agents[name].log.read_text(errors="replace")

    def _items(self) -> list[str]:
        """The URLs of all items, of all agents; lines that a killed process left unfinished do not count."""
        lines = [line for path in self.place.glob("*.jsonl") for line in path.read_text().splitlines()]
        return [json.loads(line)["url"] for line in lines if line.endswith("}")]

    def _failed(self, sentence: str) -> str:
        tails = [f"== {name}\n{agent.log.read_text(errors='replace')[-TAIL:]}" for name, agent in self.agents.items()]
        return "\n".join([sentence, str(self.web.stats()), *tails])


@dataclass
class Verdict:
    """What came of a crawl, by the web's own log."""

    truth: set[str]
    stats: Mapping[str, Any]
    log: list[dict[str, Any]]
    exits: Mapping[str, int | None]  # agents that were not killed; None: had to be ended by force
    told: Collection[str]  # agents that were told to end
    logs: Mapping[str, str]
    items: list[str] = field(repr=False)

    def fetchers(self) -> dict[str, list[str]]:
        """URL -> who fetched it, in order. What was answered to a client that had gone does not count."""
        found: dict[str, list[str]] = {}
        for row in self.log:
            if row["kind"] in ("page", "private", "redirect", "missing") and row["status"] not in (0, 503):
                found.setdefault(f"http://{row['host']}{row['path']}", []).append(row["agent"])
        return found

    def judge(self, lost: Collection[str] = (), unwritten: Collection[str] = ()) -> Verdict:
        """All that must hold. Pages may have been fetched again only where one of the `lost` had fetched them first:
        agents that were killed, paused or cut off, whose last flush nobody has heard of; or where they are among the
        `unwritten`: pages that were fetched and were not done on any disk when their agents were killed.
        """
        fetchers = self.fetchers()
        again = {url: names for url, names in fetchers.items() if len(names) > 1}
        excused = {url for url, names in again.items() if len(names) == 2 and names[0] in lost} | {*unwritten}
        wrong = {url: names for url, names in again.items() if url not in excused}
        reasons = {name: re.findall(r"Closing spider \((\w+)\)", text)[-1:] for name, text in self.logs.items()}
        holds = {
            "coverage 1": fetchers.keys() >= self.truth,
            "nothing else": fetchers.keys() <= self.truth,
            "nothing twice": not wrong,
            "one at a time": self.stats["violations"] == 0,
            "robots.txt": self.stats["robots_violations"] == 0,
            "all ended by themselves": not any(code != 0 for code in self.exits.values()),
            "finished": all(reasons[name] == ["finished"] or name in self.told for name in self.exits),
            "no errors": not any(re.search(r"Traceback| ERROR: | CRITICAL: ", text) for text in self.logs.values()),
        }
        if not all(holds.values()):
            missed = sorted(self.truth - fetchers.keys())
            tails = [f"== {name}\n{text[-TAIL:]}" for name, text in self.logs.items()]
            failed = [what for what, held in holds.items() if not held]
            raise AssertionError(
                f"does not hold: {failed}\nmissed {len(missed)}: {missed[:5]}\nagain: {again}\nexits: {self.exits}, "
                f"reasons: {reasons}\n{self.stats}\n" + "\n".join(tails)
            )
        return self


def heard(client: Any, keys: RedisKeys) -> dict[str, Beat | None]:
    """Agent -> what its line and its pulse say together."""
    with client.pipeline(transaction=True) as both:
        both.get(keys.pulses)
        both.hgetall(keys.beats)
        both.hgetall(keys.slots)
        pulses, lines, slots = both.execute()
    found = Whole(pulses or b"", lines, slots).found()
    return {name.decode(): Beat.parse(one.said.decode()) for name, one in found.items()}


def _options(flag: str, values: Mapping[str, object]) -> list[str]:
    return [part for name, value in values.items() if value is not None for part in (flag, f"{name}={value}")]


def _seeds(graph: Graph) -> list[str]:
    """The homes of every tenth host, and the first's, from which all others can be reached."""
    return [graph.home(host) for host in range(0, len(graph.names), 10)]
