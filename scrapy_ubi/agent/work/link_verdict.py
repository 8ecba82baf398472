"""What becomes of a request or link that was found: the table of all answers, what counts each, and its reason.

The node gives four of them (FOUND, KNOWN, LIMITED, TOO_LARGE), `adapter/scheduling/link_decision.py` and the doors
before it the others. docs/reference/stats.md shows the same table; tests compare the two, and count each answer.
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """One word for each end that the way in has. True where the request is to be fetched.

    `value`: the word; `is_taken`: whether the request is to be fetched; `stats`: one of these counts it; `reason`: why.
    """

    FOUND = "found", True, ("ubi/scheduler/enqueued",), "it is news: it is queued here, or sent to its owner"
    RETRIED = "retried", True, ("ubi/scheduler/retries",), "its request is under way, and is fetched again"
    LOCAL = "local", True, ("ubi/scheduler/local",), "it belongs to no host, and waits here"
    KNOWN = "known", False, ("ubi/scheduler/duplicates",), "it is a duplicate"
    LIMITED = (
        "limited",
        False,
        ("ubi/limits/<limit>",),
        "its host is ended or given up, or a limit of the crawl or of the host is reached",
    )
    FILTERED = "filtered", False, ("ubi/filtered/<filter>",), "a filter refuses it"
    UNREACHABLE = (
        "unreachable",
        False,
        ("ubi/scheduler/dropped/private", "ubi/scheduler/dropped/scheme"),
        "a page may not lead there",
    )
    BAD_HOST = "bad host", False, ("ubi/scheduler/dropped/bad_host",), "the host that it names is none"
    TOO_LONG = "too long", False, ("ubi/scheduler/dropped/url_too_long",), "its URL is longer than URLLENGTH_LIMIT"
    TOO_LARGE = "too large", False, ("ubi/scheduler/dropped/too_large",), "it is too large for a letter"
    MALFORMED = "malformed", False, ("ubi/scheduler/dropped/malformed",), "it is a plain link, and no URL"
    LATE = "late", False, ("ubi/scheduler/dropped/over",), "the crawl is over"
    NO_ROOM = "no room", False, ("ubi/scheduler/dropped/local",), "it belongs to no host, and too many such wait"

    def __new__(cls, word: str, is_taken: bool, stats: tuple[str, ...], reason: str) -> Verdict:
        verdict = object.__new__(cls)
        verdict._value_ = word
        return verdict

    def __init__(self, word: str, is_taken: bool, stats: tuple[str, ...], reason: str) -> None:
        self.is_taken = is_taken
        self.stats = stats
        self.reason = reason

    def __bool__(self) -> bool:
        return self.is_taken
