"""What becomes of a request or link that was found, in one word."""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """One word for each end that the way in has. True where the request is to be fetched."""

    FOUND = "found"  # news: queued here, or sent to its owner
    RETRIED = "retried"  # of a request that is out: it is fetched again
    LOCAL = "local"  # it belongs to no host, and waits here
    KNOWN = "known"  # a duplicate
    LIMITED = "limited"  # beyond a limit of the crawl or of its host
    FILTERED = "filtered"  # a filter refuses it
    UNREACHABLE = "unreachable"  # a page may not lead there
    TOO_LONG = "too long"  # its URL
    TOO_LARGE = "too large"  # for a letter, and its host is another agent's
    LATE = "late"  # the crawl is over
    NO_ROOM = "no room"  # it belongs to no host, and too many such wait

    def __init__(self, word: str) -> None:
        self.is_taken = word in ("found", "retried", "local")

    def __bool__(self) -> bool:
        return self.is_taken
