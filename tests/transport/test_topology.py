"""Which server holds a crawl, by what servers of a cluster, or Sentinels, say: the answers are made here."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import exceptions as lib

from scrapy_ubi.transport import topology
from scrapy_ubi.transport.address import Address, address
from scrapy_ubi.transport.topology import ServerFinder

CLUSTER = "redis+cluster://10.0.0.1:1,10.0.0.2:2,10.0.0.3:3"
SENTINELS = "redis+sentinel://10.0.0.1:1,10.0.0.2:2,10.0.0.3:3/mymaster"
SLOT = 5

Ask = Callable[[str], Any]


def slots(master: str, port: int, replicas: int = 1) -> list[Any]:
    """What CLUSTER SLOTS answers: one server has all of them."""
    return [[0, 16383, [master.encode(), port, b"id"], *[[b"10.0.0.9", 90 + n, b"id"] for n in range(replicas)]]]


def master(host: str, port: int, epoch: int, replicas: int = 1) -> list[bytes]:
    """What SENTINEL MASTER answers."""
    facts = {"ip": host, "port": port, "num-slaves": replicas, "config-epoch": epoch}
    return [str(part).encode() for pair in facts.items() for part in pair]


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ServerFinder]]:
    """Makes one for an address, whose servers answer as `ask` does, by their addresses."""

    def make(url: str, ask: Ask, timeout: float = 5.0) -> ServerFinder:
        def asked(at: Address, command: tuple[str, ...], limit: float) -> Any:
            return ask(at.url)

        monkeypatch.setattr(topology, "answer_of", asked)
        return ServerFinder(address(url), SLOT, timeout)

    yield make


def test_what_most_servers_of_a_cluster_say_counts(finder: Callable[..., ServerFinder]) -> None:
    found = finder(CLUSTER, lambda at: slots("10.0.0.1", 1) if "10.0.0.1" in at else slots("10.0.0.2", 2, 3))
    place = found.find_server()
    assert (place.node, place.replicas) == (("10.0.0.2", 2), 3)
    assert not finder(CLUSTER, lambda at: slots("10.0.0.1", 1)).confirm(place)


def test_of_sentinels_the_newest_configuration_counts(finder: Callable[..., ServerFinder]) -> None:
    def ask(at: str) -> Any:
        return master("10.0.0.8", 8, 7) if "10.0.0.3" in at else master("10.0.0.7", 7, 6)

    assert finder(SENTINELS, ask).find_server().node == ("10.0.0.8", 8)


def test_a_server_is_confirmed_by_most_of_all_also_of_those_that_do_not_answer(
    finder: Callable[..., ServerFinder],
) -> None:
    def one(at: str) -> Any:
        if "10.0.0.1" in at:
            return slots("10.0.0.1", 1, 0)
        raise lib.ConnectionError("away")

    def two(at: str) -> Any:
        return slots("10.0.0.1", 1, 0) if "10.0.0.3" not in at else one(at)

    alone = finder(CLUSTER, one)
    place = alone.find_server()
    assert not alone.confirm(place)
    assert finder(CLUSTER, two).confirm(place)


@pytest.mark.parametrize(
    "answer", [None, 1, [], [b"ip"], [[1]], [[0, 16383, [b"\xff", 1]]], [[0, 16383, [b"a", b"x"]]]]
)
@pytest.mark.parametrize("url", [CLUSTER, SENTINELS])
def test_what_is_no_such_answer_is_one_fault(finder: Callable[..., ServerFinder], url: str, answer: Any) -> None:
    with pytest.raises((lib.InvalidResponse, lib.ClusterDownError)):
        finder(url, lambda at: answer).find_server()


def test_a_server_whose_thread_is_not_through_is_not_asked_again(finder: Callable[..., ServerFinder]) -> None:
    """As where a name is looked up for minutes: else each beat would leave a thread behind."""
    asked: Counter[str] = Counter()
    free = threading.Event()

    def ask(at: str) -> Any:
        asked[at] += 1
        if "10.0.0.3" in at:
            free.wait(30)
        return slots("10.0.0.1", 1)

    found = finder(CLUSTER, ask)
    try:
        for _ in range(3):
            assert found.find_server().node == ("10.0.0.1", 1)
    finally:
        free.set()
    assert {count for at, count in asked.items() if "10.0.0.3" in at} == {1}
    assert {count for at, count in asked.items() if "10.0.0.2" in at} == {3}


def test_where_all_are_busy_nothing_answers(finder: Callable[..., ServerFinder]) -> None:
    free = threading.Event()

    def ask(at: str) -> Any:
        free.wait(30)
        return slots("10.0.0.1", 1)

    found = finder(CLUSTER, ask, timeout=0.1)
    try:
        for _ in range(2):
            with pytest.raises(lib.TimeoutError):
                found.find_server()
    finally:
        free.set()
