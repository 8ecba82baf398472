"""What is done when the process of an agent ends, as a function of events and times.

Rules of this module:

* It knows no process, clock or file: ends come in with their time (s), and what is to be done goes out.
* An agent that ends with status 0 has ended well: the crawl is over, or the agent was asked to leave.
* One that is killed by a signal is started again, later each time, unless it was killed `MOST_RESTARTS` times within
  `WITHIN` before, or the crawl is over: it would begin another one.
* One that fails before it has joined for the first time is refused: a setting does not hold, and the others have the
  same. So all end. One that fails later, or at a restart, stays away: the others have copies of its hosts.
* After an interruption, or a refusal, agents are not started again, and all ends are as they should be.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

MOST_RESTARTS = 5  # of one agent
WITHIN = 600.0  # s
PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0)  # s before the first, second, ... of these restarts

OK, FAILED, INTERRUPTED = 0, 1, 130  # exit statuses


@dataclass(frozen=True, slots=True)
class End:
    """How a process has ended. `code`: its exit status, or minus the signal; `joined`: whether it has been part of the
    group; `crawl_over`: whether the crawl was finished by then; `said`: its last line of an error, '' for none."""

    code: int
    joined: bool = True
    crawl_over: bool = False
    said: str = ""


class AgentState(Enum):
    """What an agent is to its supervisor."""

    RUNNING = "running"
    WAITING = "waiting"  # to be started again
    ENDED = "ended"
    DEAD = "dead"  # left so


@dataclass(slots=True)
class Watched:
    """One agent: when it is to be started again, when it lately was (s), and how often in all."""

    state: AgentState = AgentState.RUNNING
    due: float = 0.0
    restarts: list[float] = field(default_factory=list)
    times: int = 0


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The exit status of the whole, and one sentence that says why."""

    status: int
    why: str


class Supervision:
    """The state of all agents of one supervisor."""

    def __init__(self, names: Iterable[str]) -> None:
        self.agents = {name: Watched() for name in names}
        self.interrupts = 0
        self.refused = ""  # why all end, as a sentence
        self._failed = ""  # the first failure, as a sentence

    @property
    def ending(self) -> bool:
        """Whether all agents are to end."""
        return bool(self.interrupts or self.refused)

    @property
    def over(self) -> bool:
        """Whether no agent runs, or is to be started again."""
        return all(one.state in (AgentState.ENDED, AgentState.DEAD) for one in self.agents.values())

    def interrupt(self) -> signal.Signals:
        """A person wants the end: the signal that all agents get. The second time they are killed."""
        self.interrupts += 1
        self._forget_restarts()
        return signal.SIGTERM if self.interrupts == 1 and not self.refused else signal.SIGKILL

    def due(self, now: float) -> list[str]:
        """The agents to be started again now; they count as running from here on."""
        names = [name for name, one in self.agents.items() if one.state is AgentState.WAITING and one.due <= now]
        for name in names:
            self.agents[name].state = AgentState.RUNNING
            self.agents[name].restarts.append(now)
            self.agents[name].times += 1
        return names

    def note_end(self, name: str, end: End, now: float) -> str:
        """The process of this agent has ended: a sentence for people, '' where there is nothing to say."""
        one = self.agents[name]
        one.state = AgentState.ENDED
        if end.code == 0 or self.ending:
            return ""
        if end.code < 0:
            return self._killed(name, one, end, now)
        one.state = AgentState.DEAD
        said = f": {end.said}" if end.said else f" with exit status {end.code}."
        if not end.joined and not one.times:
            self.refused = f"Agent {name} failed at its start{said}"
            self._forget_restarts()
            return f"Agent {name} failed at its start. All agents end."
        return self._fail(f"Agent {name} failed{said}")

    def result(self, crawl_over: bool) -> Conclusion:
        """Why it is over. `crawl_over`: whether the crawl is finished."""
        if self.refused:
            return Conclusion(FAILED, self.refused)
        if self.interrupts:
            how = "have left" if self.interrupts == 1 else "were killed"
            return Conclusion(INTERRUPTED, f"Interrupted: all agents {how}. The same command goes on with the crawl.")
        if self._failed:
            return Conclusion(FAILED, self._failed)
        if not crawl_over:
            return Conclusion(
                OK, "All agents have ended, at a limit or as they were asked to; the crawl is not finished."
            )
        return Conclusion(OK, "The crawl is finished, and all agents have ended.")

    def _killed(self, name: str, one: Watched, end: End, now: float) -> str:
        how = f"Agent {name} was killed ({_name(-end.code)})"
        if end.crawl_over:
            one.state = AgentState.DEAD
            return self._fail(f"{how} after the end of the crawl: what its pipelines had yet to write may be missing.")
        recent = [time for time in one.restarts if now - time < WITHIN]
        if len(recent) >= MOST_RESTARTS:
            one.state = AgentState.DEAD
            return self._fail(
                f"{how}, and was started again {len(recent)} times in {WITHIN / 60:.0f} min: it stays away."
            )
        one.restarts = recent
        one.state, one.due = AgentState.WAITING, now + PAUSES[min(len(recent), len(PAUSES) - 1)]
        return f"{how}; it is started again."

    def _fail(self, sentence: str) -> str:
        self._failed = self._failed or sentence
        return sentence

    def _forget_restarts(self) -> None:
        for one in self.agents.values():
            if one.state is AgentState.WAITING:
                one.state = AgentState.ENDED


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
