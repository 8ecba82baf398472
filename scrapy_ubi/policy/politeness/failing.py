"""Hosts that answer with errors: left alone for growing pauses while they do, and given up after a bound.

An error is an answer of 5xx or 429 that Scrapy would retry and that neither request, spider nor settings want to see.
Rules of this module:

* What counts is a *streak*: errors without any other answer between them. One page that always fails is no streak: a
  streak grows by pages, not by loads.
* After the errors of `Policy.failures` different pages (a *round*) the host rests: at first for `Policy.pause` / 64,
  then twice as long each time, up to `MOST_PAUSE`. The next round begins after that. There are `SHORT_RESTS` rests that
  are shorter than `Policy.pause`, and then `Policy.tries` others; the round after the last one is the host's end.
* From the first rest on a page's first error in a round uses up none of its retries: it is *spared*. Its next one in
  the same round counts, so that a round with too few pages ends, too.
* A host that is *gone*: a proxy says (502, 504, no tunnel) that it cannot be reached, and it has never answered. Each
  such load is a round, no page is spared, and there are short rests only, `Policy.tries` of them.
* No clock and no host in here, as in `health`; what is known travels with the host, and `read` drops what is not valid.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_list, is_whole
from scrapy_ubi.policy.politeness.health import MOST_COUNT, MOST_PAUSE, Policy

SHORT_RESTS = 6  # 2 ** 6 = 64: the rest after these is the policy's pause
LEAST_RESTS = 2  # of a host that is gone: its first page is tried three times, as Scrapy would
MOST_PAGES = 20  # of a round: they are noted with the host, and travel
MOST_PAGE = 2**32 - 1
GATEWAY = (502, 504)  # with these a proxy says that it cannot reach a host


class Streak(NamedTuple):
    """What is known of a host that answers with errors: how often it rested since its last other answer, whether it is
    gone, and the pages of this round (the last 32 bits of their keys)."""

    rests: int = 0
    gone: bool = False
    pages: tuple[int, ...] = ()

    def value(self) -> list[int]:
        """As JSON has it."""
        return [self.rests, int(self.gone), *self.pages]


class Consequence(NamedTuple):
    """What follows from an error: the new streak, how long the host rests (s), whether it is given up, and whether the
    page goes back to its queue with all its retries."""

    streak: Streak
    pause: float = 0.0
    ended: bool = False
    spared: bool = False


def says_unreachable(status: int, proxy: object) -> bool:
    """Whether this answer is that of a proxy (`meta["proxy"]` of its request) which cannot reach the host."""
    return status in GATEWAY and bool(proxy)


def read(value: object) -> Streak | None:
    """The streak in a JSON value; None where it holds none."""
    if not is_list(value, MOST_PAGES + 2, lambda number: is_whole(number, 0, MOST_PAGE)) or len(value) < 2:
        return None
    rests, gone, *pages = value
    return Streak(min(rests, MOST_COUNT), gone == 1, tuple(pages))


def after_error(streak: Streak, page: int, policy: Policy) -> Consequence:
    """What follows when a load of this page, by its key, has ended with an error. `streak`: what is known, or a new one
    where the host had answered otherwise before. With `policy.failures` of 0 nothing follows."""
    if not policy.failures:
        return Consequence(streak)
    page &= MOST_PAGE
    new = page not in streak.pages
    pages = (*streak.pages, page) if new else streak.pages
    round_ends = streak.gone or len(pages) >= min(policy.failures, MOST_PAGES)
    spared = new and not streak.gone and (round_ends or streak.rests > 0)
    if not round_ends:
        return Consequence(streak._replace(pages=pages), spared=spared)
    most = max(policy.tries, LEAST_RESTS) if streak.gone else SHORT_RESTS + policy.tries
    if streak.rests >= most:
        return Consequence(streak._replace(pages=()), ended=True, spared=spared)
    pause = policy.pause * 2.0 ** (min(streak.rests, 60) - SHORT_RESTS)
    return Consequence(Streak(streak.rests + 1, streak.gone), min(pause, max(MOST_PAUSE, policy.pause)), spared=spared)
