"""`scrapy ubi drain AGENT`: ask one agent to leave, from anywhere, and wait until it has.

Rules of this module:

* The word is a field of the crawl's control hash, `drain:<agent>`, and names the incarnation that is meant: a later
  process under the same name is not drained by an old word. A Redis that forgets it is told again while this waits.
* Asked is an agent that can hand over, while there is somebody to hand over to. Whether it has left is read from its
  beat, never guessed from the time that has passed.
* Progress goes to standard error, the answer to standard output.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import signing
from scrapy_ubi.cli.commands.crawl_choice import choose_crawl
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.commands.redis_connection import RedisConnection, connect, need_agent
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.cli.monitor.status import DEAD, SILENT, AgentStatus, CrawlStatus, read_status
from scrapy_ubi.errors import UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.protocol.beat import LEFT
from scrapy_ubi.transport.redis_keys import RedisKeys, drain_field

LOOK_EVERY = 0.5  # seconds
ERASE_LINE = "\r\x1b[K"  # ECMA-48


class UbiNotDrained(UbiError):
    """The agent cannot be asked to leave, or has not left; the sentence says which and what to do."""


def run(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    """Ask, and wait unless told otherwise. Raises UbiError."""
    with connect(settings, opts) as to:
        drain = Drain(to, choose_crawl(settings, opts, to), opts.agent)
        drain.ask(opts.force)
        if opts.no_wait:
            return QueryReport([f"Agent {plain(opts.agent, 64)} is asked to leave."], drain.answer("asked", 0.0))
        answer = drain.wait(opts.timeout)
    ended = "has left" if answer["state"] == "left" else "has ended with the crawl"
    return QueryReport([f"Agent {plain(opts.agent, 64)} {ended} ({answer['seconds']:.1f} s)."], answer)


class Drain:
    """One agent on its way out. `status` is the crawl when it was asked."""

    def __init__(self, to: RedisConnection, status: CrawlStatus, name: str) -> None:
        need_agent(status, name)
        self._to = to
        self._keys = RedisKeys(status.crawl)
        self.name = name
        self._first = status
        self._agent = _agent(status, name)
        self._field = drain_field(name)
        self._forced = False

    def ask(self, force: bool) -> None:
        """Write the word. Raises UbiNotDrained where it would do nothing, or harm."""
        refusal = _refusal(self._first, self._agent, force)
        if refusal is not None:
            raise UbiNotDrained(refusal)
        self._forced = force
        self._write(self._first)

    def _write(self, status: CrawlStatus) -> None:
        fields: dict[Any, Any] = signing.control_fields(self._to, status, {self._field: self._agent.incarnation})
        with self._to.explained():
            self._to.client.hset(self._keys.control, mapping=fields)

    def wait(self, timeout: float) -> Document:
        """Until it has left; the answer. Raises UbiNotDrained when it dies, or after `timeout` seconds."""
        begun = time.monotonic()
        with _progress() as show:
            while True:
                with self._to.explained():
                    status = read_status(self._to.client, self._keys.crawl)
                now = _agent(status, self.name)
                seconds = time.monotonic() - begun
                end = self._end(status, now)
                if end is not None:
                    return self.answer(end, seconds)
                if seconds > timeout:
                    raise UbiNotDrained(
                        f"Agent {self.name} has not left within {timeout:g} s (it is {now.state}); it has been asked, "
                        "and leaves when it can. Its log says more."
                    )
                named = status.run or not self._to.secret  # else there is no run yet to sign it for
                if now.state != "leaving" and self._field not in status.control and named:
                    self._write(status)  # Redis has forgotten it
                show(*_progress_of(self.name, now), seconds)
                time.sleep(LOOK_EVERY)

    def answer(self, state: str, seconds: float) -> Document:
        """The JSON document."""
        return {
            "crawl": self._keys.crawl,
            "agent": self.name,
            "incarnation": self._agent.incarnation,
            "state": state,
            "seconds": round(seconds, 1),
        }

    def _end(self, status: CrawlStatus, now: AgentStatus) -> str | None:
        """How it has ended, None when it has not. Raises UbiNotDrained when it ended badly."""
        if now.state == "finished" or status.finished:
            return "finished"
        if now.state == DEAD:
            raise UbiNotDrained(
                f"Agent {self.name} died before it had handed everything over; the others take its hosts over, from "
                "the copies they keep."
            )
        replaced = None not in (_process(now), _process(self._agent)) and _process(now) != _process(self._agent)
        if not replaced and (now.state != "left" or _beats(now)):
            return None
        with self._to.explained():
            self._to.client.hdel(self._keys.control, self._field)
        if not replaced and not self._forced and now.beat is not None and now.beat.has_left_some:
            raise UbiNotDrained(
                f"Agent {self.name} has left, but not everything was handed over within UBI_LEAVE_TIMEOUT: its log "
                "says what was not."
            )
        return "left"


def _agent(status: CrawlStatus, name: str) -> AgentStatus:
    found = status.agent(name)
    return found if found is not None else AgentStatus(name, "joining")  # a Redis that has just forgotten


def _refusal(status: CrawlStatus, agent: AgentStatus, force: bool) -> str | None:
    """Why this agent is not asked to leave; None when it is. `force` asks also where it might have no effect."""
    name, crawl = plain(agent.name, 64), plain(status.crawl, 64)
    if status.finished or agent.state == "finished":
        return f"Crawl {crawl} is finished: its agents end by themselves."
    if agent.state == "left":
        return f"Agent {name} has left already."
    if agent.state == DEAD:
        return f"Agent {name} is dead: the others have taken its hosts over."
    if not agent.incarnation or _is_new(agent):
        return f"Agent {name} has not joined yet, or what it says of itself cannot be read: try again in a moment."
    if force:
        return None
    if agent.state == SILENT:
        return (
            f"Agent {name} has said nothing for {agent.age or 0:.0f} s, so it may have crashed, and no agent would "
            "read the word; --force leaves it there nevertheless."
        )
    if not any(_stays(status, other) for other in status.agents if other.name != agent.name):
        return (
            f"Agent {name} is the last one: no other agent could take over what it has not fetched. Start another "
            "agent first, or let it go nevertheless with --force."
        )
    return None


def _stays(status: CrawlStatus, other: AgentStatus) -> bool:
    """Whether another agent can be handed something: it works, and is not on its way out itself."""
    asked = status.control.get(drain_field(other.name), "")
    return other.working and other.state != "leaving" and (not asked or asked != other.incarnation)


def _process(agent: AgentStatus) -> tuple[str, int, float] | None:
    """What tells one process from the next under the same name; a new incarnation may be the same process."""
    return (agent.profile.host_name, agent.profile.pid, agent.profile.started) if agent.profile is not None else None


def _is_new(agent: AgentStatus) -> bool:
    """Whether it beats, and what is published under its name is still a predecessor's."""
    beat, profile = agent.beat, agent.profile
    return beat is not None and profile is not None and beat.incarnation != profile.incarnation


def _beats(agent: AgentStatus) -> bool:
    """Whether its last beat is still to come, which says whether all was handed over; its profile comes before."""
    return agent.beat is not None and LEFT not in agent.beat.flags


def _progress_of(name: str, agent: AgentStatus) -> tuple[str, str]:
    """What it is doing, and how far it is."""
    if agent.state != "leaving":
        return f"agent {name} is asked to leave", ""
    waiting = agent.profile.count("outbox") if agent.profile is not None else 0
    return f"agent {name} hands over", f"{waiting:,} records to go"


class _Progress:
    """One line, redrawn on a terminal; elsewhere a line whenever something else begins."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.said = ""

    def __call__(self, what: str, how_far: str, seconds: float) -> None:
        if self.terminal:
            detail = f", {how_far}" if how_far else ""
            print(f"{ERASE_LINE}{what}{detail} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)
        elif what != self.said:
            print(what, file=sys.stderr, flush=True)
        self.said = what


@contextmanager
def _progress() -> Iterator[_Progress]:
    progress = _Progress()
    try:
        yield progress
    finally:
        if progress.terminal and progress.said:
            print(ERASE_LINE, end="", file=sys.stderr, flush=True)
