"""The policy of an agent's hosts, as the protocol asks for it: limits, notes, and the turns of addresses."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.agent.hosts.host_limits import HostLimits
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.ip_politeness import IpPoliteness
from scrapy_ubi.frontier.host_loads import Limit, one_page_at_a_time
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.protocol.host_policy import FREE, HostPolicy


def host_policy(
    hosts: HostNotes,
    limits: HostLimits,
    addresses: IpPoliteness | None,
    limit: Limit = one_page_at_a_time,
    may_take: Callable[[HostState], bool] | None = None,
    on_turn: Callable[[HostState, float], None] = FREE.on_turn,
) -> HostPolicy:
    """The policy that these make; without `addresses` hosts of one address do not wait for each other, nor do those
    with several loads at once, as `limit` says; `may_take` tells whether an iteration of
    a host goes on, where hosts have iterations. `on_turn` is told
    of each host whose turn it is."""

    def wait_for_address(state: HostState, now: float) -> None:
        on_turn(state, now)
        if addresses is not None and not limit(state.host) and not hosts.read_end_reason(state):
            turn = addresses.turn(state.host, now)
            if turn > now:
                hosts.wait_until(state, turn)

    return HostPolicy(
        refuses=refuses_by(limits),
        on_turn=on_turn if addresses is None else wait_for_address,
        on_notes=hosts.arrived,
        on_request=hosts.lift_for,
        may_take=may_take,
    )


def refuses_by(limits: HostLimits) -> Callable[[HostState | None, Entry], bool]:
    """What refuses URLs by these limits; no call is spent on limits that are not set."""
    return FREE.refuses if limits.idle else limits.refuses
