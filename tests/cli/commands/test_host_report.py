"""Shards of a host, added up under its name."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.cli.commands.host_report import added_up
from scrapy_ubi.cli.commands.locate import host_of, spot
from scrapy_ubi.cli.monitor.url_owner import GroupSettings, ownership
from scrapy_ubi.errors import UbiSettingError

GROUP = GroupSettings({"a": 200, "b": 200}, shards="shop.example 8")


def row(host: str, agent: str, **more: Any) -> dict[str, Any]:
    usual = {"state": "idle", "role": "owner", "queued": 0, "done": 0, "failed": 0, "next": None, "error": ""}
    later = {"learned": "", "loads": "", "delay": 1.0, "needs": 0.0, "complete": "", "bytes": 0}
    return {"agent": agent, "host": host, **usual, **later, **more}


def test_a_host_that_is_cut_is_complete_when_all_of_its_shards_are() -> None:
    rows = [row("shop.example#0", "a", complete="all", bytes=5), row("shop.example#1", "b", complete="", bytes=7)]
    (whole,) = added_up(rows)
    assert (whole["complete"], whole["bytes"]) == ("", 12)
    (whole,) = added_up([{**one, "complete": "all"} for one in rows])
    assert whole["complete"] == "all"


def test_shards_are_added_up_and_copies_apart() -> None:
    rows = [
        row("other.example", "a", queued=5),
        row("shop.example#0", "a", state="waiting", queued=3, done=2, next=4.0),
        row("shop.example#1", "b", state="busy", queued=1, done=7, next=2.0, failed=1, error="http/404"),
        row("shop.example#0", "b", role="copy", done=1),
    ]
    other, shop, copy = added_up(rows)
    assert other == rows[0]
    assert (shop["host"], shop["agent"], shop["agents"], shop["shards"]) == ("shop.example", "2 agents", ["a", "b"], 2)
    assert (shop["state"], shop["queued"], shop["done"], shop["failed"]) == ("busy", 4, 9, 1)
    assert (shop["next"], shop["error"]) == (2.0, "http/404")
    assert (copy["agent"], copy["role"], copy["done"]) == ("b", "copy", 1)


def test_of_a_shard_that_two_stopped_agents_have_the_one_counts_that_knows_more() -> None:
    rows = [row("shop.example#0", name, role="", done=done) for name, done in (("a", 5), ("b", 7))]
    [shop] = added_up(rows)
    assert (shop["done"], shop["shards"], shop["agent"]) == (7, 1, "b")


def test_a_url_is_of_one_shard_and_has_its_owner() -> None:
    place = spot("http://shop.example/a", GROUP, 1000)
    assert place.host.startswith("shop.example#") and place.shards == 8
    owned = ownership("http://shop.example/a", GROUP)
    assert owned is not None and owned.host == place.host
    owners = {owned.owner for n in range(50) if (owned := ownership(f"http://shop.example/{n}", GROUP)) is not None}
    assert owners == {"a", "b"}
    assert spot("http://other.example/", GROUP, 1000).shards == 1


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("shop.example", "shop.example"),
        ("Shop.Example#3", "shop.example#3"),
        ("shop.example#8", None),
        ("other.example#0", None),
        ("http://shop.example/a#3", "shop.example"),
    ],
)
def test_a_host_is_named_whole_or_by_shard(text: str, host: str | None) -> None:
    assert host_of(text, GROUP) == host


def test_a_function_that_agents_name_is_never_imported() -> None:
    named = GroupSettings({"a": 200}, named_by="no.such.module")
    with pytest.raises(UbiSettingError, match=r"UBI_PARTITION is 'host' here, and 'no.such.module' in the crawl"):
        spot("http://shop.example/a", named, 1000)
