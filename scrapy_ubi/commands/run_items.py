"""The one file of items at the end of `scrapy ubi run`, of what all agents have kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy_ubi.commands import collect
from scrapy_ubi.commands.run_plan import RunPlan
from scrapy_ubi.outputs.collector import UbiNothingCollected


def collect_items(plan: RunPlan, run: str) -> list[str]:
    """Write the files; a sentence for each. `run`: that of the crawl, '' where it is not known. Raises UbiError."""
    said: list[str] = []
    for path in plan.files.collected:
        asked = argparse.Namespace(kind="items", output=path, dir=[], run=run or None, crawl=plan.crawl, json=False)
        try:
            said += collect.run(plan.seen, asked).lines
        except UbiNothingCollected:
            Path(path).write_bytes(b"")
            said.append(f"{path}: there are no items.")
    return said
