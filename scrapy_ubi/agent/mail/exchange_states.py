"""The states of an exchange, how it ends, and what follows: the table that `exchange` goes by.

        send: pause after an outage, or a flush is due
             +-----------------------------------------> DISK --+
             |        absence, or another process is suspected  |
    IDLE ----+-----------------------------------------> LOOK --+--> collect: AFTER[state, result], then IDLE
             |        else                                      |
             +-----------------------------------------> MAIL --+

             DONE        NO_ROOM      BROKEN    REFUSED         UNANSWERED
    DISK     WRITTEN     DISK_FULL    FATAL     (impossible)    (impossible)
    LOOK     LOOKED      DISK_FULL    FATAL     REDIS_FULL      AWAY
    MAIL     SENT        DISK_FULL    FATAL     REDIS_FULL      HALVED

Rules of this module:

* A pair of state and result that is not in the table is a mistake of ours: looking it up raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from scrapy_ubi.frontier.store import StoreError, StoreFull, StoreHeldBack
from scrapy_ubi.transport import Incoming, TransportDown, TransportFull


class State(Enum):
    """What is under way."""

    IDLE = "nothing"
    DISK = "the disk is written"
    LOOK = "the disk is written, and the control hash read"
    MAIL = "the disk is written, mail sent and read"


class Result(Enum):
    """How it has ended."""

    DONE = "all was taken"
    NO_ROOM = "the disk is full"
    BROKEN = "the disk cannot be used"
    REFUSED = "Redis is full"
    UNANSWERED = "Redis is away, or too slow"


class Then(Enum):
    """What follows."""

    WRITTEN = "nothing more"
    LOOKED = "take in what the control hash says; mail may be sent again"
    SENT = "what was sent is taken; take in what was read"
    DISK_FULL = "nothing leaves until there is room; take in what was read"
    FATAL = "the agent stops"
    REDIS_FULL = "take in what was read; try the rest later"
    AWAY = "try again later"
    HALVED = "try again later, with half as many letters"


AFTER: Mapping[tuple[State, Result], Then] = {
    (State.DISK, Result.DONE): Then.WRITTEN,
    (State.DISK, Result.NO_ROOM): Then.DISK_FULL,
    (State.DISK, Result.BROKEN): Then.FATAL,
    (State.LOOK, Result.DONE): Then.LOOKED,
    (State.LOOK, Result.NO_ROOM): Then.DISK_FULL,
    (State.LOOK, Result.BROKEN): Then.FATAL,
    (State.LOOK, Result.REFUSED): Then.REDIS_FULL,
    (State.LOOK, Result.UNANSWERED): Then.AWAY,
    (State.MAIL, Result.DONE): Then.SENT,
    (State.MAIL, Result.NO_ROOM): Then.DISK_FULL,
    (State.MAIL, Result.BROKEN): Then.FATAL,
    (State.MAIL, Result.REFUSED): Then.REDIS_FULL,
    (State.MAIL, Result.UNANSWERED): Then.HALVED,
}


class DiskFull(Exception):
    """A flush could not be written, as the disk is full, or (`held_back`) pipelines have not written their items yet.
    `incoming` is what Redis had meanwhile (None: it was away), `why` a sentence."""

    def __init__(self, why: StoreFull, incoming: Incoming | None) -> None:
        super().__init__(str(why))
        self.why = str(why)
        self.held_back = isinstance(why, StoreHeldBack)
        self.incoming = incoming


_RESULTS: tuple[tuple[type[Exception], Result], ...] = (
    (DiskFull, Result.NO_ROOM),
    (StoreError, Result.BROKEN),
    (TransportFull, Result.REFUSED),
    (TransportDown, Result.UNANSWERED),
)  # the first that fits counts


def result_of(error: BaseException | None) -> Result:
    """The result that an error stands for, None: none. What is no result is a mistake of ours, and raised."""
    if error is None:
        return Result.DONE
    for kind, result in _RESULTS:
        if isinstance(error, kind):
            return result
    raise error
