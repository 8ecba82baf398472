"""A beat: what an agent says of itself about once a second, as a short line of text.

Rules of this module:

* A line is read whole or not at all: anything that is not one is None.
* A beat stays short, whatever happens: what it lists is bounded (`MOST_PENDING`, `MOST_DEAD`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_PENDING = 64  # a beat stays short: an agent with more pending hosts has not settled yet, and says so (MANY)
MOST_DEAD = 16  # deaths named in a beat: the last ones, and those who beat on, of whom there may be more in turn

# Flags of a beat: going; gone; nothing left to do; without the right to fetch; has seen more agents lost than there are
# copies; has never seen a view complete; has left because the crawl is over; knows of no URL of the crawl; would have
# settled, but for too many pending hosts.
LEAVING, LEFT, PASSIVE, FENCED, LOSSY, NEW, OVER, BLANK, MANY = "l", "L", "p", "f", "x", "n", "o", "b", "m"

_BEAT = re.compile(
    r"([0-9a-f]{8})\.(\d{1,9}) (\d{1,15}) ([1-9]\d{0,5}) ([0-9a-f]{16}) ([0-9a-f]{16}|-) ([lLpfxnobm]{1,9}|-)"
    r" (\d{1,15}) ([0-9a-f]{16}(?:,[0-9a-f]{16}){0,63}|-) ([0-9a-f]{8}(?:,[0-9a-f]{8}){0,15}|-)"
    r" (\d{1,9})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Beat:
    """What an agent says of itself, about once a second.

    `digest` names the view it believes in; `settled` the view for which it has handed on all it holds ('' for none),
    but for the `pending` hosts (their ring points, 16 hex digits); `activity` counts everything it did, for
    quiescence, and is 0 while there is more to do: so what an agent at work says stays the same but for its counter.
    `dead` are the incarnations it last declared dead. `era` counts the views, one after the other, in which all had
    settled, as far as this agent's disk has come: as it was when it came to believe in its view.
    """

    incarnation: str
    epoch: int
    replicas: int
    digest: str
    settled: str = ""
    flags: str = ""
    activity: int = 0
    pending: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    counter: int = 0
    era: int = 0

    def has_brought(self, digest: str) -> bool:
        """Whether the agent has handed on all it holds under this view, however many hosts are pending."""
        return self.settled == digest or (MANY in self.flags and self.digest == digest)

    def line(self, counter: int) -> str:
        """The beat as a short line of text, with this counter."""
        return (
            f"{self.incarnation}.{self.epoch} {counter} {self.replicas} {self.digest} {self.settled or '-'} "
            f"{self.flags or '-'} {self.activity} {','.join(self.pending) or '-'} {','.join(self.dead) or '-'} "
            f"{self.era}"
        )

    @classmethod
    def parse(cls, line: str) -> Beat | None:
        """The beat in a line of text; None for anything that is not one."""
        match = _BEAT.fullmatch(line)
        if match is None:
            return None
        inc, epoch, counter, replicas, digest, settled, flags, activity, pending, dead, era = match.groups()
        return cls(
            inc,
            int(epoch),
            int(replicas),
            digest,
            "" if settled == "-" else settled,
            "" if flags == "-" else flags,
            int(activity),
            () if pending == "-" else tuple(pending.split(",")),
            () if dead == "-" else tuple(dead.split(",")),
            int(counter),
            int(era),
        )
