"""Seeds that one agent reads from a Redis: which are in hand, and when to look for those of agents that are gone.

Rules of this module:

* A seed is in hand from being handed out until it was answered or handed on in an exchange that has succeeded.
* Those of others are looked for every `LOOK` seconds only: it costs a look at each that waits for its answer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redis.crc import key_slot

from scrapy_ubi.ground import clock
from scrapy_ubi.transport.contract import SEED_IDLE, Outgoing, Outside, RawFields, TransportError
from scrapy_ubi.transport.delivered import InHand
from scrapy_ubi.transport.exchange_commands import ExchangeCommands
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.round_trips import RedisCommand

logger = logging.getLogger(__name__)

OUTSIDE = "outside"  # no key: what is read is what is there of seeds
LOOK = 5.0  # s between two looks at what other agents have not answered; more often where they are idle sooner


@dataclass(frozen=True, slots=True)
class SeedSource:
    """Where seeds come from beside their stream: the key of a list, set or sorted set, "" for none. `idle`: seconds
    after which a seed is another agent's (the contract's `seed_idle`). `needed`: the crawl waits for seeds, so that a
    server by which none can come is refused."""

    seed_list: str = ""
    idle: float = SEED_IDLE
    needed: bool = True


class NoSeeds:
    """A transport by which no seeds come."""

    is_open = False  # whether seeds may come
    needed = False  # whether the crawl waits for seeds

    def probes(self) -> Iterable[RedisCommand]:
        """What the transport cannot do without."""
        return ()

    def need_slot(self, keys: RedisKeys) -> None:
        """In a cluster the list must be where the crawl is. Raises TransportError, one sentence."""

    def moves(self, out: Outgoing) -> Iterable[RedisCommand]:
        """What makes seeds of the list, ahead of the read."""
        return ()

    def reads(self, out: Outgoing, budget: int) -> dict[str, RedisCommand]:
        """Key, or `OUTSIDE` -> the command that reads it."""
        return {}

    def exchanged(self, out: Outgoing, read: Sequence[tuple[str, RawFields]]) -> None:
        """An exchange has succeeded, and these seeds were read in it."""


class SeedReader(NoSeeds):
    """The seeds of one transport."""

    is_open = True

    def __init__(self, source: SeedSource, commands: ExchangeCommands, counts: Counter[str]) -> None:
        self._source = source
        self._commands = commands
        self._counts = counts
        self._in_hand = InHand()
        self._look_at = 0.0  # when to look for seeds of others (s)
        self.needed = source.needed

    def probes(self) -> Iterable[RedisCommand]:
        yield self._commands.look_outside()
        yield self._commands.read_seeds(0, 0, self._source.idle, ())
        if self._source.seed_list:
            yield self._commands.move_list(self._source.seed_list, 0)

    def need_slot(self, keys: RedisKeys) -> None:
        name = self._source.seed_list
        if name and key_slot(name.encode()) != keys.slot:
            raise TransportError(
                f"UBI_SEED_LIST: in the cluster that UBI_REDIS_URL names, {name[:80]!r} is in another slot than the "
                f"crawl; give the list a name that begins with {{{keys.crawl}}}."
            )

    def moves(self, out: Outgoing) -> Iterable[RedisCommand]:
        if out.read_seeds and self._source.seed_list:
            yield self._commands.move_list(self._source.seed_list, out.read_seeds)

    def reads(self, out: Outgoing, budget: int) -> dict[str, RedisCommand]:
        looks = {OUTSIDE: self._commands.look_outside()} if out.look_outside else {}
        if not out.read_seeds:
            return looks
        room, now = self._in_hand.room(out.read_seeds), clock.now()
        look = now >= self._look_at
        if look:
            self._look_at = now + min(LOOK, self._source.idle / 2)
        idle = self._source.idle if look else None
        return looks | {self._commands.keys.seeds: self._commands.read_seeds(room, budget, idle, self._in_hand.held)}

    @staticmethod
    def outside(answer: Any) -> Outside | None:
        """What was answered to the look; None where there was none. Raises ValueError, TypeError, AttributeError."""
        if answer is None:
            return None
        waiting, mark = answer
        return Outside(int(waiting), mark.decode("ascii", "backslashreplace"))

    def exchanged(self, out: Outgoing, read: Sequence[tuple[str, RawFields]]) -> None:
        self._in_hand.deleted([answer.number for answer in out.seeds_answered])
        self._in_hand.deleted([number for number, _ in out.seeds_for])
        self._in_hand.hand_out(number for number, _ in read)
