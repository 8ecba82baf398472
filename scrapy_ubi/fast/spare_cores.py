"""How many processor cores this process may use, how many of them are idle, and whether that is worth a second thread.

Rules of this module:

* Cores: those that the process may run on (its affinity), and no more than the limit of its control group allows.
* Idle are those on which nobody computes, as the kernel counts it (/proc/stat); within a control group with a limit, no
  more than what the group leaves of that. On systems without it, the load of the last minute counts.
* `Switch` is a function of what was seen, without a clock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOKS = 2  # in a row that have to agree
BUSY, QUIET = 0.7, 0.3  # share of the time in which the loop's thread computes: on above, off below
SPARE, SCARCE = 0.7, 0.2  # idle cores: on above, off below
PATIENCE, MOST_PATIENCE = 15, 300  # looks that it stays off after cores were scarce; twice as many each time

PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
_IDLE = slice(3, 5)  # of a line of /proc/stat: idle, and waiting for a disk


@dataclass(frozen=True, slots=True)
class CoresSeen:
    """What was seen since the last look."""

    busy: float  # share of the time in which the loop's thread computed
    idle: float  # cores, on average


class Switch:
    """Whether a second thread is to be used."""

    def __init__(self) -> None:
        self.is_on = False
        self._agreed = 0
        self._patience = PATIENCE
        self._rests = 0

    def look(self, seen: CoresSeen) -> bool:
        """Decide by what was seen since the last look."""
        if self._rests:
            self._rests -= 1
            return False
        scarce = seen.idle < SCARCE
        other = scarce or seen.busy < QUIET if self.is_on else seen.busy > BUSY and seen.idle > SPARE
        self._agreed = self._agreed + 1 if other else 0
        if self._agreed == LOOKS:
            self._agreed = 0
            self.is_on = not self.is_on
            if scarce and not self.is_on:  # others on these cores may have seen the same core idle
                self._rests, self._patience = self._patience, min(2 * self._patience, MOST_PATIENCE)
        return self.is_on


@dataclass(frozen=True, slots=True)
class _Limit:
    """What a control group allows. `cores`; `group`: its directory."""

    cores: float
    group: Path


class Cores:
    """The cores of this process."""

    def __init__(self) -> None:
        # Without a limit that of all groups, which is none.
        self._limit = min(_limits(), key=lambda limit: limit.cores, default=_Limit(math.inf, GROUPS))
        self._before = self._counted()

    @property
    def count(self) -> float:
        """How many the process may use."""
        mine = _affinity()
        there = len(mine) if mine else os.cpu_count() or 1
        return min(float(there), self._limit.cores)

    def idle(self, passed: float) -> float:
        """How many were idle since the last call, `passed` seconds ago, on average."""
        counted = self._counted()
        idle, used = ((now - before) / passed for now, before in zip(counted, self._before, strict=True))
        self._before = counted
        if not counted[0] and hasattr(os, "getloadavg"):
            idle = max(0.0, self.count - os.getloadavg()[0])
        return min(idle, self._limit.cores - used)

    def _counted(self) -> tuple[float, float]:
        """Seconds that the cores were idle, and that the control group has computed."""
        return _idle_seconds(), _used(self._limit.group)


def _affinity() -> frozenset[int]:
    """The numbers of the cores that this process may run on; empty where the system does not tell."""
    try:
        return frozenset(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return frozenset()


def _idle_seconds() -> float:
    mine, ticks = _affinity(), 0
    for name, *fields in filter(None, map(str.split, _lines(PROC / "stat"))):
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in mine:
            ticks += sum(map(int, fields[_IDLE]))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def _limits() -> Iterator[_Limit]:
    """The limits of the control groups that this process is in."""
    for group in _groups():
        said = " ".join(_lines(group / "cpu.max")) or " ".join(
            line for name in ("quota", "period") for line in _lines(group / f"cpu.cfs_{name}_us")
        )
        quota, _, period = said.partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield _Limit(int(quota) / int(period), group)


def _groups() -> Iterator[Path]:
    """The directories of the control groups (of either version) of this process, and of those around them."""
    for line in _lines(PROC / "self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0" or "cpu" in controllers.split(","):
            group = GROUPS / controllers / path.lstrip("/")
            yield group
            yield from (parent for parent in group.parents if GROUPS in (parent, *parent.parents))


def _used(group: Path) -> float:
    """Seconds that a control group has computed."""
    for name, _, value in (line.partition(" ") for line in _lines(group / "cpu.stat")):
        if name == "usage_usec":
            return int(value) / 1e6
    return sum(map(int, _lines(group / "cpuacct.usage"))) / 1e9


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
