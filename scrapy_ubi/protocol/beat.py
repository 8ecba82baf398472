"""A beat: what an agent says of itself about once a second, as a short line of text.

Rules of this module:

* A line is read whole or not at all: anything that is not one is None.
* A beat stays short, whatever happens: what it lists is bounded (`MOST_PENDING`, `MOST_DEAD`, `MOST_CARRIED`,
  `MOST_NAMED`, `MOST_BEFORE`).
* A beat writes over the one before under that name. What this one said last, of what its disk had come to know, is
  repeated: else those who begin again later could not read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

MOST_PENDING = 64  # a beat stays short: an agent with more pending hosts has not settled yet, and says so (MANY)
MOST_DEAD = 16  # deaths named in a beat: the last ones, and those who beat on, of whom there may be more in turn
MOST_CARRIED = 8  # incarnations before whose disk this one has: the last ones
MOST_NAMED = 32  # members of a view that a beat names: of a larger one none
MOST_BEFORE = 4  # incarnations before under this name, of which a beat repeats the last words

# Flags of a beat: going; gone; nothing left to do; without the right to fetch; has seen more agents lost than there are
# copies; has never seen a view complete; has left because the crawl is over; knows of no URL of the crawl; would have
# settled, but for too many pending hosts; has left, and others have all that it knew; has few hosts left to hand on,
# and lists them with the pending ones.
LEAVING, LEFT, PASSIVE, FENCED, LOSSY, NEW, OVER, BLANK, MANY, RELIEVED, FEW = (
    "l",
    "L",
    "p",
    "f",
    "x",
    "n",
    "o",
    "b",
    "m",
    "h",
    "w",
)

_WORDS = r"[0-9a-f]{8}\.\d{1,9}\.(?:[0-9a-f]{16})?\.[0-9a-f]{16}\.[01]\.[lLpfxnobmhw]{0,11}\.(?:[0-9a-f]{8}){0,32}"
_BEAT = re.compile(
    r"([0-9a-f]{8})\.(\d{1,9}) (\d{1,15}) ([1-9]\d{0,5}) ([0-9a-f]{16}) ([0-9a-f]{16}|-) ([lLpfxnobmhw]{1,11}|-)"
    r" (\d{1,15}) ([0-9a-f]{16}(?:,[0-9a-f]{16}){0,63}|-) ([0-9a-f]{8}(?:,[0-9a-f]{8}){0,15}|-)"
    r" ([0-9a-f]{8}(?:,[0-9a-f]{8}){0,7}|-) ((?:[0-9a-f]{8}){1,32}|-) (\d{1,9})(?:\.([0-9a-f]{16}))?"
    rf"(?: ({_WORDS}(?:,{_WORDS}){{0,3}}))?",
    re.ASCII,
)


class LastWords(NamedTuple):
    """What an incarnation said last under a name: its `era` with the view of that (`complete`), the view with that
    `digest` and these `members`, whether it had `settled` for that, its `flags`."""

    incarnation: str
    era: int
    complete: str
    digest: str
    settled: bool
    flags: str
    members: tuple[str, ...] = ()

    @property
    def beat(self) -> Beat:
        """The same as a beat; what is not known is as in an empty one."""
        settled = self.digest if self.settled else ""
        return Beat(
            self.incarnation,
            0,
            1,
            self.digest,
            settled,
            self.flags,
            members=self.members,
            era=self.era,
            complete=self.complete,
        )

    def __str__(self) -> str:
        about, members = f"{self.incarnation}.{self.era}.{self.complete}.{self.digest}", "".join(self.members)
        return f"{about}.{int(self.settled)}.{self.flags}.{members}"

    @classmethod
    def parse(cls, word: str) -> LastWords:
        """The words in a text of a beat that was checked."""
        incarnation, era, complete, digest, settled, flags, members = word.split(".")
        return cls(incarnation, int(era), complete, digest, settled == "1", flags, _lives(members))


@dataclass(frozen=True, slots=True)
class Beat:
    """What an agent says of itself, about once a second.

    `digest` names the view it believes in; `settled` the view for which it has handed on all it holds ('' for none),
    but for the `pending` hosts (their ring points, 16 hex digits), which with the flag `FEW` are those, too, that it
    has still to hand on; `activity` counts everything it did, for quiescence, and is 0 while there is more to do: so
    what an agent at work says stays the same but for its counter. `dead` are the incarnations it last declared dead;
    `carried` those before it whose disk it has; `members` the incarnations in the view that it believes in, none where
    these are more than `MOST_NAMED`. `era` counts the views, one after the other, in which all had settled, as far as
    this agent's disk has come: as it was when it came to believe in its view; `complete` names the last of these, ''
    for none. `before`: last words of incarnations that had its name.
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
    carried: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    counter: int = 0
    era: int = 0
    complete: str = ""
    before: tuple[LastWords, ...] = ()

    def has_brought(self, digest: str) -> bool:
        """Whether the agent has handed on all it holds under this view, however many hosts are pending."""
        return self.settled == digest or (MANY in self.flags and self.digest == digest)

    def line(self, counter: int) -> str:
        """The beat as a short line of text, with this counter."""
        era = f"{self.era}.{self.complete}" if self.complete else f"{self.era}"
        return (
            f"{self.incarnation}.{self.epoch} {counter} {self.replicas} {self.digest} {self.settled or '-'} "
            f"{self.flags or '-'} {self.activity} {','.join(self.pending) or '-'} {','.join(self.dead) or '-'} "
            f"{','.join(self.carried) or '-'} {''.join(self.members) or '-'} "
            + " ".join((era, ",".join(map(str, self.before)))).rstrip()
        )

    @property
    def has_left_all(self) -> bool:
        """Whether the agent has left, and others have all that it knew."""
        return LEFT in self.flags and (RELIEVED in self.flags or LOSSY not in self.flags)

    @property
    def has_left_some(self) -> bool:
        """Whether the agent has left before the crawl was over, and others may not have all that it knew."""
        return LEFT in self.flags and OVER not in self.flags and not self.has_left_all

    @property
    def has_left_alone(self) -> bool:
        """Whether the agent has left with work, and nobody was there who goes on: its disk has that, if any has."""
        return self.has_left_some and not self.members

    @classmethod
    def parse(cls, line: str) -> Beat | None:
        """The beat in a line of text; None for anything that is not one."""
        match = _BEAT.fullmatch(line)
        if match is None:
            return None
        inc, epoch, counter, replicas, digest, settled, flags, activity, pending, dead, *more = match.groups()
        carried, members, era, complete, before = more
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
            () if carried == "-" else tuple(carried.split(",")),
            () if members == "-" else _lives(members),
            int(counter),
            int(era),
            complete or "",
            tuple(map(LastWords.parse, before.split(","))) if before else (),
        )


def words_after(last: Beat) -> tuple[LastWords, ...]:
    """What is repeated by who writes over this line."""
    words = LastWords(
        last.incarnation, last.era, last.complete, last.digest, bool(last.settled), last.flags, last.members
    )
    return (*last.before, words)[-MOST_BEFORE:]


def _lives(text: str) -> tuple[str, ...]:
    """Incarnations that stand one after the other."""
    return tuple(text[at : at + 8] for at in range(0, len(text), 8))
