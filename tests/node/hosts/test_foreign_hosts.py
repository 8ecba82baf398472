"""What an agent has met at hosts of other agents: delays, pauses, health; bounded, and forgotten in the end."""

from __future__ import annotations

from scrapy_ubi.node.hosts import foreign_hosts as foreign
from scrapy_ubi.node.hosts.foreign_hosts import GIVEN_UP_FOR, LONG_AGO, ForeignHosts
from scrapy_ubi.node.hosts.health import Policy

HOST = "h1.example"
POLICY = Policy(failures=2, pause=10.0, tries=1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.hosts = ForeignHosts(lambda: self.now)


def test_of_a_host_never_met_nothing_is_known() -> None:
    hosts = Clock().hosts
    assert (hosts.next_at(HOST, 5.0), hosts.given_up(HOST)) == (LONG_AGO, "")
    hosts.want(HOST, "slot", 0.0)
    hosts.answered(HOST)
    hosts.not_busy(HOST)
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


def test_who_does_not_answer_is_left_alone_then_given_up_and_tried_again_much_later() -> None:
    clock = Clock()
    hosts = clock.hosts
    assert hosts.not_answered(HOST, POLICY)[1:] == (0.0, False)
    verdict = hosts.not_answered(HOST, POLICY)
    assert (verdict.pause, verdict.dead) == (10.0, False)
    hosts.put_off(HOST, verdict.pause)
    assert hosts.next_at(HOST, 0.0) == 110.0
    assert hosts.not_answered(HOST, POLICY).dead
    hosts.give_up(HOST, "host/dead")
    assert hosts.given_up(HOST) == "host/dead"
    clock.now += GIVEN_UP_FOR
    assert hosts.given_up(HOST) == "" and hosts.next_at(HOST, 0.0) <= clock.now
    assert hosts.not_answered(HOST, POLICY).dead, "one try"
    hosts.answered(HOST)
    assert hosts.not_answered(HOST, POLICY).health.failures == 1


def test_a_response_of_a_load_that_was_under_way_ends_that() -> None:
    clock = Clock()
    clock.hosts.give_up(HOST, "host/dead")
    clock.hosts.answered(HOST)
    assert clock.hosts.given_up(HOST) == "" and clock.hosts.next_at(HOST, 0.0) < clock.now


def test_how_often_in_a_row_it_asks_to_come_back_later_is_counted() -> None:
    hosts = Clock().hosts
    assert [hosts.asked_to_wait(HOST) for _ in range(2)] == [1, 2]
    hosts.not_busy(HOST)
    assert hosts.asked_to_wait(HOST) == 1


def test_those_used_least_recently_are_forgotten_beyond_a_bound() -> None:
    hosts = Clock().hosts
    for number in range(foreign.MOST_HOSTS):
        hosts.load_ended(f"h{number}.example")
    hosts.load_ended("h0.example")
    hosts.load_ended("new.example")
    assert (len(hosts.met), hosts.forgotten) == (foreign.MOST_HOSTS, 1)
    assert "h0.example" in hosts.met and "h1.example" not in hosts.met
    hosts.forget("h0.example")
    assert "h0.example" not in hosts.met
