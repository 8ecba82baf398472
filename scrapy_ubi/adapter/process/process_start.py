"""Since when this process has been on its way to its crawl.

`scrapy crawl` takes a second and more to come to its spider. A crawl that ends meanwhile has ended after this agent was
started, not before: agent/group/join.py makes something of it. A process that was not started for the crawl (a
notebook, a service) is none of this: its crawl begins when it is asked for.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from scrapy_ubi.ground import clock

STAT = Path("/proc/self/stat")
LONGEST = 60.0  # s: who has run for longer was not started for this crawl
IMPORTED = clock.now()  # this module, which is soon after the start
_crawls = itertools.count()  # of this process


def asked_for() -> float:
    """When, by `clock`, the crawl that is being opened was asked for: at the start of this process if it is the
    first one and the process is young, else now."""
    now = clock.now()
    if next(_crawls):
        return now
    begun = started()
    return begun if now - begun < LONGEST else now


def started() -> float:
    """When this process was started; where the system does not tell, when this module was imported."""
    try:
        # proc(5): field 22, in ticks since the machine was booted; the second field may hold spaces and parentheses.
        ticks = int(STAT.read_text().rpartition(")")[2].split()[19])
        begun = ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return IMPORTED
    return begun if 0 <= begun <= IMPORTED else IMPORTED
