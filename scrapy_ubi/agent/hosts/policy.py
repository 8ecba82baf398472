"""The policy of an agent's hosts, as the protocol asks for it: limits, notes, and the turns of addresses."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.ip_politeness import IpPoliteness
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy


def host_policy(
    hosts: HostNotes,
    limits: HostLimits,
    addresses: IpPoliteness | None,
    may_take: Callable[[HostState], bool] | None = None,
    on_turn: Callable[[HostState, float], None] = FREE.on_turn,
) -> HostPolicy:
    """The policy that these make; without `addresses` hosts of one address do not wait for each other. `may_take` tells
    whether an iteration of a host goes on, where hosts have iterations. `on_turn` is told of each host whose turn it
    is."""
    if addresses is None:
        turns = on_turn
    else:
        turn_of = addresses.turn

        def turns(state: HostState, now: float) -> None:
            on_turn(state, now)
            if not hosts.read_end_reason(state) and (turn := turn_of(state.host, now)) > now:
                hosts.wait_until(state, turn)

    return HostPolicy(
        refuses=refuses_by(limits),
        on_turn=turns,
        on_notes=hosts.arrived,
        on_request=hosts.lift_for,
        may_take=may_take,
    )


def refuses_by(limits: HostLimits) -> Callable[[HostState | None, Entry], bool]:
    """What refuses URLs by these limits; no call is spent on limits that are not set."""
    return FREE.refuses if limits.idle else limits.refuses
