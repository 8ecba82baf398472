"""The health of a host: who does not answer is left alone for a while, each time for longer, and then given up.

LARM's idea: five time-outs or connection errors in a row, and a host is not healthy. Rules of this module:

* What counts is that a load ended without a response; a response, whatever its status, makes the host healthy again.
* With `Policy.failures` in a row the host is *excluded* for `Policy.pause` seconds. It has one try then: the next
  failure excludes it for twice as long, up to `MOST_PAUSE`.
* A failure after `Policy.tries` exclusions: the host is *dead*.
* No clock and no host in here: `failed` is a function of what is known and what happened. What is known travels with
  the host as two numbers, and may come from another agent: `read` takes what holds.
"""

from __future__ import annotations

from typing import NamedTuple

from scrapy_ubi.ground.untrusted.checks import is_list, is_whole

MOST_PAUSE = 3600.0  # s; a server that was down for an hour is looked at once an hour
MOST_COUNT = 1_000_000


class Policy(NamedTuple):
    """`failures` in a row exclude a host, 0: none do; `pause` (s) is its first exclusion; after `tries` it is dead."""

    failures: int
    pause: float
    tries: int


class Health(NamedTuple):
    """What is known of a host: `failures` in a row, and how often it was excluded since it last answered."""

    failures: int = 0
    exclusions: int = 0

    def value(self) -> list[int]:
        """As JSON has it."""
        return [self.failures, self.exclusions]


class HealthVerdict(NamedTuple):
    """What follows from a failure: the new `health`, the seconds for which the host is excluded, whether it is dead."""

    health: Health
    pause: float = 0.0
    dead: bool = False


def read(value: object) -> Health:
    """The health in a JSON value; that of a healthy host where it holds none."""
    if not is_list(value, 2, lambda count: is_whole(count, 0, MOST_COUNT)) or len(value) != 2:
        return Health()
    return Health(*value)


def failed(health: Health, policy: Policy) -> HealthVerdict:
    """What follows when a load of a host in this health ends without a response."""
    known = Health(min(health.failures + 1, MOST_COUNT), health.exclusions)
    if not policy.failures or known.failures < policy.failures:
        return HealthVerdict(known)
    if known.exclusions >= policy.tries:
        return HealthVerdict(known, dead=True)
    pause = min(policy.pause * 2.0 ** min(known.exclusions, 60), MOST_PAUSE)
    return HealthVerdict(Health(known.failures, known.exclusions + 1), max(pause, policy.pause))
