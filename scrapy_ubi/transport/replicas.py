"""Whether a beat counts where replicas of the server may take its place (docs/decisions/0065)."""

from __future__ import annotations

from typing import Any

from scrapy_ubi.transport.address import Address

WAITS_FOR = 0.5  # of the time-out, for replicas
LACKED_WAITS_MS = 50  # for replicas that had no beat the last time

Command = tuple[Any, ...]


class Replicas:
    """Whether a beat counts: where replicas may take the place of the server, only when all of them have it, or most of
    the cluster, or of the Sentinels, say that the server is the one.

    A server that was cut off, together with some agents, goes on answering them, while the others have made a replica
    their server. That replica is on the others' side, as most of those are that tell who is what: so no beat counts
    here, and the lease ends.
    """

    def __init__(self, at: Address, timeout: float) -> None:
        self._given = at.wait_replicas
        self._waits = at.kind != "single" if at.wait_replicas is None else at.wait_replicas > 0
        self._need = at.wait_replicas or 0
        self._limit = int(timeout * 1000 * WAITS_FOR)
        self._lacked = False  # last time

    def known(self, replicas: int) -> None:
        """The cluster, or Sentinels, know of so many."""
        if self._given is None:
            self._need = max(self._need, replicas)

    def command(self) -> list[Command]:
        """What asks how many have what was written before on the same connection. Not long for one that is away."""
        limit = 1 if not self._need else LACKED_WAITS_MS if self._lacked else self._limit
        return [("WAIT", max(1, self._need), limit)] if self._waits else []

    def lack(self, have: object) -> str:
        """What lacks, when so many have it; "" where nothing does."""
        count = have if isinstance(have, int) else 0
        self.known(count)
        self._lacked = count < self._need
        return f"{count} of {self._need} have it" if self._lacked else ""
