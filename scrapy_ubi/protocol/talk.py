"""What agents tell each other beside the crawl itself: short texts of which the last one counts.

Rules of this module:

* A text goes to one receiver, in the hash of answers, under the name of its kind and sender. It may be lost, late, or
  come again: it says all there is to say, with the life of its sender and a number.
* What is told names no time of a clock, but how long it holds from when it was said: a text that is late is believed
  for too long by as much.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from scrapy_ubi.ground.untrusted.checks import is_number, is_whole

MOST_SENDERS = 4096  # whose last texts are remembered
MOST_NUMBER = 10**15


class Talk(Protocol):
    """One kind of such texts at one agent."""

    @property
    def is_open(self) -> bool:
        """Whether some may come that are to be read."""

    def messages(self, now: float, /) -> Mapping[tuple[str, str], str]:
        """What is to be told now: (receiver, name) -> text."""

    def hear(self, lane: str, text: str, now: float, /) -> bool:
        """Take in a text of that name; False where it is of another kind. What does not hold in it says nothing."""


class Rumours:
    """Names that are out of use for some seconds, as agents tell each other: `said` gives what this one has found.

    `kind` begins the names of its texts. `life` gives the own incarnation, `members` the names of all agents. What is
    heard is told to `on_heard`: name, and for how long more (s). Told is what was found here, not what was heard.
    """

    def __init__(
        self,
        kind: str,
        me: str,
        life: Callable[[], str],
        members: Callable[[], Iterable[str]],
        on_heard: Callable[[str, float], None],
        most_seconds: float,
        most_names: int,
    ) -> None:
        self._kind, self._me, self._life, self._members = f"{kind} ", me, life, members
        self._on_heard, self._most_seconds, self._most_names = on_heard, most_seconds, most_names
        self._found: dict[str, float] = {}  # name -> until when (s)
        self._number = 0
        self._told: dict[str, int] = {}  # receiver -> the number of the last text
        self._heard: dict[str, tuple[str, int]] = {}  # sender -> life and number

    is_open = True

    def found(self, name: str, until: float) -> None:
        """Something was found to be out of use until that time."""
        self._found[name] = until
        self._number += 1

    def messages(self, now: float) -> dict[tuple[str, str], str]:
        """See `Talk`."""
        others = [name for name in self._members() if name != self._me]
        new = [name for name in others if self._told.get(name, 0) != self._number]
        self._told = dict.fromkeys(others, self._number)
        self._found = {name: until for name, until in self._found.items() if until > now}
        if not new or not self._found:
            return {}
        left = {name: round(until - now, 1) for name, until in [*self._found.items()][-self._most_names :]}
        text = json.dumps({"from": self._life(), "number": self._number, "left": left}, separators=(",", ":"))
        return {(name, self._kind + self._me): text for name in new}

    def hear(self, lane: str, text: str, now: float) -> bool:
        """See `Talk`."""
        if not lane.startswith(self._kind):
            return False
        sender = lane.removeprefix(self._kind)
        try:
            said = json.loads(text)
            life, number, left = said["from"], said["number"], said["left"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return True
        if not isinstance(life, str) or not is_whole(number, 0, MOST_NUMBER) or not isinstance(left, dict):
            return True
        before = self._heard.get(sender)
        if before is not None and before[0] == life and number <= before[1]:
            return True
        if len(self._heard) >= MOST_SENDERS:
            self._heard.clear()
        self._heard[sender] = life, number
        for name, seconds in [*left.items()][: self._most_names]:
            if is_number(seconds, self._most_seconds):
                self._on_heard(name, seconds)
        return True
