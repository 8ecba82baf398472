"""UBI_HOST_LIMITS: what may be written, and which limits a host has by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.declarations import FORMER
from scrapy_ubi.settings.host_limits import NAMES, HostLimitsTable, Limits, read_limits, read_table

WHOLE = ("pages", "known", "depth", "bytes", "iterations", "stable")
LIMITS = st.builds(
    Limits,
    **{name: st.none() | st.integers(0, 10**6) for name in WHOLE},
    **{name: st.none() | st.floats(0, 86_400).map(lambda s: round(s, 3)) for name in ("seconds", "delay")},
)
HOSTS = st.sampled_from(["a.example", "b.a.example", ".a.example", ".example", "c.example:8080"])


def read(value: object) -> HostLimitsTable:
    found = UbiSettings.from_scrapy({"UBI_HOST_LIMITS": value}).host_limits
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("pages=500", Limits(pages=500)),
        ("pages=500, bytes=2GB, depth=5", Limits(pages=500, bytes=2 * 10**9, depth=5)),
        ("bytes=1.5 MB delay=0.5 seconds=2h", Limits(bytes=1_500_000, delay=0.5, seconds=7200.0)),
        (
            "bytes=64e6,stable=3,iterations=0,known=10_000",
            Limits(bytes=64_000_000, stable=3, iterations=0, known=10_000),
        ),
        ("SECONDS=1d", Limits(seconds=86_400.0)),
    ],
)
def test_limits_are_written_with_units(text: str, limits: Limits) -> None:
    assert read(text) == HostLimitsTable(others=limits)
    assert read(json.dumps({"*": text})) == read({"*": text}) == read(text)


@pytest.mark.parametrize(
    "value",
    [
        "pages", "limits.txt\0", "pages=", "pages=-1", "pages=1.5", "pages=5KB", "pages=1, pages=2", "colour=3",
        "bytes=2PB", "bytes=nan", "bytes=1e99", "seconds=1w", "delay=1e9", 7, True, ["pages=5"], {"a b": "pages=5"},
        {5: "pages=5"}, {"a.example": 5}, {"a.example": {"pages": True}}, {"a.example": {"colour": 1}}, "{", "{]}",
        '{"a.example": "pages=x"}', {"a.example": {"pages": [5]}},
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_with_one_sentence(value: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UbiSettingError, match=r"UBI_HOST_LIMITS .+: give limits such as"):
        read(value)


def test_the_nearest_name_says_each_limit() -> None:
    table = read_table(
        {
            "*": "pages=1, depth=1, delay=1",
            ".gov.example": "pages=2, depth=2",
            ".a.gov.example": "pages=3",
            "w.a.gov.example": "bytes=9, depth=0",
        }
    )
    assert table.for_host("x.example") == Limits(pages=1, depth=1, delay=1.0)
    assert table.for_host("gov.example") == table.for_host("b.gov.example") == Limits(pages=2, depth=2, delay=1.0)
    assert table.for_host("notgov.example") == table.others
    assert table.for_host("w.a.gov.example") == Limits(pages=3, depth=0, delay=1.0, bytes=9)
    assert table.for_host("w.a.gov.example:8080") == table.for_host("w.a.gov.example")


@given(st.dictionaries(HOSTS, LIMITS, max_size=5), LIMITS)
def test_a_table_is_read_back_from_its_text(named: dict[str, Limits], others: Limits) -> None:
    table = HostLimitsTable(named, others)
    text = table.as_json()
    assert read_table(text) == table if named or others.said else True


@given(LIMITS, LIMITS, LIMITS)
def test_narrower_limits_win_one_by_one(a: Limits, b: Limits, c: Limits) -> None:
    assert a.over(b).over(c) == a.over(b.over(c))
    for name in NAMES:
        mine, other = getattr(a, name), getattr(b, name)
        assert getattr(a.over(b), name) == (mine if mine is not None else other)
    assert read_limits(a.said) == a


def test_a_file_has_a_line_for_each_name_or_is_json(tmp_path: Path) -> None:
    lines, as_json = tmp_path / "limits.txt", tmp_path / "limits.json"
    lines.write_text("# of hosts\n\n* pages=100\n.gov.example pages=500, bytes=2GB\nShop.Example  depth=3\n")
    as_json.write_text('{"*": "pages=100", ".gov.example": {"pages": 500, "bytes": 2e9}, "shop.example": "depth=3"}')
    wanted = HostLimitsTable(
        {".gov.example": Limits(500, bytes=2 * 10**9), "shop.example": Limits(depth=3)}, Limits(100)
    )
    assert read(str(lines)) == read(as_json) == wanted


@pytest.mark.parametrize("text", ["a.example\n a.example pages=1\na.example pages=2", "\xff", "a.example pages"])
def test_a_file_that_does_not_hold_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "limits.txt"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UbiSettingError, match="UBI_HOST_LIMITS"):
        read(path)


def test_a_host_that_is_part_of_another_key_is_refused() -> None:
    with pytest.raises(UbiSettingError, match=r"name .shop\.com. instead"):
        UbiSettings.from_scrapy({"UBI_HOST_LIMITS": {"www.shop.com": "pages=1"}, "UBI_PARTITION": "domain"})


@pytest.mark.parametrize("name", FORMER)
def test_a_limit_by_its_former_name_holds(name: str) -> None:
    setting, limit = FORMER[name]
    field = setting.removeprefix("UBI_").lower()

    def read(value: object, **more: object) -> object:
        found = getattr(UbiSettings.from_scrapy({name: value, **more}), field)
        return getattr(getattr(found, "others", found), limit, None)

    assert read(7) == read("7") == 7
    assert read(0) is None or read(0) == 0
    assert read(None) == read("") == read(0)
    assert read(7, **{setting: f"{limit}=5"}) == 5  # what is written there wins
    with pytest.raises(UbiSettingError, match=f"{name} does not hold: .* write a limit into {setting}"):
        read("soon")


def test_a_limit_by_its_former_name_wins_over_a_preset() -> None:
    one = UbiSettings.from_scrapy({"UBI_PRESET": "one_site", "UBI_HOST_MAX_PAGES": 5})
    broad = UbiSettings.from_scrapy({"UBI_PRESET": "broad", "UBI_HOST_MAX_PAGES": 5})
    assert one.host_limits is not None and one.host_limits.others.pages == 5
    assert broad.host_limits is not None and broad.host_limits.others.pages == 5
    development = UbiSettings.from_scrapy({"UBI_PRESET": "development", "UBI_CRAWL_MAX_PAGES": 5})
    assert development.crawl_limits.pages == 5


def test_a_former_name_of_zero_sets_no_limits_of_hosts() -> None:
    assert UbiSettings.from_scrapy({"UBI_HOST_MAX_PAGES": 0}).host_limits is None
