"""The reference of metrics has every row of the table, and nothing else."""

from __future__ import annotations

import re

from scrapy_ubi.agent.metrics.metric_table import METRICS
from scrapy_ubi.agent.metrics.profile_samples import MOST_WORDS
from tests.docs.test_documented import sections


def test_every_metric_is_documented_as_the_table_has_it() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", sections("metrics.md")["All metrics"], re.MULTILINE)
    told = [
        (one.name, [one.kind, ", ".join(f"`{label}`" for label in one.labels), one.meaning, one.teller])
        for one in METRICS
    ]
    assert [(name, [cell.strip() for cell in rest.split("|")]) for name, rest in rows] == told


def test_every_label_is_explained() -> None:
    explained = sections("metrics.md")["Names and labels"]
    labels = {label for one in METRICS for label in one.labels} - {"version", "incarnation", "spider"}
    assert all(f"| `{label}`" in explained or f", `{label}` |" in explained for label in labels)
    assert MOST_WORDS == 20 and "At most twenty" in explained
