"""For how long a data set is known to have lost nothing (docs/decisions/0119).

Rules of this module:

* A key of the data set says which server it was written at (run id and replication id), and when: by the server's clock
  and by that of the agent that wrote it. Who finds none, or one of another server, writes it anew. All of that is one
  step, with the reading of the ids: in Redis a script (`scripts.WATCHED`), here the same for agents without one.
* What takes data away takes the key away with it (FLUSHALL), or makes the ids others (a new start, a failover).
* The time that has passed since is the smaller of what both clocks say: one that is set forward does no harm. Where one
  says that it was written in the future, it is written anew.
* The beats are read first, then the key: of what is lost in between, the key says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_ubi.transport.contract import WATCHED

NEW, EVICTS, UNTOLD, DENIED = "new", "evicts", "untold", "denied"
"""Why it counts as not watched: it was not known before; it throws keys away when its memory is full; it does not tell
what it is, or when; the key may not be used."""
MOST = 1e9  # s


class Watched(NamedTuple):
    """For how long (s) the data set is known to have lost nothing. `why`: what it is 0 for, "" where it is not."""

    seconds: float
    why: str = ""

    @property
    def text(self) -> str:
        """As the field of a read."""
        return f"{self.seconds:.3f} {self.why}"

    @classmethod
    def of(cls, lines: Mapping[str, str]) -> Watched:
        """What a read says of it."""
        seconds, _, why = lines.get(WATCHED, "").partition(" ")
        try:
            number = float(seconds)
        except ValueError:
            return cls(0.0, UNTOLD)
        return cls(number, why) if 0 <= number <= MOST else cls(0.0, UNTOLD)


@dataclass(slots=True)
class WatchedKey:
    """The key of a data set that is no Redis."""

    said: tuple[str, float, float] | None = None

    def ask(self, server: str, server_time: float, own_time: float) -> Watched:
        """As the script. `server`: its ids; both times in s."""
        if self.said is not None and self.said[0] == server:
            passed = min(server_time - self.said[1], own_time - self.said[2])
            if passed >= 0:
                return Watched(passed)
        self.said = server, server_time, own_time
        return Watched(0.0, NEW)
