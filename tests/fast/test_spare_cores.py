"""Whether a second thread pays: the rules, and what the system says of cores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.fast import spare_cores
from scrapy_ubi.fast.spare_cores import BUSY, LOOKS, MOST_PATIENCE, PATIENCE, SCARCE, SPARE, Cores, CoresSeen, Switch

PAYS = CoresSeen(busy=0.95, idle=1.5)
SO_SO = CoresSeen(busy=0.5, idle=0.5)
SCARCELY = CoresSeen(busy=0.95, idle=0.0)
IDLING = CoresSeen(busy=0.1, idle=3.0)


def looks(switch: Switch, *seen: CoresSeen) -> list[bool]:
    return [switch.look(each) for each in seen]


def test_it_goes_on_and_off_after_two_looks_that_agree() -> None:
    switch = Switch()
    assert looks(switch, PAYS, SO_SO, PAYS, PAYS) == [False, False, False, True]
    assert looks(switch, IDLING, PAYS, SO_SO, SO_SO, IDLING, IDLING) == [True, True, True, True, True, False]
    assert looks(switch, PAYS, PAYS) == [False, True]


def test_after_cores_were_scarce_it_stays_off_for_longer_each_time() -> None:
    switch = Switch()
    for patience in (PATIENCE, 2 * PATIENCE, 4 * PATIENCE):
        assert looks(switch, *[PAYS] * LOOKS)[-1]
        assert not looks(switch, *[SCARCELY] * LOOKS)[-1]
        assert not any(looks(switch, *[PAYS] * patience))
    for _ in range(9):
        looks(switch, *[PAYS] * (MOST_PATIENCE + LOOKS))
        assert switch.is_on
        looks(switch, *[SCARCELY] * LOOKS)


SEEN = st.builds(CoresSeen, busy=st.floats(0, 1), idle=st.floats(0, 8))


@given(st.lists(SEEN, max_size=60))
def test_it_is_never_turned_on_without_a_core_that_is_idle_nor_for_a_loop_that_is(seen: list[CoresSeen]) -> None:
    switch, was = Switch(), False
    for each in seen:
        now = switch.look(each)
        assert now is switch.is_on
        if now and not was:
            assert each.busy > BUSY and each.idle > SPARE
        elif was and not now:
            assert each.busy < BUSY or each.idle < SCARCE
        was = now


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of four cores, of which this process may use the first two."""
    monkeypatch.setattr(spare_cores, "PROC", tmp_path / "proc")
    monkeypatch.setattr(spare_cores, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    (tmp_path / "proc/self").mkdir(parents=True)
    idles(tmp_path, 100, 100, 100, 100)
    return tmp_path


def idles(system: Path, *seconds: float) -> None:
    """So long each core has been idle."""
    ticks = os.sysconf("SC_CLK_TCK")
    lines = [f"cpu{number} 5 0 5 {int(each * ticks)} 0 0 0 0 0 0" for number, each in enumerate(seconds)]
    text = "\n".join(["cpu  9 9 9 9999999 9 9 9 9 9 9", *lines, "intr 1 2 3", ""])
    (system / "proc/stat").write_text(text)


def test_only_cores_that_the_process_may_use_are_idle_for_it(system: Path) -> None:
    cores = Cores()
    assert cores.count == 2
    idles(system, 101.5, 100.5, 102, 102)
    assert cores.idle(2.0) == pytest.approx(1.0)
    idles(system, 101.5, 100.5, 104, 104)
    assert cores.idle(2.0) == 0


GROUPS_OF = {
    "of version 2": ("0::/a/b\n", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}, "a/cpu.stat"),
    "of version 2, within": ("0::/\n", {"cpu.max": "150000 100000"}, "cpu.stat"),
    "of version 1": (
        "4:cpu:/a/b\n9:memory:/c\n0::/\n",
        {"cpu/a/cpu.cfs_quota_us": "150000", "cpu/a/cpu.cfs_period_us": "100000", "cpu/a/b/cpu.cfs_quota_us": "-1"},
        "cpu/a/cpuacct.usage",
    ),
}


@pytest.mark.parametrize("group", GROUPS_OF)
def test_a_limit_of_the_control_group_counts_and_what_others_in_it_use(system: Path, group: str) -> None:
    said, files, usage = GROUPS_OF[group]
    (system / "proc/self/cgroup").write_text(said)
    for name, text in files.items():
        (system / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (system / "groups" / name).write_text(text + "\n")

    def used(seconds: float) -> None:
        text = f"{int(seconds * 1e9)}" if usage.endswith(".usage") else f"usage_usec {int(seconds * 1e6)}\nuser_usec 5"
        (system / "groups" / usage).write_text(text + "\n")

    used(10)
    cores = Cores()
    assert cores.count == 1.5
    idles(system, 102, 102, 102, 102)
    used(12.5)
    assert cores.idle(2.0) == pytest.approx(1.5 - 1.25)
    idles(system, 102.2, 102.2, 102, 102)
    assert cores.idle(2.0) == pytest.approx(0.2)


def test_where_the_kernel_does_not_tell_the_load_of_the_last_minute_counts(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (system / "proc/stat").unlink()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 9.0, 9.0), raising=False)
    cores = Cores()
    assert cores.idle(2.0) == 1.5
    monkeypatch.setattr(os, "getloadavg", lambda: (7.5, 9.0, 9.0), raising=False)
    assert cores.idle(2.0) == 0
    monkeypatch.delattr(os, "sched_getaffinity")
    assert Cores().count == os.cpu_count()


def test_on_this_machine_cores_are_counted() -> None:
    cores = Cores()
    assert 0 < cores.count <= (os.cpu_count() or 1)
    assert -1 < cores.idle(1.0) <= cores.count + 1000
