"""Which proxy of the pool a host goes through, and that finding it costs the same with many of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.adapter.downloads import proxy_pool
from scrapy_ubi.adapter.downloads.proxy_pool import PooledProxies
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.policy.politeness import proxies
from scrapy_ubi.policy.politeness.proxies import MOST_FAILED, REST
from scrapy_ubi.settings.proxy_pool import ProxyPool

HOSTS = [f"h{number}.example" for number in range(20)]


class Pool(PooledProxies):
    """A pool of so many proxies, of an agent without others, at a time that a test moves."""

    def __init__(self, place: Path, number: int) -> None:
        self.now = 1000.0
        path = place / "proxies.txt"
        path.write_text("\n".join(f"http://10.0.0.1:{1 + one}" for one in range(number)))
        node: Any = SimpleNamespace(crawl=SimpleNamespace(follow=lambda follower: None))
        super().__init__(ProxyPool(str(path)), node, lambda: self.now, lambda: self.now)
        self._rumours: Any = SimpleNamespace(found=lambda name, until: None)

    def _read_again(self) -> None:
        """The file stays as it is."""

    def of(self, host: str, session: str = "") -> tuple[str, float]:
        name, _, wait = self.choose(host, session, None)
        return name, wait


def test_a_host_goes_back_to_its_proxy_when_that_may_be_used_again(tmp_path: Path) -> None:
    pool = Pool(tmp_path, 5)
    before = {host: pool.of(host) for host in HOSTS}
    name, _ = before[HOSTS[0]]
    pool.failed(name, HOSTS[0])
    other, wait = pool.of(HOSTS[0])
    assert other != name and not wait
    assert all(pool.of(host) == before[host] for host in HOSTS[1:]), "it was one load, of another host"
    pool.now += proxy_pool.SAME_HOST
    assert {host: pool.of(host) for host in HOSTS} == before


def test_with_one_proxy_a_load_without_an_answer_holds_nothing_up(tmp_path: Path) -> None:
    pool = Pool(tmp_path, 1)
    pool.failed("10.0.0.1:1", HOSTS[0])
    assert pool.of(HOSTS[0]) == ("10.0.0.1:1", 0.0)
    for _ in range(MOST_FAILED):
        pool.failed("10.0.0.1:1", HOSTS[0])
    _, wait = pool.of(HOSTS[0])
    assert wait >= REST, "now it rests"


def test_the_pool_is_gone_through_once_for_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(tmp_path, 500)
    hashed: list[int] = []
    choose = proxies.choose

    def count(names: Any, who: str, at: str) -> str:
        hashed.append(len(list(names)))
        return choose(names, who, at)

    monkeypatch.setattr(proxy_pool, "choose", count)
    first = {host: pool.of(host) for host in HOSTS}
    assert all({host: pool.of(host) for host in HOSTS} == first for _ in range(3))
    assert len(hashed) == len(HOSTS)


def test_more_hosts_than_are_remembered_keep_to_theirs_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_pool, "MOST_FIRSTS", 3)
    pool = Pool(tmp_path, 5)
    first = {host: pool.of(host) for host in HOSTS}
    assert all({host: pool.of(host) for host in HOSTS} == first for _ in range(2))


def text() -> str:
    return "http://10.0.0.1:1"


def test_a_function_that_gives_a_text_gives_no_list() -> None:
    node: Any = SimpleNamespace(crawl=SimpleNamespace(follow=lambda follower: None))
    with pytest.raises(UbiSettingError, match="gives no list: TypeError"):
        PooledProxies(ProxyPool(f"{__name__}.text"), node)
