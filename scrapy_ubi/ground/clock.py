"""The clock that everything of an agent is measured by: it never goes back, and counts while the machine is
suspended. Where unix time is needed for an interval that travels or is kept on disk, it is counted from this clock.

Unix time that comes back from a disk, or from another agent, may be of a clock that was ahead: an hour, or a day. It is
judged where it comes in, by `no_later`: who keeps such a time says beside it, or by a bound, for how long it was set.
"""

from __future__ import annotations

import time

# CLOCK_MONOTONIC stands still in a suspended virtual machine on Linux: the lease would outlive its holder's absence.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds since some moment in the past."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


AHEAD = 60.0  # s by which another clock may be ahead without a word

_UNIX = time.time() - now()


def unix() -> float:
    """Unix time (s) as it was when this process began, and what has passed since: a wall clock that is set again while
    the process runs neither ends nor prolongs anything."""
    return _UNIX + now()


def no_later(at: float, wall: float, most: float) -> float:
    """What holds at `wall` of a time `at` (unix s) that was set on another day or by another agent, to `most` seconds
    from then at most. Where it lies further ahead, the clock that it was set by was ahead: it was set just now."""
    return min(at, wall + most)


def is_ahead(at: float, wall: float, most: float) -> bool:
    """Whether that is so, by more than clocks usually differ."""
    return at > wall + most + AHEAD
