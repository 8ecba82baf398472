"""The clock that everything of an agent is measured by: it never goes back, and counts while the machine is
suspended.
"""

from __future__ import annotations

import time

# CLOCK_MONOTONIC stands still in a suspended virtual machine on Linux: the lease would outlive its holder's absence.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds since some moment in the past."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
