"""A process with too little address space is told so, instead of being ended by RocksDB."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from scrapy_ubi.frontier import address_space
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.frontier.store import StoreError

MIB = 1 << 20


def limited(monkeypatch: pytest.MonkeyPatch, place: Path, used: int, limit: int) -> None:
    status = place / "status"
    status.write_text(f"Name:\tpython\nVmSize:\t{used // 1024} kB\n")
    monkeypatch.setattr(address_space, "STATUS", status)
    stack = 8 * MIB
    limits = {resource.RLIMIT_AS: limit, resource.RLIMIT_STACK: stack}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits[which], limits[which]))


def test_what_is_needed_is_said_and_with_that_it_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, 500 * MIB)
    with pytest.raises(StoreError, match=r"500 MB of address space \(ulimit -v\), and 1033 MB are needed, 256 of them"):
        address_space.check(256 * MIB, tmp_path / "seen")
    limited(monkeypatch, tmp_path, 200 * MIB, 1033 * MIB)
    address_space.check(256 * MIB, tmp_path / "seen")


def test_the_index_of_known_urls_is_counted_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "seen").write_bytes(b"0" * MIB)
    limited(monkeypatch, tmp_path, 200 * MIB, 1033 * MIB)
    with pytest.raises(StoreError, match="1035 MB are needed"):
        address_space.check(256 * MIB, tmp_path / "seen")


@pytest.mark.parametrize("said", ["", "VmSize:\n", "VmSize:\tmuch kB\n"])
def test_where_the_system_does_not_tell_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    limited(monkeypatch, tmp_path, 0, MIB)
    (tmp_path / "status").write_text(said)
    address_space.check(256 * MIB, tmp_path / "seen")


def test_no_limit_refuses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, resource.RLIM_INFINITY)
    address_space.check(1 << 60, tmp_path / "seen")


def test_a_frontier_is_not_opened_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, 300 * MIB)
    with pytest.raises(StoreError, match="ulimit -v"):
        open_frontier(tmp_path / "agent")
    assert not (tmp_path / "agent").exists()
