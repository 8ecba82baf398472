"""How often an agent reads everybody's beats: with every beat in a group of up to a hundred, seldomer in a larger one.

What N agents read together grows with N times N, and one server sends it all. So beyond `AT_ONCE` agents each still
*writes* its beat every interval, but reads all beats only with every second, third, ... one, so that the traffic grows
with N. Writing must not become rare: leases hang on it. Reading may: a read that is left out is like one that was lost,
which the protocol has to bear anyway (it only comes to know of a death, a view or the end later). Two things bound it:

* `A_LEASE` reads fit in a lease: an agent whose last read is older than a lease takes itself for one that was away, and
  suspects no agent; so at least one read in a row may be lost on top.
* Every agent follows its own view of how many there are, and need not know what the others do.
"""

from __future__ import annotations

import math

AT_ONCE = 100  # agents up to which everybody reads with every beat: 100 reads of 100 pulses, 0.24 MB, an interval
A_LEASE = 3  # reads in a lease, at least


def beats_a_read(agents: int) -> int:
    """Of how many beats one should read all beats, in a group of so many agents."""
    return max(1, math.ceil(agents / AT_ONCE))


def reads_apart(agents: int, interval: float, lease: float) -> float:
    """How far apart two reads of one agent are (s): a multiple of the interval; 0 where every beat reads."""
    beats = min(beats_a_read(agents), int(lease / A_LEASE / interval + 1e-9))
    return beats * interval if beats > 1 else 0.0


def lease_wanted(agents: int, interval: float) -> float:
    """The lease (s) from which on `reads_apart` is not held down by it."""
    return A_LEASE * interval * beats_a_read(agents)
