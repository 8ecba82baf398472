"""The clock that everything of an agent is measured by: it never goes back, and counts while the machine is
suspended. Where unix time is needed for an interval that travels or is kept on disk, it is counted from this clock.
"""

from __future__ import annotations

import time

# CLOCK_MONOTONIC stands still in a suspended virtual machine on Linux: the lease would outlive its holder's absence.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds since some moment in the past."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


_UNIX = time.time() - now()


def unix() -> float:
    """Unix time (s) as it was when this process began, and what has passed since: a wall clock that is set again while
    the process runs neither ends nor prolongs anything."""
    return _UNIX + now()
