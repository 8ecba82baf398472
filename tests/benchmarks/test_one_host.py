"""The benchmark of one host: its page and its picture are those of the committed figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the benchmarks are scripts, which find each other beside themselves

import one_host  # noqa: E402
from pages import END  # noqa: E402


def test_page_and_picture_hold_the_committed_figures() -> None:
    figures = json.loads((ROOT / "benchmarks" / "results" / "one_host.json").read_text(encoding="utf-8"))
    page = (one_host.DOCS / "speed.md").read_text(encoding="utf-8")
    again = "python benchmarks/one_host.py --draw benchmarks/results/one_host.json"
    assert page.partition(one_host.BEGIN)[2].partition(END)[0] == f"\n{one_host.page_table(figures)}\n", again
    assert (one_host.DOCS / one_host.PICTURE).read_text(encoding="utf-8") == one_host.picture(figures), again


def test_ratios_are_medians_of_paired_rounds_and_the_cheapest_comes_first() -> None:
    rounds = [{"scrapy": 10.0, "short": 1.0}, {"scrapy": 20.0, "short": 1.0}, {"scrapy": 10.0, "short": 3.0}]
    assert list(one_host.medians(rounds).items()) == [("short", (1.0, 0.1)), ("scrapy", (10.0, 1.0))]
