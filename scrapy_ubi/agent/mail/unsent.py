"""What a drain has given, until exchanges have taken all of it.

Rules of this module:

* It leaves in one exchange, or in parts where the line is too slow for that: half as many letters after each exchange
  that was not answered, more again after each that was. Over a long line it leaves in parts as well, so that the
  first of it need not wait for the last.
* An inbox entry is deleted with the next drain after its merge; where Redis is full, with the next try: reading mail is
  what makes room again.
"""

from __future__ import annotations

import math
from dataclasses import replace

from scrapy_ubi.agent.mail.inbox_check import RUN, InboxCheck
from scrapy_ubi.agent.mail.run_state import RunState
from scrapy_ubi.protocol.agent import Agent, Effects
from scrapy_ubi.protocol.bundle import gathered
from scrapy_ubi.transport import Outgoing

ALL = 1_000_000  # letters of one exchange, as many as there may ever be
LONG = 0.5  # s: what was drained that long ago has not left at once


class Unsent:
    """The mail of `agent` that is to leave; `largest` is the size of a bundle of letters (characters). `out`: what a
    drain gave, None where exchanges have taken it; `consumed`: inbox entries merged and not yet to be deleted; `told`:
    when the last drain was (s) of which all has left, with a profile.
    """

    def __init__(self, agent: Agent, largest: int) -> None:
        self._agent = agent
        self._largest = largest
        self.out: Outgoing | None = None
        self.consumed: list[str] = []
        self._filled = 0.0  # when a drain gave it (s)
        self._drained = 0.0  # when the last drain was that a profile goes with (s)
        self._most = ALL  # letters of it that the next exchange may send
        self._part = 0  # and how many it did
        self.told = 0.0

    def fill(self, effects: Effects, control: dict[str, str], run: RunState, check: InboxCheck, now: float) -> None:
        """A drain gave these effects at this time (s); `control` is what goes into the control hash."""
        for _, fields in effects.letters:
            fields[RUN] = run.run
        consumed, self.consumed, self._filled = self.consumed, [], now
        self.out = Outgoing(
            letters=gathered(effects.letters, self._largest),
            acks=effects.answers,
            consumed=consumed,
            forget_acks=effects.forget,
            dead_letters=check.dead_letters(),
            control=control,
            control_changes=run.lacking_words(),
            forget_control=check.fields_to_remove(),
            replies=check.replies(),
        )
        if check.seeds.is_open:
            answers, handed = check.seeds.answers(self._agent.outbox.oldest()), check.seeds.handed()
            self.out = replace(self.out, seeds_answered=answers, seeds_for=handed)

    def add_profile(self, profile: str | None, now: float, fresh: bool) -> Outgoing:
        """Have this profile leave with it; `fresh`: it was drained just now."""
        assert self.out is not None
        if profile is not None:
            self.out = replace(self.out, profile=profile)
            self._drained = now if fresh else self._drained
        return self.out

    def part(self, out: Outgoing, most: float = math.inf) -> Outgoing:
        """What of it the next exchange sends: letters of about so many characters, one at least."""
        letters, size = out.letters[: self._most], 0.0
        for count, (_, fields) in enumerate(letters if most < math.inf else ()):
            size += sum(map(len, fields.values()))
            if size > most and count:
                letters = letters[:count]
                break
        self._part = len(letters)
        return replace(out, letters=letters)

    def halve(self) -> None:
        """An exchange of it was not answered."""
        if self.out is not None and self.out.letters:
            self._most = max(1, min(self._most, len(self.out.letters)) // 2)

    def taken(self, now: float, took: float, easy: float) -> bool:
        """An exchange that lasted so long (s) has taken a part; after one that took less than `easy` (s) twice as many
        letters may leave. Whether something is left for the next one."""
        letters = self.out.letters if self.out is not None else ()
        left = letters[self._part :]
        if self._part >= self._most:  # one with fewer says nothing of what the line carries
            self._most = min(2 * self._most if took < easy else self._most + 1, ALL)
        if left:
            self.out = Outgoing(letters=left)
            return True
        self.out, self.told = None, self._drained
        if now - self._filled > LONG:  # not before all have left: what repeats them is the next drain
            self._agent.outbox.left_later(self._filled, now)
        return False

    def refused(self) -> None:
        """Redis is full: what was read and merged meanwhile is deleted with the next try."""
        if self.out is not None:
            self.out = replace(self.out, consumed=self.consumed, profile=None)
        self.consumed = []

    def drop_all(self) -> None:
        """The agent is outlived: nothing of it is to leave."""
        self.out, self.consumed = None, []
