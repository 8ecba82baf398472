"""The names of the agents of a comparison: each has its part of the hosts."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.commands.compare import balanced_names
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.settings import UbiSettings

SETTINGS = UbiSettings()


def owners(names: list[str], urls: list[str]) -> Counter[str]:
    ring = Ring.of(dict.fromkeys(names, SETTINGS.ring_replicas))
    host_of = SETTINGS.host_of()
    return Counter(ring.order(host_of(url) or "")[0] for url in urls)


@given(st.sets(st.integers(0, 255), min_size=2, max_size=8), st.integers(2, 3))
def test_no_agent_has_nothing_where_there_are_hosts_enough(hosts: set[int], number: int) -> None:
    urls = [f"http://127.0.3.{host}:8603/{page}" for host in hosts for page in range(5)]
    names = balanced_names(SETTINGS, urls, number)
    assert len(set(names)) == number
    assert len(owners(names, urls)) == min(number, len(hosts))


def test_the_pages_of_two_equal_halves_are_shared_equally() -> None:
    urls = [f"http://{name}.example/{page}" for name in "abcdefgh" for page in range(10)]
    assert set(owners(balanced_names(SETTINGS, urls, 2), urls).values()) == {40}


def test_what_has_no_host_does_no_harm() -> None:
    assert len(balanced_names(SETTINGS, ["data:,x", "http://a.example/"], 2)) == 2
    assert len(balanced_names(SETTINGS, [], 3)) == 3


def test_a_partition_of_the_projects_own_counts() -> None:
    own = UbiSettings.from_scrapy({"UBI_PARTITION": f"{__name__}.first_letter"})
    urls = ["http://x.example/a1", "http://x.example/b1", "http://y.example/a2"]
    assert len(balanced_names(own, urls, 2)) == 2


def first_letter(request: object) -> str:
    return "letter"
