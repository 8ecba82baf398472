"""What Scrapy has under way at this agent, as a reason why nothing more is fetched: loads, robots.txt, callbacks and
item pipelines, pages that wait for room.

Rules of this module: it only reads; linear in the requests under way, of which there are some dozens.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.robots.fetch import LOAD
from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import IdleReason, reason
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.urls.host_shards import host_of_key

MOVING = (Transfer.TRANSFERRING, Transfer.ABORTING)
DEFAULT = "parse"  # the callback of a request that names none


def under_way(flights: Iterable[Flight]) -> IdleReason | None:
    """What these wait for; None where there is nothing."""
    held = list(flights)
    moving = [one for one in held if one.transfer in MOVING]
    robots = [one for one in moving if LOAD in one.request.meta]
    loads = [one for one in moving if LOAD not in one.request.meta]
    if loads:
        return reason(kinds.LOADS, hosts_of(loads), len(loads), since=_since(loads))
    if robots:
        return reason(kinds.ROBOTS, hosts_of(robots), len(robots), since=_since(robots))
    waiting = [one for one in held if one.transfer in (Transfer.WAITING, Transfer.GRANTED)]
    if waiting:
        return reason(kinds.PERMITS, hosts_of(waiting), len(waiting))
    return in_callbacks(held)


def full(flights: Iterable[Flight], kind: str) -> IdleReason | None:
    """Why no further request is taken where an observer has no room (`PageObserver.full`)."""
    return in_callbacks(flights, kind) if kind == kinds.MEMORY else reason(kind)


def in_callbacks(flights: Iterable[Flight], kind: str = kinds.CALLBACKS) -> IdleReason | None:
    """Which callbacks have pages, with their item pipelines; None where none has."""
    pages = [one for one in flights if one.transfer is not Transfer.WAITING]
    if not pages:
        return None
    names = Counter(callback_of(one) for one in pages)
    told = tuple(f"{name} ({number})" for name, number in names.most_common())
    more = f"{len(pages)} page{'' if len(pages) == 1 else 's'}"
    return reason(kind, told, since=_since(pages), more=more)


def callback_of(flight: Flight) -> str:
    """What the callback of a request is called."""
    callback = flight.request.callback
    return str(getattr(callback, "__name__", None) or DEFAULT)


def hosts_of(flights: Sequence[Flight]) -> tuple[str, ...]:
    """Their hosts, those first that are waited for longest."""
    oldest_first = sorted(flights, key=lambda one: one.began)
    return tuple(dict.fromkeys(host_of_key(one.host or one.request.url) for one in oldest_first))


def _since(flights: Sequence[Flight]) -> float:
    """When the oldest of them began (unix s); 0.0 where that is not known."""
    began = min((one.began for one in flights if one.began), default=0.0)
    return unix() - (time.monotonic() - began) if began else 0.0
