"""The inbox for seeds: URLs that come from outside, by a stream of the crawl, and what its writers are told of them.

Rules of this module:

* A seed is taken by the agent that owns its host, and handed to that one by every other: what is said of it (known, or
  beyond a limit) is said by who knows.
* It is answered, and deleted from the stream, when it is on this agent's disk, and on those of the host's successors:
  with a drain that comes after its own, once all mail of that flush and of those before is acknowledged. Taken twice,
  as after a crash, it is known.
* It is outside data, validated whole by the adapter; what is refused is a dead letter, with the reason.
* An agent that has much to send, or can neither own nor write anything, reads none: they wait in the stream.
* Every crawl takes seeds until it is over: who ends it sees in the same step that none waits (`CrawlEnd.seen`).
* One that serves reads them in every exchange. Any other looks twice a second whether some wait, and reads only then.
* An agent that serves is never passive (`agent.end.start_exhausted` is what says so), so a crawl with one does not end.
  One that is to finish serves until it has read that no seed waits.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.transport import Fields, RawFields
from scrapy_ubi.transport.contract import LISTED, MOST_SEED_URL, SeedAnswer

logger = logging.getLogger("scrapy_ubi")

MOST = 100  # seeds of one exchange: some 10 ms of the loop
HEAD = 256  # characters of a seed, or of a reason, that people see
MOST_NAME = 200  # characters of what its writer calls a seed
MOST_SAID = 20  # refusals in the log
OK, KNOWN, REFUSED = "OK", "KNOWN", "REFUSED"


class SeedOutcome(NamedTuple):
    """What becomes of a seed: one word and why, or the agent that it is for; `url`: that of its request."""

    said: str = OK
    why: str = ""
    owner: str = ""
    url: str = ""


Take = Callable[[str, Mapping[str, str]], SeedOutcome]  # id, fields


class SeedInbox:
    """Takes seeds by `take`. `serves`: the crawl waits for them; `on_end` is called when it does so no longer.
    `finishing`: it is to do so only until no seed waits. `is_open`: seeds can come, by this transport."""

    def __init__(self, take: Take, on_end: Callable[[], None], serves: bool = True) -> None:
        self.serves = serves
        self.is_open = True
        self._some = False  # seeds waited when that was looked at last
        self._take = take
        self._on_end = on_end
        self.finishing = False
        self._read = False  # the exchange under way reads seeds
        self._taken: deque[tuple[int, SeedAnswer]] = deque()  # with their flush
        self._handed: list[tuple[str, str]] = []
        self._dead: list[Fields] = []
        self.counts: Counter[str] = Counter()  # by what was said

    def close(self) -> None:
        """Take none: they cannot come."""
        self.is_open = self.serves = False

    def wanted(self, agent: Agent, most_waiting: int) -> int:
        """How many seeds the exchange of `agent` that begins now may read; none where so many records wait to be
        sent."""
        group = agent.group
        may = group.sure and not (agent.leaving or agent.end.finished or group.claim.shadowed)
        self._read = may and (self.serves or self._some) and len(agent.outbox) <= most_waiting
        return MOST if self._read else 0

    def note_waiting(self, waiting: int) -> bool:
        """So many wait, those that are taken and not answered among them. Whether that is news."""
        before, self._some = self._some, waiting > 0
        return self._some and not before

    def receive(self, seeds: Iterable[tuple[str, RawFields]], flush: int) -> bool:
        """The exchange has ended, and has read these; what is found now is of this flush. Whether some were taken."""
        read, self._read = self._read, False
        none, before = True, self.counts[OK]
        for number, raw in seeds:
            none = False
            self._receive(number, raw, flush)
        if none and read and self.finishing and self.serves and not self._taken:
            self.serves = False
            self._on_end()
        return self.counts[OK] > before

    def _receive(self, number: str, raw: RawFields, flush: int) -> None:
        try:
            fields = {name.decode(): value.decode() for name, value in raw.items()}
        except UnicodeDecodeError:
            outcome, fields = SeedOutcome(REFUSED, "not UTF-8 text"), {}
        else:
            outcome = SeedOutcome(REFUSED, "too large") if "oversized" in fields else self._take(number, fields)
        if outcome.owner:
            self._handed.append((number, outcome.owner))
            return
        self.counts[outcome.said] += 1
        url = (outcome.url or _asked_for(fields))[:MOST_SEED_URL]
        answer = SeedAnswer(number, outcome.said, outcome.why[:HEAD], fields.get("id", "")[:MOST_NAME], url)
        self._taken.append((flush, answer))
        if outcome.said == REFUSED:
            self._refuse(raw, outcome.why[:HEAD])

    def _refuse(self, raw: RawFields, reason: str) -> None:
        size = raw.get(b"oversized") or str(sum(len(name) + len(value) for name, value in raw.items())).encode()
        head = raw.get(b"head") or b" ".join(name + b"=" + value[:HEAD] for name, value in raw.items())
        text = head[:HEAD].decode("utf-8", "replace")
        self._dead.append({"reason": reason, "from": "seeds", "size": size.decode("ascii", "replace"), "head": text})
        if self.counts[REFUSED] <= MOST_SAID:
            logger.warning("A seed was refused (%s): %r; see the dead letters.", reason, text)
        if self.counts[REFUSED] == MOST_SAID:
            logger.warning("More of this kind is not said any more, only counted (ubi/seeds/refused).")

    def answers(self, oldest: int | None) -> list[SeedAnswer]:
        """What is to be answered now; `oldest` is the first flush of which mail is not acknowledged (None: of none)."""
        answers = []
        while self._taken and (oldest is None or self._taken[0][0] < oldest):
            answers.append(self._taken.popleft()[1])
        return answers

    def handed(self) -> list[tuple[str, str]]:
        """(id, agent) of what is for others, since the last call."""
        handed, self._handed = self._handed, []
        return handed

    def dead_letters(self) -> list[Fields]:
        """What was refused since the last call."""
        dead, self._dead = self._dead, []
        return dead


def _asked_for(fields: Mapping[str, str]) -> str:
    """What a seed that is no request asks for, as its writer has written it."""
    return next((text for name in ("url", "request", LISTED) if (text := fields.get(name))), "")
