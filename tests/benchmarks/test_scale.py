"""The benchmark of large groups: its arithmetic, and that all of it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import masters  # noqa: E402
import scale_crawl  # noqa: E402
import scale_group  # noqa: E402
import scale_mail  # noqa: E402
import scale_ring  # noqa: E402
from redis.connection import Connection  # noqa: E402

from scrapy_ubi.transport.redis_keys import RedisKeys  # noqa: E402


def test_spread_is_measured_against_shares_by_weight() -> None:
    assert scale_ring.spread({"a": 100, "b": 200}, {"a": 1, "b": 2}) == {
        "max_over_fair": 1.0,
        "min_over_fair": 1.0,
        "deviation_per_cent": 0.0,
    }
    uneven = scale_ring.spread({"a": 150, "b": 50}, {"a": 1, "b": 1})
    assert uneven == {"max_over_fair": 1.5, "min_over_fair": 0.5, "deviation_per_cent": 50.0}
    assert scale_ring.spread({"a": 4}, {"a": 1, "b": 1})["min_over_fair"] == 0.0, "an agent without hosts counts, too"


def test_moves_count_owners_and_copies_apart() -> None:
    moves = scale_ring.Moves("new")
    moves.add(("a", "b", "c"), ("a", "b", "c"))
    moves.add(("a", "b", "c"), ("new", "a", "b"))  # a new owner, who is a new keeper whatever the replication
    moves.add(("a", "b", "c"), ("a", "new", "b"))  # a new first successor
    moves.add(("a", "b", "c"), ("a", "b", "new"))
    assert (moves.hosts, moves.owner, moves.needless) == (4, 1, 0)
    assert moves.keepers == moves.copies == [1, 2, 3]
    moves.add(("a", "b", "c"), ("b", "c", "a"))
    assert moves.needless == 1, "neither came nor went"


def test_a_join_moves_to_the_newcomer_only_and_about_its_share() -> None:
    figures = scale_ring.measure(8, 4000)
    for change in (figures["join"], figures["crash_or_leave"]):
        assert isinstance(change, dict)
        assert change["needless"] == 0
        assert 0.7 < change["times_least"] < 1.4


def test_quantiles() -> None:
    assert scale_group.quantiles([3.0, 1.0, 2.0]) == {"min": 1.0, "median": 2.0, "p95": 3.0, "max": 3.0, "of": 3}


def test_everybody_agrees_within_two_reads_of_the_time_out() -> None:
    timing = scale_group.Timing(1.0, 10.0, 15.0, lambda agents, interval, lease: 0.0)
    figures = scale_group.measure(6, timing, 7, seed=7)
    crash, join = figures["crash"], figures["join"]
    assert isinstance(crash, dict)
    assert isinstance(join, dict)
    assert crash["entered"]["of"] == 7 * 5
    assert join["entered"]["of"] == 14 * 6
    assert 14.0 < crash["first_entered"]["min"] <= crash["last_entered"]["max"] < 17.1
    assert crash["last_complete"]["max"] < 18.2
    assert join["last_complete"]["max"] < 2.2


def test_figures_a_page_of_counts() -> None:
    count = Counter(pages=10, links=400, forwarded=5, suppressed=15, discovery_letters=2, discovery_records=5)
    figures = scale_crawl.figures(count)
    assert figures["urls_sent_a_page"] == 0.5
    assert figures["suppressed_share"] == 0.75
    assert figures["records_a_discovery_letter"] == 2.5
    assert figures["records_a_state_letter"] == 0.0


@pytest.mark.parametrize("replication", [0, 1])
def test_a_crawl_tells_the_others_what_is_theirs(replication: int) -> None:
    figures = scale_crawl.measure(3, 20, replication, 0.8, seed=3)
    assert 0 < figures["urls_sent_a_page"] <= figures["foreign_links_a_page"]  # type: ignore[operator]
    assert bool(figures["state_records_a_page"]) == bool(replication)
    assert figures["resent"] == 0


def test_the_size_of_a_command_is_that_of_its_bytes_on_the_wire() -> None:
    args = ("XADD", "ubi:{c}:a:inbox", "MAXLEN", "~", 1000, "*", b"body", "x" * 1234)
    assert scale_mail.size_of(args) == len(b"".join(Connection().pack_command(*args)))


def test_a_group_at_full_speed_is_what_one_of_it_does_times_their_number() -> None:
    figures = scale_mail.measure(6, (200, 400), 1, False)["later"]
    assert figures["pages_a_second"] == pytest.approx(scale_mail.RATE, rel=0.2)
    received = scale_mail.received_shares(6)
    assert sum(received.values()) == pytest.approx(6)
    keys = RedisKeys("c")
    each = scale_mail.by_master(figures, received, keys, 3)
    commands, size = (sum(one[at] for one in each) for at in (0, 1))
    assert commands == pytest.approx(6 * figures["commands_a_second"])
    assert size == pytest.approx(6 * figures["bytes_a_page"] * figures["pages_a_second"])
    own = scale_mail.master_of(keys.inbox("crawler-0"), 3)
    assert [one[0] > 0 for one in each] == [number == own for number in range(3)], "one slot is at one master"


def test_agents_that_crash_and_join_are_seen_and_what_they_had_is_handed_over() -> None:
    figures = scale_mail.measure(24, (100, 300), 1, True)
    assert 14 < figures["crash_of_ten"]["entered"] < 18
    assert figures["join_of_ten"]["entered"] < 3


def test_commands_are_told_apart_by_whose_they_are() -> None:
    assert masters.kind_of("XADD ubi:{c/1}:a:inbox MAXLEN ~ 1000 * from b") == "mail"
    assert masters.kind_of("HGETALL ubi:{c}:a:acks") == "mail"
    assert masters.kind_of("SETRANGE ubi:{c}:pulses 24 x") == "group"
    assert masters.kind_of("PING") == "other"


def test_all_of_it_runs(tmp_path: Path) -> None:
    result = tmp_path / "scale.json"
    done = subprocess.run(
        [sys.executable, str(FOLDER / "scale.py"), "--tiny", "--json", str(result)],
        check=True, capture_output=True, text=True, timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert "| agents" in done.stdout
    figures = json.loads(result.read_text())
    assert {"ring", "group", "crawl", "mail", "servers", "seed"} <= figures.keys()


def test_the_committed_figures_are_of_the_full_size() -> None:
    figures = json.loads((FOLDER / "results" / "scale.json").read_text())
    assert max(row["agents"] for row in figures["ring"]) == 1000
    assert {row["hosts"] for row in figures["ring"]} == {1_000_000}
    assert max(row["agents"] for row in figures["group"]) == max(row["agents"] for row in figures["crawl"]) == 1000
    assert max(row["agents"] for row in figures["mail"]) == 1000
