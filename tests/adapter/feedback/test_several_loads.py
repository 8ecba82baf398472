"""Several loads of a host at once, when one of them says that the host is to rest: the others count no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.adapter.feedback import several_loads
from scrapy_ubi.adapter.feedback.several_loads import SeveralLoads
from scrapy_ubi.agent.hosts.host_concurrency import HostConcurrency
from scrapy_ubi.settings.loads_at_once import read_loads
from tests.agent.hosts.test_host_notes import HOST, OTHER, House


class Loads(SeveralLoads):
    """Those of a host with four at once, at a time that only a test moves."""

    def __init__(self, value: object = {HOST: 4}) -> None:
        self.house = House()
        self.house.state()
        self.now = 50.0
        self.concurrency = HostConcurrency(read_loads(value), self.house.hosts)
        super().__init__(self.concurrency, lambda: self.now)

    def late(self, began: float, host: str | None = HOST) -> bool:
        flight: Any = SimpleNamespace(host=host, began=began)
        return self.is_late(flight)


def test_loads_that_began_before_the_host_was_put_off_are_late() -> None:
    loads = Loads()
    assert not loads.late(49.0)
    loads.put_off(HOST)
    assert loads.late(49.0)
    assert not loads.late(50.0)
    assert not loads.late(49.0, OTHER)
    assert not loads.late(49.0, None)


def test_of_a_host_with_one_at_a_time_none_is_late() -> None:
    loads = Loads()
    loads.put_off(OTHER)
    assert not loads.late(49.0, OTHER)


def test_the_one_put_off_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_loads, "MOST_HOSTS", 2)
    loads = Loads(4)
    for host in ("a", "b", "a", "c"):
        loads.put_off(host)
    assert [loads.late(49.0, host) for host in ("a", "b", "c")] == [True, False, True]


@pytest.mark.parametrize("status", [429, 503])
def test_auto_hears_of_all(status: int) -> None:
    loads = Loads("auto(8)")
    for _ in range(3):
        loads.responded(HOST, 49.0, 200, 0.1)
    assert loads.concurrency.limit(HOST) == 3
    loads.responded(HOST, 49.5, status, 0.1)
    assert loads.concurrency.limit(HOST) == 1
    loads.now = 60.0
    for _ in range(3):
        loads.responded(HOST, 55.0, 200, 0.1)
    assert loads.concurrency.limit(HOST) == 3
    loads.failed(HOST, 56.0)
    assert loads.concurrency.limit(HOST) == 1


def test_without_any_such_host_nothing_is_kept() -> None:
    loads = SeveralLoads(None)
    loads.responded(HOST, 1.0, 503, 0.1)
    loads.failed(HOST, 1.0)
    loads.put_off(HOST)
    flight: Any = SimpleNamespace(host=HOST, began=0.5)
    assert not loads.is_late(flight)
