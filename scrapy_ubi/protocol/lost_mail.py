"""That mail to an agent was lost: it says so itself, as it alone reads the slot in which its mail is.

Rules of this module:

* What names the memory of the own mail slot (`Incoming.memory` of the transport) is another text after that slot was
  emptied, or its server replaced by one that may lack the last moments. Then letters to this agent may be gone, and
  answers to its own. All others are told: a number in the hash of answers, as every `Talk`.
* Who hears of it sends what is under way to that agent again, and says its answers to it again, at once. Nothing rests
  on that: what is told may be lost as well, and then the time-outs of letters do the same, later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable

from scrapy_ubi.ground.untrusted.checks import is_whole
from scrapy_ubi.protocol.talk import MOST_NUMBER, MOST_SENDERS

LANE = "lost "


class LostMail:
    """What one agent tells of its own mail slot, and hears of others. `life` gives the own incarnation, `members` the
    names of all agents; `repeat` is told whose mail was lost, `forget` which text was read.
    """

    is_open = True

    def __init__(
        self,
        me: str,
        life: Callable[[], str],
        members: Callable[[], Iterable[str]],
        repeat: Callable[[Collection[str]], None],
        forget: Callable[[str], None],
    ) -> None:
        self._me, self._life, self._members, self._repeat, self._forget = me, life, members, repeat, forget
        self._memory = ""
        self._number = 0
        self._tells = False
        self._heard: dict[str, tuple[str, int]] = {}  # sender -> life and number

    def note_memory(self, memory: str) -> bool:
        """Note what names the memory of the own mail slot now. Return whether it has lost something, or may have."""
        before, self._memory = self._memory, memory or self._memory
        is_lost = bool(before and memory and before != memory)
        if is_lost:
            self._number += 1
            self._tells = True
        return is_lost

    def messages(self, now: float) -> dict[tuple[str, str], str]:
        """See `Talk`."""
        if not self._tells:
            return {}
        self._tells = False
        text = json.dumps({"from": self._life(), "number": self._number}, separators=(",", ":"))
        return {(name, LANE + self._me): text for name in self._members() if name != self._me}

    def hear(self, lane: str, text: str, now: float) -> bool:
        """See `Talk`."""
        if not lane.startswith(LANE):
            return False
        self._forget(lane)
        sender = lane.removeprefix(LANE)
        try:
            said = json.loads(text)
            life, number = said["from"], said["number"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return True
        if (
            not isinstance(life, str)
            or not is_whole(number, 0, MOST_NUMBER)
            or self._heard.get(sender) == (life, number)
        ):
            return True
        if len(self._heard) >= MOST_SENDERS:
            self._heard.clear()
        self._heard[sender] = life, number
        self._repeat((sender,))
        return True
