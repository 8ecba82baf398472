"""When loads under way are cancelled, as other agents may fetch their hosts (docs/explanation/protocol.md#membership).

Rules of this module:

* An agent that is awake cancels its loads when the grace after its lease is over: it reaches nobody, and others may
  soon hold it dead.
* One that was *asleep* (its process stood still, or one callback held the loop) finds its lease long over. It does not
  know what others think of it, and most of its loads have ended meanwhile: what is thrown away now is fetched again, by
  itself where it is alone. So its loads wait for word, while no other one starts: the first read of beats that was
  sent since. Others who took its hosts over hold it dead, and say so in their beats: it joins again, and cancels. Where
  Redis has forgotten meanwhile nobody may have said so, and it cancels as well. Otherwise its loads go on.
* The same holds where a beat was acknowledged, after too long a gap, before anything here had seen that the lease was
  over.
* Where no word comes within a grace they are cancelled. Who sleeps again meanwhile begins to wait anew.
"""

from __future__ import annotations

from scrapy_ubi.protocol.lease import Lease

ASLEEP = 2  # graces between two ticks: a loop that turns is never so late


class Cancelling:
    """Counts how often the loads of one agent were to be cancelled (`count`)."""

    def __init__(self, lease: Lease, now: float) -> None:
        self.count = 0
        self._lease = lease
        self._ticked = now
        self._lost = True
        self._losses = 0
        self._woken: float | None = None  # when it began to wait for word (s); None: it does not
        self._word = 0.0  # a read that was sent then, or later, brings it (s)
        self._forgotten = 0  # how often Redis had forgotten when it was last awake

    def cancel(self) -> None:
        """Others may be fetching."""
        self.count += 1
        self._woken = None

    def tick(self, now: float, forgotten: int) -> None:
        """Let time pass. `forgotten`: how often Redis has forgotten everything so far."""
        asleep = now - self._ticked > ASLEEP * self._lease.grace
        self._ticked = now
        self._see_gaps(now)
        lost = self._lease.lost(now)
        if lost and not self._lost and self._woken is None:
            if asleep:
                self._wait(now, max(0.0, self._lease.sent) + self._lease.timeout)
            else:
                self.cancel()
        self._lost = lost
        if self._woken is None:
            self._forgotten = forgotten
        elif asleep:
            self._woken = now
        elif now - self._woken > self._lease.grace:
            self.cancel()

    def read(self, sent: float, received: float, forgotten: int) -> None:
        """Take in a read of beats, sent and received at these times (s), that does not say that this agent is dead."""
        self._see_gaps(received)
        if self._woken is not None and sent >= self._word:
            if forgotten == self._forgotten:
                self._woken = None
                self._lost = self._lease.lost(received)
            else:
                self.cancel()

    def _see_gaps(self, now: float) -> None:
        """A beat may have been acknowledged, after too long a gap, before anybody had seen that the lease was lost."""
        if self._lease.losses != self._losses:
            self._losses = self._lease.losses
            self._wait(now, max(0.0, self._lease.sent))

    def _wait(self, now: float, word: float) -> None:
        self._word = word
        if self._woken is None:
            self._woken = now
