"""How many loads of a host may be open at once: by the setting, and by what `auto` has noted with the host."""

from __future__ import annotations

import pytest

from scrapy_ubi.agent.hosts import host_concurrency
from scrapy_ubi.agent.hosts.host_concurrency import PACE, HostConcurrency
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.loads_at_once import LoadsByHost, read_loads
from tests.agent.hosts.test_host_notes import HOST, OTHER, House


def made(house: House, value: object) -> HostConcurrency:
    return HostConcurrency(read_loads(value), house.hosts)


def test_nothing_is_counted_where_every_host_is_loaded_one_page_at_a_time() -> None:
    house = House()
    for wanted in (LoadsByHost(), read_loads({HOST: 1}), read_loads("auto(1)")):
        assert HostConcurrency.from_settings(UbiSettings(host_concurrency=wanted), house.hosts) is None
    assert HostConcurrency.from_settings(UbiSettings(host_concurrency=read_loads({HOST: 2})), house.hosts) is not None


def test_by_host_and_for_all_others() -> None:
    house = House()
    assert made(house, 8).limit(HOST) == 8
    assert [made(house, {HOST: 3}).limit(host) for host in (HOST, OTHER)] == [3, 0]
    assert [made(house, {HOST: 1, "*": 4}).limit(host) for host in (HOST, OTHER)] == [0, 4]


def test_auto_is_noted_with_the_host_when_the_number_changes() -> None:
    house = House()
    auto, state = made(house, "auto(8)"), house.state()
    assert auto.limit(HOST) == 1
    for began in range(1 + 2 + 1):
        auto.answered(HOST, 0.1, float(began))
    assert auto.limit(HOST) == 3
    assert house.hosts.get(state, PACE) == [3, 0.1]
    assert made(house, "auto(8)").limit(HOST) == 3, "another process, or another owner, goes on from there"
    assert made(house, "auto(2)").limit(HOST) == 2


def test_people_see_the_number_where_it_is_not_one() -> None:
    house = House()
    assert [made(house, {HOST: 3}).shown(host) for host in (HOST, OTHER)] == ["3", ""]
    assert made(house, "auto(8)").shown(HOST) == "1 of auto(8)"


def test_what_comes_with_a_handoff_counts() -> None:
    house = House()
    auto, state = made(house, "auto(8)"), house.state()
    auto.answered(HOST, 0.1, 0.0)
    house.hosts.put(state, PACE, [6, 0.2])
    assert auto.limit(HOST) == 6
    house.hosts.put(state, PACE, "nonsense")
    assert auto.limit(HOST) == 1


def test_loads_that_began_before_it_was_slowed_say_nothing_more() -> None:
    house = House()
    auto = made(house, "auto(8)")
    house.hosts.put(house.state(), PACE, [8, 0.1])
    for _ in range(8):
        auto.slow_down(HOST, began=10.0, now=11.0)
    assert auto.limit(HOST) == 4
    auto.answered(HOST, 0.1, began=10.5)
    auto.slow_down(HOST, began=11.5, now=12.0)
    assert auto.limit(HOST) == 2


def test_a_fixed_number_is_not_changed_by_what_a_host_says() -> None:
    house = House()
    fixed, state = made(house, {HOST: 8}), house.state()
    fixed.slow_down(HOST, 1.0, 2.0)
    fixed.answered(HOST, 0.1, 1.0)
    assert fixed.limit(HOST) == 8
    assert house.hosts.get(state, PACE) is None


def test_rounds_are_kept_of_so_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_concurrency, "MOST_ROUNDS", 2)
    house = House()
    auto, hosts = made(house, "auto(8)"), [f"h{number}.example" for number in range(5)]
    for host in hosts:
        house.state(host)
        auto.answered(host, 0.1, 0.0)
    assert auto.rounds == 2
    assert [auto.limit(host) for host in hosts] == [2] * 5, "it stands in the notes"
