"""The lease: until when an agent may start fetches (docs/explanation/protocol.md#membership).

Rules of this module:

* A lease ends by itself, by the agent's own clock: it needs no message that may be lost.
* It is measured from the *sending* of a beat, so a slow answer makes it shorter, never longer.
"""

from __future__ import annotations

from math import inf


class Lease:
    """The right to start a fetch, which ends by itself: the last acknowledged beat was *sent* less than a lease ago.

    `acknowledged` may be called from the beating thread; everything else from the loop. A gap between two
    acknowledged beats that is longer than the lease is a fence that outlasts the next beat, until `mend`: while it
    lasted others may have declared this incarnation dead.

    Loads under way may go on for the `grace` (s) beyond the lease: most end by themselves, and a page that was asked
    for is not asked for again. After it they are *lost*: the moment at which others may declare this incarnation dead,
    and fetch its hosts, comes near.
    """

    def __init__(self, timeout: float, grace: float = 0.0) -> None:
        self.timeout = timeout
        self.grace = grace
        self.gaps = 0
        self.losses = 0
        self._mended = 0
        self.sent = -inf  # when the last beat was sent that was acknowledged (s)

    def acknowledged(self, sent: float) -> None:
        """A beat sent at this time (s) was acknowledged."""
        if inf > sent - self.sent > self.timeout:
            self.losses += sent - self.sent > self.timeout + self.grace
            self.gaps += 1  # before the lease is renewed: the loop may compare at any moment
        self.sent = sent

    def holds(self, now: float) -> bool:
        """Whether a fetch may start now."""
        return self.gaps == self._mended and now - self.sent < self.timeout

    def lost(self, now: float) -> bool:
        """Whether loads under way have no right to go on."""
        return now - self.sent >= self.timeout + self.grace

    def ended(self, now: float) -> bool:
        """Whether it is over, of one that has had it."""
        return inf > now - self.sent >= self.timeout

    def heard_since(self, time: float) -> bool:
        """Whether a beat that was sent after this time (s) was acknowledged."""
        return self.sent > time

    def mend(self, gaps: int) -> None:
        """Everybody has seen this agent since the gap with this number."""
        self._mended = gaps

    def fresh(self, now: float) -> bool:
        """Whether beats are acknowledged, whatever gap was before."""
        return now - self.sent < self.timeout

    @property
    def torn(self) -> bool:
        """Whether a gap waits to be mended."""
        return self.gaps != self._mended
