"""Hosts on one IP address, one load at a time (UBI_POLITE_BY_IP).

Rules of this module:

* The address of a host is the one that its last response came from: nothing is looked up, so nothing is known of a host
  before its first load.
* A load of one host of an address keeps the others waiting until it has ended, and for their delay after that. Who has
  to wait is given a turn of its own behind those that wait already, so that a thousand hosts of one address are looked
  at about once a load, and not all of them after each.
* Hosts with several loads at once neither wait for others of their address nor keep them waiting.
* It holds within one agent: other agents own other hosts of the address, and load from them.
* HostShards of a host are on one address and meant to be loaded side by side: nothing is learned of them.
* What is known is bounded (`MOST_HOSTS`); what was learned longest ago is forgotten first.
"""

from __future__ import annotations

from scrapy_ubi.frontier.host_loads import Limit, one_page_at_a_time
from scrapy_ubi.urls.host_shards import MARK

MOST_HOSTS = 100_000  # about 20 MB
SMOOTHING = 0.3  # of how long loads take: the last three or so count
LEAST_TURN = 0.01  # s


class _Address:
    """One address. `loading`: the host of the load under way, since `began`; `free_at`:
    before this nothing is loaded; `turns_end`: when the last turn given begins; `takes`: how long a load takes.
    """

    __slots__ = ("began", "free_at", "loading", "takes", "turns_end")

    def __init__(self) -> None:
        self.loading = ""
        self.began = 0.0
        self.free_at = 0.0
        self.turns_end = 0.0
        self.takes = LEAST_TURN


class IpPoliteness:
    """The addresses of one agent's hosts. Times are seconds of its clock; `limit` says which hosts have several loads
    at once."""

    def __init__(self, limit: Limit = one_page_at_a_time, most: int = MOST_HOSTS) -> None:
        self._limit = limit
        self._most = most
        self._of: dict[str, str] = {}  # host -> address
        self._addresses: dict[str, _Address] = {}
        self._under_way: dict[str, _Address] = {}  # host -> where its load began

    def __len__(self) -> int:
        return len(self._of)

    @property
    def addresses(self) -> int:
        """How many addresses are remembered."""
        return len(self._addresses)

    def learn(self, host: str, address: str) -> None:
        """A response of this host came from this address."""
        if MARK in host:
            return
        self._of.pop(host, None)  # it is the last one learned now
        self._of[host] = address
        if address not in self._addresses:
            self._addresses[address] = _Address()
        if len(self._of) > self._most:
            self._forget()

    def _forget(self) -> None:
        """Forget a tenth of the hosts, and the addresses of which no host is known."""
        for host in [*self._of][: max(1, self._most // 10)]:
            del self._of[host]
        kept = set(self._of.values())
        self._addresses = {name: one for name, one in self._addresses.items() if name in kept or one.loading}

    def _find(self, host: str) -> _Address | None:
        address = self._of.get(host)
        return None if address is None else self._addresses.get(address)

    def turn(self, host: str, now: float) -> float:
        """From when on this host may be loaded, as far as its address goes: `now`, or a later turn of its own."""
        one = self._find(host)
        if one is None or (not one.loading and one.free_at <= now) or self._limit(host):
            return now
        one.turns_end = max(one.turns_end, one.free_at, now) + one.takes
        return one.turns_end

    def taken(self, host: str, now: float) -> None:
        """A request of this host was handed out."""
        one = self._find(host)
        if one is not None and not one.loading and not self._limit(host):
            one.loading, one.began = host, now
            self._under_way[host] = one

    def freed(self, host: str, now: float, delay: float) -> None:
        """Its load has ended; `delay` (s) is that of the host."""
        one = self._under_way.pop(host, None) or (None if self._limit(host) else self._find(host))
        if one is None:
            return
        if one.loading == host:
            one.loading = ""
            one.takes += SMOOTHING * (max(LEAST_TURN, now - one.began + delay) - one.takes)
        one.free_at = max(one.free_at, now + delay)
