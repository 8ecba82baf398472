"""Memberships, and what they see, for tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.config import Config, Counters
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.view import View
from tests.support.views import REPLICAS, incarnation

LEASE, FAILURE = 3.0, 5.0
DIGEST, OTHER = "00000000000000ff", "00000000000000ee"


def membership(replication: int = 1, me: str = "a") -> Membership:
    config = Config(replication=replication, replicas=REPLICAS, lease_timeout=LEASE, failure_timeout=FAILURE)
    lives = count()
    return Membership(me, config, Counters(), lambda: incarnation(me, next(lives)))


def old_hand(replication: int = 1) -> Membership:
    """One that has been in a view in which all had settled."""
    group = membership(replication)
    all_settle(group, group.view())
    return group


def all_settle(group: Membership, now: View, *others: Beat) -> None:
    """Everybody has settled in that view; `others` are their beats."""
    group.losses.entered(now)
    group.losses.released(now, [beat("a", era=group.losses.base), *others])


def beat(agent: str, counter: int = 1, **rest: object) -> Beat:
    return replace(Beat(incarnation(agent), 0, REPLICAS, DIGEST, counter=counter), **rest)  # type: ignore[arg-type]


def peers(names: str) -> dict[str, str]:
    return {name: incarnation(name) for name in names}


def kill(group: Membership, agent: str) -> None:
    """Somebody names this agent as dead."""
    group.read(1.0, 1.0, {"witness": beat("witness", dead=(incarnation(agent),))})
