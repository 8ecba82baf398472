"""Lines that an agent finds of others, while it has not seen all settle: who was in which view, as they tell.

Rules of this module:

* A line names the members of the view that its writer believes in. Of the last view in which all had settled it says
  the digest alone, and who could name its members may be gone.
* A digest is a function of the members (`view.py`). So the members of such a view are found by trying who of those that
  lines tell of gives that digest together (`open_views`). What is found is certain, as what a line names: that others
  give the same 64 bits is as likely as a page that is mistaken for another.
* That is tried once in a life, when all have settled, for views of those alone who are not here; never more than
  `MOST_TRIED` of them. Where there are more nothing is found, and who was ahead by such a view is missed.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from math import prod

from scrapy_ubi.protocol.beat import NEW, Beat
from scrapy_ubi.protocol.view import Member, digest_of

SEEN = 2  # the era of one, at least, that has seen all settle: it says so from its next view on
MOST_TRIED = 4096  # sets of members: those of twelve agents that were never started again; some 20 ms


class FoundLines(dict[str, tuple[str, Beat]]):
    """The last line of each incarnation, with the name that it had."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[str, set[str]] = {}
        self._first: dict[str, int] = {}  # the era of each incarnation, as it said first

    def take(self, name: str, line: Beat) -> None:
        """A line of one with that name was read."""
        self[line.incarnation] = name, line
        self._first.setdefault(line.incarnation, line.era if NEW in line.flags else max(line.era, SEEN))

    def forget_lines(self) -> None:
        """Nothing is found any more."""
        self.clear()
        self._opened.clear()
        self._first.clear()

    def first_era(self, line: Beat) -> int:
        """How far who says this had come when it was found: what it has seen since it has seen with this agent."""
        return self._first.get(line.incarnation, line.era)

    def members(self, digest: str) -> set[str]:
        """The incarnations in the view with that digest; none where they are not known."""
        named = {life for _, line in self.values() if line.digest == digest for life in line.members}
        return named or self._opened.get(digest, set())

    def of_name(self, name: str) -> dict[str, Beat]:
        """The lines of those who had that name."""
        return {life: line for life, (one, line) in self.items() if one == name}

    def open_views(self, here: Collection[str]) -> None:
        """Look for the members of views in which all had settled, that those tell of whose incarnations are not
        `here`."""
        told = {line.complete for life, (_, line) in self.items() if life not in here and not line.has_left_all}
        wanted = {digest for digest in told - {""} if not self.members(digest)}
        lives = self._possible_members()
        if not wanted or prod(len(members) + 1 for members in lives.values()) > MOST_TRIED:
            return
        for chosen in product(*((None, *members) for members in lives.values())):
            members = {name: one for name, one in zip(lives, chosen, strict=True) if one is not None}
            if (digest := digest_of(members)) in wanted:
                self._opened[digest] = {one.incarnation for one in members.values()}

    def _possible_members(self) -> dict[str, set[Member]]:
        """By name, what each may have been in a view. Words that are repeated tell neither epoch nor replicas."""
        replicas: dict[str, int] = {}
        for name, line in self.values():
            replicas[name] = max(replicas.get(name, 1), line.replicas)
        lives: dict[str, set[Member]] = {name: set() for name in replicas}
        for name, line in self.values():
            for life in (line.incarnation, *line.carried):
                lives[name].update(Member(life, epoch, replicas[name]) for epoch in (0, line.epoch))
        return lives
