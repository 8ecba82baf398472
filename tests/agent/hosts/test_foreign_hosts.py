"""What an agent has met at hosts of other agents: delays and pauses; bounded, and forgotten in the end."""

from __future__ import annotations

from scrapy_ubi.agent.hosts import foreign_hosts as foreign
from scrapy_ubi.agent.hosts.foreign_hosts import LONG_AGO, ForeignHosts

HOST = "h1.example"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.hosts = ForeignHosts(lambda: self.now)


def test_of_a_host_never_met_nothing_is_known() -> None:
    hosts = Clock().hosts
    assert hosts.next_at(HOST, 5.0) == LONG_AGO
    hosts.want(HOST, "slot", 0.0)
    assert not hosts.met


def test_the_largest_delay_counts_from_the_end_of_a_load() -> None:
    clock = Clock()
    hosts = clock.hosts
    hosts.load_ended(HOST)
    assert hosts.next_at(HOST, 1.0) == 101.0
    hosts.want(HOST, "robots", 7.0)  # after the load: as where it was its robots.txt
    hosts.want(HOST, "slot", 3.0)
    assert (hosts.next_at(HOST, 1.0), hosts.next_at(HOST, 9.0)) == (107.0, 109.0)
    hosts.want(HOST, "robots", 0.0)
    assert hosts.next_at(HOST, 1.0) == 103.0


def test_who_asks_to_be_left_alone_is() -> None:
    hosts = Clock().hosts
    hosts.put_off(HOST, 20.0)
    hosts.put_off(HOST, 10.0)
    assert hosts.next_at(HOST, 1.0) == 120.0


def test_those_used_least_recently_are_forgotten_beyond_a_bound() -> None:
    hosts = Clock().hosts
    for number in range(foreign.MOST_HOSTS):
        hosts.load_ended(f"h{number}.example")
    hosts.load_ended("h0.example")
    hosts.load_ended("new.example")
    assert (len(hosts.met), hosts.forgotten) == (foreign.MOST_HOSTS, 1)
    assert "h0.example" in hosts.met and "h1.example" not in hosts.met
    hosts.forget_host("h0.example")
    assert "h0.example" not in hosts.met
