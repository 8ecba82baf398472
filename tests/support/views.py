"""Views of a few agents, and hosts that lie where a test wants them."""

from __future__ import annotations

from functools import cache
from itertools import count
from zlib import crc32

from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.protocol.view import Member, View

REPLICAS = 20  # points of every agent here: the order of agents for a host hangs on it


def incarnation(agent: str, life: int = 0) -> str:
    """The incarnation of an agent in one of its lives."""
    return f"{crc32(f'{agent} {life}'.encode()):08x}"


def view(*agents: str, **lives: int) -> View:
    """The view of these agents, in their first lives unless `agent=life` says otherwise."""
    return View.of({agent: Member(incarnation(agent, lives.get(agent, 0)), 0, REPLICAS) for agent in agents})


@cache
def ordered(*agents: str, nth: int = 0) -> str:
    """A host for which these agents come in this order, whoever of them is there (P1); another one for each `nth`."""
    ring = Ring.of(dict.fromkeys(agents, REPLICAS))
    found = (host for number in count() if ring.order(host := f"h{number}.example") == agents)
    for _ in range(nth):
        next(found)
    return next(found)
