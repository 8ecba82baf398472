"""The price of pages: arithmetic on measured figures, which are those of the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import price  # noqa: E402


def test_it_is_reckoned_from_cpu_a_page_and_the_cost_of_a_group() -> None:
    assert price.dollars_a_million(0.36, 100) == pytest.approx(1.0)
    net = {"rounds": [{"walk": {"cpu_ms": cpu}} for cpu in (9.0, 10.0, 12.0)]}
    more = 10.0 / price.LINKS
    peers = {"pages": {"rounds": [{"walk1": {"cpu_ms": 4.0}, "walk4": {"cpu_ms": 4.0 + more}}]}, "micro": {}}
    (row,) = price.tables(net, peers, {"m": (8, 0.36)}, 1.0).splitlines()[2:]
    assert row == "| unmodified spider | 10.0 (9.0-12.0) | 100 | 10.0 | 400 | 0.25 |"


def test_the_page_holds_the_committed_figures() -> None:
    net, peers = (
        json.loads((FOLDER / "results" / name).read_text(encoding="utf-8")) for name in ("net.json", "peers.json")
    )
    assert price.tables(net, peers, price.MACHINES, 0.85) in price.PAGE.read_text(encoding="utf-8")
