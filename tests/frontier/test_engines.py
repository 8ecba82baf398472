"""Which engine keeps a frontier: what lies there is never begun anew by the other one."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from scrapy_ubi.frontier import engines
from scrapy_ubi.frontier.engines import Engine, chosen, open_store
from scrapy_ubi.frontier.restore import open_frontier
from scrapy_ubi.frontier.store import StoreError
from scrapy_ubi.protocol.host import Entry
from tests.support.store_engines import ENGINES, needs_rocksdb

MEMORY = 32 << 20
MIB = 1 << 20


@pytest.fixture
def no_rocksdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    monkeypatch.delitem(sys.modules, "scrapy_ubi.frontier.rocks", raising=False)


def filled(directory: Path, engine: Engine) -> None:
    frontier = open_frontier(directory, memory=MEMORY, engine=engine)
    frontier.add("h", [Entry(7, "http://h/", 0)])
    frontier.flush()
    frontier.close()


def known(directory: Path, engine: Engine) -> bool:
    frontier = open_frontier(directory, memory=MEMORY, engine=engine)
    state = frontier.find("h")
    found = state is not None and state.is_known(7)
    frontier.close()
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_what_lies_in_a_directory_is_gone_on_with_by_the_engine_that_wrote_it(tmp_path: Path, engine: Engine) -> None:
    filled(tmp_path, engine)
    assert known(tmp_path, engine) and known(tmp_path, "auto")
    assert chosen(tmp_path / "store") == engine


@pytest.mark.parametrize(
    ("engine", "other"), [pytest.param("rocksdb", "sqlite", marks=needs_rocksdb), ("sqlite", "rocksdb")]
)
def test_a_directory_of_the_other_engine_is_refused_and_left_as_it_is(
    tmp_path: Path, engine: Engine, other: Engine
) -> None:
    filled(tmp_path, engine)
    said = rf'was written by .*, and UBI_STORE_ENGINE is "{other}": set it to "{engine}" or "auto" .*or set UBI_DIR'
    with pytest.raises(StoreError, match=said):
        open_frontier(tmp_path, memory=MEMORY, engine=other)
    assert known(tmp_path, engine)


@needs_rocksdb
def test_a_new_directory_is_rocksdb_s_where_it_can_be_had(tmp_path: Path) -> None:
    assert chosen(tmp_path / "store") == "rocksdb"
    assert chosen(tmp_path / "store", "sqlite") == "sqlite"


@pytest.mark.usefixtures("no_rocksdb")
def test_without_rocksdb_a_new_directory_is_sqlite_s(tmp_path: Path) -> None:
    filled(tmp_path, "auto")
    assert known(tmp_path, "sqlite")
    with pytest.raises(StoreError, match=r'UBI_STORE_ENGINE is "rocksdb", but rocksdict cannot be imported .* "auto"'):
        open_store(tmp_path / "new", MEMORY, "rocksdb")


@needs_rocksdb
def test_a_directory_of_rocksdb_is_refused_where_it_cannot_be_had(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    filled(tmp_path, "rocksdb")
    request.getfixturevalue("no_rocksdb")
    with pytest.raises(StoreError, match=r"was written by RocksDB, but rocksdict cannot be imported .* or set UBI_DIR"):
        open_frontier(tmp_path, memory=MEMORY)


def limited(monkeypatch: pytest.MonkeyPatch, place: Path, used: int, limit: int) -> None:
    status = place / "status"
    status.write_text(f"Name:\tpython\nVmSize:\t{used // 1024} kB\n")
    monkeypatch.setattr(engines, "STATUS", status)
    stack = 8 * MIB
    limits = {resource.RLIMIT_AS: limit, resource.RLIMIT_STACK: stack}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits[which], limits[which]))


def test_what_is_needed_is_said_and_with_that_it_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, 500 * MIB)
    with pytest.raises(StoreError, match=r"500 MB of address space \(ulimit -v\), and 1033 MB are needed, 256 of them"):
        engines.check_address_space(256 * MIB, tmp_path / "seen")
    limited(monkeypatch, tmp_path, 200 * MIB, 1033 * MIB)
    engines.check_address_space(256 * MIB, tmp_path / "seen")


def test_the_index_of_known_urls_is_counted_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "seen").write_bytes(b"0" * MIB)
    limited(monkeypatch, tmp_path, 200 * MIB, 1033 * MIB)
    with pytest.raises(StoreError, match="1035 MB are needed"):
        engines.check_address_space(256 * MIB, tmp_path / "seen")


@pytest.mark.parametrize("said", ["", "VmSize:\n", "VmSize:\tmuch kB\n"])
def test_where_the_system_does_not_tell_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    limited(monkeypatch, tmp_path, 0, MIB)
    (tmp_path / "status").write_text(said)
    engines.check_address_space(256 * MIB, tmp_path / "seen")


def test_no_limit_refuses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, resource.RLIM_INFINITY)
    engines.check_address_space(1 << 60, tmp_path / "seen")


def test_a_frontier_is_not_opened_then(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, 200 * MIB, 300 * MIB)
    with pytest.raises(StoreError, match="ulimit -v"):
        open_frontier(tmp_path / "agent")
    assert not (tmp_path / "agent").exists()
