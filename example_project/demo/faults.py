"""What the demo does to its agents, and what it tells of it: one is killed without warning, another one starts later.

Rules of this module: it decides and tells; killing, starting and looking are the runner's. Times are seconds of the
system's monotonic clock, which the web's log uses as well. Each thing is done and told once. An agent is killed when
the others have copies of what it knows: where all have just started, and one of them was first, that takes a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from scrapy_ubi.cli.monitor.status import DEAD, CrawlStatus
from scrapy_ubi.protocol.beat import NEW

KILL_AT, START_AT = 0.4, 0.6  # of the pages


class Stage(Protocol):
    """Where it is played."""

    def kill(self, name: str) -> None:
        """SIGKILL, now."""

    def start(self, name: str) -> None:
        """Another agent."""

    def log(self) -> list[dict[str, Any]]:
        """The web's log so far, as record.py has it."""

    def tell(self, line: str) -> None:
        """Show a line that stays."""


class Faults:
    """`victim` is killed and `newcomer` started, when so many of `pages` have been fetched."""

    def __init__(self, stage: Stage, pages: int, victim: str, newcomer: str, failure_timeout: str) -> None:
        self.victim, self.newcomer = victim, newcomer
        self.killed_at: float | None = None
        self.started_at: float | None = None
        self._stage, self._pages, self._failure_timeout = stage, pages, failure_timeout
        self._hosts: set[str] = set()  # those the victim was at
        self._todo: list[Callable[[CrawlStatus, float], bool]] = [self._declared, self._taken_over, self._joined]

    def announce(self) -> str:
        """What will happen, for the beginning."""
        return (
            f"At {KILL_AT:.0%} of the pages {self.victim} is killed (SIGKILL), at {START_AT:.0%} {self.newcomer} is "
            f"started.\nThe others declare an agent dead after {self._failure_timeout} s without a heartbeat\n"
            "(UBI_FAILURE_TIMEOUT: 15 s unless set, shorter here)."
        )

    def act(self, fetched: int, status: CrawlStatus, now: float) -> None:
        """Do what is due when so many pages have been fetched; but not before the victim has done something, and what
        it knows is known twice."""
        if self.killed_at is None:
            if fetched >= KILL_AT * self._pages and self._takes_part(status):
                self._kill(fetched, now)
        elif self.started_at is None and fetched >= START_AT * self._pages:
            self.started_at = now
            self._stage.start(self.newcomer)
            self._stage.tell(f"{self.newcomer} started at {self._of(fetched)} pages")

    def _takes_part(self, status: CrawlStatus) -> bool:
        """Whether the victim works, and the others at work have seen a view complete (they have all copies)."""
        found = status.agent(self.victim)
        others = [agent for agent in status.agents if agent.working and agent.name != self.victim]
        return (
            found is not None
            and found.working
            and found.profile is not None
            and bool(others)
            and all(agent.beat is not None and NEW not in agent.beat.flags for agent in others)
        )

    def _kill(self, fetched: int, now: float) -> None:
        self._stage.kill(self.victim)
        self.killed_at = now
        last = {row["host"]: row["agent"] for row in self._stage.log()}
        self._hosts = {host for host, agent in last.items() if agent == self.victim}
        self._stage.tell(
            f"{self.victim} killed (SIGKILL) at {self._of(fetched)} pages, at work on {len(self._hosts)} hosts"
        )

    @property
    def waiting(self) -> bool:
        """Whether something done has not had all its consequences yet."""
        return self.killed_at is not None and bool(self._todo)

    def follow(self, status: CrawlStatus, now: float) -> None:
        """Tell what has come of it since."""
        self._todo = [step for step in self._todo if not step(status, now)]

    def _declared(self, status: CrawlStatus, now: float) -> bool:
        found = status.agent(self.victim)
        if self.killed_at is None or found is None or found.state != DEAD:
            return False
        self._stage.tell(
            f"{self.victim} is declared dead, {now - self.killed_at:.1f} s after the kill; agents with copies get its "
            "hosts"
        )
        return True

    def _taken_over(self, status: CrawlStatus, now: float) -> bool:
        if self.killed_at is None or self._declared in self._todo:
            return False
        heirs, first = heirs_of(self._stage.log(), self.victim, self._hosts, self.killed_at)
        if first is None:
            return False
        self._stage.tell(
            f"{' and '.join(sorted(heirs))} {'fetch' if len(heirs) > 1 else 'fetches'} from these hosts, "
            f"{first - self.killed_at:.1f} s after the kill"
        )
        return True

    def _joined(self, status: CrawlStatus, now: float) -> bool:
        found = status.agent(self.newcomer)
        if self.started_at is None or found is None or found.profile is None or not found.profile.count("pages"):
            return False
        self._stage.tell(
            f"{self.newcomer} fetches as well, {now - self.started_at:.1f} s after its start: "
            f"{found.profile.count('hosts')} hosts are its own now"
        )
        return True

    def _of(self, fetched: int) -> str:
        return f"{fetched:,} of {self._pages:,}"


def heirs_of(
    log: Iterable[Mapping[str, Any]], victim: str, hosts: set[str], killed_at: float
) -> tuple[set[str], float | None]:
    """Who has asked these hosts for something since the kill, and when the first of them began."""
    later = [row for row in log if row["start"] > killed_at and row["host"] in hosts and row["agent"] != victim]
    return {row["agent"] for row in later}, min((row["start"] for row in later), default=None)
