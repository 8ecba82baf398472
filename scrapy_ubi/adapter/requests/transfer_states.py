"""The states of a request at the gate: whether its transfer may start, and whether it may still go on.

    UNASKED > WAITING > GRANTED > TRANSFERRING > ENDED      the usual way

Rules of this module:

* All transitions stand in `ALLOWED`; each has its reason beside it. Another one is a bug: it would lose a permit, and
  with it a host, or start a second transfer beside the first.
* The permit of the host is held in the states of `HOLDING`, and in no other. So a permit cannot be given back twice, or
  be forgotten.
* No clock, task or host in here.
"""

from __future__ import annotations

from enum import IntEnum


class Transfer(IntEnum):
    """The state of the transfer of one request. Integers, as their hashes cost no call."""

    UNASKED = 0  # it has not asked for a permit, or goes without one
    WAITING = 1  # it waits for the permit of its host
    GRANTED = 2  # it has the permit, and its transfer has not started: it may wait for a place in Scrapy's downloader
    TRANSFERRING = 3  # its transfer is under way
    ABORTING = 4  # its transfer was cancelled and has not ended yet
    ENDED = 5  # its transfer has ended, or there will be none
    WITHDRAWN = 6  # it is not fetched here and now: its page waits in the queue again


class WrongTransition(RuntimeError):
    """A transition that the table does not allow: a bug of this package."""


HOLDING = frozenset({Transfer.GRANTED, Transfer.TRANSFERRING, Transfer.ABORTING})  # it holds the permit of its host
BUSY = HOLDING | {Transfer.WAITING}  # a second download of the same request object has to wait

ALLOWED: dict[Transfer, frozenset[Transfer]] = {
    Transfer.UNASKED: frozenset(
        {
            Transfer.WAITING,  # it comes to the gate
            Transfer.WITHDRAWN,  # the spider is being closed, or its robots.txt was not read
        }
    ),
    Transfer.WAITING: frozenset(
        {
            Transfer.GRANTED,
            Transfer.UNASKED,  # another agent's host, where the settings let it go without a permit
            Transfer.ENDED,  # refused, or cancelled by who asked for it
            Transfer.WITHDRAWN,  # the host is another agent's, or the spider is being closed
        }
    ),
    Transfer.GRANTED: frozenset(
        {
            Transfer.TRANSFERRING,
            Transfer.WAITING,  # the right has ended before the transfer started
            Transfer.ENDED,  # there was no transfer, or one that the gate did not see
        }
    ),
    Transfer.TRANSFERRING: frozenset(
        {
            Transfer.ENDED,  # with a response or an error
            Transfer.WAITING,  # nothing was written, or the kept connection was closed: it is made again
            Transfer.ABORTING,  # the agent has lost the right to it
        }
    ),
    Transfer.ABORTING: frozenset(
        {
            Transfer.WITHDRAWN,
            Transfer.WAITING,  # nothing else asks for it again: it is made again
            Transfer.ENDED,  # the response came nevertheless
        }
    ),
    Transfer.ENDED: frozenset(
        {
            Transfer.WAITING,  # the same request object is downloaded once more
            Transfer.WITHDRAWN,  # the host asks to come back later
        }
    ),
    Transfer.WITHDRAWN: frozenset(
        {
            Transfer.ENDED,  # a middleware gives a response in its place
        }
    ),
}
