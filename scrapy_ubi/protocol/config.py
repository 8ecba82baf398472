"""What the protocol is told, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scrapy_ubi.protocol.beat import MOST_PENDING
from scrapy_ubi.protocol.lane import Bounds


class Config(NamedTuple):
    """What the protocol is told. Times in seconds. `most_pending`: hosts that a beat lists as pending, 64 at most;
    `leave_pause`: how long nothing is handed over after somebody leaves, as others may be leaving, too; `start_wait`:
    for how long Redis must have forgotten nothing before an agent that finds no other at work is sure of that, None for
    the time that is safe whatever Redis has forgotten."""

    replication: int = 1
    replicas: int = 200
    lease_timeout: float = 10.0
    failure_timeout: float = 15.0
    handoff_timeout: float = 60.0
    bounds: Bounds = Bounds(window=8, records=500, size=150_000, resend=5.0)
    outbox_records: int = 200_000
    suppressed_keys: int = 1_000_000
    most_pending: int = MOST_PENDING
    leave_pause: float = 0.0
    start_wait: float | None = None

    @property
    def grace(self) -> float:
        """How long (s) loads under way may outlast the lease: a quarter of the way to the failure time-out. The rest is
        for clocks that run at different rates, and for a loop that is late to cancel.
        """
        return (self.failure_timeout - self.lease_timeout) / 4

    @property
    def wait(self) -> float:
        """For how long (s) Redis must have forgotten nothing before an agent that finds no other at work is sure."""
        return self.safe_wait if self.start_wait is None else self.start_wait

    @property
    def safe_wait(self) -> float:
        """By then (s) whoever lives has beaten, or has no load under way."""
        return self.lease_timeout + self.grace


@dataclass(slots=True)
class Counters:
    """What an agent counts, for people."""

    done: int = 0
    links: int = 0
    forwarded: int = 0
    suppressed: int = 0
    received: int = 0
    refused: int = 0
    resent: int = 0
    replicated: int = 0
    letters_sent: int = 0
    bytes_sent: int = 0
    untravelled: int = 0
    redone: int = 0
    handoff_timeouts: int = 0
    fences: int = 0
    rejoins: int = 0
    visited: int = 0
    heavy_rows: int = 0
    mail_put_off: int = 0
